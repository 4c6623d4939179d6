"""All configurations of one problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.answer.landscape_rows import PLACE, SHARE, STEPS, TIME
from launchwise.report.blocks import (
    Block,
    Bullets,
    Figure,
    Fold,
    Key,
    Landscape,
    Panel,
    Section,
    Table,
    Text,
)
from launchwise.report.fields import field, table_of
from launchwise.report.figures import row_of
from launchwise.report.measure_again import of_one_launch
from launchwise.report.numbers import (
    configuration_names,
    records,
    shown_problem,
    statuses,
)
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows, selected
from launchwise.workloads.metrics import MEASURED, STATUSES

STATUS_WORDS = {
    "ok": "rows, timed",
    "slow": "rows, one launch",
    "unverified": "rows, timed only",
    "wrong": "rows, bad result",
    "failed": "rows, no launch",
    "timeout": "rows, hung",
    "out_of_memory": "rows",
}
"""Statuses in the order they are shown, with what stands below each in a heading."""


def landscape(study: StudyData) -> Section:
    """All configurations of one problem, and how the rows of every GPU ended."""
    chosen = shown_problem(study)
    gpu = chosen["gpu"]
    rows = _of_case(study, study.rows, chosen)
    title = f"{wording.problem(chosen, study.problem_columns)}, on {gpu}"
    times = rows.loc[rows["time_ms"].notna(), "time_ms"].sort_values()
    near = int((times <= 1.02 * times.iloc[0]).sum())
    ended = rows["status"].value_counts()
    counted = [f"{ended[name]} {_words(name)}" for name in STATUSES if name in ended.index]
    lead = (
        f"{title}: {wording.plural(len(rows), 'configuration')} ({wording.listed(counted)}), "
        f"{near} of them within 2 % of the best."
    )
    known = rows.loc[rows["time_ms"].notna() & ~of_one_launch(rows), "time_ms"]
    if len(known):
        lead += (
            " The slowest with repeats takes "
            f"{wording.number(known.max() / times.iloc[0])} times as long as the best."
        )
    if "slow" in ended.index:
        lead += " A slow configuration was stopped early: its time is that of one launch."
    figure = drawn(study, rows, title, float(chosen["baseline_ms"]))
    found: list[Block] = [
        Text(
            "The problem is the one chosen under “Look up one problem”. Two tunables as axes show "
            "the fastest configuration with each pair of values.",
            "note",
        ),
        controls(study, figure, chosen, gpu, lead),
        figure,
        *_beside(study, gpu, chosen),
        Fold("How to read a configuration", [Bullets(wording.configuration_key(study.spec))]),
        Fold("How the rows of the sweeps ended", [_status_table(study)]),
    ]
    return Section(f"{study.name}-landscape", "All configurations of one problem", found)


def _of_case(study: StudyData, rows: pd.DataFrame, case: Mapping[str, Any]) -> pd.DataFrame:
    return rows[selected(rows, {name: [case[name]] for name in ("gpu", *study.problem_columns)})]


def _beside(study: StudyData, gpu: str, chosen: dict[str, Any]) -> list[Block]:
    """Times and errors of unverified variants for a problem (a row of ``winners``)."""
    rows = _of_case(study, study.unverified, chosen)
    rows = rows[rows["time_ms"].notna()]
    title = wording.problem(chosen, study.problem_columns)
    found: list[Block] = []
    for row in records(fastest_rows(rows, ["variant"], study.spec)):
        error = f"an error of {wording.number(row['max_error'])}"
        if wording.is_missing(row["max_error"]):
            error = "results that are NaN"
        said = (
            f"Not among them, at {title} on {gpu}: {wording.configuration(row, study.spec)} "
            f"({wording.NEVER_CHOSEN}). It took "
            f"{wording.number(row['time_ms'] / chosen['best_ms'])} times as long as the best, "
            f"with {error}, where {wording.number(row['tolerance'])} is allowed."
        )
        found.append(Text(said, "note"))
    return found


def _status_table(study: StudyData) -> Table:
    counts = statuses(study)
    names = [name for name in STATUS_WORDS if name in counts.columns]
    fields = [
        field("GPU", "gpu"),
        *(field(_words(name), name, wording.count, STATUS_WORDS[name]) for name in names),
        field("all", "all", wording.count, "rows"),
    ]
    rows = counts.assign(all=counts.sum(axis=1)).reindex(study.gpus).dropna().reset_index()
    return table_of("How the rows of the sweeps ended", fields, rows)


def _words(status: str) -> str:
    return status.replace("_", " ")


MOST_POINTS = 800
"""Most configurations per landscape; more are thinned out evenly."""


def drawn(study: StudyData, rows: pd.DataFrame, title: str, baseline_ms: float) -> Figure:
    """Times of every configuration of one problem, from fastest to slowest."""
    timed = rows[rows["status"].isin(MEASURED)].sort_values(
        ["time_ms", *study.spec.tunable_columns], kind="stable"
    )
    timed = timed.assign(_rank=np.arange(1, len(timed) + 1))
    shown = timed.iloc[theme.thinned(len(timed), MOST_POINTS)]
    traces = list(_dots_of_variants(study, shown))
    if np.isfinite(baseline_ms):
        said = "baseline %{y:.4~g} ms"
        traces.append(theme.rule([1, len(timed)], [baseline_ms] * 2, "dash", template=said))
    x = theme.axis("place, fastest first")
    y = theme.log_axis("time (ms)", [*timed["time_ms"], baseline_ms])
    every = "Every configuration"
    if len(shown) < len(timed):
        every = f"{wording.count(len(shown))} of {wording.count(len(timed))} configurations"
    return Figure(
        id=f"{study.name}-landscape",
        caption=(
            f"{every} of one problem ({title}), from fastest to slowest: how much a "
            "good choice gains, and how many choices are nearly as good as the best."
        ),
        alt="Scatter: time of every configuration by rank, coloured by variant.",
        panels=[Panel("", traces, theme.layout(x, y))],
        keys=[
            *(
                Key(variant, theme.colour(place), theme.symbol(place))
                for place, variant in enumerate(study.spec.variants)
                if variant in timed["variant"].unique()
            ),
            Key("baseline", theme.INK, "dash"),
        ],
        height=340,
    )


def _dots_of_variants(study: StudyData, shown: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Time against place (``_rank``) of every variant's rows."""
    for place, variant in enumerate(study.spec.variants):
        own = shown[shown["variant"] == variant]
        if own.empty:
            continue
        trace = theme.dots(
            own["_rank"],
            own["time_ms"],
            name=variant,
            colour_=theme.colour(place),
            shape=theme.symbol(place),
            size=6,
            opacity=0.85,
            hover=configuration_names(own, study.spec),
            template="%{text}<br>place %{x}, %{y:.4~g} ms",
        )
        yield {**trace, "meta": row_of(study, own, str(own["gpu"].iloc[0]), sized=True)}


