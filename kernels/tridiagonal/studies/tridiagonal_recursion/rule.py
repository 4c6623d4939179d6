"""The paper's rule for m per level (section 3.2), looked up among what was measured.

m of the outermost level is what the heuristic says for n; that of the first recursion is what it
says for the first interface system, or a fixed m = 10 (the text lost the condition, so both are
looked up); those of further recursions are what it says for their interface systems. The heuristic
is the nearest size's corrected optimum without recursion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.report.numbers import records
from launchwise.workloads.spec import Spec

from ...host.plan import Level
from ...learning.optima import corrected_optima, with_a_choice
from ...learning.series import by_nearness
from ..host_runs import LEVELS
from .series import CHOICE, SIZE, RecursionSeries

MOST = len(LEVELS) - 1  # most recursions that the tunables allow


ONE_LAUNCH, DISAGREE = "one launch", "repeats disagree"
NOT_MEASURED, IMPOSSIBLE = "not measured", "too small a system"


@dataclass(frozen=True)
class SizeRule:
    """m by the nearest size in log(n); ``sizes`` ascend."""

    sizes: tuple[int, ...]
    choices: tuple[int, ...]

    @classmethod
    def of(cls, flat: pd.DataFrame) -> SizeRule | None:
        """From rows without recursion; None where no size has two m and an optimum among them.

        A size whose fastest m is the largest that was tried there has no known optimum. The trend
        of the optima never falls, so such a size would hold down those of all smaller ones.
        """
        rows = with_a_choice(flat, SIZE, "m")
        rows = rows[rows[SIZE].isin(_bracketed(rows))]
        if rows.empty:
            return None
        optima = corrected_optima(rows, SIZE, "m")
        return cls(tuple(map(int, optima[SIZE])), tuple(map(int, optima["m"])))

    def m(self, rows: int) -> int:
        """For a system of that many rows."""
        return self.choices[int(by_nearness(self.sizes, rows)[0])]


def _bracketed(rows: pd.DataFrame) -> pd.Index:
    """Sizes at which a larger m than the fastest was tried."""
    fastest = rows.sort_values("time_ms").drop_duplicates(SIZE).set_index(SIZE)["m"]
    largest = rows.groupby(SIZE)["m"].max()
    return largest.index[largest > fastest.reindex(largest.index)]


def chosen_levels(
    rule: SizeRule, rows: int, depth: int, spec: Spec, first: int | None = None
) -> tuple[int, ...] | None:
    """m of each level by the rule of section 3.2, the outermost first.

    ``first``: m of the first recursion; the rule's for the first interface system if None.
    Returns a tuple: ``depth + 1`` values, each the nearest (in its logarithm) that the level's
    tunable has. None where an interface system is too small to be cut again.
    """
    found = []
    for place, tunable in enumerate(LEVELS[: depth + 1]):
        wanted = first if place == 1 and first is not None else rule.m(rows)
        allowed = sorted(int(str(m)) for m in spec.tunables[tunable].values if m)
        m = allowed[int(by_nearness(allowed, wanted)[0])]
        level = Level(rows, m)
        if m > rows or level.interface_rows >= rows:
            return None
        found.append(m)
        rows = level.interface_rows
    return tuple(found)


def looked_up(case: RecursionSeries, rule: SizeRule, first: int | None = None) -> pd.DataFrame:
    """Choice of the rule at each size for each number of recursions, and its loss.

    Returns a DataFrame: ``n``, ``depth`` (1 to 4), ``levels`` (m per level, or None), ``state``
    (empty, or why there is no time), ``loss_percent`` against the fastest row of the size (NaN
    unless the choice's row has repeats).
    """
    known = {
        (int(row[SIZE]), *(int(row[name]) for name in LEVELS)): row
        for row in records(_fastest_known(case))
    }
    best = case.overall.set_index(SIZE)["time_ms"]
    found = []
    for size in best.index:
        for depth in range(1, MOST + 1):
            levels = chosen_levels(rule, int(size), depth, case.spec, first)
            state, time = IMPOSSIBLE, np.nan
            if levels is not None:
                row = known.get((int(size), *levels, *[0] * (MOST - depth)))
                state, time = _state(row)
            found.append((int(size), depth, levels, state, 100 * (time / best[size] - 1)))
    names = [SIZE, CHOICE, "levels", "state", "loss_percent"]
    return pd.DataFrame(found, columns=names)


def _fastest_known(case: RecursionSeries) -> pd.DataFrame:
    """The fastest row of each size and m per level; one with repeats that agree before others."""
    worse = (case.timed["status"] != "ok") | case.timed["disagree"]
    order = case.timed.assign(_worse=worse).sort_values(["_worse", "time_ms"])
    return order.drop_duplicates([SIZE, *LEVELS])


def _state(row: Mapping[str, object] | None) -> tuple[str, float]:
    if row is None:
        return NOT_MEASURED, np.nan
    if row["status"] != "ok":
        return ONE_LAUNCH, np.nan
    if row["disagree"]:
        return DISAGREE, np.nan
    return "", float(str(row["time_ms"]))


def looked_up_ways(case: RecursionSeries, fixed: int) -> dict[str, pd.DataFrame]:
    """:func:`looked_up` with m1 by the rule, and with a fixed one; empty where there is no rule."""
    rule = SizeRule.of(case.flat)
    if rule is None:
        return {}
    return {
        "m1 by the rule": looked_up(case, rule),
        f"m1 = {fixed}": looked_up(case, rule, fixed),
    }
