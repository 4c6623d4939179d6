"""``config.yaml`` and its overlays as typed data; :mod:`experiment` checks the rest."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from launchwise.base.typed import Strict
from launchwise.workloads.spec import Value

Selection = dict[str, Annotated[list[Value], Field(min_length=1)]]
Block = dict[str, Annotated[list[Value], Field(min_length=1)] | Selection]
"""Problem parameters to values; under ``only``, tunables to the values that are measured."""

GpuName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.]*$")]
StudyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


SHORTEST_ENERGY_MS = 200.0
"""Energy counters of cards step every 20 to 100 ms."""


GRES = re.compile(r"gpu(:(?P<model>[0-9]*[A-Za-z_.][A-Za-z0-9_.]*))?(:1)?")
"""One GPU, of a kind or of any, as Slurm writes it; gpu:4 is four of any kind."""


class Slurm(Strict):
    """Where Slurm finds a GPU; a slice stands where its card does."""

    partition: str = Field(min_length=1)
    gres: str = Field("gpu", description="such as gpu:h200, where a partition has several kinds")
    constraint: str | None = Field(None, min_length=1, description="what a node must have")

    @field_validator("gres")
    @classmethod
    def _one_gpu(cls, value: str) -> str:
        if not GRES.fullmatch(value):
            raise ValueError("must ask for one GPU, such as gpu, gpu:h200 or gpu:h200:1")
        return value

    @property
    def model(self) -> str | None:
        """Kind of GPU as Slurm calls it; None for any."""
        found = GRES.fullmatch(self.gres)
        return found["model"] if found else None


class Gpu(Strict):
    """One GPU: recorded, measured live, or described by its datasheet and never measured."""

    source: Literal["recorded", "live", "described"]
    card: str | None = Field(
        None, min_length=1, description="of a described GPU: its name in data/cards.csv"
    )
    path: str | None = Field(None, description="folder of a recorded GPU; data/recorded/<gpu>")
    arch: str | None = Field(None, pattern=r"^sm_\d+[af]?$", description="such as sm_90")
    device: str | None = Field(None, description="part of the device's name, if kinds are mixed")
    shards: int | None = Field(
        None, ge=1, le=1000, description="jobs that share a sweep; by the estimated time"
    )
    compile: Literal["beforehand", "alongside"] = Field(
        "beforehand",
        description="by a rule of its own (also on hosts without a GPU), or while measuring",
    )
    slice_sms: int | None = Field(None, ge=1, description="measure on about this many SMs only")
    problems: dict[str, list[Block]] = Field(
        {}, description="workload -> problems to measure here instead of the common ones"
    )
    slurm: Slurm | None = None

    @model_validator(mode="after")
    def _fits_its_source(self) -> Gpu:
        if self.source != "described":
            if self.card is not None:
                raise ValueError(f"card: names a described GPU, and source is {self.source}")
        elif strange := sorted(self.model_fields_set - {"source", "card"}):
            raise ValueError(f"{strange[0]}: a described GPU is never measured: take it out")
        return self

    @model_validator(mode="after")
    def _compiles_once(self) -> Gpu:
        if self.compile == "alongside" and (self.shards or 1) > 1:
            message = "alongside is for one shard: each would compile everything"
            raise ValueError(f"compile: {message}, and there are {self.shards}")
        return self


class Repeats(Strict):
    """How often one configuration is timed, and when that is enough."""

    minimum: int = Field(5, ge=1, le=1000)
    maximum: int = Field(25, ge=1, le=10000)
    precision: float = Field(0.005, gt=0, lt=1, description="relative standard error of the median")
    budget_ms: float = Field(60.0, gt=0, description="device time spent on one configuration")
    few: int = Field(3, ge=1, description="repeats of a launch that is long or far from the best")
    near: float = Field(0.1, ge=0, description="how far above the best is still near it")
    coarse: float = Field(0.02, gt=0, lt=1, description="precision of what is not near the best")

    @model_validator(mode="after")
    def _order(self) -> Repeats:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class Guesses(Strict):
    """What a fitted recommender thinks is best, measured before anything else but the baseline."""

    model: str = Field(description="folder of a fitted model, such as results/models/<study>/knn")
    count: int = Field(5, ge=1, le=1000, description="recommendations taken of each problem")


class Strategy(Strict):
    """Which configurations of a problem a sweep measures."""

    kind: Literal["exhaustive", "random", "tpe"] = "exhaustive"
    budget: int | None = Field(None, ge=1, description="rows of each problem, unless exhaustive")
    guesses: Guesses | None = None

    @model_validator(mode="after")
    def _fitting(self) -> Strategy:
        if self.kind != "exhaustive":
            if self.budget is None:
                raise ValueError(f"{self.kind} needs a budget (rows of each problem)")
        elif strange := [key for key in ("budget", "guesses") if getattr(self, key) is not None]:
            raise ValueError(f"exhaustive measures everything: take {strange[0]} out")
        return self


class Method(Strict):
    """How a sweep measures."""

    strategy: Strategy = Strategy()

    repeats: Repeats = Repeats()
    slow_factor: float = Field(3.0, gt=1, description="a first launch so far off ends it")
    timeout_s: float = Field(60.0, gt=0, description="longest silence of the measuring process")
    graph_below_us: float = Field(
        20.0, ge=0, description="shorter launches are timed as replayed graphs; 0 for none"
    )
    control_s: float = Field(
        2.0, ge=0, description="between two measurements of the control; 0 for no control"
    )
    drift: float = Field(0.02, gt=0, lt=1, description="control off by more: measured again once")
    rest: bool = Field(True, description="pause while the card is throttled")
    energy_ms: float = Field(
        300.0, ge=0, description="length of a loop whose energy is measured; 0 for none"
    )

    @field_validator("energy_ms")
    @classmethod
    def _long_enough(cls, value: float) -> float:
        if 0 < value < SHORTEST_ENERGY_MS:
            raise ValueError(f"{value:g} is too short for a card's counter, take 200 or more, or 0")
        return value


class Sweep(Method):
    """What is measured of one workload, and how."""

    problems: list[Block] = Field(min_length=1, description="measured in this order")


class Fences(Strict):
    """Tukey's fences on training rows."""

    scope: Literal["problem", "global"] = "problem"
    factor: float = Field(1.5, gt=0)


