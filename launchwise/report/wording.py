"""Names and number formats of the report, the same everywhere."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from numbers import Integral
from typing import Any

from launchwise.base.names import assigned
from launchwise.exporting.worth import Line, Worth
from launchwise.learning.answers import MEASURED
from launchwise.report.blocks import MISSING
from launchwise.workloads.spec import Spec


def is_missing(value: Any) -> bool:
    """Whether there is no number: None or not finite."""
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def number(value: Any, digits: int = 3) -> str:
    """A number to ``digits`` significant digits, without an exponent where it stays readable."""
    if is_missing(value):
        return MISSING
    value = float(value)
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if places > digits + 4:
        return f"{value:.{digits - 1}e}"
    return f"{round(value, places):.{max(places, 0)}f}"


def fixed(value: Any, places: int = 3) -> str:
    """A number with a fixed count of decimals, for columns that are compared digit by digit."""
    return MISSING if is_missing(value) else f"{float(value):.{places}f}"


def percent(share: Any, places: int = 1) -> str:
    """A share (1 is all) in percent, without the sign: the column's heading has it."""
    return MISSING if is_missing(share) else f"{100 * float(share):.{places}f}"


def interval(ends: tuple[float, float] | None, places: int = 3) -> str:
    """``0.941 to 0.978``."""
    if ends is None or any(is_missing(each) for each in ends):
        return MISSING
    return f"{ends[0]:.{places}f} to {ends[1]:.{places}f}"


def span(values: Iterable[float], places: int = 2) -> str:
    """``0.94 to 0.98``, the least and the largest; once where they are written alike."""
    written = [fixed(value, places) for value in sorted(values)]
    return " to ".join(dict.fromkeys([*written[:1], *written[-1:]])) or MISSING


def count(value: Any) -> str:
    """A whole number with narrow gaps between thousands."""
    return MISSING if is_missing(value) else f"{int(value):,}".replace(",", "\u202f")


