"""The paper's rule for m per level (section 3.2), looked up among what was measured.

m of the outermost level is what the heuristic says for n; that of the first recursion is what it
says for the first interface system, or a fixed m = 10 (the text lost the condition, so both are
looked up); those of further recursions are what it says for their interface systems. The heuristic
is the nearest size's corrected optimum without recursion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
from launchwise.report.fields import beside, decimals, field, grouped, significant
from launchwise.report.numbers import records
from launchwise.workloads.spec import Spec

from ...host.plan import Level
from ...learning.optima import corrected_optima, with_a_choice
from ...learning.series import by_nearness
from ..host_runs import LEVELS
from .series import CHOICE, SIZE, RecursionSeries

MOST = len(LEVELS) - 1
"""Most recursions that the tunables allow."""


def said_levels(levels: Mapping[str, Any] | Sequence[int]) -> str:
    """``64, 10, 10``, of a row or of its levels: those that are not there are left out."""
    each = [levels[name] for name in LEVELS] if isinstance(levels, Mapping) else levels
    return ", ".join(wording.count(m) for m in each if m)


ONE_LAUNCH, NOT_MEASURED, IMPOSSIBLE = "one launch", "not measured", "too small a system"


@dataclass(frozen=True)
class SizeRule:
    """m by the nearest size in log(n); ``sizes`` ascend."""

    sizes: tuple[int, ...]
    choices: tuple[int, ...]

    @classmethod
    def of(cls, flat: pd.DataFrame) -> SizeRule | None:
        """From rows without recursion; None where no size has two m."""
        rows = with_a_choice(flat, SIZE, "m")
        if rows.empty:
            return None
        optima = corrected_optima(rows, SIZE, "m")
        return cls(tuple(map(int, optima[SIZE])), tuple(map(int, optima["m"])))

    def m(self, rows: int) -> int:
        """For a system of that many rows."""
        return self.choices[int(by_nearness(self.sizes, rows)[0])]


def chosen_levels(
    rule: SizeRule, rows: int, depth: int, spec: Spec, first: int | None = None
) -> tuple[int, ...] | None:
    """m of each level by the rule of section 3.2, the outermost first.

    Parameters
    ----------
    first
        m of the first recursion; the rule's for the first interface system if None.

    Returns
    -------
    tuple
        ``depth + 1`` values, each the nearest (in its logarithm) that the level's tunable has.
        None where an interface system is too small to be cut again.
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
    """Choice of the rule at each size for each number of recursions, and its time.

    Returns
    -------
    pandas.DataFrame
        ``n``, ``depth`` (1 to 4), ``levels`` (m per level, or None), ``time_ms`` (NaN unless its
        row has repeats), ``state`` (empty, or why there is no time), ``loss_percent`` against the
        fastest row of the size, ``speed_up`` over no recursion.
    """
    known = {
        (int(row[SIZE]), *(int(row[name]) for name in LEVELS)): row
        for row in records(_fastest_known(case))
    }
    best = case.overall.set_index(SIZE)["time_ms"]
    flat = case.times()[0]
    found = []
    for size in best.index:
        for depth in range(1, MOST + 1):
            levels = chosen_levels(rule, int(size), depth, case.spec, first)
            state, time = IMPOSSIBLE, np.nan
            if levels is not None:
                row = known.get((int(size), *levels, *[0] * (MOST - depth)))
                state, time = _state(row)
            loss, gain = 100 * (time / best[size] - 1), flat[size] / time
            found.append((int(size), depth, levels, time, state, loss, gain))
    names = [SIZE, CHOICE, "levels", "time_ms", "state", "loss_percent", "speed_up"]
    return pd.DataFrame(found, columns=names)


def _fastest_known(case: RecursionSeries) -> pd.DataFrame:
    """The fastest row of each size and m per level; one with repeats before one of one launch."""
    order = case.timed.assign(_once=case.timed["status"] != "ok").sort_values(["_once", "time_ms"])
    return order.drop_duplicates([SIZE, *LEVELS])


def _state(row: Mapping[str, object] | None) -> tuple[str, float]:
    if row is None:
        return NOT_MEASURED, np.nan
    if row["status"] != "ok":
        return ONE_LAUNCH, np.nan
    return "", float(str(row["time_ms"]))


def by_rule(every: Sequence[RecursionSeries], fixed: int) -> list[Block]:
    """The rule's choices; none where no sizes without recursion were measured.

    Parameters
    ----------
    fixed
        m of the first recursion in the paper's second case.
    """
    folds: list[Block] = []
    for case in every:
        if ways := looked_up_ways(case, fixed):
            title = f"{case.title}: the rule's choice at every size and number of recursions"
            folds.append(Fold(title, [_table(case, ways)]))
    return [Text(NOTE, "note"), *folds] if folds else []


NOTE = (
    "The outermost level has the m of the corrected optimum without recursion at the nearest "
    "size. The first recursion has the same for the first interface system, or a fixed value, "
    "further recursions the same for their interface systems. Each m is the nearest value that "
    "the tunable of its level has."
)


def looked_up_ways(case: RecursionSeries, fixed: int) -> dict[str, pd.DataFrame]:
    """:func:`looked_up` with m1 by the rule, and with a fixed one; empty where there is no rule."""
    rule = SizeRule.of(case.flat)
    if rule is None:
        return {}
    return {
        "m1 by the rule": looked_up(case, rule),
        f"m1 = {fixed}": looked_up(case, rule, fixed),
    }


RULE = [
    field("m per level", lambda row: said_levels(row["levels"] or ()) or MISSING, unit="rows"),
    field("time", lambda row: row["state"] or wording.number(row["time_ms"], 4), str, "ms", True),
    field("loses", "loss_percent", decimals(2), "%"),
]
BEST = [
    field("m per level", said_levels, unit="rows"),
    field("time", "time_ms", significant(4), "ms"),
]


def _table(case: RecursionSeries, ways: Mapping[str, pd.DataFrame]) -> Table:
    """Choices of the rule beside the best of each depth, of all, and without recursion."""
    known = {way: _by_depth(found) for way, found in ways.items()}
    best = _by_depth(case.best)
    overall, flat = case.overall.set_index(SIZE)["time_ms"], case.times()[0]
    keys = list(next(iter(known.values())))
    return beside(
        f"The rule of section 3.2, {case.title}",
        field(SIZE, lambda key: key[0], wording.count, "rows"),
        keys,
        ([field("recursions", lambda key: key[1], wording.count)], {key: key for key in keys}),
        *((grouped(f"rule, {way}", *RULE), found) for way, found in known.items()),
        (grouped("best of that depth", *BEST), best),
        (
            [
                field("best of all", lambda key: overall[key[0]], significant(4), "ms"),
                field("no recursion", lambda key: flat[key[0]], significant(4), "ms"),
            ],
            {key: key for key in keys},
        ),
    )


def _by_depth(table: pd.DataFrame) -> dict[tuple[int, int], dict[str, Any]]:
    """Rows by size and number of recursions."""
    return {(int(row[SIZE]), int(row[CHOICE])): row for row in records(table)}