class ProblemSplit(Strict):
    """Training and test problems by the values of one or more problem parameters."""

    kind: Literal["problems"] = "problems"
    title: str
    train: Selection = Field(min_length=1)
    test: Selection = Field(min_length=1)


class TransferSplit(Strict):
    """Every GPU in turn left out of training and tested."""

    kind: Literal["leave_one_gpu_out"]
    title: str
    among: Selection = Field({}, description="problems of one design of a sweep; all if left out")


Split = Annotated[ProblemSplit | TransferSplit, Field(discriminator="kind")]


class Study(Strict):
    """A question asked of sweeps."""

    workload: str
    title: str
    question: str
    gpus: list[GpuName] | None = Field(None, min_length=1, description="all GPUs when left out")
    candidates: Selection = Field({}, description="configurations by the values of their tunables")
    constraints: list[str] = Field([], description="what candidates keep to, as expressions")
    fences: Fences = Fences()
    near_best_percent: float = Field(2.0, ge=0, description="what classifiers learn as best")
    counters: list[str] = Field(
        [],
        description="tunables: for all of their values the fastest of a problem is profiled",
    )
    random_draws: list[int] = Field([1, 5, 20], description="k of the random search baseline")
    splits: dict[StudyName, Split] = Field(min_length=1)
    models: list[str] = Field(min_length=1)


class ModelEntry(Strict):
    """A recommender with what is fixed and what is searched."""

    kind: str
    title: str
    parameters: dict[str, float | int | str | bool | None] = Field({}, description="held fixed")
    trials: int | None = Field(None, ge=0, description="overrides search.trials")


class Search(Strict):
    """Optuna's hyper-parameter search."""

    trials: int = Field(6, ge=0, le=100000)
    folds: int = Field(3, ge=2, le=20)
    max_rows: int = Field(3000, ge=100, description="rows that one trial may learn from")


class Settings(Strict):
    """Everything in ``config.yaml``."""

    seed: int = Field(2026, ge=0, lt=2**31)
    workloads: list[str] = Field(["kernels"], min_length=1, description="folders of workloads")
    gpus: dict[GpuName, Gpu] = Field(min_length=1)
    sweeps: dict[str, Sweep]
    models: dict[StudyName, ModelEntry] = Field(min_length=1)
    search: Search = Search()
    studies: dict[StudyName, Study] = Field(min_length=1)
