"""Answers to problems, what is said of them, and models of what products hold as JSON.

Products come from other people, too. A digest tells damage and not intent
(:func:`launchwise.base.storage.read_sealed_json`): whoever edits a file can compute it anew. What
these models let pass has the types and the ranges that an answer is computed from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue

from launchwise.base.storage import read_sealed_json
from launchwise.base.typed import Strict, validated
from launchwise.workloads.parts import Value

Situation = Literal["within", "beyond", "new_gpu"]
"""``within``: not outside of what this GPU measured
(:meth:`launchwise.learning.conformal.MeasuredProblems.outside`). ``beyond``: outside, whatever
other GPUs measured. ``new_gpu``: no training row is of that GPU."""

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


MEASURED = "measured"
NEW_GPU = "new_gpu"

BASES = {
    MEASURED: "measured on this GPU",
    "within": "between measured sizes",
    "beyond": "beyond what this GPU measured",
    "usual": "no answer to such a problem: the usual choice",
    "default": "no answer to such a problem, and nothing is usual: the default",
    NEW_GPU: "no measurement on this GPU",
}
"""Basis of an answer, and its words."""

NO_TIME = "no time is stated outside of what this GPU measured"
"""Said of answers beyond."""

UNORDERED = (
    "ranks are by all of these models and how far they agree, times by one of them: a later rank "
    "may have a shorter one"
)
"""Said where expected times do not ascend with their ranks."""

UNKNOWN_LINK = (
    "no time is expected: its copies between host and GPU take what no datasheet of a card states "
    "(gpus.<name>.host_gbs of the settings)"
)
"""Said where a run copies over a link whose rate is unknown."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Suggestion:
    """A suggested configuration."""

    rank: int  # from 1
    configuration: dict[str, Value]  # the variant, and every tunable that it has, to their values
    # Time, and the limits of its interval (`Answer.percent`); None where nothing is known. Of a
    # measured one but the first they are beside the time of that: what both have in common is not
    # in them.
    expected_ms: float | None = None
    interval_ms: Interval | None = None
    # Time of the usual choice divided by its own, likewise.
    gain: float | None = None
    gain_interval: Interval | None = None
    # Time of the baseline divided by its own, likewise.
    improvement: float | None = None
    improvement_interval: Interval | None = None
    is_usual: bool = False  # whether it is the usual choice
    paired: bool = False  # whether it was measured in pairs with the usual choice and the baseline


@dataclass(frozen=True)
class Answer:
    """Suggestions for one problem on one GPU."""

    gpu: str
    problem: dict[str, Value]  # what was asked
    basis: str  # a key of `BASES`
    suggestions: list[Suggestion]  # from the one to take
    usual: dict[str, Value]  # configuration that an experienced engineer takes without measuring
    why: str  # one sentence
    blind: bool = False  # whether a blind test alone measured the problem
    # See :func:`launchwise.tables.rows.fastest_rows`, by which the first is named.
    alike: int | None = None
    unsure: float | None = None
    # Problem of the table whose answer this is: what was asked where that has one of its own.
    answered_for: dict[str, Value] = field(default_factory=dict)
    # Of the GPU's problems: `launchwise.learning.conformal.MeasuredProblems.outside`.
    outside: float = 1.0
    off: str = ""  # how far off a time without limits may be, in words

    @property
    def is_measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def percent(self) -> int:
        return percent_of(self.basis)


def percent_of(basis: str) -> int:
    """Percent of the intervals of a basis: of measurements, or of what the model expects."""
    return 95 if basis == MEASURED else 90
