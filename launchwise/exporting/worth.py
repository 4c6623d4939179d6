"""Whether tuning is worth it for a load: shares of its time, gains, and when tuning is paid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.experiment.load import Shape
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import MEASURED, Answer, Interval
from launchwise.learning.merit import HARM_PERCENT
from launchwise.tables.rows import DEFAULT_ERROR, Z95


@dataclass(frozen=True)
class Line:
    """A problem of a load, and its answer."""

    answer: Answer
    launches: int
    share: float  # of the time of all lines with the usual choices, 0 to 1
    time_ms: float  # of a launch with the answer
    gain: float  # time of the usual choice over that of the answer
    limits: Interval | None  # of the gain; None where they are unknown
    is_usual: bool  # whether the answer is the usual choice
    least: float  # the lesser of its gain and of that over the default

    @property
    def is_slower(self) -> bool:
        """Whether the answer is slower than the usual choice, or than the default."""
        return self.least < 1 / (1 + HARM_PERCENT / 100)


@dataclass(frozen=True)
class Worth:
    """A load on a device, its problems by their share of the time of all that are answered."""

    lines: Sequence[Line]
    unanswered: Sequence[Shape]  # problems without an answer that has a time: in no number below
    covered: float  # share of the launches whose problems have one, 0 to 1
    tuning_s: float | None  # that the sweep took on the device; None where no row says when

    @property
    def usual_s(self) -> float:
        """Time of the lines with the usual choices."""
        return sum(one.launches * one.time_ms * one.gain for one in self.lines) / 1e3

    @property
    def tuned_s(self) -> float:
        """Time of the lines with the answers."""
        return sum(one.launches * one.time_ms for one in self.lines) / 1e3

    @property
    def gain(self) -> float:
        """Of all lines together."""
        return self.usual_s / self.tuned_s

    @property
    def interval(self) -> Interval | None:
        """Of the gain of the whole: gains that were measured err by themselves, those that are
        expected all at once, by as much as the least sure of them where limits are unknown. None
        where all are."""
        factors = [np.array(one.limits) / one.gain for one in self.lines if one.limits]
        if not factors:
            return None
        widest = min(each[0] for each in factors), max(each[1] for each in factors)
        known = np.array(
            [one.limits or (one.gain * widest[0], one.gain * widest[1]) for one in self.lines]
        )
        shares = np.array([one.launches * one.time_ms for one in self.lines]) / (1e3 * self.tuned_s)
        gains = np.array([one.gain for one in self.lines])
        measured = np.array([one.answer.basis == MEASURED for one in self.lines])
        apart = shares[:, None] * np.abs(known - gains[:, None])
        low, high = np.sqrt((apart[measured] ** 2).sum(axis=0)) + apart[~measured].sum(axis=0)
        return self.gain - float(low), self.gain + float(high)

    @property
    def runs(self) -> int | None:
        """Runs of the load after which tuning has paid what it took; None where it never does."""
        saved_s = self.usual_s - self.tuned_s
        if self.tuning_s is None or saved_s <= 0:
            return None
        return math.ceil(self.tuning_s / saved_s)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        names = ("usual_s", "tuned_s", "gain", "interval", "tuning_s", "runs", "unanswered")
        of_line = ("launches", "share", "time_ms", "gain", "limits", "is_usual", "is_slower")
        return {
            **{name: getattr(self, name) for name in (*names, "covered")},
            "problems": [
                {
                    "problem": one.answer.problem,
                    **{name: getattr(one, name) for name in of_line},
                    "basis": one.answer.basis,
                    "configuration": one.answer.suggestions[0].configuration,
                }
                for one in self.lines
            ],
        }


def worth(
    table: AnswerTable, gpu: str, counts: Mapping[Shape, int], tuning_s: float | None
) -> Worth:
    """What answers of a table are worth for a load on one of its devices.

    ``counts``: problem to its launches. ``tuning_s``: see :class:`Worth`.
    """
    asked = list(zip(table.answers(gpu, list(counts)), counts.values(), strict=True))
    known = [  # What is usual takes as many times as long as the answer gains
        (found, launches, first.expected_ms and first.expected_ms * (first.gain or 1.0))
        for found, launches in asked
        for first in found.suggestions[:1]
    ]
    total_ms = sum(launches * usual_ms for _, launches, usual_ms in known if usual_ms is not None)
    lines = [
        _line(found, launches, launches * usual_ms / total_ms)
        for found, launches, usual_ms in known
        if usual_ms is not None
    ]
    lines.sort(key=lambda one: -one.share)
    unanswered = [shape for shape, (*_, ms) in zip(counts, known, strict=True) if ms is None]
    covered = sum(one.launches for one in lines) / max(sum(counts.values()), 1)
    return Worth(lines, unanswered, covered, tuning_s)


def _line(found: Answer, launches: int, share: float) -> Line:
    first = found.suggestions[0]
    gain, limits = first.gain or 1.0, first.gain_interval
    if first.is_usual:
        limits = 1.0, 1.0
    elif limits is None and found.basis == MEASURED:
        factor = math.exp(math.sqrt(2) * Z95 * DEFAULT_ERROR)
        limits = gain / factor, gain * factor
    least, ms = min(gain, first.improvement or math.inf), first.expected_ms or math.nan
    return Line(found, launches, share, ms, gain, limits, first.is_usual, least)


PAUSE_S = 60.0  # Rows further apart were measured in two visits


def measuring_s(measured_at: Sequence[str]) -> float | None:
    """Time that rows took to measure, by when each was; None where none says it."""
    moments = [one for one in measured_at if one]
    different = list(dict.fromkeys(moments))  # Of many rows, and a text takes long to read
    known = pd.to_datetime(different, utc=True, errors="coerce", format="ISO8601").dropna()
    apart = known.sort_values().to_series().diff().dt.total_seconds()
    return float(apart[apart < PAUSE_S].sum()) if len(moments) > 1 else None
