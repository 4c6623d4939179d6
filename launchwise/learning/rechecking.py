"""Answers measured again: choice of the problems, and verdict on each answer."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED, Answer
from launchwise.learning.blind import whole
from launchwise.learning.final import Final
from launchwise.learning.row_arrays import records_of
from launchwise.learning.splits import Case
from launchwise.tables.files import table_of
from launchwise.tables.measurements import RECHECK_ORIGIN, recheck_schema
from launchwise.workloads.parts import Value
from launchwise.workloads.space import plain
from launchwise.workloads.spec import Spec

WIDEST = 0.1  # Half the width of an interval, relative to its gain, above which it is inconclusive


def drawn_answers(
    final: Final, gpu: str, number: int, seed: str, least_gain: float | None = None
) -> list[Answer]:
    """Answers to measured problems, drawn at random: those that are not the usual choice first.

    Where the usual choice is recommended, there is no gain to lose. ``number``: most problems;
    ``seed``: the same seed draws the same problems from the same product; ``least_gain``: as in
    :func:`launchwise.learning.answering.answers`.
    """
    columns = final.spec.problem_columns
    measured = final.measured
    # A GPU that the product did not learn from is asked what others were asked.
    own = measured[measured["gpu"] == gpu]
    rows = own if len(own) else measured
    listed = sorted(set(rows[columns].itertuples(index=False, name=None)), key=str)
    random.Random(seed).shuffle(listed)
    asked = [Case(gpu, plain(dict(zip(columns, each, strict=True)), columns)) for each in listed]
    found = answers(final, asked, least_gain=least_gain)
    found.sort(key=lambda each: each.suggestions[0].is_usual)
    return found[:number]


def expectation(answer: Answer, spec: Spec) -> dict[str, Any]:
    """Expectation of an answer, as JSON holds it; see :func:`verdicts`."""
    first = answer.suggestions[0]
    gain = first.improvement if first.is_usual else first.gain
    expected = None if first.is_usual or answer.basis == MEASURED else first.gain_interval
    return {
        "gpu": answer.gpu,
        "problem": answer.problem,
        "configuration": whole(first.configuration, spec),
        "default": "baseline" if first.is_usual else "usual",
        "basis": answer.basis,
        "gain": gain,
        "interval": None if expected is None else list(expected),
    }


@dataclass(frozen=True)
class Gain:
    """Time of the default over that of the recommendation, and limits of its interval. NaN where
    nothing is known."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def is_narrow(self) -> bool:
        """Whether the interval is narrow enough for a verdict."""
        return (self.high - self.low) / 2 <= WIDEST * self.value


def verdict(now: Gain, before: Gain, paired: bool, precision: float) -> tuple[str, str]:
    """Verdict (see :data:`launchwise.tables.measurements.VERDICTS`) and reason.

    ``now``: measured in pairs.
    ``before``: measured in pairs earlier, or what the product expects.
    ``paired``: whether ``before`` was measured in pairs: a single row of a sweep, or an
        expectation, is no proof that something was lost.
    ``precision``: relative difference that pairs are not asked to tell.
    """
    if math.isnan(now.low):
        return "unknown", "fewer than six pairs of equal clocks"
    if now.high < 1:
        return "stale", "slower than the default"
    if paired and now.high < before.low * (1 - precision):
        return "stale", "gains less than in earlier pairs"
    if not now.is_narrow:
        return "unknown", "the interval is too wide: give it more seconds"
    if now.low > before.high * (1 + precision):
        return "better", "gains more than was known"
    return "holds", ""


def verdicts(
    expected: Sequence[Mapping[str, Any]],
    pairs: pd.DataFrame,
    earlier: pd.DataFrame | None,
    sweep: pd.DataFrame,
    spec: Spec,
    precision: float,
) -> pd.DataFrame:
    """A verdict per problem: a table as :func:`launchwise.tables.pairs.recheck_schema` declares it.

    ``expected``: of :func:`expectation`.
    ``pairs``, ``earlier``: pairs of now, and of before (None without any); see
        :func:`launchwise.tables.measurements.pairs_schema`.
    ``sweep``: key, card, driver and toolkit of the rows that the product learnt from.
    ``precision``: see :func:`verdict`.
    """
    by_key = {_key(row, spec): row for row in records_of(pairs)}
    before = [] if earlier is None else records_of(earlier)
    before_by_key = {_key(row, spec): row for row in before}
    origins = {_key(row, spec): row for row in records_of(sweep)}
    found = []
    for each in expected:
        names = {"gpu": each["gpu"], **each["problem"], **each["configuration"]}
        key = _key(names, spec)
        column = "gain" if each["default"] == "usual" else "improvement"
        own = by_key[key]
        old = before_by_key.get(key)
        now, known, known_by = _gain(own, column), _expected(each), str(each["basis"])
        if old is not None and math.isfinite(old[f"{column}_low"]):
            known, known_by = _gain(old, column), "pairs"
        said, reason = _judged(own, now, known, known_by == "pairs", precision)
        origin = old if known_by == "pairs" else origins.get(key)
        found.append(
            {
                **names,
                "workload": spec.workload,
                "verdict": said,
                "reason": reason,
                "default": each["default"],
                **_limits("gain", now),
                **_limits("known_gain", known),
                "known_by": known_by,
                **{name: str(own[name]) for name in RECHECK_ORIGIN},
                **{f"known_{name}": str(origin[name]) if origin else "" for name in RECHECK_ORIGIN},
            }
        )
    return table_of(found, recheck_schema(spec)).sort_values(
        spec.problem_columns, ignore_index=True
    )


def _judged(
    own: Mapping[str, Any], now: Gain, known: Gain, paired: bool, precision: float
) -> tuple[str, str]:
    is_default = {"recommended", "baseline"} <= set(str(own["roles"]).split("+"))
    if own["status"] == "wrong":
        return "stale", f"its result is wrong: {own['reason']}"
    if own["status"] != "ok":
        return "unknown", f"could not run: {own['reason']}"
    if is_default:
        return "holds", "the default is recommended"
    return verdict(now, known, paired, precision)


def _key(row: Mapping[str, Any], spec: Spec) -> tuple[Value, ...]:
    return tuple(row[name] for name in spec.key_columns)


def _gain(row: Mapping[str, Any], column: str) -> Gain:
    return Gain(*(float(row[column + suffix]) for suffix in ("", "_low", "_high")))


def _expected(each: Mapping[str, Any]) -> Gain:
    value = math.nan if each["gain"] is None else float(each["gain"])
    low, high = each["interval"] or (math.nan, math.nan)
    return Gain(value, float(low), float(high))


def _limits(name: str, gain: Gain) -> dict[str, float]:
    return {name: gain.value, f"{name}_low": gain.low, f"{name}_high": gain.high}
