"""What a study takes from its paper: tables that name their sources, elements, run times.

``published/run_times.yaml`` of a study says which columns of its published tables hold run times,
in which unit, of which problem and configuration on which card, and how many runs each covers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from launchwise.base.errors import Misfit, UserError, check_known, raising, unknown
from launchwise.base.literals import real, whole
from launchwise.base.names import inside
from launchwise.base.places import IN_CLONE, SHIPPED
from launchwise.base.storage import read_records as read_rows
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

Records = list[dict[str, str]]  # Rows of a table, column to text
FOLDER = "published"  # Beside `study.yaml`: one CSV file per table
SOURCE = "source"  # Column that every table has: where its figures stand

MEASURE = re.compile(r".*_(s|ms|us|percent)")
"""Columns whose name ends in a unit: they hold numbers, or nothing where a figure is lost."""


def read_tables(study: Path) -> dict[str, Records]:
    """Rows of every published table of a study, by the name of its file without ``.csv``. Raises
    UserError naming file, row and column (:func:`read_records`)."""
    paths = sorted((study / FOLDER).glob("*.csv"))
    return {path.stem: read_records(path) for path in paths}


def read_records(path: Path) -> Records:
    """Rows of one published table.

    Raises UserError when the file cannot be read as CSV or has no column ``source``; naming row and
    column, when a row has no source, or when a column whose name ends in a unit (``time_ms``) holds
    anything but a number or nothing.
    """
    columns, listed = read_rows(path)
    records = [record for _, record in listed]
    if SOURCE not in columns or not records:
        raise UserError(path, SOURCE, "is missing: published figures name their source")
    measures = [name for name in columns if MEASURE.fullmatch(name)]
    for number, record in enumerate(records, start=2):
        if not record[SOURCE].strip():
            raise UserError(path, f"row {number}.{SOURCE}", "is empty: name where the row stands")
        for name in measures:
            if record[name] and not is_number(record[name]):
                unit = name.rpartition("_")[2]
                message = f"must be a number in {unit}, or empty (got {record[name]!r})"
                raise UserError(path, f"row {number}.{name}", message)
    return records


def is_number(text: str) -> bool:
    number = real(text)
    return number is not None and math.isfinite(number)


def facts_of(published: Mapping[str, Records]) -> dict[str, str]:
    """The single figures of a paper, by name: its table ``facts``; none where there is no such."""
    return {record["fact"]: record["value"] for record in published.get("facts", [])}


ELEMENTS = Path("published", "elements.yaml")  # Beside `study.yaml`


class Element(Strict, title="element"):
    """Something that a paper describes, and where it is here, or why it is not.

    No text of it holds a figure: figures are computed on the page.
    """

    element: str = Field(min_length=1)
    """what the paper has, in a few words"""
    where: str = Field(min_length=1)
    """place in the paper"""
    page: list[str] = Field([])
    """sections of the report: `paper` is one of this study's page, `other_study/paper` one of
    another"""
    files: list[str] = Field([])
    """files, seen from the folder of the study, of the workload or of the project"""
    reason: str = ""
    """how it differs here, or why it is not here"""

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if not self.is_here and not self.reason:
            raise ValueError(f"{self.element!r} has no place (page, files) and no reason")
        return self

    @property
    def is_here(self) -> bool:
        return bool(self.page or self.files)

    def sections(self, study: str) -> list[str]:
        """Ids of the sections of the report, for an element of a study."""
        return [one.replace("/", "-") if "/" in one else f"{study}-{one}" for one in self.page]


class Elements(Strict, title="elements.yaml"):
    """Elements of a study's paper."""

    elements: list[Element] = Field(min_length=1, description="in the order of the paper")


def read_elements(study: Path) -> list[Element]:
    """Elements of a study's paper; none where the study has no such file. Raises UserError when the
    file cannot be read, or an element has neither a place nor a reason."""
    path = study / ELEMENTS
    if not path.is_file():
        return []
    return validated(Elements, read_yaml(path), path).elements


NOT_IN_WHEEL = ("benchmarks", "docs", "tests")  # Folders of the repository that a wheel lacks


def check_places(study: Path) -> None:
    """Check that the files of the elements of a study's paper exist. Raises UserError for the first
    that does not, or that lies outside of the project."""
    folders = (study, study.parents[1], SHIPPED)
    for number, element in enumerate(read_elements(study)):
        key = f"elements.{number}.files"
        for name in element.files:
            places = [inside(folder, name, study / ELEMENTS, key) for folder in folders]
            left_out = not IN_CLONE and Path(name).parts[0] in NOT_IN_WHEEL
            if not left_out and not any(place.is_file() for place in places):
                raise UserError(study / ELEMENTS, key, f"no file {name!r}")


