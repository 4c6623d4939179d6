"""Training rows that the Tukey filter removed: counts, and times before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import (
    Block,
    Cell,
    Column,
    Figure,
    Key,
    Panel,
    Row,
    Table,
    Text,
    table,
)
from launchwise.report.study import StudyData, remembered
from launchwise.tables.learning import named_folds, rows_of_fold
from launchwise.tables.rows import least_by, row_numbers

SCOPES = {
    "problem": "one Tukey filter per problem, on log time",
    "global": "one Tukey filter over all times (the paper's)",
}
NEAR_PERCENT = 5.0
"""Rows this close to the least time of their problem are good choices."""

ARMS = (
    "A filter that removes the fastest rows of a problem hides good configurations from every "
    "model; one that removes only slower rows costs nothing here. The rows are training rows, and "
    "no model is fitted to them here: benchmarks/ablations.py fits with and without the filter."
)
NO_ROWS = "There were no training rows, so the filter removed nothing."
DRAWN = 500
"""Points of one panel; more than that is a blot and a heavy page."""


@remembered
def before(study: StudyData, split: str, fold: str) -> pd.DataFrame:
    """Training rows of a split and fold before any filter."""
    scope = study.settings.fences.scope
    key = ["gpu", *study.problem_columns, *study.spec.tunable_columns]
    kept = rows_of_fold(study.training, split, fold)
    gone = of_scope(study, split, fold, scope)
    return pd.concat([kept[[*key, "time_ms"]], gone[[*key, "time_ms"]]], ignore_index=True)


@remembered
def removed(study: StudyData, split: str, fold: str, scope: str) -> np.ndarray:
    """Whether the filter of a scope removes each row of :func:`before`: bool, shape (rows,)."""
    rows, gone = before(study, split, fold), of_scope(study, split, fold, scope)
    key = ["gpu", *study.problem_columns, *study.spec.tunable_columns]
    numbers = row_numbers(pd.concat([rows[key], gone[key]]), key)
    return np.isin(numbers[: len(rows)], numbers[len(rows) :])


@remembered
def of_scope(study: StudyData, split: str, fold: str, scope: str) -> pd.DataFrame:
    """Rows that the filter of one scope removed from a split and fold."""
    table = study.removed
    return table[(table["split"] == split) & (table["fold"] == fold) & (table["scope"] == scope)]


def by_size(study: StudyData, split: str, fold: str) -> pd.DataFrame:
    """Rows before the filter and rows removed, per problem size.

    Returns
    -------
    DataFrame
        Index: sizes; columns ``rows`` and one a scope with the number removed.
    """
    found = before(study, split, fold).groupby(study.size).size().to_frame("rows")
    for scope in SCOPES:
        counts = of_scope(study, split, fold, scope).groupby(study.size).size()
        found[scope] = counts.reindex(found.index, fill_value=0)
    return found


def blocks(study: StudyData) -> list[Block]:
    """The part of a study's section about outliers."""
    if study.training.empty:
        return [Text(NO_ROWS)]
    split, _, fold = named_folds(study.training)[0].partition("/")
    counts = by_size(study, split, fold)
    total = int(counts["rows"].sum())
    gone = {scope: int(counts[scope].sum()) for scope in SCOPES}
    used = study.settings.fences.scope
    lead = (
        f"The Tukey filter at {study.settings.fences.factor:g} times the interquartile range is "
        f"applied to {wording.count(total)} training rows of the split "
        f"“{study.split_title(split)}”. Rows removed by {SCOPES['problem']}: "
        f"{wording.count(gone['problem'])} ({wording.percent(gone['problem'] / total)} %); "
        f"by {SCOPES['global']}: "
        f"{wording.count(gone['global'])} ({wording.percent(gone['global'] / total)} %). "
        f"This run trained with scope “{used}”. Test rows are never filtered."
    )
    found: list[Block] = [Text(lead), _table(study, counts)]
    if remark := _remark(study, counts):
        found.append(Text(remark, "note"))
    found += [Text(ARMS, "note"), _arms_table(study, split, fold)]
    found.append(_scatter(study, split, fold))
    return found


def _remark(study: StudyData, counts: pd.DataFrame) -> str:
    """Share of large problems that the filter over all times removes, if above that of small."""
    rates = counts["global"] / counts["rows"]
    small, large = rates.index.min(), rates.index.max()
    if not rates[large] > rates[small]:
        return ""
    return (
        "One filter over all times removes large problems, not noise: it removes "
        f"{wording.percent(rates[large], 0)} % of the rows at {study.size}={large} and "
        f"{wording.percent(rates[small], 0)} % at {study.size}={small}."
    )


@dataclass(frozen=True)
class Arm:
    """What a filter, or none, leaves of the best configurations of the training problems.

    Parameters
    ----------
    removed
        Rows that it removes.
    near
        Those of them within :data:`NEAR_PERCENT` of the least time of their problem.
    lost
        Problems whose fastest row it removes.
    gone
        Problems that keep no row.
    loss, worst
        Least time of the kept rows divided by the least time, minus 1: geometric mean over the
        problems that keep a row, and at most.
    """

    removed: int
    near: int
    lost: int
    gone: int
    loss: float
    worst: float


