"""Answers for the lookup of the report: configuration, interval, and close alternatives.

The problems are those of :mod:`launchwise.exporting.problems`. What lies between two of them is
answered by the nearest, as in :mod:`launchwise.exporting.table`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from launchwise.exporting.problems import asked_cases
from launchwise.learning.answering import Answer, Suggestion, answers
from launchwise.learning.final import Final
from launchwise.workloads.parts import Value

SUGGESTIONS = 4
"""Suggestions that are looked at: the answer, and what may come close."""

NEAR = 1.02
"""Largest expected time ratio to the answer at which another configuration comes close."""


@dataclass(frozen=True)
class LookupEntry:
    """An answer.

    Parameters
    ----------
    gpu, problem
        What it answers.
    basis
        A key of :data:`launchwise.learning.answering.BASES`.
    configuration
        The variant, and the tunables that it has.
    is_usual
        Whether it is the usual choice.
    time_ms, time_low_ms, time_high_ms
        Measured or expected, and the limits of its 90 % interval; None where nothing is known.
    gain, gain_low, gain_high
        Time of the usual choice divided by its own, likewise.
    improvement
        Time of the baseline divided by its own, likewise.
    others
        Configurations that come close.
    """

    gpu: str
    problem: dict[str, Value]
    basis: str
    configuration: dict[str, Value]
    is_usual: bool
    time_ms: float | None
    time_low_ms: float | None
    time_high_ms: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    improvement: float | None
    others: list[dict[str, Value]]

    @classmethod
    def of(cls, answer: Answer) -> LookupEntry:
        """The first suggestion of an answer, and those of the others that come close."""
        first, *rest = answer.suggestions
        time_low, time_high = first.interval_ms or (None, None)
        gain_low, gain_high = first.gain_interval or (None, None)
        return cls(
            gpu=answer.gpu,
            problem=answer.problem,
            basis=answer.basis,
            configuration=first.configuration,
            is_usual=first.is_usual,
            time_ms=first.expected_ms,
            time_low_ms=time_low,
            time_high_ms=time_high,
            gain=first.gain,
            gain_low=gain_low,
            gain_high=gain_high,
            improvement=first.improvement,
            others=[one.configuration for one in rest if _is_near(one, first)],
        )

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def _is_near(one: Suggestion, first: Suggestion) -> bool:
    return one.gain is not None and first.gain is not None and one.gain * NEAR >= first.gain


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
