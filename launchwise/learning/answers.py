"""Answers to problems, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

from launchwise.workloads.parts import Value

MEASURED = "measured"


BASES = {
    MEASURED: "measured on this GPU",
    "within": "between measured sizes",
    "beyond": "beyond the measured sizes",
    "new_gpu": "no measurement on this GPU",
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

    # From 1.
    rank: int
    # The variant, and every tunable that it has, to their values.
    configuration: dict[str, Value]
    # Time, and the limits of its interval (`Answer.percent`); None where nothing is known.
    expected_ms: float | None
    interval_ms: Interval | None
    # Time of the usual choice divided by its own, likewise.
    gain: float | None
    gain_interval: Interval | None
    # Time of the baseline divided by its own, likewise.
    improvement: float | None
    improvement_interval: Interval | None
    # Whether it is the usual choice.
    is_usual: bool
    # Whether it was measured in pairs with the usual choice and the baseline.
    paired: bool = False


@dataclass(frozen=True)
class Answer:
    """Suggestions for one problem on one GPU."""

    # What was asked.
    gpu: str
    problem: dict[str, Value]
    # A key of `BASES`.
    basis: str
    # From the one to take.
    suggestions: list[Suggestion]
    # Configuration that an experienced engineer takes without measuring.
    usual: dict[str, Value]
    # One sentence.
    why: str
    # Whether a blind test alone measured the problem.
    blind: bool = False

    @property
    def percent(self) -> int:
        """Percent of the intervals."""
        return percent_of(self.basis)


def percent_of(basis: str) -> int:
    """Percent of the intervals of a basis: of measurements, or of what the model expects."""
    return 95 if basis == MEASURED else 90
