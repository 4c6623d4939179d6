"""A table of answers as a Python module that needs nothing but Python."""

from __future__ import annotations

from pprint import pformat

from launchwise.exporting.table import AnswerTable

TEMPLATE = '''\
"""What to launch, by device and problem: written by launchwise export.

Needs Python 3.8 or newer and no package.

    recommend(device_name, {example})
"""

TITLE = {title}
# Commits at which it was measured.
COMMITS = {commits}
PARAMETERS = {parameters}
TUNABLES = {tunables}
TEXTS = {texts}
DEVICES = {devices}
DEFAULT = {default}
# Number of the device, problem, configuration, time (ms), gain over the usual choice, basis.
ENTRIES = {entries}


def recommend(device, **problem):
    """The configuration to launch, with ``time_ms``, ``gain``, ``basis`` and ``problem``.

    None for a problem that no configuration may run: see ``can_run``. A size that is not listed has
    the configuration of the entry nearest in size: ``basis`` is then ``nearest``, ``problem`` that
    of the entry, whose time is no time of this size. An unknown device has the default. ``time_ms``
    and ``gain`` (usual time / this time) are None where unknown.
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
    if basis != "default" and list(known) != asked:
        time_ms, gain, basis = None, None, "nearest"
    answer = dict(time_ms=time_ms, gain=gain, basis=basis, problem=dict(zip(PARAMETERS, known)))
    return dict(zip(TUNABLES, configuration), **answer)


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
        devices=pformat(list(table.devices)),
        default=repr(table.default),
        entries=listed,
        arguments=", ".join(table.parameters),
        conditions=" and ".join(f"({one})" for one in table.limits.texts) or "True",
    )
