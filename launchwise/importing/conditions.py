"""Checks the conditions of T1 against the rows of the files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from launchwise.base.expressions import evaluate
from launchwise.base.names import assigned
from launchwise.importing.members import Batch, Member
from launchwise.importing.t1 import Space
from launchwise.workloads.parts import Value

MOST_SPANNED = 2_000_000
"""Largest product of values of which conditions may tell the feasible ones."""

NEVER_RAN = ("failed", "out_of_memory")
"""Status of rows that may break a condition: they are what it forbids."""

Configuration = tuple[tuple[str, Value], ...]


def checked_conditions(batch: Batch) -> list[str]:
    """Conditions of T1 that hold for every row that ran; rows that failed and break one go.

    A condition that cannot be read, or that a row breaks which ran, is told with that row: then
    there are none, and the listed configurations are the space.
    """
    space = batch.asked.space
    if space is None or not (space.constraints or space.unread):
        return []
    doubts = [
        f"condition {text!r} of T1 cannot be read: {why.removeprefix(repr(text)).strip()}"
        for text, why in space.unread.items()
    ]
    spanned = _spanned(batch, space)
    if spanned > MOST_SPANNED:
        doubts.append(f"{spanned} combinations of values are too many for the conditions of T1")
    ran = _ran(batch.members)
    forbidden: dict[Configuration, None] = {}
    constraints = []
    for text in space.constraints:
        own = _renamed(text, batch.names)
        broken, unclear = _broken(own, ran)
        broken_by = [each for each in broken if ran[each]]
        if unclear:
            doubts.append(f"condition {text!r} of T1 has no value for {unclear}")
        elif broken_by:
            told = f"{len(broken_by)} of {len(ran)} rows break it, such as {_told(broken_by[0])}"
            doubts.append(f"condition {text!r} of T1: {told}")
        forbidden.update((each, None) for each in broken if not ran[each])
        constraints.append(own)
    if doubts:
        none = "no condition of T1 is taken: the listed configurations are the space"
        batch.notes += [*doubts, none]
        return []
    if forbidden:
        told = f"left out, such as {_told(next(each for each in ran if each in forbidden))}"
        batch.notes.append(f"{len(forbidden)} failed rows break a condition and are {told}")
        batch.members = [_without(member, forbidden) for member in batch.members]
    return constraints


def _renamed(text: str, names: Mapping[str, str]) -> str:
    if not names:
        return text
    pattern = r"\b(" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + r")\b"
    return re.sub(pattern, lambda found: names[found[1]], text)


def _spanned(batch: Batch, space: Space) -> int:
    known = {
        theirs: {value for member in batch.members for value in member.sweep.tunables[ours]}
        for theirs, ours in batch.names.items()
    }
    return math.prod(len({*space.tunables.get(name, []), *each}) for name, each in known.items())


def _ran(members: Iterable[Member]) -> dict[Configuration, bool]:
    """Configuration to whether a row of it ran, in the order of the files."""
    found: dict[Configuration, bool] = {}
    for row in (row for member in members for row in member.sweep.rows):
        key = tuple(row.configuration.items())
        found[key] = found.get(key, False) or row.status not in NEVER_RAN
    return found


def _broken(condition: str, listed: Iterable[Configuration]) -> tuple[list[Configuration], str]:
    """Configurations that break a condition, and words for the first of which it has no value."""
    found, unclear = [], ""
    for configuration in listed:
        try:
            if not evaluate(condition, dict(configuration)):
                found.append(configuration)
        except ValueError as error:
            unclear = unclear or f"{_told(configuration)}: {error}"
    return found, unclear


def _told(configuration: Configuration) -> str:
    return assigned(dict(configuration))


def _without(member: Member, forbidden: Mapping[Configuration, None]) -> Member:
    rows = [row for row in member.sweep.rows if tuple(row.configuration.items()) not in forbidden]
    return replace(member, sweep=replace(member.sweep, rows=rows))