RUN_TIMES = Path(FOLDER, "run_times.yaml")  # Beside `study.yaml`
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
    path = study / RUN_TIMES
    if not path.is_file():
        return Published([], [], {})
    found = validated(RunTimes, read_yaml(path), path)
    times: list[RunTime] = []
    skipped: dict[str, int] = {}
    for number, series in enumerate(found.series):
        key = f"series.{number}"
        table = inside(path.parent, f"{series.table}.csv", path, f"{key}.table")
        with raising(partial(_blamed, path, key)):
            own, left_out = _Table(series, spec, cards, table).times()
        times += own
        skipped[series.title] = skipped.get(series.title, 0) + left_out
    return Published(found.series, times, skipped)


def _blamed(path: Path, series: str, key: str, message: str) -> UserError:
    return UserError(path, f"{series}.{key}", message)


@dataclass(frozen=True)
class _Table:
    """A published table that a series takes its times from. Raises Misfit for a key of the series,
    UserError for a cell."""

    series: Series
    spec: Spec
    cards: Collection[str]
    path: Path

    def times(self) -> tuple[list[RunTime], int]:
        """Times of the series, and the number of rows that it leaves out."""
        if not self.path.is_file():
            raise Misfit("table", f"no file {self.path.name!r} beside")
        records = read_records(self.path)
        self._check(list(records[0]))
        taken = [
            (number, record)
            for number, record in enumerate(records, start=2)
            if all(record[name] in texts for name, texts in self.series.only.items())
        ]
        whole = [each for each in taken if all(each[1][name] for name in self.series.skip_without)]
        return [self._time(*each) for each in whole], len(taken) - len(whole)

    def _check(self, columns: list[str]) -> None:
        series, spec = self.series, self.spec
        given = {**series.columns, **series.values}
        for key in ("columns", "values", "names"):
            ours = [CARD, *spec.problem_columns, *spec.tunable_columns]
            check_known(key, "name", getattr(series, key), ours)
        for key, names in {
            "time": [series.time],
            "columns": [*series.columns.values()],
            "only": [*series.only],
            "skip_without": series.skip_without,
        }.items():
            check_known(key, f"column of {self.path.name}", names, columns)
        free = [each for each in spec.tunables if each not in given]
        check_known("free", "tunable without a value", series.free, free)
        phases = spec.cost.phases() if spec.cost else {}
        check_known("phases", "phase of cost.yaml", series.phases, phases)
        if twice := series.columns.keys() & series.values.keys():
            raise Misfit("values", f"{min(twice)!r} is given by a column, too")
        ending = series.time.rpartition("_")[2]
        if ending in MS and ending != series.unit:
            message = f"{series.time} of {self.path.name} is in {ending}, not {series.unit}"
            raise Misfit("unit", message)
        for name in (CARD, *spec.problem_columns):
            if name not in given:
                raise Misfit("columns", f"{name} is missing: give its column, or its value")

    def _time(self, number: int, record: Mapping[str, str]) -> RunTime:
        series, text = self.series, record[self.series.time]
        if not is_number(text) or float(text) <= 0:
            message = f"must be a positive number in {series.unit} (got {text!r})"
            raise UserError(self.path, f"row {number}.{series.time}", message)
        values = {name: self._value(name, number, record) for name in series.columns}
        for name, value in series.values.items():
            if complaint := self._complaint(name, value):
                raise Misfit("values", complaint)
            values[name] = value
        return RunTime(
            series=series.title,
            row=number,
            card=str(values.pop(CARD)),
            problem={name: values.pop(name) for name in self.spec.problem_columns},
            selection=self._selection(number, values),
            phases=tuple(series.phases),
            runs=series.runs,
            time_ms=float(text) * MS[series.unit],
            source=record["source"],
        )

    def _value(self, name: str, number: int, record: Mapping[str, str]) -> Value:
        column = self.series.columns[name]
        text, where = record[column].strip(), f"row {number}.{column}"
        if not text:
            raise UserError(self.path, where, f"is empty, and {name} needs it")
        named = self.series.names.get(name, {})
        size = whole(text)
        value = named.get(text, text if size is None else size)
        if complaint := self._complaint(name, value):
            raise UserError(self.path, where, complaint)
        return value

    def _complaint(self, name: str, value: Value) -> str | None:
        if name in self.spec.problem:
            return self.spec.problem[name].check(value)
        allowed = self.cards if name == CARD else self.spec.values_of(name)
        what = "card" if name == CARD else name
        return None if value in allowed else unknown(what, value, allowed)

    def _selection(self, number: int, values: Mapping[str, Value]) -> dict[str, list[Value]]:
        selection = {name: [value] for name, value in values.items()}
        if "variant" not in values:
            return selection
        for name in self.spec.variants[str(values["variant"])].tunables:
            tunable = self.spec.tunables[name]
            if name in self.series.free:
                selection[name] = list(tunable.values)
            elif name not in values and tunable.neutral in tunable.values:
                selection[name] = [tunable.neutral]
            elif name not in values:
                message = f"{name} of {values['variant']} is missing (row {number}): give its "
                raise Misfit("columns", f"{message}column or value, or name it under free")
        return selection
