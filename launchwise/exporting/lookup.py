"""Answers for the lookup of the report: configuration, interval, and close alternatives.

The problems are those of :mod:`launchwise.exporting.problems`. What lies between two of them is
answered by the nearest, as in :mod:`launchwise.exporting.table`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from launchwise.exporting.problems import asked_cases
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer, Suggestion
from launchwise.learning.final import Final
from launchwise.workloads.parts import Value

SUGGESTIONS = 4
"""Suggestions of an answer: the one to take, and those to try next."""


@dataclass(frozen=True)
class Alternative:
    """A configuration to try next, with its time and the limits of its interval, ms."""

    configuration: dict[str, Value]
    time_ms: float | None
    time_low_ms: float | None
    time_high_ms: float | None

    @classmethod
    def of(cls, one: Suggestion) -> Alternative:
        """From a suggestion."""
        return cls(one.configuration, one.expected_ms, *(one.interval_ms or (None, None)))


@dataclass(frozen=True)
class LookupEntry:
    """An answer."""

    # What it answers.
    gpu: str
    problem: dict[str, Value]
    # A key of :data:`launchwise.learning.answers.BASES`.
    basis: str
    # The variant, and the tunables that it has.
    configuration: dict[str, Value]
    # That of the usual choice.
    usual: dict[str, Value]
    # Whether it is the usual choice.
    is_usual: bool
    # Measured or expected, and the limits of its interval; None where nothing is known.
    time_ms: float | None
    time_low_ms: float | None
    time_high_ms: float | None
    # Time of the usual choice divided by its own, likewise.
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    # Time of the baseline divided by its own, likewise.
    improvement: float | None
    improvement_low: float | None
    improvement_high: float | None
    # Percent of the intervals.
    percent: int
    # Whether the gains were measured in pairs.
    paired: bool
    # Whether a blind test alone measured the problem.
    blind: bool
    # What to try next, in order.
    others: list[Alternative]

    @classmethod
    def of(cls, answer: Answer) -> LookupEntry:
        """The first suggestion of an answer, and the others."""
        first, *rest = answer.suggestions
        time_low, time_high = first.interval_ms or (None, None)
        gain_low, gain_high = first.gain_interval or (None, None)
        improvement_low, improvement_high = first.improvement_interval or (None, None)
        return cls(
            gpu=answer.gpu,
            problem=answer.problem,
            basis=answer.basis,
            configuration=first.configuration,
            usual=answer.usual,
            is_usual=first.is_usual,
            time_ms=first.expected_ms,
            time_low_ms=time_low,
            time_high_ms=time_high,
            gain=first.gain,
            gain_low=gain_low,
            gain_high=gain_high,
            improvement=first.improvement,
            improvement_low=improvement_low,
            improvement_high=improvement_high,
            percent=answer.percent,
            paired=first.paired,
            blind=answer.blind,
            others=[Alternative.of(one) for one in rest],
        )

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        # asdict copies every value of thousands of entries.
        return {**vars(self), "others": [{**vars(one)} for one in self.others]}


def lookup_entries(
    final: Final,
    gpus: Iterable[str] = (),
    least_gain: float | None = None,
    processes: int = 1,
) -> list[LookupEntry]:
    """Answers for what was measured, and for sizes between, on every GPU of a product.

    Parameters
    ----------
    gpus
        GPUs of the product's domain that it did not learn from, to be answered as well.
    least_gain, processes
        As of :func:`launchwise.learning.answering.answers`.
    """
    names = list(dict.fromkeys([*final.facts["gpus"], *gpus]))
    cases = asked_cases(final, names)
    found = answers(final, cases, SUGGESTIONS, least_gain, processes)
    return [LookupEntry.of(each) for each in found]
