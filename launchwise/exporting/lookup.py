"""Answers for the lookup of the report: configuration, interval, and close alternatives.

The problems are those of :mod:`launchwise.exporting.problems`. What lies between two of them is
answered by the nearest, as in :mod:`launchwise.exporting.table`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from launchwise.exporting.problems import asked_cases
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer, Interval, Suggestion
from launchwise.learning.final import Final

SUGGESTIONS = 4
"""Suggestions of an answer: the one to take, and those to try next."""


def _times(one: Suggestion) -> dict[str, float | None]:
    low, high = one.interval_ms or (None, None)
    return {"time_ms": one.expected_ms, "time_low_ms": low, "time_high_ms": high}


def _ratio(name: str, value: float | None, ends: Interval | None) -> dict[str, float | None]:
    low, high = ends or (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def lookup_entry(answer: Answer) -> dict[str, Any]:
    """An answer as JSON values.

    Returns
    -------
    dict
        ``gpu``, ``problem``, ``basis`` (a key of :data:`launchwise.learning.answers.BASES`),
        ``percent`` of its intervals, ``blind`` (a blind test alone measured it); ``configuration``
        (the variant and the tunables that it has), ``is_usual``, ``usual`` (that of the usual
        choice); ``time_ms``, ``gain`` over the usual choice and ``improvement`` over the baseline,
        each with ``_low`` and ``_high``, None where nothing is known; ``paired`` (the gains were
        measured in pairs); ``others``: configurations to try next, in order, with their times.
    """
    first, *rest = answer.suggestions
    return {
        **{name: getattr(answer, name) for name in ("gpu", "problem", "basis", "percent", "blind")},
        **{"configuration": first.configuration, "usual": answer.usual},
        **_times(first),
        **_ratio("gain", first.gain, first.gain_interval),
        **_ratio("improvement", first.improvement, first.improvement_interval),
        **{"is_usual": first.is_usual, "paired": first.paired},
        "others": [{"configuration": one.configuration, **_times(one)} for one in rest],
    }


def lookup_entries(
    final: Final,
    gpus: Iterable[str] = (),
    least_gain: float | None = None,
    processes: int = 1,
) -> list[dict[str, Any]]:
    """Answers (:func:`lookup_entry`) for what was measured, and for sizes between, on every GPU.

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
    return [lookup_entry(each) for each in found]