def plural(value: int, one: str, many: str = "") -> str:
    """``1 problem``, ``2 problems``."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def listed(names: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    found = list(names)
    if len(found) < 2:
        return "".join(found)
    return f"{', '.join(found[:-1])} and {found[-1]}"


NEVER_CHOSEN = "not verified: timed, never recommended"
"""Words for a variant whose results cannot be verified."""

MOST_IN_A_SHAPE = 3
"""Most launch tunables shown as a shape without names, such as the sides of a block."""


def _is_shape(names: Sequence[str], spec: Spec) -> bool:
    """Whether launch tunables form a shape: two or three integers of one unit."""
    numbers = all(isinstance(value, int) for name in names for value in spec.tunables[name].values)
    units = {spec.tunables[name].unit for name in names}
    return 1 < len(names) <= MOST_IN_A_SHAPE and numbers and len(units) == 1


def _shape_and_named(variant: str, spec: Spec) -> tuple[list[str], list[str]]:
    """Tunables of a variant that form its shape, and those shown by name."""
    used = [name for name in spec.tunables if name in spec.variants[variant].tunables]
    launch = [name for name in used if spec.tunables[name].kind == "launch"]
    build = [name for name in used if name not in launch]
    return (launch, build) if _is_shape(launch, spec) else ([], [*launch, *build])


def forms(spec: Spec) -> dict[str, tuple[list[str], list[str]]]:
    """Variant to the tunables of its shape and those shown by name: what :func:`configuration`
    writes in order."""
    return {variant: _shape_and_named(variant, spec) for variant in spec.variants}


def configuration(values: Mapping[Any, Any], spec: Spec) -> str:
    """Name of a configuration: ``block3d 64×4×1 row_padding=1``, or ``smem threads=64``.

    The variant, then the value of every tunable that it has, so that the name determines what runs.
    Two or three integer launch tunables of one unit form a shape without names; all others are
    ``name=value``, launch tunables first, texts quoted as in a shell where they hold spaces; what
    is not named is 0.
    :func:`configuration_key` states the order.
    """
    return namer(spec)(values)


def namer(spec: Spec) -> Callable[[Mapping[Any, Any]], str]:
    """:func:`configuration` of one workload, for many rows: the form of a variant is found once."""
    known, quoted = forms(spec), cache(shlex.quote)

    def name(values: Mapping[Any, Any]) -> str:
        variant = str(values["variant"])
        shape, named = known[variant]
        parts = [variant]
        if shape:
            parts.append("×".join(str(values[one]) for one in shape))
        parts += [f"{one}={quoted(str(values[one]))}" for one in named if values[one] != 0]
        return " ".join(parts)

    return name


def configuration_key(spec: Spec) -> list[tuple[str, str]]:
    """Explanation of :func:`configuration`: (form, meaning) of every variant, and of
    every tunable that the workload describes. A form
    names the tunables in the order of the values: ``block3d bx×by×bz row_padding=…``."""
    found = []
    for name, (shape, named) in forms(spec).items():
        variant = spec.variants[name]
        title = variant.title if variant.verified else f"{variant.title} ({NEVER_CHOSEN})"
        words = [name, *(["×".join(shape)] if shape else []), *(f"{one}=…" for one in named)]
        found.append((" ".join(words), title))
    for name, tunable in spec.tunables.items():
        if tunable.description:
            form = f"{name}=0/1" if set(tunable.values) == {0, 1} else f"{name}=…"
            found.append((form, with_unit(tunable.description, tunable.unit)))
    if any(0 in tunable.values for tunable in spec.tunables.values()):
        found.append(("not named", "0"))
    return found


def value(of: Any) -> str:
    """A value of a problem parameter, thousands of whole numbers apart."""
    return count(of) if isinstance(of, Integral) else str(of)


def problem(values: Mapping[Any, Any], names: Iterable[str], plain: bool = False) -> str:
    """``n=512, float32, order=8``: numbers carry their name, words do not. ``plain``: no gaps
    between thousands, as in a terminal, whose text becomes the next command."""
    written = str if plain else value
    return ", ".join(
        values[name] if isinstance(values[name], str) else f"{name}={written(values[name])}"
        for name in names
    )


def with_unit(name: str, unit: str) -> str:
    """``threads (rows)``, or the name alone."""
    return f"{name} ({unit})" if unit and unit != name else name


def moment(stamp: str) -> str:
    """An ISO time stamp to the minute, for people."""
    return f"{stamp[:16].replace('T', ' ')} UTC" if len(stamp) >= 16 else stamp


def short(commit: str) -> str:
    """The first twelve characters of a commit, with the mark of local changes kept."""
    head, plus, rest = commit.partition("+")
    return head[:12] + plus + rest


def worth_of_load(found: Worth) -> list[str]:
    """What tuning is worth, what keeps the usual choice, and when it is paid."""
    limits = "limits unknown"
    if found.interval:
        limits = (
            f"{interval(found.interval, 2)}: 90 % of what is expected, 95 % of what was measured"
        )
    load = "The whole load"
    if some := len(found.unanswered):
        share = percent(1 - found.covered)
        load = f"The load less {plural(some, 'problem')} without a time, {share} % of the launches,"
    lines = [
        f"{load} is {found.gain:.3g} times as fast as with the usual choices ({limits}): "
        f"{number(found.tuned_s)} s, not {number(found.usual_s)} s",
        _part(found, [one for one in found.lines if one.answer.basis == MEASURED], "measured"),
        _part(found, [one for one in found.lines if one.is_usual], "answered by the usual choice"),
    ]
    slower = [one for one in found.lines if one.is_slower]
    named = "; ".join(f"{assigned(one.answer.problem)} ({one.least:.3g})" for one in slower)
    words = "slower than with the usual choice or the default"
    lines.append(f"{_part(found, slower, words)}{': ' if named else ''}{named}")
    if found.tuning_s is not None:
        paid = "the load never pays it"
        if found.runs is not None:
            paid = f"paid after {plural(found.runs, 'run')} of the load"
        lines.append(f"The sweep of the whole workload took {number(found.tuning_s)} s: {paid}")
    return lines


def untimed(problems: int, launches: float, weight: float) -> str:
    """How problems of a load without a time choose builds; shares from 0 to 1."""
    return (
        f"{plural(problems, 'problem')} without a time, {percent(launches)} % of the launches: as "
        f"the nearest with one, scaled, {percent(weight)} % of what chooses builds"
    )


def _part(found: Worth, some: list[Line], words: str) -> str:
    share = percent(sum(one.share for one in some))
    of = plural(len(found.lines), "problem")
    return f"{len(some)} of {of}, {share} % of the time with the usual choices, are {words}"
