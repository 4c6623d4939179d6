"""Published run times and their meaning, for comparison with predictions.

``published/run_times.yaml`` of a study says which columns of its published tables hold run times,
in which unit, of which problem and configuration on which card, and how many runs each covers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import inside
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.experiment.published import FOLDER, Records, is_number, read_records
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

FILE = Path(FOLDER, "run_times.yaml")  # Beside `study.yaml`
CARD = "gpu"  # Name of the card, among the names that columns and values give
MS = {"s": 1e3, "ms": 1.0, "us": 1e-3}  # Unit to milliseconds


class Series(Strict, title="series"):
    """Run times of one column of a published table."""

    title: str = Field(min_length=1)
    """what is timed, in a few words"""
    table: str = Field(min_length=1)
    """name of the CSV file beside, without `.csv`"""
    time: str = Field(min_length=1)
    """its column of run times"""
    unit: Literal["s", "ms", "us"]
    """unit of the times; that of the column's name, where the name ends in one"""
    runs: int | None = Field(None, ge=1)
    """runs of the workload that one time covers; left out where the source does not say: then only
    order and ratio to a common factor are compared"""
    columns: dict[str, str] = Field({})
    """`gpu`, problem parameters and tunables to the column that holds them"""
    values: dict[str, Value] = Field({})
    """those that are the same in all rows, to their value"""
    names: dict[str, dict[str, Value]] = Field({})
    """of `columns`: text in the table to our value, where they differ"""
    only: dict[str, list[str]] = Field({})
    """column of the table to the texts of rows that are taken"""
    skip_without: list[str] = Field([])
    """columns of the table; rows where one is empty are left out and counted"""
    free: list[str] = Field([])
    """tunables that the source leaves open, or that cannot be as printed: the predicted fastest
    value is taken"""
    phases: list[str] = Field([])
    """phases of `cost.yaml` that the time covers; the whole run when left out. Only the cost model
    predicts phases"""
    note: str = ""
    """what is assumed, for the report"""


class RunTimes(Strict, title="run_times.yaml"):
    """Published run times that predictions are compared with."""

    series: list[Series] = Field(min_length=1, description="in the order of the report")


@dataclass(frozen=True)
class RunTime:
    """One published run time."""

    series: str  # title of its series
    row: int  # number of its row in the CSV file; the heading is row 1
    card: str  # of `data/cards.csv`
    problem: Problem
    # ``variant`` and each of its tunables to the values that it may have. Without a variant: the
    # predicted fastest of the study's candidates, where they have the values named here.
    selection: Mapping[str, list[Value]]
    phases: tuple[str, ...]  # phases of the cost that the time covers; empty for the whole run
    runs: int | None  # runs that it covers; None where the source does not say
    time_ms: float  # as published, of all its runs
    source: str


@dataclass(frozen=True)
class Published:
    """Run times of a study's paper."""

    series: list[Series]
    times: list[RunTime]
    # Title of a series to the number of its rows that were left out (``skip_without``).
    skipped: dict[str, int]


def read_run_times(study: Path, spec: Spec, cards: Collection[str]) -> Published:
    """Published run times of a study; none where it has no such file.

    ``cards``: names of ``data/cards.csv``.
    Raises UserError in one line: naming the YAML file and its key, when a column, unit, name or
    value does not fit; naming the CSV file, row and column, when a card is unknown, a size is
    missing or no number, or a time is no positive number.
    """
    path = study / FILE
    if not path.is_file():
        return Published([], [], {})
    found = validated(RunTimes, read_yaml(path), path)
    times: list[RunTime] = []
    skipped: dict[str, int] = {}
    for number, series in enumerate(found.series):
        reader = _Reader(series, spec, cards, path, f"series.{number}")
        times += reader.times()
        skipped[series.title] = skipped.get(series.title, 0) + reader.skipped
    return Published(found.series, times, skipped)