def controls(
    study: StudyData, figure: Figure, problem: Mapping[str, Any], gpu: str, lead: str
) -> Landscape:
    """The controls of a figure of :func:`drawn`, which shows a problem on a GPU."""
    axes = [(name, _title(study, name)) for name in _free(study)]
    return Landscape(
        id=f"{study.name}-explore",
        figure=figure.id,
        lookup=f"{study.name}-lookup",
        study=study.name,
        gpus=[*study.gpus, *study.left_out],
        gpu=gpu,
        across=[(PLACE, "place, fastest first"), *axes],
        up=[(TIME, "time (ms)"), (SHARE, "% of the best speed"), *axes],
        problem=[str(problem[name]) for name in study.problem_columns],
        lead=lead,
        variants={
            name: (theme.colour(place), theme.symbol(place), _tunables(study, name))
            for place, name in enumerate(study.spec.variants)
        },
        titles=dict(axes),
        most_points=MOST_POINTS,
        steps=STEPS,
    )


def _free(study: StudyData) -> list[str]:
    rows = study.measured
    return [name for name in study.spec.tunable_columns if rows[name].nunique() > 1]


def _title(study: StudyData, name: str) -> str:
    unit = "" if name == "variant" else study.spec.tunables[name].unit
    return wording.with_unit(name, unit)


def _tunables(study: StudyData, variant: str) -> list[str]:
    return ["variant", *study.spec.variants[variant].tunables]
