"""Answers to problems, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from launchwise.workloads.parts import Value

MEASURED = "measured"
NEW_GPU = "new_gpu"


BASES = {
    MEASURED: "measured on this GPU",
    "within": "between measured sizes",
    "beyond": "beyond the measured sizes",
    NEW_GPU: "no measurement on this GPU",
}
"""Basis of an answer, and its words."""


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
    # Time, and the limits of its interval (`Answer.percent`); None where nothing is known.
    expected_ms: float | None
    interval_ms: Interval | None
    # Time of the usual choice divided by its own, likewise.
    gain: float | None
    gain_interval: Interval | None
    # Time of the baseline divided by its own, likewise.
    improvement: float | None
    improvement_interval: Interval | None
    is_usual: bool  # whether it is the usual choice
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
    # Measured configurations that cannot be told apart from the first, itself among them.
    alike: int | None = None
    # Problem of the table whose answer this is: what was asked where that has one of its own.
    answered_for: dict[str, Value] = field(default_factory=dict)
    # How far what was asked lies outside of the measured sizes: the product of ratios, 1 within.
    outside: float = 1.0

    @property
    def is_measured(self) -> bool:
        return self.basis == MEASURED

    @property
    def percent(self) -> int:
        """Percent of the intervals."""
        return percent_of(self.basis)


def percent_of(basis: str) -> int:
    """Percent of the intervals of a basis: of measurements, or of what the model expects."""
    return 95 if basis == MEASURED else 90
