"""Checks the conditions of T1 against the rows of the files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from launchwise.base.expressions import evaluate
from launchwise.importing.members import Member, Options
from launchwise.importing.naming import renamed_condition
from launchwise.workloads.parts import Value

MOST_SPANNED = 2_000_000
"""Largest product of values of which conditions may tell the feasible ones."""

NEVER_RAN = ("failed", "out_of_memory")
"""Status of rows that may break a condition: they are what it forbids."""

Configuration = tuple[Value, ...]


@dataclass(frozen=True)
class Checked:
    """Conditions that define the space, and the sweeps without what they forbid.

    Parameters
    ----------
    constraints
        All conditions of T1, with the names of the spec; empty where one cannot be taken: then the
        listed configurations are the space.
    """

    constraints: list[str]
    members: list[Member]


@dataclass
class _Broken:
    """Configurations that break a condition."""

    ran: list[Configuration] = field(default_factory=list)
    never_ran: list[Configuration] = field(default_factory=list)
    unclear: str = ""


def checked_conditions(
    members: list[Member], names: Mapping[str, str], asked: Options, notes: list[str]
) -> Checked:
    """Conditions of T1 that hold for every row.

    ``notes`` gets a sentence for each condition that cannot be read, or that a row breaks which
    ran, with that row. Rows that failed may break one: they are left out, which is said.

    Parameters
    ----------
    names
        Tunables of the files to those of the spec.
    """
    if asked.space is None or not (asked.space.constraints or asked.space.unread):
        return Checked([], members)
    doubts = [
        f"condition {text!r} of T1 cannot be read: {why.removeprefix(repr(text)).strip()}"
        for text, why in asked.space.unread.items()
    ]
    spanned = _spanned(members, names, asked)
    if spanned > MOST_SPANNED:
        doubts.append(f"{spanned} combinations of values are too many for the conditions of T1")
    columns = list(names.values())
    ran = _ran(members, columns)
    forbidden: set[Configuration] = set()
    constraints = []
    for text in asked.space.constraints:
        own = renamed_condition(text, names)
        broken = _broken(own, columns, ran)
        doubts += _doubts(text, broken, columns, len(ran))
        forbidden.update(broken.never_ran)
        constraints.append(own)
    if doubts:
        notes += [*doubts, "no condition of T1 is taken: the listed configurations are the space"]
        return Checked([], members)
    if not forbidden:
        return Checked(constraints, members)
    told = _told(columns, min(forbidden, key=list(ran).index))
    notes.append(f"{len(forbidden)} failed rows break a condition and are left out, such as {told}")
    return Checked(constraints, [_without(member, columns, forbidden) for member in members])


def _spanned(members: list[Member], names: Mapping[str, str], asked: Options) -> int:
    listed = asked.space.tunables if asked.space else {}
    return math.prod(
        len({*listed.get(theirs, []), *(v for m in members for v in m.sweep.tunables[ours])})
        for theirs, ours in names.items()
    )


def _ran(members: Iterable[Member], columns: list[str]) -> dict[Configuration, bool]:
    """Configuration to whether a row of it ran, in the order of the files."""
    found: dict[Configuration, bool] = {}
    for member in members:
        for row in member.sweep.rows:
            key = tuple(row.configuration[name] for name in columns)
            found[key] = found.get(key, False) or row.status not in NEVER_RAN
    return found


def _broken(condition: str, columns: list[str], ran: Mapping[Configuration, bool]) -> _Broken:
    found = _Broken()
    for configuration, one_ran in ran.items():
        try:
            holds = bool(evaluate(condition, dict(zip(columns, configuration, strict=True))))
        except ValueError as error:
            found.unclear = found.unclear or f"{_told(columns, configuration)}: {error}"
            continue
        if not holds:
            (found.ran if one_ran else found.never_ran).append(configuration)
    return found


def _doubts(text: str, broken: _Broken, columns: list[str], count: int) -> list[str]:
    if broken.unclear:
        return [f"condition {text!r} of T1 has no value for {broken.unclear}"]
    if not broken.ran:
        return []
    told = _told(columns, broken.ran[0])
    return [f"condition {text!r} of T1: {len(broken.ran)} of {count} rows break it, such as {told}"]


def _told(columns: list[str], configuration: Configuration) -> str:
    return ", ".join(f"{n}={v}" for n, v in zip(columns, configuration, strict=True))


def _without(member: Member, columns: list[str], forbidden: set[Configuration]) -> Member:
    rows = [
        row
        for row in member.sweep.rows
        if tuple(row.configuration[name] for name in columns) not in forbidden
    ]
    return replace(member, sweep=replace(member.sweep, rows=rows))
