"""The paper's rule for m per level (section 3.2), looked up among what was measured.

m of the outermost level is what the heuristic says for n; that of the first recursion is what it
says for the first interface system, or a fixed m = 10 (the text lost the condition, so both are
looked up); those of further recursions are what it says for their interface systems. The heuristic
is the nearest size's corrected optimum without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.learning.metrics import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import (
    MISSING,
    Block,
    Bullets,
    Column,
    Fold,
    Section,
    Table,
    Text,
    table,
)
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.workloads.spec import Spec

from ...host.plan import Level
from ...learning.optima import corrected_optima, with_a_choice
from ...learning.series import by_nearness
from ..host_runs import LEVELS
from .series import CHOICE, SIZE, RecursionSeries

MOST = len(LEVELS) - 1
"""Most recursions that the tunables allow."""

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


def by_rule(study: StudyData, every: Sequence[RecursionSeries], fixed: int) -> list[Section]:
    """The section on the rule; none where no sizes without recursion were measured.

    Parameters
    ----------
    fixed
        m of the first recursion in the paper's second case.
    """
    items: list[str | tuple[str, str]] = []
    folds: list[Block] = []
    for case in every:
        rule = SizeRule.of(case.flat)
        if rule is None:
            continue
        ways = {
            "m1 by the rule": looked_up(case, rule),
            f"m1 = {fixed}": looked_up(case, rule, fixed),
        }
        items += [(f"{case.title}, {way}:", _said(case, found)) for way, found in ways.items()]
        title = f"{case.title}: the rule's choice at every size and number of recursions"
        folds.append(Fold(title, [_table(case, ways)]))
    if not folds:
        return []
    note = Text(
        "The outermost level has the m of the corrected optimum without recursion at the nearest "
        "size. The first recursion has the same for the first interface system, or a fixed value, "
        "further recursions the same for their interface systems. Each m is the nearest value that "
        "the tunable of its level has.",
        "note",
    )
    return [
        Section(
            f"{study.name}-m-per-level",
            "m per level by the rule of section 3.2",
            [Bullets(items), note, *folds],
        )
    ]


def _said(case: RecursionSeries, found: pd.DataFrame) -> str:
    """Number of measured choices, and their loss at the best number of recursions."""
    timed = found[found["state"] == ""]
    text = f"{len(timed)} of {len(found)} choices have a time"
    for state in (ONE_LAUNCH, IMPOSSIBLE):
        if count := int((found["state"] == state).sum()):
            text += f", {count} {state}"
    depths = case.overall.set_index(SIZE)[CHOICE]
    best = timed[timed[CHOICE].to_numpy() == depths.reindex(timed[SIZE]).to_numpy()]
    if timed.empty:
        return f"{text}."
    text += (
        f"; at the best number of recursions {len(best)} of {len(depths)}"
        if len(best)
        else "; none at the best number of recursions"
    )
    least = timed.loc[timed.groupby(SIZE)["time_ms"].idxmin()]
    loss = 100 * (geometric_mean(1 + least["loss_percent"].to_numpy() / 100) - 1)
    return (
        f"{text}. The fastest of them at each of {wording.plural(len(least), 'size')} loses "
        f"{wording.fixed(loss, 2)} % in the mean and at most "
        f"{wording.fixed(least['loss_percent'].max(), 2)} % against the best of all rows; its "
        f"speed-up over no recursion is {wording.fixed(least['speed_up'].min(), 2)}x to "
        f"{wording.fixed(least['speed_up'].max(), 2)}x."
    )


def _table(case: RecursionSeries, ways: Mapping[str, pd.DataFrame]) -> Table:
    columns = [Column(SIZE, "rows"), Column("recursions")]
    for way in ways:
        columns += [
            Column("m per level", "rows", number=False, group=f"rule, {way}"),
            Column("time", "ms", group=f"rule, {way}"),
            Column("loses", "%", group=f"rule, {way}"),
        ]
    columns += [
        Column("m per level", "rows", number=False, group="best of that depth"),
        Column("time", "ms", group="best of that depth"),
        Column("best of all", "ms"),
        Column("no recursion", "ms"),
    ]
    first = next(iter(ways.values()))
    keys = zip(first[SIZE], first[CHOICE], strict=True)
    cells = zip(*(_cells(found) for found in ways.values()), strict=True)
    rows = [
        [wording.count(size), wording.count(depth), *left, *right, *own]
        for (size, depth), (left, right), own in zip(
            keys, cells, _best_cells(case, first), strict=True
        )
    ]
    return table(f"The rule of section 3.2, {case.title}", columns, rows)


def _cells(found: pd.DataFrame) -> Iterator[list[str]]:
    """m per level, time and loss of each choice of the rule."""
    for row in records(found):
        levels = MISSING if row["levels"] is None else said_levels(row["levels"])
        time = row["state"] or wording.number(row["time_ms"], 4)
        yield [levels, time, wording.fixed(row["loss_percent"], 2)]


def _best_cells(case: RecursionSeries, found: pd.DataFrame) -> Iterator[list[str]]:
    """The best of each depth, of all, and without recursion, beside each choice of the rule."""
    best = {(int(row[SIZE]), int(row[CHOICE])): row for row in records(case.best)}
    overall = case.overall.set_index(SIZE)["time_ms"]
    for size, depth in zip(found[SIZE], found[CHOICE], strict=True):
        own = best.get((int(size), int(depth)))
        levels = MISSING if own is None else said_levels([own[name] for name in LEVELS])
        yield [
            levels,
            MISSING if own is None else wording.number(own["time_ms"], 4),
            wording.number(overall[size], 4),
            wording.number(best[int(size), 0]["time_ms"], 4),
        ]


def said_levels(levels: Sequence[int]) -> str:
    """``64, 10, 10``: levels that are not there are left out."""
    return ", ".join(wording.count(m) for m in levels if m)
