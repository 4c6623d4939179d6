"""What a study takes from its paper: tables that name the source of every figure, elements."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from launchwise.base.errors import UserError
from launchwise.base.names import inside
from launchwise.base.places import IN_CLONE, SHIPPED
from launchwise.base.storage import read_records as read_rows
from launchwise.base.typed import Strict, read_yaml, validated

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
    column, when a row has too few or too many fields or no source, or when a column whose name ends
    in a unit (``time_ms``) holds anything but a number or nothing.
    """
    columns, listed = read_rows(path)
    records = [record for _, record in listed]
    if SOURCE not in columns or not records:
        raise UserError(path, SOURCE, "is missing: published figures name their source")
    measures = [name for name in columns if MEASURE.fullmatch(name)]
    for number, record in enumerate(records, start=2):
        if None in record or None in record.values():
            raise UserError(path, f"row {number}", f"must have {len(columns)} fields")
        if not record[SOURCE].strip():
            raise UserError(path, f"row {number}.{SOURCE}", "is empty: name where the row stands")
        for name in measures:
            if record[name] and not is_number(record[name]):
                unit = name.rpartition("_")[2]
                message = f"must be a number in {unit}, or empty (got {record[name]!r})"
                raise UserError(path, f"row {number}.{name}", message)
    return records


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def facts_of(published: Mapping[str, Records]) -> dict[str, str]:
    """The single figures of a paper, by name: its table ``facts``; none where there is no such."""
    return {record["fact"]: record["value"] for record in published.get("facts", [])}


FILE = Path("published", "elements.yaml")  # Beside `study.yaml`


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
        """Whether it has a place."""
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
    path = study / FILE
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
            places = [inside(folder, name, study / FILE, key) for folder in folders]
            left_out = not IN_CLONE and Path(name).parts[0] in NOT_IN_WHEEL
            if not left_out and not any(place.is_file() for place in places):
                raise UserError(study / FILE, key, f"no file {name!r}")
