"""Reads plain CSV with a mapping of its columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from launchwise.base.errors import UserError, unknown
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.importing.files import read_text
from launchwise.importing.sweep import (
    SPELLED,
    TO_MS,
    ForeignSweep,
    Row,
    as_time,
    as_value,
    failure_status,
)
from launchwise.workloads.parts import Value

FORMAT = "CSV"


class Mapped(Strict, title="columns of a CSV file"):
    """Which column of a CSV file holds what."""

    device: str = Field("", description="name of the device, which the file does not state")
    kernel: str = Field("", description="name of the kernel")
    problem: list[str] = Field([], description="columns of problem parameters")
    tunables: list[str] = Field(min_length=1, description="columns of tunables, in order")
    time: str | None = Field(
        None, description="column of the time; the mean of repeats if left out"
    )
    repeats: list[str] = Field([], description="columns with the time of one repeat each")
    unit: Literal["s", "ms", "us", "ns"] = Field(description="unit of all times")
    status: str | None = Field(None, description="column that says whether a row has a valid time")
    ok: list[str] = Field(
        ["ok", "correct", "valid", "true", "1", ""],
        description="values of the column `status` of rows with a valid time, in small letters",
    )
    registers: str | None = Field(None, description="column of registers per thread")
    delimiter: str = Field(",", min_length=1, max_length=1, description="between two fields")


def read_mapping(path: str | Path) -> Mapped:
    """Mapping in a YAML file.

    Raises
    ------
    UserError
        One line: the key, and what is allowed.
    """
    return validated(Mapped, read_yaml(path), path)


def read_csv(path: str | Path, mapped: Mapped) -> list[ForeignSweep]:
    """Sweeps in a CSV file: one per problem.

    Raises
    ------
    UserError
        When the file is no CSV, or lacks a column that ``mapped`` names.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_text(path)), delimiter=mapped.delimiter)
        columns = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = columns
        records = list(reader)
    except csv.Error as error:
        raise UserError(path, "", f"is not CSV: {error}") from error
    named = [*mapped.problem, *mapped.tunables, *mapped.repeats]
    named += [each for each in (mapped.time, mapped.status, mapped.registers) if each]
    for name in named:
        if name not in columns:
            raise UserError(path, name, unknown("column", name, columns))
    if mapped.time is None and not mapped.repeats:
        raise UserError(path, "time", "neither a column of times nor of repeats is named")
    by_problem: dict[tuple[Value, ...], list[Row]] = {}
    for record in records:
        problem = tuple(as_value(record[name]) for name in mapped.problem)
        by_problem.setdefault(problem, []).append(_row(record, mapped))
    notes = []
    if mapped.unit != "ms":
        notes.append(f"converted from {SPELLED[mapped.unit]} to milliseconds")
    if left := [name for name in columns if name not in named]:
        notes.append(f"not taken over: {', '.join(left)}")
    return [
        ForeignSweep(
            source=str(path),
            format=FORMAT,
            device_name=mapped.device,
            kernel_name=mapped.kernel,
            problem=dict(zip(mapped.problem, problem, strict=True)),
            tunables=_values(rows, mapped.tunables),
            rows=rows,
            notes=list(notes),
        )
        for problem, rows in by_problem.items()
    ]


def _values(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Value]]:
    found = {name: {row.configuration[name] for row in rows} for name in names}
    return {
        name: sorted(values, key=lambda value: (isinstance(value, str), value))
        for name, values in found.items()
    }


def _row(record: Mapping[str, str | None], mapped: Mapped) -> Row:
    configuration = {name: as_value(record[name] or "") for name in mapped.tunables}
    to_ms = TO_MS[mapped.unit]
    found = [as_time(record[name]) for name in mapped.repeats]
    times = tuple(each * to_ms for each in found if each is not None)
    if len(times) < len(found):
        times = ()
    stated = as_time(record[mapped.time]) if mapped.time else None
    time = stated * to_ms if stated is not None else None
    if mapped.time is None and times:
        time = sum(times) / len(times)
    words = (record[mapped.status] or "").strip() if mapped.status else ""
    extra = {}
    if mapped.registers and isinstance(registers := as_value(record[mapped.registers] or ""), int):
        extra["registers"] = registers
    if words.lower() in mapped.ok and time is not None:
        return Row(configuration, "ok", "", times, time, extra)
    written = (record[mapped.time] or "").strip() if mapped.time else ""
    reason = (words if words.lower() not in mapped.ok else "") or written or "no time"
    return Row(configuration, failure_status(reason), reason, times, None, extra)
