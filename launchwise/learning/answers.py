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
    """A suggested configuration.

    Parameters
    ----------
    rank
        From 1.
    configuration
        The variant, and every tunable that it has, to their values.
    expected_ms, interval_ms
        Time, and the limits of its interval (:attr:`Answer.percent`); None where nothing is known.
    gain, gain_interval
        Time of the usual choice divided by its own, likewise.
    improvement, improvement_interval
        Time of the baseline divided by its own, likewise.
    is_usual
        Whether it is the usual choice.
    paired
        Whether it was measured in pairs with the usual choice and the baseline.
    """

    rank: int
    configuration: dict[str, Value]
    expected_ms: float | None
    interval_ms: Interval | None
    gain: float | None
    gain_interval: Interval | None
    improvement: float | None
    improvement_interval: Interval | None
    is_usual: bool
    paired: bool = False


@dataclass(frozen=True)
class Answer:
    """Suggestions for one problem on one GPU.

    Parameters
    ----------
    gpu, problem
        What was asked.
    basis
        A key of :data:`BASES`.
    suggestions
        From the one to take.
    usual
        Configuration that an experienced engineer takes without measuring.
    why
        One sentence.
    blind
        Whether a blind test alone measured the problem.
    """

    gpu: str
    problem: dict[str, Value]
    basis: str
    suggestions: list[Suggestion]
    usual: dict[str, Value]
    why: str
    blind: bool = False

    @property
    def percent(self) -> int:
        """Percent of the intervals."""
        return percent_of(self.basis)


def percent_of(basis: str) -> int:
    """Percent of the intervals of a basis: of measurements, or of what the model expects."""
    return 95 if basis == MEASURED else 90
