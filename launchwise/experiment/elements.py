"""Elements of a study's paper, and their place in the project."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from launchwise.base.errors import UserError
from launchwise.base.imports import ROOT
from launchwise.base.names import inside
from launchwise.base.typed import Strict, read_yaml, validated

FILE = Path("published", "elements.yaml")
"""Beside ``study.yaml``."""
SECTION = "#"
"""First character of a place that is a section of the report."""

Kind = Literal[
    "problem",
    "variant",
    "range",
    "data",
    "cleaning",
    "feature",
    "model",
    "validation",
    "metric",
    "table",
    "figure",
    "formula",
    "claim",
]


class Element(Strict, title="element"):
    """Something that a paper describes, and where it is here, or why it is not."""

    element: str = Field(min_length=1, description="what the paper has, in a few words")
    kind: Kind = Field(description="what it is")
    where: str = Field(min_length=1, description="place in the paper")
    theirs: str = Field("", description="the figure as printed, with its unit")
    here: list[str] = Field(
        [],
        description=(
            "places: `path#text` is a file, seen from the project or the workload's folder, that "
            "holds the text; `#id` is a section of the report"
        ),
    )
    otherwise: str = Field("", description="how it differs here, or why it is not here")

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if not self.here and not self.otherwise:
            raise ValueError(f"{self.element!r} has no place (here) and no reason (otherwise)")
        return self

    @property
    def files(self) -> list[str]:
        """Places that are files."""
        return [place for place in self.here if not place.startswith(SECTION)]

    @property
    def sections(self) -> list[str]:
        """Ids of sections of the report."""
        return [place.removeprefix(SECTION) for place in self.here if place.startswith(SECTION)]


class Elements(Strict, title="elements.yaml"):
    """Elements of a study's paper."""

    elements: list[Element] = Field(min_length=1, description="in the order of the paper")


def read_elements(study: Path) -> list[Element]:
    """Elements of a study's paper; none where the study has no such file.

    Parameters
    ----------
    study
        Folder of the study.

    Raises
    ------
    UserError
        When the file cannot be read, or an element has neither a place nor a reason.
    """
    path = study / FILE
    if not path.is_file():
        return []
    return validated(Elements, read_yaml(path), path).elements


def check_places(study: Path) -> None:
    """Check the places of the elements of a study's paper.

    Raises
    ------
    UserError
        For the first place that does not exist.
    """
    for number, element in enumerate(read_elements(study)):
        for place in element.files:
            if complaint := _complaint(place, study, f"elements.{number}.here"):
                raise UserError(study / FILE, f"elements.{number}.here", complaint)


def _complaint(place: str, study: Path, key: str) -> str:
    """Complaint about a place that is a file; empty if it is right."""
    name, _, text = place.partition("#")
    places = [inside(folder, name, study / FILE, key) for folder in (ROOT, study.parents[1])]
    files = [path for path in places if path.is_file()]
    if not files:
        return f"no file {name!r}"
    if text and text not in files[0].read_text(encoding="utf-8"):
        return f"{name!r} does not hold {text!r}"
    return ""
