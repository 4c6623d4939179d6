"""Training rows that the Tukey filter removed: counts, and times before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Key, Panel, Section, Table, Text
from launchwise.report.fields import (
    Field,
    field,
    grouped,
    table_of,
)
from launchwise.report.study import StudyData, remembered
from launchwise.tables.learning import named_folds, rows_of_fold
from launchwise.tables.rows import row_numbers

SCOPES = {
    "problem": "one Tukey filter per problem, on log time",
    "global": "one Tukey filter over all times (the paper's)",
}

NO_ROWS = "There were no training rows, so the filter removed nothing."

DRAWN = 500  # Points of one panel; more than that is a blot and a heavy page


@remembered
def before(study: StudyData, split: str, fold: str) -> pd.DataFrame:
    """Training rows of a split and fold before any filter. Returns columns of a row's key,
    ``time_ms``, and a scope each: whether that filter removes the row."""
    key = ["gpu", *study.problem_columns, *study.spec.tunable_columns]
    gone = study.removed[(study.removed["split"] == split) & (study.removed["fold"] == fold)]
    own = gone[gone["scope"] == study.settings.fences.scope]
    kept = rows_of_fold(study.training, split, fold)
    rows = pd.concat([part[[*key, "time_ms"]] for part in (kept, own)], ignore_index=True)
    numbers = row_numbers(pd.concat([rows[key], gone[key]]), key)
    here, there = numbers[: len(rows)], numbers[len(rows) :]
    flags = {scope: np.isin(here, there[gone["scope"].to_numpy() == scope]) for scope in SCOPES}
    return rows.assign(**flags)


def by_size(study: StudyData, split: str, fold: str) -> pd.DataFrame:
    """``rows`` before the filter, and how many the filter of each scope removes, by size."""
    groups = before(study, split, fold).groupby(study.size)
    return groups[list(SCOPES)].sum().assign(rows=groups.size())


def outliers(study: StudyData) -> list[Block]:
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


GROUPS = {"problem": "filter per problem", "global": "filter over all times"}
"""Scope to the heading of its columns."""


def _removed(scope: str) -> list[Field]:
    def share(row: Mapping[str, Any]) -> float:
        return float(row[scope] / row["rows"])

    rows = field("removed", scope, wording.count, "rows")
    return grouped(GROUPS[scope], rows, field("removed", share, wording.percent, "% of the size"))


def _table(study: StudyData, counts: pd.DataFrame) -> Table:
    fields = [
        field(study.size, "size", number=True, unit=study.spec.problem[study.size].unit),
        field("before", "rows", wording.count, "rows"),
        *(one for scope in SCOPES for one in _removed(scope)),
    ]
    rows = [{"size": size, **own} for size, own in counts.iterrows()]
    rows.append({"size": "all", **counts.sum()})
    caption = "Filtered training rows, by size and by scope of the filter"
    return table_of(caption, fields, rows, lambda row: "total" if row["size"] == "all" else "")


def _scatter(study: StudyData, split: str, fold: str) -> Figure:
    key = [study.size, *study.kinds, "gpu", *study.spec.tunable_columns]
    rows = before(study, split, fold)
    order = np.argsort(row_numbers(rows, key, ordered=True), kind="stable")
    rows = rows.iloc[order].reset_index(drop=True)
    x = theme.axis(f"training row, ordered by {study.size}", showgrid=False)
    layout = theme.layout(x, theme.log_axis("time (ms)", rows["time_ms"]))
    kept = {"name": "kept", "colour_": theme.BLUE, "size": 3, "opacity": 0.5}
    gone = {"name": "removed", "colour_": theme.ORANGE, "size": 5, "opacity": 0.9}
    panels = []
    for scope, title in SCOPES.items():
        traces = [
            _dots(study, rows[~rows[scope]], **kept),
            _dots(study, rows[rows[scope]], **gone, shape="x-thin"),
        ]
        traces[1]["marker"]["line"] = {"width": 1, "color": theme.ORANGE}
        panels.append(Panel(title, traces, layout))
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


def _dots(study: StudyData, rows: pd.DataFrame, **style: Any) -> dict[str, Any]:
    own = rows.iloc[theme.thinned(len(rows), DRAWN)]
    hover = [f"{study.size}={size}" for size in own[study.size]]
    style |= {"hover": hover, "template": "%{text}, %{y:.4~g} ms"}
    return theme.dots(own.index + 1, own["time_ms"], **style)


def filtered(study: StudyData) -> Section:
    """Rows that the Tukey filter removed."""
    return Section(f"{study.name}-outliers", "Filtered rows", outliers(study))
