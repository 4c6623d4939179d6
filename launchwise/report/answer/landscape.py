"""All configurations of one problem: the figure, and rows of any problem for the page's script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.row_arrays import limits_ms
from launchwise.learning.splits import asked_about
from launchwise.report import theme, wording
from launchwise.report.blocks import (
    Block,
    Bullets,
    Figure,
    Fold,
    Key,
    Landscape,
    Panel,
    Section,
    Text,
)
from launchwise.report.numbers import STOPPED_EARLY, configuration_names, records, shown_problem
from launchwise.report.site import rendering
from launchwise.report.study_tables import StudyData, remembered
from launchwise.report.theme import row_of
from launchwise.tables.rows import IMPORTED, fastest_rows, is_baseline, row_numbers, selected
from launchwise.workloads.metrics import MEASURED, STATUSES, SWEEP, Shown

FILE = "data/rows/{study}/{gpu}.js"
"""Path of the rows of a study on a GPU, below the report's folder."""

STEPS = 500  # Steps of a time per factor of e above the fastest of its problem: .1 % off at most

_SHOWN = {"basis": Shown("time from", row=2)} | {
    each.name: each.shown for each in SWEEP if each.shown is not None and each.shown.row
}

KNOWN = dict(sorted(_SHOWN.items(), key=lambda each: each[1].row))
"""Columns that a row's panel shows beside its configuration and time."""

ERROR_STEPS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Percent that standard errors are rounded up to: exact ones would be a third of the file."""

DIGITS = 3  # Digits of the other real numbers

PLACE, TIME, SHARE = "place", "time", "share"
"""Axes beside the tunables: rank of a configuration, its time, and % of the best speed."""


def data(study: StudyData, gpu: str) -> dict[str, Any]:
    """Rows of a GPU as JSON values.

    Returns ``problems``: values of each problem, as text; ``tunables``: names; ``configurations``:
    per tunable the value of each; ``forms``: see :func:`launchwise.report.wording.forms`;
    ``baseline``: place of the baseline among configurations, or None; ``best_ms``: least time of
    each problem; ``times``: one after the other of all problems, by configuration, the logarithm of
    time divided by the least time in steps of 1 / ``steps``, plus 1, 0 where there is no time, as
    :func:`launchwise.report.site.rendering.whole_numbers`; ``limits``: times of the
    least bytes and of the FLOP of each problem, ms; ``untimed``: rows of each problem that
    have no time; ``known``: see :func:`_known`.
    """
    spec = study.spec
    every, rows = (
        table.iloc[_places(study, name).get(gpu, [])]
        for name, table in (("rows", study.rows), ("measured", study.measured))
    )
    problems, configurations = (
        row_numbers(every, spec.problem_columns),
        row_numbers(rows, spec.tunable_columns),
    )
    of_problem = every.iloc[_first(problems)]
    # Rows with a time have the numbers of their problem among all rows.
    lines = problems[every["status"].isin(MEASURED).to_numpy()]
    first = rows.iloc[_first(configurations)]
    times = np.full((len(of_problem), len(first)), np.inf)
    times[lines, configurations] = rows["time_ms"].to_numpy()
    best = times.min(axis=1, initial=np.inf)
    with np.errstate(invalid="ignore"):
        steps = np.round(STEPS * np.log(times / best[:, None]))
    steps = np.where(np.isfinite(steps), steps + 1, 0).astype(int).ravel()
    start = np.flatnonzero(is_baseline(first, spec))
    limits = limits_ms(of_problem[["gpu", *spec.problem_columns]], spec, study.profiles)
    imported = bool((study.sweeps[gpu]["backend"] == IMPORTED).all())
    timed = np.bincount(lines, minlength=len(of_problem))
    return {
        "problems": [
            list(map(str, row))
            for row in of_problem[spec.problem_columns].itertuples(index=False, name=None)
        ],
        "tunables": spec.tunable_columns,
        "configurations": [first[name].tolist() for name in spec.tunable_columns],
        "forms": wording.forms(spec),
        "baseline": int(start[0]) if len(start) else None,
        "best_ms": [float(f"{one:.4g}") if np.isfinite(one) else None for one in best],
        "times": rendering.whole_numbers(steps),
        "steps": STEPS,
        "limits": {name: theme.rounded(limits[name], 3) for name in ("bytes", "flop")},
        "untimed": (np.bincount(problems) - timed).tolist(),
        "known": _known(rows.iloc[np.lexsort((configurations, lines))], imported),
    }


def _known(rows: pd.DataFrame, imported: bool) -> list[dict[str, Any]]:
    """What else is known of rows, by column of :data:`KNOWN`; columns without a value are left out.

    ``rows``: timed rows by problem, then by configuration.
    ``imported``: whether another tool measured them: whole numbers that it did not state are 0 in a
        sweep.
    Returns ``title``, ``unit``, ``values``: what occurs, None for nothing; ``places``: of each row,
    the place of its value, as the times, empty where all rows share one.
    """
    found = []
    for name, shown in KNOWN.items():
        if name not in rows:
            continue
        column = rows[name]
        if column.dtype.kind == "i":
            column = column.where((column != 0) | (not imported))
        if column.isna().all():
            continue
        if column.dtype.kind == "f":
            column = pd.Series(_shown(name, column.to_numpy()))
        places, values = pd.factorize(column, sort=True, use_na_sentinel=False)
        found.append({
            "title": shown.title,
            "unit": shown.unit,
            "values": [None if pd.isna(value) else value for value in values.tolist()],
            "places": rendering.whole_numbers(places) if len(values) > 1 else [],
        })  # fmt: skip
    return found


def _shown(name: str, values: np.ndarray) -> np.ndarray:
    """A column's real numbers in its unit of :data:`KNOWN`, rounded."""
    values = KNOWN[name].factor * values
    if name == "relative_error":
        steps = np.array([*ERROR_STEPS, np.nan])
        return steps[np.searchsorted(ERROR_STEPS, values)]
    if KNOWN[name].factor != 1:
        return np.round(values, 1)
    size = np.floor(np.log10(np.abs(np.where(values == 0, 1, values))))
    scale = 10.0 ** np.clip(DIGITS - 1 - size, 0, None)
    return np.round(np.round(values * scale) / scale, 12)


