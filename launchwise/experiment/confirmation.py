"""Which configurations are compared in pairs, how, and the file that lists them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from launchwise.base.storage import read_json, write_json
from launchwise.base.typed import Strict, validated
from launchwise.workloads.parts import Value

Role = Literal["baseline", "usual", "recommended", "best", "design", "near", "peer"]
"""Why a configuration is compared: the workload's baseline, the usual choice, a recommendation,
the fastest of the sweep, the fastest of a part of the candidates (a design of the study), one that
the sweep cannot tell from the fastest, or a library instead of one of its configurations."""

PEER = "peer"
"""The only key of an entrant that is a library."""


def peer_of(configuration: Mapping[str, object]) -> str | None:
    """Name of the library that takes part instead of a configuration; None for a configuration."""
    return str(configuration[PEER]) if list(configuration) == [PEER] else None


class Confirmation(Strict, title="confirmation"):
    """Paired comparison of the fastest configurations of a sweep."""

    precision: float = Field(0.01, gt=0, lt=1)
    """half the width of the 95 % interval of a ratio at which measuring ends"""
    seconds: float = Field(2.0, gt=0)
    """time per problem after which measuring ends, s; up to three times as long where that is too
    short for six rounds"""
    near_percent: float = Field(2.0, ge=0)
    """excess over the best time up to which a configuration takes part, %"""
    answers: bool = True
    """whether the answers to test problems take part; then comparing waits for training, and what a
    changed model answers is measured anew"""
    most: int = Field(8, ge=2, le=100)
    """most configurations per problem"""
    clock_tolerance: float = Field(0.01, gt=0, lt=1)
    """relative difference of SM clocks above which a pair is discarded"""


class Recheck(Strict, title="recheck"):
    """Number and duration of the answers that are measured again."""

    problems: int = Field(8, ge=1, description="most problems per study, drawn with `seed`")
    seconds: float = Field(
        2.0, gt=0, description="time per problem after which measuring ends, s; as in `confirm`"
    )


class Entrant(Strict, title="entrant"):
    """A configuration that takes part."""

    configuration: dict[str, Value] = Field(description="tunables; or `peer`: name of a library")
    roles: list[Role] = Field(min_length=1)


class Contest(Strict, title="contest"):
    """The configurations of one problem that are compared in pairs, the baseline first."""

    problem: dict[str, Value]
    entrants: list[Entrant] = Field(min_length=1)

    @model_validator(mode="after")
    def _once_each(self) -> Contest:
        seen = [sorted(each.configuration.items(), key=str) for each in self.entrants]
        if any(one in seen[:place] for place, one in enumerate(seen)):
            raise ValueError("a configuration takes part twice")
        return self


class Contests(Strict, title="contests"):
    """Contests of one study on one GPU."""

    study: str
    workload: str
    gpu: str
    contests: list[Contest]


def write_contests(path: str | Path, contests: Contests) -> None:
    """Write contests as JSON."""
    write_json(path, contests.model_dump(mode="json"))


def read_contests(path: str | Path) -> Contests:
    """Read contests.

    Raises UserError when the file is missing or holds something else.
    """
    return validated(Contests, read_json(path), path)
