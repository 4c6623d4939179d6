"""Cost of one fixed configuration at every problem, as a heat map."""

from __future__ import annotations

import numpy as np
import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Fold, Panel, Section, Text
from launchwise.report.figures import size_axis, slug
from launchwise.report.numbers import fractions_on, records, single_best, winners
from launchwise.report.study import StudyData, remembered

MOST_PERCENT = 50.0
"""Cost from which a cell has the darkest colour: one far loser must not bleach all others."""

LEAST_PERCENT = 5.0
"""Darkest colour where the fixed configuration costs less everywhere."""

MOST_WRITTEN = 24
"""Columns of a map whose cells also hold their number."""

CELL_HEIGHT, MARGINS = 24, 70
"""Pixels of a row of cells, and of what surrounds the cells."""


@remembered
def costs(study: StudyData, gpu: str) -> pd.DataFrame:
    """Cost of the fixed configuration at every problem of a GPU.

    The fixed configuration is the one with the highest mean speed over the GPU's problems
    (:func:`launchwise.report.numbers.single_best`).

    Returns
    -------
    DataFrame
        One row per problem that the GPU measured: problem columns, ``configuration`` (the fastest,
        as text), ``percent``: time of the fixed configuration divided by the best time, minus 1, in
        percent; NaN where the fixed one has no time.
    """
    best = winners(study)
    best = best.loc[best["gpu"] == gpu, [*study.problem_columns, "configuration"]]
    fixed = single_best(study, ["gpu"])
    one = fixed.loc[fixed["gpu"] == gpu, study.spec.tunable_columns]
    same = fractions_on(study, gpu).merge(one, on=study.spec.tunable_columns)
    found = best.merge(
        same[[*study.problem_columns, "fraction"]], on=study.problem_columns, how="left"
    )
    return found.assign(percent=100 * (1 / found.pop("fraction") - 1))


def section(study: StudyData) -> Section | None:
    """A map per GPU with more than one problem; None without any."""
    blocks: list[Block] = []
    for gpu in study.gpus:
        found = costs(study, gpu)
        if len(found) < 2:
            continue
        parts: list[Block] = [Text(_lead(study, gpu, found)), _map(study, gpu, found)]
        blocks += parts if gpu in study.whole else [Fold(f"{gpu}: cost of one choice", parts)]
    if not blocks:
        return None
    return Section(f"{study.name}-fixed", "One fixed configuration for all problems", blocks)


def _lead(study: StudyData, gpu: str, found: pd.DataFrame) -> str:
    one = records(single_best(study, ["gpu"]).loc[lambda rows: rows["gpu"] == gpu])[0]
    known = found["percent"].dropna()
    text = (
        f"{gpu}: {wording.configuration(one, study.spec)} at every problem costs "
        f"{wording.percent(1 / one['fraction'] - 1)} % of time in the mean (geometric) over "
        f"{wording.plural(len(known), 'problem')}, {wording.number(known.max())} % at most"
    )
    if len(known) < len(found):
        text += f"; {wording.plural(len(found) - len(known), 'problem')} cannot run it"
    return f"{text}. It was chosen with the times of all these problems known."


def _map(study: StudyData, gpu: str, found: pd.DataFrame) -> Figure:
    sizes = sorted(found[study.size].unique().tolist())
    kinds = found[study.kinds].drop_duplicates().sort_values(study.kinds) if study.kinds else None
    names = (
        [""] if kinds is None else [wording.problem(kind, study.kinds) for kind in records(kinds)]
    )
    columns = {size: place for place, size in enumerate(sizes)}
    lines = {name: place for place, name in enumerate(names)}
    percent = np.full((len(names), len(sizes)), np.nan)
    best = [["" for _ in sizes] for _ in names]
    for row in records(found):
        line = lines[wording.problem(row, study.kinds)]
        percent[line, columns[row[study.size]]] = row["percent"]
        best[line][columns[row[study.size]]] = row["configuration"]
    highest = float(np.nanmax(percent))
    high = min(max(highest, LEAST_PERCENT), MOST_PERCENT)
    written = [["" if np.isnan(one) else f"{one:.0f}" for one in row] for row in percent.tolist()]
    trace = theme.heat(
        [theme.short(size) if isinstance(size, int) else str(size) for size in sizes],
        [name or study.size for name in names],
        percent.tolist(),
        low=0.0,
        high=round(high, 4),
        scale=theme.BAD_IS_DARK,
        template=(
            f"%{{y}}, {study.size}=%{{x}}<br>the fixed one costs %{{z:.1f}} %"
            "<br>fastest: %{customdata}"
        ),
        texts=written if len(sizes) <= MOST_WRITTEN else None,
    )
    trace["customdata"] = best
    x = theme.axis(size_axis(study), type="category", showgrid=False)
    y = theme.axis("", type="category", autorange="reversed", showgrid=False, ticks="")
    darkest = f"{high:.0f} % or more is" if highest > high else f"{high:.0f} % is"
    return Figure(
        id=f"{study.name}-fixed-{slug(gpu)}",
        caption=(
            f"{gpu}: extra time of the fixed configuration over the fastest of each problem, in "
            f"percent; {darkest} darkest. Empty: not measured, or it cannot run there. Point at a "
            "cell for the fastest configuration."
        ),
        alt=f"Heat map: cost of one fixed configuration by {study.size} and kind of problem.",
        panels=[Panel("", [trace], theme.layout(x, y))],
        height=MARGINS + CELL_HEIGHT * max(len(names), 2),
        width=420,
    )
