"""Typed models of what a product holds as JSON: it comes from other people, too.

A digest tells damage and not intent (:func:`launchwise.base.storage.read_sealed_json`): whoever
edits a file can compute it anew. What these models let pass has the types and the ranges that an
answer is computed from.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue

from launchwise.base.storage import read_sealed_json
from launchwise.base.typed import Strict, validated

Situation = Literal["within", "beyond", "new_gpu"]
"""``within``: a known GPU, and every number of the problem between measured ones. ``beyond``: a
known GPU, and a number outside, or a text that no training problem has. ``new_gpu``: no training
row is of that GPU."""

SITUATIONS: tuple[Situation, ...] = get_args(Situation)

LARGEST_LOG = 100.0
"""Largest logarithm of a time in ms, or of a ratio of times, and of what is added to one."""

Log = Annotated[FiniteFloat, Field(ge=-LARGEST_LOG, le=LARGEST_LOG)]

Count = Annotated[int, Field(ge=0, lt=2**63)]

Code = Annotated[int, Field(ge=-(2**63), lt=2**63)]  # Number of a configuration


class Measured(Strict):
    """With what and when a GPU was measured (:func:`launchwise.learning.product.measurements`)."""

    drivers: list[str]
    toolkits: list[str]
    days: list[str]


@dataclass(frozen=True)
class Calibration:
    """How intervals did on problems of blind tests, and what becomes of them."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    problems: Count  # how many there were
    # Share of what was measured inside the intervals as they are stated.
    covered: Annotated[float, Field(ge=0, le=1)]
    # Factor of the logarithm of their width with which they hold as many as they say.
    stretch: Annotated[float, Field(gt=0, le=LARGEST_LOG)]


@dataclass(frozen=True)
class Offsets:
    """Interval of an answer around what is expected; a product stores it as JSON."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    cases: Count = 0  # held-out cases that it was found on
    # Lower and upper quantile of (log gain - expected) / (spread + a floor); None
    # for too few cases.
    gain: tuple[Log, Log] | None = None
    # Lower and upper quantile of log(time / predicted time); None likewise.
    time: tuple[Log, Log] | None = None


class ProductFacts(BaseModel):
    """Content of ``final.json``; a model's own summary stands beside these keys."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, JsonValue]

    study: str
    workload: str
    model: str
    kind: str
    gpus: Annotated[dict[str, str], Field(min_length=1)]
    measurements: dict[str, Measured]
    commits: list[str]
    rows: Count
    rows_left_out: Count
    cases: Count
    seed: int
    sweeps: str
    versions: dict[str, str]
    intervals: dict[Situation, Offsets]
    time_intervals: Calibration | None
    gain_intervals: Calibration | None = None


class RecommenderFacts(Strict):
    """Content of ``recommender.json``; ``state`` has a model of its own per class."""

    name: Annotated[str, Field(alias="class")]
    parameters: dict[str, Any]
    state: dict[str, Any]
    files: dict[str, str]


class AnyState(BaseModel):
    """State of a recommender that checks it itself."""

    model_config = ConfigDict(extra="allow")


def read_product_facts(path: Path) -> dict[str, Any]:
    """Content of a product's ``final.json``. Raises UserError when it cannot be read, was changed,
    or is not what it must be."""
    return validated(ProductFacts, read_sealed_json(path), path).model_dump()


def read_recommender_facts(path: Path) -> RecommenderFacts:
    """Content of a ``recommender.json``. Raises UserError when it cannot be read, was changed, or
    is not what it must be."""
    return validated(RecommenderFacts, read_sealed_json(path), path)
