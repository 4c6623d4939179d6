"""Quality after measuring a few recommendations, and how rare good configurations are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.curves import ALL_GPUS, LONGEST, RANDOM, SEARCH
from launchwise.report import scores, theme, wording
from launchwise.report.blocks import Block, Figure, Panel, Section, Table
from launchwise.report.fields import field, file_of, grouped, table_of
from launchwise.report.study import StudyData

SHOWN = (1, 2, 3, 5, 10, 20, 50)  # Numbers of measurements that the table has columns for
DRAWN_MODELS = 4  # Models that are drawn beside the answering one: the best at first choice
LEAST_REGRET = 0.01  # Least regret that is drawn, %: no measurement tells smaller ones from 0
MARKERS = 9  # Markers of a line: one per point would hide the dashes

DRAWN_HEURISTICS = ("best_on_average", "nearest_size", "nearest_gpu")


def learning_curves(study: StudyData) -> Section | None:
    """Quality against number of measurements in the first split; None without such a table."""
    if study.curves is None:
        return None
    split = scores.first_split(study)
    rows = study.curves
    rows = rows[(rows["split"] == split) & (rows["gpu"] == ALL_GPUS)]
    if rows.empty:
        return None
    curves = rows.pivot(index="model", columns="measured", values="fraction")
    curves = curves.loc[curves[1].sort_values(ascending=False, kind="stable").index]
    problems = wording.plural(int(rows["problems"].max()), "problem")
    asked = f"Split “{split}”, {problems}"
    table = file_of(f"data/{study.name}.curves.csv", _table(study, curves, asked))
    blocks: list[Block] = [_figure(study, curves, asked), table]
    return Section(f"{study.name}-curves", "Quality against number of measurements", blocks)


def _title(study: StudyData, model: str) -> str:
    return {RANDOM: "random order", SEARCH: "search"}.get(model) or study.title(model)


def _figure(study: StudyData, curves: pd.DataFrame, asked: str) -> Figure:
    roles = study.evaluation.drop_duplicates("model").set_index("model")["role"]
    fitted = [str(name) for name in curves.index if roles.get(name) == "model"]
    answering = scores.answering(study)
    first = [answering] if answering in fitted else []
    others = [name for name in fitted if name not in first]
    heuristics = [name for name in DRAWN_HEURISTICS if name in curves.index]
    searches = [name for name in (SEARCH,) if name in curves.index]
    drawn = [*first, *others[:DRAWN_MODELS], *heuristics, *searches, RANDOM]
    counts = [int(count) for count in curves.columns]
    titles = [_title(study, name) for name in drawn]
    regrets = 100 * (1 - curves.loc[drawn].to_numpy(dtype=float))
    # No axis has a log of 0: a line ends where every problem has its best.
    regrets = np.where(regrets >= LEAST_REGRET, regrets, np.nan)
    traces = [
        _line(counts, row, title, place)
        for place, (row, title) in enumerate(zip(regrets, titles, strict=True))
    ]
    layout = theme.layout(
        theme.log_axis("configurations measured per problem", counts),
        theme.log_axis("regret (%)", regrets.ravel()),
    )
    return Figure(
        id=f"{study.name}-learning-curves",
        caption=(
            f"{asked}: regret (100 % minus % of the best speed, geometric mean) once the first 1 "
            f"to {LONGEST} recommendations were measured and the fastest is kept."
        ),
        alt="Lines: regret against number of configurations measured, one line per method.",
        panels=[Panel("", traces, layout)],
        keys=theme.keys(titles, markers=True),
        height=360,
        width=420,
        limit=760,
    )


def _line(counts: list[int], regrets: np.ndarray, title: str, place: int) -> dict[str, Any]:
    trace = theme.line(
        counts, regrets, name=title, place=place, template="%{x} measured: regret %{y:.3~g} %"
    )
    trace["marker"]["maxdisplayed"] = MARKERS
    return trace


def _table(study: StudyData, curves: pd.DataFrame, asked: str) -> Table:
    fields = [
        field("method", lambda row: _title(study, row["model"])),
        # A search may end before.
        *grouped("configurations measured", *(field(f"{k}", k, wording.fixed) for k in SHOWN)),
    ]
    rows = [{"model": str(name), **row.to_dict()} for name, row in curves.iterrows()]
    return table_of(f"{asked}: fraction of the best, geometric mean", fields, rows)