class _Reader:
    def __init__(
        self, series: Series, spec: Spec, cards: Collection[str], path: Path, key: str
    ) -> None:
        self._series, self._spec, self._cards = series, spec, cards
        self._path, self._key = path, key
        self._table = inside(path.parent, f"{series.table}.csv", path, f"{key}.table")
        self._given = {**series.columns, **series.values}
        self.skipped = 0

    def _error(self, key: str, message: str) -> UserError:
        return UserError(self._path, f"{self._key}.{key}", message)

    def times(self) -> Iterator[RunTime]:
        if not self._table.is_file():
            raise self._error("table", f"no file {self._table.name!r} beside")
        records = read_records(self._table)
        self._check(list(records[0]))
        for number, record in self._taken(records):
            yield self._time(number, record)

    def _check(self, columns: list[str]) -> None:
        series, spec = self._series, self._spec
        ours = [CARD, *spec.problem_columns, *spec.tunable_columns]
        of_table = f"column of {self._table.name}"
        free = [each for each in spec.tunables if each not in self._given]
        named: list[tuple[str, Iterable[str], str, Collection[str]]] = [
            *((key, getattr(series, key), "name", ours) for key in ("columns", "values", "names")),
            ("time", [series.time], of_table, columns),
            ("columns", series.columns.values(), of_table, columns),
            ("only", series.only, of_table, columns),
            ("skip_without", series.skip_without, of_table, columns),
            ("free", series.free, "tunable without a value", free),
            (
                "phases",
                series.phases,
                "phase of cost.yaml",
                spec.cost.phases() if spec.cost else {},
            ),
        ]
        for key, names, what, allowed in named:
            for name in names:
                if name not in allowed:
                    raise self._error(key, unknown(what, name, allowed))
        if twice := series.columns.keys() & series.values.keys():
            raise self._error("values", f"{min(twice)!r} is given by a column, too")
        ending = series.time.rpartition("_")[2]
        if ending in MS and ending != series.unit:
            message = f"{series.time} of {self._table.name} is in {ending}, not {series.unit}"
            raise self._error("unit", message)
        for name in (CARD, *spec.problem_columns):
            if name not in self._given:
                raise self._error("columns", f"{name} is missing: give its column, or its value")

    def _taken(self, records: Records) -> Iterator[tuple[int, dict[str, str]]]:
        for number, record in enumerate(records, start=2):
            if all(record[name] in texts for name, texts in self._series.only.items()):
                if all(record[name] for name in self._series.skip_without):
                    yield number, record
                else:
                    self.skipped += 1

    def _time(self, number: int, record: Mapping[str, str]) -> RunTime:
        series = self._series
        text = record[series.time]
        if not is_number(text) or float(text) <= 0:
            message = f"must be a positive number in {series.unit} (got {text!r})"
            raise UserError(self._table, f"row {number}.{series.time}", message)
        values = {name: self._value(name, number, record) for name in self._given}
        card = str(values.pop(CARD))
        problem: Problem = {name: values.pop(name) for name in self._spec.problem_columns}
        return RunTime(
            series=series.title,
            row=number,
            card=card,
            problem=problem,
            selection=self._selection(number, values),
            phases=tuple(series.phases),
            runs=series.runs,
            time_ms=float(text) * MS[series.unit],
            source=record["source"],
        )

    def _value(self, name: str, number: int, record: Mapping[str, str]) -> Value:
        series = self._series
        if name in series.values:
            value: Value = series.values[name]
            where = self._error("values", "")
        else:
            column = series.columns[name]
            where = UserError(self._table, f"row {number}.{column}", "")
            text = record[column].strip()
            if not text:
                raise UserError(where.where, where.key, f"is empty, and {name} needs it")
            named = series.names.get(name, {})
            value = named.get(text, int(text) if text.isdigit() else text)
        if complaint := self._complaint(name, value):
            raise UserError(where.where, where.key, complaint)
        return value

    def _complaint(self, name: str, value: Value) -> str | None:
        if name == CARD:
            return None if value in self._cards else unknown("card", value, self._cards)
        if name in self._spec.problem:
            return self._spec.problem[name].check(value)
        allowed = self._spec.values_of(name)
        return None if value in allowed else unknown(name, value, allowed)

    def _selection(self, number: int, values: Mapping[str, Value]) -> dict[str, list[Value]]:
        spec = self._spec
        selection = {name: [value] for name, value in values.items()}
        if "variant" not in values:
            return selection
        variant = spec.variants[str(values["variant"])]
        for name in variant.tunables:
            tunable = spec.tunables[name]
            if name in self._series.free:
                selection[name] = list(tunable.values)
            elif name not in values and tunable.neutral in tunable.values:
                selection[name] = [tunable.neutral]
            elif name not in values:
                message = f"{name} of {values['variant']} is missing (row {number}): give its "
                raise self._error("columns", f"{message}column or value, or name it under free")
        return selection
