"""A table of answers as a Python module that needs nothing but Python."""

from __future__ import annotations

from collections.abc import Iterable
from pprint import pformat

from launchwise.exporting.conditions import python_expression
from launchwise.exporting.formulas import UsualRule
from launchwise.exporting.table import AnswerTable
from launchwise.workloads.launch_shapes import LaunchExpressions

TEMPLATE = '''\
"""What to launch, by device and problem: written by launchwise export.

Needs Python 3.8 or newer and no package.

    recommend(device_name, {example})
"""

TITLE = {title}
# Commits at which it was measured.
COMMITS = {commits}
# Version of launchwise, and the day of the newest measurement.
VERSION = {version}
DAY = {day}
# Device to when and with what it was measured.
MEASURED = {measured}
PARAMETERS = {parameters}
TUNABLES = {tunables}
TEXTS = {texts}
DEVICES = {devices}
DEFAULT = {default}
NEUTRAL = {neutral}
# Number of the device, problem, configuration, time (ms), gain over the usual choice, basis.
ENTRIES = {entries}


def recommend(device, **problem):
    """The configuration to launch, with ``time_ms``, ``gain``, ``basis`` and ``problem``.

    None for a problem that no configuration may run: see ``can_run``. A size that is not listed has
    the configuration of the entry nearest in size: ``basis`` is then ``nearest``, ``problem`` that
    of the entry, whose time is no time of this size. An unknown device has the usual choice of an
    experienced engineer, or the default where there is none. ``time_ms`` and ``gain`` (usual time /
    this time) are None where unknown. ``launches`` says how it is launched: see ``launches_of``.
    """
    if set(problem) != set(PARAMETERS):
        raise TypeError("recommend(device, " + ", ".join(PARAMETERS) + ")")
    asked = [problem[name] for name in PARAMETERS]
    if not can_run(**problem):
        return None
    numbers = [place for place, names in enumerate(DEVICES) if device in names]
    best, least = (None, (), DEFAULT, None, None, "default"), float("inf")
    for entry in ENTRIES:
        if not numbers or entry[0] != numbers[0]:
            continue
        distance = _distance(asked, entry[1])
        if distance < least:
            best, least = entry, distance
    _, known, configuration, time_ms, gain, basis = best
    chosen = dict(zip(TUNABLES, configuration))
    if basis == "default":
        usual = usual_choice(**problem)
        if usual is not None:
            chosen, known, basis = usual, asked, "usual"
    elif list(known) != asked:
        time_ms, gain, basis = None, None, "nearest"
    answer = dict(time_ms=time_ms, gain=gain, basis=basis, problem=dict(zip(PARAMETERS, known)))
    return dict(chosen, launches=launches_of(problem, chosen), **answer)


def usual_choice({arguments}):
    """What an experienced engineer takes for a problem; None where nothing is usual."""
    names = dict(zip(PARAMETERS, [{arguments}]))
    for when, values, conditions in _USUAL:
        chosen = dict(zip(TUNABLES, NEUTRAL))
        if not when(dict(names, **chosen)):
            continue
        for name, value in values:
            chosen[name] = value(dict(names, **chosen))
        return chosen if all(holds(dict(names, **chosen)) for holds in conditions) else None
    return None


def launches_of(problem, configuration):
    """Blocks, grids and dynamic shared memory of the kernels that a configuration launches.

    Each is a dictionary with ``kernel``, ``block``, ``grid`` and ``shared_bytes`` (None where host
    code decides). An empty ``kernel`` is the main one of host code, which may launch others. Empty
    where host code decides everything.
    """
    names = {{name: configuration[name] for name in TUNABLES}}
    names.update(problem)
    found = []
    for kernel, block, grid, shared in _LAUNCHES.get(names["variant"], ()):
        sizes = [int(size(names)) for size in (*block, *grid)]
        if min(sizes) < 1:
            return []
        shared_bytes = None if shared is None else int(shared(names))
        found.append(
            dict(kernel=kernel, block=sizes[:3], grid=sizes[3:], shared_bytes=shared_bytes)
        )
    return found


def _ceil_div(above, below):
    return -(-above // below)


def _round_up(value, multiple):
    return _ceil_div(value, multiple) * multiple


def _next_power_of_2(value):
    return 1 << max(value - 1, 0).bit_length()


# Expressions of the workload. Derived names:
_DERIVED = {derived}
# Usual choices: condition, values, and what must hold of them.
_USUAL = {usual}
# Variant to its kernels: name, block, grid, dynamic shared memory.
_LAUNCHES = {launches}


def can_run({arguments}):
    """Whether some configuration may run a problem, by its ranges and constraints."""
    return bool({conditions})


def _distance(asked, known):
    found = 1.0
    for name, one, other in zip(PARAMETERS, asked, known):
        if name in TEXTS:
            found = found if one == other else float("inf")
        else:
            low, high = sorted((int(one), int(other)))
            found *= (high + 1) / (low + 1)
    return found
'''


def python_module(table: AnswerTable) -> str:
    """Text of the module."""
    entries = [
        (one.device, one.problem, one.configuration, one.time_ms, one.gain, one.basis)
        for one in table.entries
    ]
    listed = "[\n" + "".join(f"    {entry!r},\n" for entry in entries) + "]"
    return TEMPLATE.format(
        title=repr(table.title),
        commits=repr(list(table.commits)),
        example=", ".join(f"{name}=..." for name in table.parameters),
        parameters=repr(table.parameters),
        tunables=repr(table.tunables),
        texts=repr(sorted(table.texts)),
        version=repr(table.version),
        day=repr(table.day),
        measured=pformat({one.name: one.measured for one in table.devices}),
        devices=pformat([one.names for one in table.devices]),
        default=repr(table.default),
        entries=listed,
        arguments=", ".join(table.parameters),
        neutral=repr(table.neutral),
        derived=_mapping(
            (repr(name), _function(text, table)) for name, text in table.formulas.derived
        ),
        usual=_listed(_rule(one, table) for one in table.formulas.usual),
        launches=_mapping(
            (repr(variant), _listed((_kernel(one, table) for one in kernels), indent=8))
            for variant, kernels in table.formulas.launches.items()
        ),
        conditions=" and ".join(f"({one})" for one in table.limits.texts) or "True",
    )


def _function(text: str, table: AnswerTable) -> str:
    return f"lambda names: {python_expression(text, dict(table.formulas.derived))}"


def _rule(rule: UsualRule, table: AnswerTable) -> str:
    values = "".join(f"({name!r}, {_function(text, table)}), " for name, text in rule.configuration)
    holds = "".join(f"{_function(text, table)}, " for text in rule.conditions)
    return f"({_function(rule.when, table)}, [{values}], [{holds}])"


def _kernel(one: LaunchExpressions, table: AnswerTable) -> str:
    block, grid = (
        ", ".join(_function(text, table) for text in texts) for texts in (one.block, one.grid)
    )
    shared = "None" if one.shared_bytes is None else _function(one.shared_bytes, table)
    return f"({one.kernel!r}, [{block}], [{grid}], {shared})"


def _listed(lines: Iterable[str], indent: int = 4) -> str:
    return "[\n" + "".join(f"{' ' * indent}{line},\n" for line in lines) + " " * (indent - 4) + "]"


def _mapping(pairs: Iterable[tuple[str, str]]) -> str:
    return "{\n" + "".join(f"    {name}: {value},\n" for name, value in pairs) + "}"