@remembered
def arms(study: StudyData, split: str, fold: str) -> dict[str, Arm]:
    """No filter beside the filter of each scope, on the same training rows, without a fit."""
    key = ["gpu", *study.problem_columns]
    rows = before(study, split, fold)
    cases, times = row_numbers(rows, key), rows["time_ms"].to_numpy()
    best = least_by(cases, times)
    near = times <= (1 + NEAR_PERCENT / 100) * best[cases]
    found = {}
    for name in ("none", *SCOPES):
        flag = removed(study, split, fold, name)
        ratio = least_by(cases[~flag], times[~flag], len(best)) / best
        kept = ratio[np.isfinite(ratio)]
        found[name] = Arm(
            removed=int(flag.sum()),
            near=int((flag & near).sum()),
            lost=int((ratio > 1).sum()),
            gone=len(ratio) - len(kept),
            loss=float(np.exp(np.log(kept).mean()) - 1) if len(kept) else float("nan"),
            worst=float(kept.max() - 1) if len(kept) else float("nan"),
        )
    return found


def _arms_table(study: StudyData, split: str, fold: str) -> Table:
    columns = [
        Column("filter", number=False),
        Column("rows", "removed"),
        Column("of them", f"within {NEAR_PERCENT:g} % of the best"),
        Column("problems", "fastest row removed"),
        Column("problems", "no row left"),
        Column("slower", "%, mean", group="best kept row"),
        Column("slower", "%, worst", group="best kept row"),
    ]
    names = {"none": "no filter", **SCOPES}
    rows = [
        [
            names[name],
            *map(wording.count, (arm.removed, arm.near, arm.lost, arm.gone)),
            wording.percent(arm.loss, 2),
            wording.percent(arm.worst),
        ]
        for name, arm in arms(study, split, fold).items()
    ]
    caption = "The training rows with and without the filter: what a perfect model could still find"
    return table(caption, columns, rows)


def _table(study: StudyData, counts: pd.DataFrame) -> Table:
    rows = []
    for size, row in counts.iterrows():
        cells = [Cell(f"{size}"), Cell(wording.count(row["rows"]))]
        for scope in SCOPES:
            cells += [
                Cell(wording.count(row[scope])),
                Cell(wording.percent(row[scope] / row["rows"])),
            ]
        rows.append(Row(cells))
    sums = counts.sum()
    total = [Cell("all"), Cell(wording.count(sums["rows"]))]
    for scope in SCOPES:
        total += [
            Cell(wording.count(sums[scope])),
            Cell(wording.percent(sums[scope] / sums["rows"])),
        ]
    rows.append(Row(total, role="total"))
    unit = study.spec.problem[study.size].unit
    return Table(
        "Filtered training rows, by size and by scope of the filter",
        [
            Column(study.size, unit),
            Column("before", "rows"),
            Column("removed", "rows", group="filter per problem"),
            Column("removed", "% of the size", group="filter per problem"),
            Column("removed", "rows", group="filter over all times"),
            Column("removed", "% of the size", group="filter over all times"),
        ],
        rows,
    )


def _scatter(study: StudyData, split: str, fold: str) -> Figure:
    key = [study.size, *study.kinds, "gpu", *study.spec.tunable_columns]
    rows = before(study, split, fold)
    order = np.argsort(row_numbers(rows, key, ordered=True), kind="stable")
    rows = rows[[study.size, "time_ms"]].iloc[order].assign(_place=np.arange(1, len(rows) + 1))
    panels = []
    for scope, title in SCOPES.items():
        flag = removed(study, split, fold, scope)[order]
        traces = []
        for name, own, colour, shape in (
            ("kept", rows[~flag], theme.BLUE, "circle"),
            ("removed", rows[flag], theme.ORANGE, "x-thin"),
        ):
            own = own.iloc[theme.thinned(len(own), DRAWN)]
            trace = theme.dots(
                own["_place"],
                own["time_ms"],
                name=name,
                colour_=colour,
                shape=shape,
                size=3 if name == "kept" else 5,
                opacity=0.5 if name == "kept" else 0.9,
                hover=[f"{study.size}={size}" for size in own[study.size]],
                template="%{text}, %{y:.4~g} ms",
            )
            if name == "removed":
                trace["marker"]["line"] = {"width": 1, "color": colour}
            traces.append(trace)
        panels.append(
            Panel(
                title,
                traces,
                theme.layout(
                    theme.axis(f"training row, ordered by {study.size}", showgrid=False),
                    theme.log_axis("time (ms)", rows["time_ms"]),
                ),
            )
        )
    return Figure(
        id=f"{study.name}-outliers",
        caption=(
            "Times before the filter (all points) and after (blue points only). A filter per "
            "problem cuts the tails of each problem; a filter over all times cuts everything above "
            "one time. An even sample is drawn."
        ),
        alt="Two scatter plots of training times, removed rows marked by crosses.",
        panels=panels,
        keys=[Key("kept", theme.BLUE, "circle"), Key("removed", theme.ORANGE, "cross")],
        height=320,
        width=400,
    )