def _first(numbers: np.ndarray) -> np.ndarray:
    return np.unique(numbers, return_index=True)[1]


@remembered
def _places(study: StudyData, name: str) -> Mapping[str, np.ndarray]:
    """GPU to the places of its rows in a table of the study, found at once for all GPUs."""
    table: pd.DataFrame = getattr(study, name)
    found = table.groupby("gpu").indices
    return {str(gpu): np.asarray(places) for gpu, places in found.items()}


def landscape(study: StudyData) -> Section:
    chosen = shown_problem(study)
    gpu = chosen["gpu"]
    rows = _of_case(study, study.rows, chosen)
    title = f"{wording.problem(chosen, study.problem_columns)}, on {gpu}"
    asked = study.candidates(rows)
    timed = asked[asked["time_ms"].notna()]
    least = timed["time_ms"].min()
    near = int((timed["time_ms"] <= 1.02 * least).sum())
    ended = asked["status"].str.replace("_", " ").value_counts()
    names = (name.replace("_", " ") for name in STATUSES)
    counted = [f"{ended[name]} {name}" for name in names if name in ended.index]
    lead = (
        f"{title}: {wording.plural(len(asked), 'configuration')} ({wording.listed(counted)}), "
        f"{near} of them within 2 % of the best."
    )
    known = timed.loc[timed["status"] != STOPPED_EARLY, "time_ms"]
    if len(known):
        lead += (
            " The slowest with repeats takes "
            f"{wording.number(known.max() / least)} times as long as the best."
        )
    if "slow" in ended.index:
        lead += " A slow configuration was stopped early: its time is that of one launch."
    figure = drawn(study, rows, title, float(chosen["baseline_ms"]))
    found: list[Block] = [
        controls(study, figure, chosen, gpu, lead),
        figure,
        *_how_timed(study, gpu),
        *_beside(study, gpu, chosen),
        Fold("How to read a configuration", [Bullets(wording.configuration_key(study.spec))]),
    ]
    return Section(f"{study.name}-rows", "All configurations of one problem", found)


TIMERS = {"events": "CUDA events", "graph": "replayed graphs", "host": "the host's clock"}
TIMERS |= {"restored": "CUDA events, arrays put back before"}


def _how_timed(study: StudyData, gpu: str) -> list[Block]:
    """How a time of a GPU was got, and under what; nothing of sweeps that others measured."""
    rows = study.sweeps[gpu]
    rows = rows[(rows["status"] == "ok") & asked_about(study.settings, rows)]
    profiles = [study.profiles[one] for one in study.whole]
    versions = dict.fromkeys(f"driver {p.driver}, CUDA {p.toolkit}" for p in profiles if p.driver)
    if not study.profiles[gpu].driver or rows.empty or not {"timer", "l2", "repeats"} <= {*rows}:
        return []

    def shares(column: str, names: Mapping[str, str]) -> str:
        known = rows[column].value_counts(normalize=True)
        found = [f"{names[str(one)]} {100 * share:.0f} %" for one, share in known.items() if one]
        return wording.listed(found)

    said = (
        f"A time is the median of {wording.span(rows['repeats'], 0)} launches after a first one, "
        "which was verified and does not count. On "
        f"{gpu}: by {shares('timer', TIMERS)}; L2 before a launch: "
        f"{shares('l2', {'warm': 'warm', 'cold': 'emptied'})}. No clock is locked, no power limit "
        f"set; a row states its SM clock. All by {wording.listed(versions)}: "
        f"{'no other was' if len(versions) == 1 else 'they were not'} compared."
    )
    return [Text(said, "note")]


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


MOST_POINTS = 800  # Most configurations per landscape; more are thinned out evenly


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
        caption=f"{every} of one problem ({title}), from fastest to slowest.",
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
    rows = study.measured
    free = [name for name in study.spec.tunable_columns if rows[name].nunique() > 1]
    axes = [(name, _title(study, name)) for name in free]
    return Landscape(
        id=f"{study.name}-explore",
        figure=figure.id,
        gpus=[*study.gpus, *study.left_out],
        gpu=gpu,
        parameters={
            name: [str(value) for value in sorted(study.measured[name].unique())]
            for name in study.problem_columns
        },
        chosen={name: str(problem[name]) for name in study.problem_columns},
        across=[(PLACE, "place, fastest first"), *axes],
        up=[(TIME, "time (ms)"), (SHARE, "% of the best speed"), *axes],
        lead=lead,
        data={
            "study": study.name,
            "problem": [str(problem[name]) for name in study.problem_columns],
            "variants": {
                name: (
                    theme.colour(place),
                    theme.symbol(place),
                    ["variant", *study.spec.variants[name].tunables],
                )
                for place, name in enumerate(study.spec.variants)
            },
            "titles": dict(axes),
            "most": MOST_POINTS,
            "ticks": theme.TICK_STEPS,
            "steps": STEPS,
        },
    )


def _title(study: StudyData, name: str) -> str:
    unit = "" if name == "variant" else study.spec.tunables[name].unit
    return wording.with_unit(name, unit)
