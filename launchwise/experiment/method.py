"""How a sweep measures, and what: ``kernels/<workload>/sweep.yaml`` as typed data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from launchwise.base.typed import Strict
from launchwise.workloads.spec import Value

Selection = dict[str, Annotated[list[Value], Field(min_length=1)]]
"""Parameters or tunables to the values that they may have."""

ProblemBlock = dict[str, Annotated[list[Value], Field(min_length=1)] | Selection]
"""Problem parameters to the values to cross. ``only``: tunables to the values that are measured;
``constraints``: expressions that measured configurations keep to."""

SHORTEST_ENERGY_MS = 200.0
"""Energy counters of cards step every 20 to 100 ms."""


class Repeats(Strict):
    """How often one configuration is timed, and when that is enough."""

    minimum: int = Field(5, ge=1, le=1000, description="fewest repeats of a configuration")
    maximum: int = Field(25, ge=1, le=10000, description="most repeats of a configuration")
    precision: float = Field(
        0.005, gt=0, lt=1, description="relative standard error of the median at which timing ends"
    )
    budget_ms: float = Field(60.0, gt=0, description="GPU time spent on one configuration, ms")
    few: int = Field(3, ge=1, description="repeats of a launch that is long or far from the best")
    near: float = Field(
        0.1, ge=0, description="a configuration this share above the best counts as near the best"
    )
    coarse: float = Field(
        0.02, gt=0, lt=1, description="precision for configurations that are not near the best"
    )

    @model_validator(mode="after")
    def _order(self) -> Repeats:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class Guesses(Strict):
    """What a fitted model recommends, measured before anything else but the baseline."""

    model: str = Field(
        description="folder of a fitted model, such as results/models/<study>/<model>"
    )
    count: int = Field(5, ge=1, le=1000, description="recommendations taken per problem")


class Strategy(Strict):
    """Which configurations of a problem a sweep measures."""

    kind: Literal["exhaustive", "random", "tpe"] = Field(
        "exhaustive", description="all configurations, random ones, or those that TPE proposes"
    )
    budget: int | None = Field(
        None, ge=1, description="rows per problem; required unless exhaustive"
    )
    guesses: Guesses | None = Field(
        None, description="recommendations of a fitted model to measure first"
    )

    @model_validator(mode="after")
    def _fitting(self) -> Strategy:
        if self.kind != "exhaustive":
            if self.budget is None:
                raise ValueError(f"{self.kind} needs a budget (rows per problem)")
        elif strange := [key for key in ("budget", "guesses") if getattr(self, key) is not None]:
            raise ValueError(f"exhaustive measures everything: take {strange[0]} out")
        return self


class Method(Strict):
    """How a sweep measures."""

    strategy: Strategy = Field(Strategy(), description="which configurations are measured")
    repeats: Repeats = Field(Repeats(), description="how often each configuration is timed")
    slow_factor: float = Field(
        3.0, gt=1, description="a first launch this many times slower than the best ends its timing"
    )
    timeout_s: float = Field(
        60.0, gt=0, description="longest silence of the measuring process, s; then it is restarted"
    )
    graph_below_us: float = Field(
        20.0,
        ge=0,
        description="launches shorter than this, us, are timed as replayed CUDA graphs; 0: never",
    )
    control_s: float = Field(
        2.0,
        ge=0,
        description="time between two measurements of the reference kernel, s; 0: no reference",
    )
    drift: float = Field(
        0.02,
        gt=0,
        lt=1,
        description="rows are measured again once when the reference kernel drifts by more",
    )
    rest: bool = Field(True, description="pause while the card is throttled")
    energy_ms: float = Field(
        300.0, ge=0, description="length of the loop whose energy is measured, ms; 0: none"
    )

    @field_validator("energy_ms")
    @classmethod
    def _long_enough(cls, value: float) -> float:
        if 0 < value < SHORTEST_ENERGY_MS:
            raise ValueError(f"{value:g} is too short for a card's counter, take 200 or more, or 0")
        return value


class Sweep(Method):
    """What is measured of one workload, and how: ``sweep.yaml``."""

    problems: list[ProblemBlock] = Field(
        min_length=1,
        description=(
            "blocks of problems, measured in this order; each maps every problem parameter to a "
            "list of values, which are crossed. `only` maps tunables to the values that are "
            "measured, `constraints` lists expressions that measured configurations satisfy"
        ),
    )
