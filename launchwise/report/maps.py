"""Figures of models and of pairs of GPUs: heat maps and predicted against measured time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.merit import geometric_mean
from launchwise.report import theme
from launchwise.report.blocks import Figure, Key, Panel
from launchwise.report.figures import size_axis
from launchwise.report.study import StudyData
from launchwise.tables.learning import predicted_column
from launchwise.tables.rows import row_numbers


def fraction_heat(
    study: StudyData, evaluation: pd.DataFrame, models: Sequence[str], name: str
) -> Figure:
    """Fraction of the best by model and size, one panel per GPU."""
    means = _mean_fractions(study, evaluation)
    sizes = sorted(evaluation[study.size].unique())
    lowest = min(means.values(), default=0.5)
    # One far loser must not bleach the differences between good ones.
    low = min(max(float(np.floor(20 * lowest) / 20), 0.6), 0.9)
    titles = [study.title(model) for model in models]
    panels = []
    for gpu in study.gpus:
        present = [size for size in sizes if any((gpu, one, size) in means for one in models)]
        if not present:
            continue
        trace = theme.heat(
            [str(size) for size in present],
            titles,
            [[means.get((gpu, one, size), np.nan) for size in present] for one in models],
            low=low,
            high=1.0,
            scale=theme.regret_scale(low),
            template=f"%{{y}}, {study.size}=%{{x}}<br>fraction of the best %{{z:.3f}}",
        )
        # Few: the upper ones stand close together.
        ticks = [low, *(tick for tick in (0.7, 0.8, 0.9, 0.95, 0.98) if tick > low), 1.0]
        trace["colorbar"] |= {"tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
        x = theme.axis(size_axis(study), type="category", showgrid=False)
        y = theme.axis("", type="category", autorange="reversed", showgrid=False, ticks="")
        panels.append(Panel(gpu, [trace], theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-heat-{name}",
        caption=(
            "Fraction of the best (geometric mean over the problems of a size): dark is good, "
            f"1 is the best configuration, {low:.2f} or less is palest. Colours follow the log of "
            "the regret (1 - fraction). The best row is on top."
        ),
        alt="Heat maps: fraction of the best by model and size, one map per GPU.",
        panels=panels,
        height=90 + 19 * len(models),
        width=420,
    )


def _mean_fractions(
    study: StudyData, evaluation: pd.DataFrame
) -> dict[tuple[str, str, Any], float]:
    """GPU, model and size to the geometric mean of its fractions, where none of them is NaN."""
    if evaluation.empty:
        return {}
    key = ["gpu", "model", study.size]
    groups = row_numbers(evaluation, key)
    order = np.argsort(groups, kind="stable")
    ends = np.cumsum(np.bincount(groups))
    fractions = np.split(evaluation["fraction"].to_numpy()[order], ends[:-1])
    first = evaluation[key].iloc[order[ends - 1]]
    names = zip(*(first[name].tolist() for name in key), strict=True)
    means = zip(names, map(geometric_mean, fractions), strict=True)
    return {name: mean for name, mean in means if not np.isnan(mean)}


def predicted(study: StudyData, joined: pd.DataFrame, errors: Mapping[str, str]) -> Figure:
    """Predicted against measured time of every candidate, log-log, one panel per model.

    Parameters
    ----------
    joined
        ``gpu``, problem and configuration columns, ``time_ms``, and a column of predicted times
        (:func:`launchwise.tables.learning.predicted_column`) per model that predicts them.
    errors
        Model -> what its title says beside the name.
    """
    panels = []
    columns = {model: predicted_column(model) for model in study.settings.models}
    columns = {model: name for model, name in columns.items() if name in joined}
    every = joined[["time_ms", *columns.values()]].to_numpy()
    ends = [float(np.nanmin(every)), float(np.nanmax(every))]
    for model, predicted_ms in columns.items():
        title = f"{study.title(model)}: {errors.get(model, '')}"
        panels.append(_predicted_panel(title, study.gpus, joined, predicted_ms, ends))
    present = set(joined["gpu"].unique())
    gpus = [gpu for gpu in study.gpus if gpu in present]
    return Figure(
        id=f"{study.name}-predicted",
        caption=(
            "Predicted against measured time of the test problems' candidates; a perfect model "
            "lies on the dotted line. An even sample of all points is drawn, errors use all."
        ),
        alt="Scatter plot: predicted against measured time of the model with the least error.",
        panels=panels,
        keys=[
            Key(gpu, theme.colour(study.gpus.index(gpu)), theme.symbol(study.gpus.index(gpu)))
            for gpu in gpus
        ],
        height=320,
        limit=760,
    )


def _predicted_panel(
    title: str, gpus: Sequence[str], joined: pd.DataFrame, predicted_ms: str, ends: list[float]
) -> Panel:
    """One model's predicted against measured times; ``ends``: shortest and longest time, ms."""
    rows = joined[joined[predicted_ms].notna()]
    rows = rows.sort_values(["time_ms", predicted_ms, "gpu"], kind="stable")
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": theme.rounded(ends),
            "y": theme.rounded(ends),
            "line": {"color": theme.INK, "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
        }
    ]
    limit = max(40, 200 // max(1, rows["gpu"].nunique()))
    for place, gpu in enumerate(gpus):
        own = rows[rows["gpu"] == gpu]
        if own.empty:
            continue
        own = own.iloc[theme.thinned(len(own), limit)]
        traces.append(
            theme.dots(
                own["time_ms"],
                own[predicted_ms],
                name=gpu,
                colour_=theme.colour(place),
                shape=theme.symbol(place),
                opacity=0.55,
                template="measured %{x:.4~g} ms, predicted %{y:.4~g} ms",
            )
        )
    return Panel(
        title,
        traces,
        theme.layout(
            theme.log_axis("measured time (ms)", ends),
            theme.log_axis("predicted time (ms)", ends),
        ),
    )


def transfer_heat(study: StudyData, pairs: pd.DataFrame) -> Figure:
    """Loss from using one GPU's best configuration on another, as a matrix."""
    grid = pairs.pivot(index="source", columns="target", values="loss").reindex(
        index=study.gpus, columns=study.gpus
    )
    values = 100 * grid.to_numpy(dtype=float)
    texts = [["" if not np.isfinite(value) else f"{value:.1f}" for value in row] for row in values]
    top = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    trace = theme.heat(
        study.gpus,
        study.gpus,
        values.tolist(),
        low=0.0,
        high=round(max(top, 1.0), 4),
        scale=theme.BAD_IS_DARK,
        template="best of %{y} used on %{x}: %{z:.2f} % slower",
        texts=texts,
    )
    return Figure(
        id=f"{study.name}-transfer",
        caption=(
            "Loss in percent (geometric mean) when the best configurations of the row's GPU are "
            "used on the column's GPU."
        ),
        alt="Heat map: percent lost by using one GPU's best configuration on another.",
        panels=[
            Panel(
                "",
                [trace],
                theme.layout(
                    theme.axis("used on", type="category", showgrid=False),
                    theme.axis("best of", type="category", autorange="reversed", showgrid=False),
                ),
            )
        ],
        height=110 + 40 * len(study.gpus),
        width=320,
        limit=180 + 110 * len(study.gpus),
    )
