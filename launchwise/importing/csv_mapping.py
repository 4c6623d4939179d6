"""Reads plain CSV with a mapping of its columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import real, whole
from launchwise.base.storage import Record, Records, records_in
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.importing.foreign_sweep import (
    TO_MS,
    ForeignSweep,
    Row,
    as_time,
    as_value,
    mean,
    notes_on_unit,
    row_of,
    sweep_of,
)
from launchwise.importing.kernel_tuner import OVERHEADS, TIME
from launchwise.importing.opening import read_text
from launchwise.workloads.parts import Value


class Mapped(Strict, title="columns of a CSV file"):
    """Which column of a CSV file holds what."""

    device: str = Field("", description="name of the device, which the file does not state")
    devices: str | None = Field(
        None, description="column with the name of the device, where rows are of several"
    )
    kernel: str = Field("", description="name of the kernel")
    problem: list[str] = Field([], description="columns of problem parameters")
    tunables: list[str] = Field(min_length=1, description="columns of tunables, in order")
    time: str | None = Field(
        None, description="column of the time; the mean of repeats if left out"
    )
    repeats: list[str] = Field([], description="columns with the time of one repeat each")
    unit: Literal["s", "ms", "us", "ns"] = Field(description="unit of all times")
    decimal: Literal[".", ","] = Field(".", description="decimal sign of times")
    status: str | None = Field(None, description="column that says whether a row has a valid time")
    ok: list[str] = Field(
        ["ok", "correct", "valid", "true", "1", ""],
        description="values of the column `status` of rows with a valid time, in any case",
    )
    registers: str | None = Field(None, description="column of registers per thread")
    delimiter: str = Field(",", min_length=1, max_length=1, description="between two fields")

    @property
    def named(self) -> list[str]:
        one = (self.devices, self.time, self.status, self.registers)
        return [*self.problem, *self.tunables, *self.repeats, *(each for each in one if each)]


def read_mapping(path: str | Path) -> Mapped:
    """Mapping in a YAML file. Raises UserError, one line: the key, and what is allowed."""
    return validated(Mapped, read_yaml(path), path)


def read_csv(path: str | Path, mapped: Mapped, text: str | None = None) -> list[ForeignSweep]:
    """Sweeps in a CSV file, or in its ``text`` where that has been read: one per device and
    problem. Raises UserError when it is no CSV, lacks a column that ``mapped`` names, has a row of
    more or fewer fields than its first line, or a time is written in a way that ``mapped`` does not
    say."""
    text = read_text(path) if text is None else text
    if mapped.time is None and not mapped.repeats:
        listed = ", ".join(columns_in(text)) or "none"
        message = "neither a column of times nor of repeats is named"
        raise UserError(path, "time", f"{message} (time or repeats; columns: {listed})")
    columns, records = _records(path, text, mapped)
    by_group: dict[tuple[Value, ...], list[Row]] = {}
    for number, record in records:
        device = record[mapped.devices] if mapped.devices else mapped.device
        group = (device, *(as_value(record[name]) for name in mapped.problem))
        by_group.setdefault(group, []).append(_row(record, mapped, f"{path}:{number}"))
    notes = notes_on_unit(mapped.unit)
    if left := [name for name in columns if name not in mapped.named]:
        notes.append(f"not taken over: {', '.join(left)}")
    return [
        sweep_of(
            path,
            "CSV",
            rows,
            "{}",
            mapped.tunables,
            device=device,
            kernel=mapped.kernel,
            problem=dict(zip(mapped.problem, problem, strict=True)),
            notes=[*notes, *_left_out(rows, mapped)],
        )
        for (device, *problem), rows in by_group.items()
    ]


DELIMITERS = (",", ";", "\t", "|")


def table_in(text: str) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a text whose delimiter is not known; none where it is no table."""
    for delimiter in DELIMITERS:
        try:
            handle = io.StringIO(text, newline="")
            given = csv.reader(handle, delimiter=delimiter, skipinitialspace=True, strict=True)
            lines = [[field.strip() for field in fields] for fields in given if any(fields)]
        except csv.Error:
            continue
        if lines and len(lines[0]) > 1 and all(len(line) == len(lines[0]) for line in lines[:9]):
            return lines[0], lines[1:]
    return [], []


def columns_in(text: str) -> list[str]:
    """Columns of a text whose delimiter is not known; none where it is no table."""
    return [name for name in table_in(text)[0] if name]


def rows_of_tuner(text: str) -> list[dict[str, Any]] | None:
    """Rows of a table of Kernel Tuner's results, as pandas writes it; None where it is another."""
    columns, rows = table_in(text)
    if TIME not in columns or not any(name in columns for name in ("times", *OVERHEADS)):
        return None
    named = [(place, name) for place, name in enumerate(columns) if name]
    return [
        {name: _cell(fields[place]) for place, name in named if fields[place]}
        for fields in rows
        if len(fields) == len(columns)
    ] or None


def _cell(text: str) -> Any:
    return next((one for one in (whole(text), real(text)) if one is not None), text)


def _records(path: str | Path, text: str, mapped: Mapped) -> Records:
    columns, records = records_in(path, text, delimiter=mapped.delimiter)
    if not columns:
        raise UserError(path, "", "is empty")
    for name in mapped.named:
        if name not in columns:
            raise UserError(path, name, unknown("column", name, columns))
        if columns.count(name) > 1:
            raise UserError(path, name, "two columns have this name")
    if not records:
        raise UserError(path, "", "holds no row")
    return columns, records


def _left_out(rows: Sequence[Row], mapped: Mapped) -> list[str]:
    count = sum(0 < len(row.times_ms) < len(mapped.repeats) for row in rows)
    return [f"{count} rows lack some of their repeats"] if count else []


_NUMBER = re.compile(r"[+-]?[.,]?\d")


def _time(text: str, mapped: Mapped, where: str, column: str) -> float | None:
    """A time in ms; None for words in its place, and for what is no time (0, NaN)."""
    plain = text.replace(",", ".") if mapped.decimal == "," else text
    time = as_time(plain)
    if time is not None:
        return time * TO_MS[mapped.unit]
    if real(plain) is None and _NUMBER.match(text):
        message = f"{text!r} is no number with the decimal sign {mapped.decimal!r}"
        raise UserError(where, column, message)
    return None


def _row(record: Record, mapped: Mapped, where: str) -> Row:
    # An empty field is a repeat that was not made; any other that is no time spoils the row's.
    repeats = [_time(record[n], mapped, where, n) for n in mapped.repeats if record[n]]
    times = () if None in repeats else tuple(each for each in repeats if each is not None)
    written = record[mapped.time] if mapped.time else ""
    time = _time(written, mapped, where, mapped.time) if mapped.time else mean(times)
    state = record[mapped.status] if mapped.status else ""
    valid = state.lower() in {each.lower() for each in mapped.ok}
    return row_of(
        {name: record[name] for name in mapped.tunables},
        time if valid else None,
        times,
        "" if valid and time is not None else state if not valid else written,
        compiled={"registers": record[mapped.registers]} if mapped.registers else None,
    )
