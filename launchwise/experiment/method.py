"""How sweeps measure (``sweep.yaml``), and how configurations are compared in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from launchwise.base.storage import read_json, write_json
from launchwise.base.typed import Strict, validated
from launchwise.workloads.parts import Value

STATED_PERCENT = 2.0
"""What a search says at its end, and is to be sure of where it is given no limit: that nothing is
faster by more."""

Selection = Annotated[
    dict[str, Annotated[list[Value], Field(min_length=1)]],
    Field(
        title="selection",
        description="problem parameters or tunables (`variant` is one) to lists of allowed values",
    ),
]

RowSelection = Annotated[
    dict[str, Annotated[list[Value], Field(min_length=1)]],
    Field(
        title="selection of rows",
        min_length=1,
        description=(
            "problem parameters, tunables (`variant` is one) or `status` to lists of values: the "
            "rows that have one of them in each"
        ),
    ),
]


def _with_block_keys(schema: dict[str, Any]) -> None:
    """Complete the JSON schema of a problem block with the two keys that are no parameters."""
    values, selection = schema["additionalProperties"]["anyOf"]
    expression = {"title": "expression", "type": "string"}
    parameter = "values of the problem parameter of this name; every parameter is required"
    schema["additionalProperties"] = {**values, "description": parameter}
    schema["properties"] = {
        "only": {
            **selection,
            "description": "tunables to the values that are measured; default: all",
        },
        "constraints": {
            "type": "array",
            "items": expression,
            "minItems": 1,
            "description": "conditions on problem and configuration that measured rows satisfy",
        },
    }


ProblemBlock = Annotated[
    dict[str, Annotated[list[Value], Field(min_length=1)] | Selection],
    Field(
        title="problem block",
        description=(
            "a set of problems: every problem parameter to a list of values, which are crossed; "
            "`only` and `constraints` limit which configurations are measured"
        ),
        json_schema_extra=_with_block_keys,
    ),
]

SHORTEST_ENERGY_MS = 200.0  # Energy counters of cards step every 20 to 100 ms


class Repeats(Strict, title="repeats"):
    """How often one configuration is timed."""

    minimum: int = Field(5, ge=1, le=1000)
    """fewest repeats of a configuration"""
    maximum: int = Field(25, ge=1, le=10000)
    """most repeats of a configuration"""
    precision: float = Field(0.005, gt=0, lt=1)
    """relative standard error of the median at which timing ends"""
    budget_ms: float = Field(60.0, gt=0)
    """GPU time per configuration, ms"""
    few: int = Field(3, ge=1)
    """fewest repeats if the launch is long or not near the best"""
    near: float = Field(0.1, ge=0)
    """excess over the best time, as a fraction, that counts as near the best"""
    coarse: float = Field(0.02, gt=0, lt=1)
    """precision of configurations that are not near the best"""

    @model_validator(mode="after")
    def _order(self) -> Repeats:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class Guesses(Strict, title="guesses"):
    """Recommendations of a fitted model, measured after the baseline and before all others."""

    model: str = Field(description="folder of a study's product, such as `results/final/<study>`")
    count: int = Field(5, ge=1, le=1000, description="recommendations per problem")


class Strategy(Strict, title="strategy"):
    """Which configurations of a problem are measured."""

    kind: Literal["exhaustive", "random", "transfer"] = "exhaustive"
    """all configurations, random ones, or those proposed by a Gaussian process that starts from
    rows of other GPUs, where there are any (transfer)"""
    budget: int | None = Field(None, ge=1)
    """configurations per problem; not if exhaustive"""
    minutes: float | None = Field(None, gt=0)
    """time after which no further configuration is tried, min: an equal share for each problem of a
    job; not if exhaustive"""
    guesses: Guesses | None = None
    """recommendations of a fitted model, measured first; not if exhaustive"""
    stop_below_percent: float | None = Field(None, gt=0, lt=100)
    """a problem ends early once the chance that a configuration is left that is faster than the
    best by more than this is at most a tenth; transfer only"""

    known: dict[str, str] | None = Field(None, min_length=1)
    """names of GPUs to Parquet files of sweeps that the search starts from, beside the recorded
    GPUs; transfer only"""

    @property
    def searches(self) -> bool:
        """Whether an explorer proposes configurations; else all are measured."""
        return self.kind != "exhaustive"

    @model_validator(mode="after")
    def _fitting(self) -> Strategy:
        if self.searches:
            if self.budget is None and self.minutes is None:
                raise ValueError(f"{self.kind} needs a budget (rows per problem) or minutes")
        elif strange := [
            key for key in ("budget", "minutes", "guesses") if getattr(self, key) is not None
        ]:
            raise ValueError(f"exhaustive measures every configuration: remove {strange[0]}")
        if self.kind != "transfer" and self.stop_below_percent is not None:
            raise ValueError(f"{self.kind} expects no gain: remove stop_below_percent")
        if self.kind != "transfer" and self.known is not None:
            raise ValueError(f"{self.kind} starts from nothing: remove known")
        return self


class Method(Strict, title="method"):
    """How a sweep measures."""

    strategy: Strategy = Strategy()
    """which configurations are measured"""
    repeats: Repeats = Repeats()
    """how often each configuration is timed"""
    slow_factor: float = Field(3.0, gt=1)
    """timing stops early if two launches (short kernels: five) take this many times the best"""
    timeout_s: float = Field(60.0, gt=0)
    """time without an answer after which the measuring process is restarted, s"""
    graph_below_us: float = Field(20.0, ge=0)
    """launches shorter than this are timed as replayed CUDA graphs, and up to ten times as long
    where others of the problem may be as short, us; 0: none"""
    control_s: float = Field(2.0, ge=0)
    """time between measurements of the reference kernel, s; 0: no reference kernel"""
    drift: float = Field(0.02, gt=0, lt=1)
    """relative drift of the reference kernel above which rows are measured again"""
    disturbed: float = Field(0.1, gt=0)
    """excess of a row's median over its shortest repeat, as a fraction, above which it is measured
    again; for times that the device measures"""
    rest: bool = True
    """whether the sweep pauses while the card is throttled"""
    energy_ms: float = Field(300.0, ge=0)
    """length of the loop whose energy is measured, ms: at least 200, or 0 for none"""

    @field_validator("energy_ms")
    @classmethod
    def _long_enough(cls, value: float) -> float:
        if 0 < value < SHORTEST_ENERGY_MS:
            message = f"{value:g} is too short for the energy counter"
            raise ValueError(f"{message}: use 200 or more, or 0")
        return value


class Sweep(Method, title="sweep.yaml"):
    """Sweep of one workload: which problems are measured, and how."""

    problems: list[ProblemBlock]
    """problems to measure, in this order, before those that studies draw (`drawn`)"""
    anew: list[RowSelection] = Field([])
    """rows that an extended GPU (`extend`) has and measures again"""


Role = Literal["baseline", "usual", "recommended", "best", "design", "near", "peer"]
"""Why a configuration is compared: the workload's baseline, the usual choice, a recommendation,
the fastest of the sweep, the fastest of a part of the candidates (a design of the study), one that
the sweep cannot tell from the fastest, or a library instead of one of its configurations."""

PEER = "peer"  # The only key of an entrant that is a library


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
    write_json(path, contests.model_dump(mode="json"))


def read_contests(path: str | Path) -> Contests:
    """Read contests. Raises UserError when the file is missing or holds something else."""
    return validated(Contests, read_json(path), path)
