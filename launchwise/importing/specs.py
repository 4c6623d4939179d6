"""The spec of a workload without a kernel: its space from files, T1 and the user."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError, raising, unknown
from launchwise.base.expressions import check_names, evaluate, substituted
from launchwise.base.names import SPEC_FILE, assigned
from launchwise.base.storage import own_place, whole_file, write_text
from launchwise.base.typed import validated, yaml_text
from launchwise.importing.foreign_sweep import Configuration
from launchwise.importing.members import STATED, Batch, Member, own_names
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

FEASIBLE_FILE = "feasible.parquet"

UNKNOWN_BYTES = "1"  # Least bytes of a problem if unknown: one byte holds for every problem

UNKNOWN_FLOP = "0"


def spec_content(batch: Batch, name: str, constraints: Sequence[str] = ()) -> dict[str, Any]:
    """Content of ``spec.yaml``, without the feasible set. ``constraints``: conditions that define
    the space; empty where none do."""
    members, asked = batch.members, batch.asked
    if strange := [m for m in members if m.problem.keys() != members[0].problem.keys()]:
        message = f"has other problem parameters than {members[0].sweep.source}"
        raise UserError(strange[0].sweep.source, "problem_size", message)
    kernels = [member.sweep.kernel_name for member in members if member.sweep.kernel_name]
    variant = own_names([kernels[0] if kernels else name])
    told = kernels[0] if kernels else name
    numeric = [
        key
        for key, v in members[0].problem.items()
        if isinstance(v, int) and all(int(member.problem[key]) > 0 for member in members)
    ]
    values = _values_of_tunables(batch)
    formats = ", ".join(dict.fromkeys(member.sweep.format for member in members))
    chosen = next(iter(variant.values()))
    content: dict[str, Any] = {
        "workload": name,
        "title": asked.title or f"{told} (imported)",
        "description": (
            f"Sweeps of the kernel {told}, imported from {formats}. "
            f"{asked.source + '. ' if asked.source else ''}The kernel itself is not included: "
            "studies learn from its sweeps, but it cannot be measured."
        ),
        "problem": {key: _problem_entry(key, members) for key in members[0].problem},
        "tunables": {
            ours: {
                "kind": "build",
                "values": values[ours],
                "neutral": values[ours][0],
                "description": f"{theirs} of the imported files",
            }
            for theirs, ours in batch.names.items()
        },
        "variants": {chosen: {"title": told, "tunables": list(batch.names.values())}},
        "baseline": {"variant": chosen, **_baseline(batch, values)},
        "work": _work(numeric, batch),
        "findings": {STATED: "time that the file states, ms; time_ms is the median of the repeats"},
    }
    if asked.bytes is None:
        unknown_bytes = "least bytes of the problem are unknown: no bandwidth is computed (--bytes)"
        batch.notes.append(unknown_bytes)
    if constraints:
        content["constraints"] = list(constraints)
    return content


def _values_of_tunables(batch: Batch) -> dict[str, list[Value]]:
    """Our name of each tunable to its values, ascending: those of the files and of T1."""
    of_space = batch.asked.space.tunables if batch.asked.space else {}
    found: dict[str, list[Value]] = {}
    for theirs, ours in batch.names.items():
        known = [value for member in batch.members for value in member.sweep.tunables[ours]]
        # Values of the files are texts or integers, and so are those that T1 alone lists.
        texts = any(isinstance(value, str) for value in known)
        listed = [str(value) if texts else value for value in of_space.get(theirs, [])]
        of_kind = (value for value in listed if isinstance(value, str) == texts)
        found[ours] = sorted({*known, *of_kind})
    return found


def _work(numeric: Sequence[str], batch: Batch) -> dict[str, str]:
    asked = batch.asked
    items = " * ".join(numeric) or "1"
    problems = [{name: member.problem[name] for name in numeric} for member in batch.members]
    for key, text in (("bytes", asked.bytes), ("flop", asked.flop), ("problem", items)):
        if text is not None:
            _check_expression(key, text, problems)
    return {
        "items": items,
        "item": "work items" if numeric else "problems",
        "bytes": asked.bytes or UNKNOWN_BYTES,
        "flop": asked.flop or UNKNOWN_FLOP,
        "footprint_bytes": asked.bytes or UNKNOWN_BYTES,
    }


def _check_expression(key: str, text: str, problems: Sequence[Mapping[str, Value]]) -> None:
    """Insist that an expression is a number for each problem of the files. Raises UserError with
    the problem for which it is none."""
    with raising(lambda _, message: UserError("import", key, message)):
        check_names("", text, problems[0])
    for problem in problems:
        told = assigned(problem)
        try:
            value = evaluate(text, problem)
            number = float(value) if isinstance(value, int | float) else math.nan
        except (ValueError, OverflowError) as error:
            raise UserError("import", key, f"for {told}: {error}") from error
        if not (math.isfinite(number) and number >= 0):
            raise UserError("import", key, f"{text!r} is no number from 0 on for {told}")


def _problem_entry(key: str, members: list[Member]) -> dict[str, Any]:
    values = list(dict.fromkeys(member.problem[key] for member in members))
    if whole := [value for value in values if isinstance(value, int)]:
        least = min(1, *whole)
        return {"type": "integer", "minimum": least, "description": "size, as the files state it"}
    return {
        "type": "category",
        "values": sorted(map(str, values)),
        "description": "which problem; its size is not stated",
    }


def _baseline(batch: Batch, values: Mapping[str, Sequence[Value]]) -> dict[str, Value]:
    """Default configuration: the user's, else T1's if measured, else the first timed everywhere."""
    members, asked = batch.members, batch.asked
    if asked.baseline:
        return _named_baseline(batch)
    timed = [member.sweep.times_ms for member in members]
    if empty := [member for member, times in zip(members, timed, strict=True) if not times]:
        raise UserError(empty[0].sweep.source, "", "holds no configuration with a time")
    everywhere = [key for key in timed[0] if all(key in other for other in timed[1:])]
    defaults = asked.space.defaults if asked.space else {}
    # Tunables that have other values than integers hold texts.
    wanted = tuple(
        (ours, str(defaults[theirs]) if isinstance(values[ours][0], str) else defaults[theirs])
        for theirs, ours in batch.names.items()
        if theirs in defaults
    )
    if wanted in everywhere:
        batch.notes.append("baseline: the defaults of T1")
        return dict(wanted)
    if not everywhere and all(len(member.sweep.rows) == 1 for member in members):
        message = "holds one row per problem: winners alone, which are no sweep (see"
        raise UserError(members[0].sweep.source, "", f"{message} launchwise import-shipped)")
    if not everywhere:
        message = "no configuration has a time for every problem: name one with --baseline"
        raise UserError("import", "baseline", message)
    batch.notes.append(
        f"baseline: no file states a default; {_told(everywhere[0])} is the first "
        "configuration of the first file with a time in all files (--baseline names another)"
    )
    return dict(everywhere[0])


def _named_baseline(batch: Batch) -> dict[str, Value]:
    given, found = batch.asked.baseline, dict[str, Value]()
    for name in given:
        if name not in batch.names:
            raise UserError("import", "baseline", unknown("tunable", name, batch.names))
    for name, ours in batch.names.items():
        values = [value for member in batch.members for value in member.sweep.tunables[ours]]
        if name not in given and len(set(values)) > 1:
            raise UserError("import", "baseline", f"{name} is missing")
        value = given.get(name, values[0])
        found[ours] = str(value) if isinstance(values[0], str) else value
        if found[ours] not in values:
            raise UserError("import", "baseline", unknown(f"value of {name}", value, set(values)))
    return found


def write_spec(target: Path, content: dict[str, Any], batch: Batch) -> None:
    """Write ``spec.yaml``; beside it the feasible configurations if no conditions define them."""
    listed = dict.fromkeys(
        tuple(row.configuration.values()) for member in batch.members for row in member.sweep.rows
    )
    spec = validated(Spec, content, target / SPEC_FILE)
    space, told = batch.asked.space, ""
    if spec.constraints:
        told = f"the {len(spec.constraints)} conditions of T1"
    elif math.prod(len(entry.values) for entry in spec.tunables.values()) == len(listed):
        told = "the product of all values"
    elif space and not (space.constraints or space.unread):
        told = "the product of all values, as T1 states no condition"
    own_place(target / FEASIBLE_FILE).unlink(missing_ok=True)
    if not told:
        content["feasible"] = FEASIBLE_FILE
        variant = next(iter(content["variants"]))
        table = pd.DataFrame(list(listed), columns=list(content["tunables"]))
        table.insert(0, "variant", variant)
        with whole_file(target / FEASIBLE_FILE) as scratch:
            table.to_parquet(scratch, compression="zstd", index=False)
        batch.notes.append(
            f"space: the {len(listed)} configurations that the files list, in {FEASIBLE_FILE}; "
            "the files do not state which others are feasible"
        )
    else:
        batch.notes.append(f"space: {told}; the files list {len(listed)} configurations")
    head = (
        "# Written by an import. Edit the texts freely; columns and values are those of the rows.\n"
    )
    write_text(target / SPEC_FILE, head + yaml_text(content))


MOST_SPANNED = 2_000_000  # Largest product of values of which conditions may tell the feasible ones

NEVER_RAN = ("failed", "out_of_memory")
"""Status of rows that may break a condition: they are what it forbids."""


def checked_conditions(batch: Batch) -> list[str]:
    """Conditions of T1 that hold for every row that ran; rows that failed and break one go. A
    condition that cannot be read, or that a row breaks which ran, is told with that row: then there
    are none, and the listed configurations are the space."""
    space = batch.asked.space
    if space is None or not (space.constraints or space.unread):
        return []
    doubts = [
        f"condition {text!r} of T1 cannot be read: {why.removeprefix(repr(text)).strip()}"
        for text, why in space.unread.items()
    ]
    spanned = math.prod(map(len, _values_of_tunables(batch).values()))
    if spanned > MOST_SPANNED:
        doubts.append(f"{spanned} combinations of values are too many for the conditions of T1")
    ran = _ran(batch.members)
    forbidden: dict[Configuration, None] = {}
    constraints = []
    renamed = {theirs: ours for theirs, ours in batch.names.items() if theirs != ours}
    for text in space.constraints:
        own = substituted(text, renamed)
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
        for place, member in enumerate(batch.members):
            allowed = [row for row in member.sweep.rows if row.key not in forbidden]
            batch.members[place] = replace(member, sweep=replace(member.sweep, rows=allowed))
    return constraints


def _ran(members: Iterable[Member]) -> dict[Configuration, bool]:
    """Configuration to whether a row of it ran, in the order of the files."""
    found: dict[Configuration, bool] = {}
    for row in (row for member in members for row in member.sweep.rows):
        found[row.key] = found.get(row.key, False) or row.status not in NEVER_RAN
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
