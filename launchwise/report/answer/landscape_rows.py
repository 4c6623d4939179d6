"""All configurations of any problem: what the page's script draws, packed per GPU.

A GPU's rows lie in a file of their own, which the page asks for when a reader changes the problem,
the GPU or an axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report.numbers import configuration_names
from launchwise.report.study import StudyData, remembered
from launchwise.tables.rows import IMPORTED, is_baseline, row_numbers
from launchwise.workloads.metrics import MEASURED, SWEEP, Shown

FILE = "data/rows/{study}/{gpu}.js"
"""Path of the rows of a study on a GPU, below the report's folder."""

STEPS = 2000
"""Steps of a time per factor of e above the fastest of its problem: .025 % off at most."""

_SHOWN = {"basis": Shown("time from", row=2)} | {
    each.name: each.shown for each in SWEEP if each.shown is not None and each.shown.row
}

KNOWN = dict(sorted(_SHOWN.items(), key=lambda each: each[1].row))
"""Columns that a row's panel shows beside its configuration and time."""

ERROR_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Percent that standard errors are rounded up to: exact ones would be a third of the file."""

DIGITS = 3
"""Digits of the other real numbers."""

PLACE, TIME, SHARE = "place", "time", "share"
"""Axes beside the tunables: rank of a configuration, its time, and % of the best speed."""


def data(study: StudyData, gpu: str) -> dict[str, Any]:
    """Rows of a GPU as JSON values.

    Returns
    -------
    dict
        ``problems``: values of each problem, as text. ``tunables``: names. ``configurations``:
        values of each, in the order of ``tunables``. ``names``: their names. ``baseline``: place of
        the baseline among them, or None. ``best_ms``: least time of each problem. ``times``: of
        each problem, by configuration, the logarithm of time divided by the least time in
        steps of 1 / ``steps``, -1 where there is no time. ``untimed``: rows of each problem
        that have no time. ``known``: see :func:`_known`.
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
    steps = np.where(np.isfinite(steps), steps, -1).astype(int)
    start = np.flatnonzero(is_baseline(first, spec))
    imported = bool((study.sweeps[gpu]["backend"] == IMPORTED).all())
    timed = np.bincount(lines, minlength=len(of_problem))
    return {
        "problems": [
            list(map(str, row))
            for row in of_problem[spec.problem_columns].itertuples(index=False, name=None)
        ],
        "tunables": spec.tunable_columns,
        "configurations": [
            list(row)
            for row in zip(*(first[name].tolist() for name in spec.tunable_columns), strict=True)
        ],
        "names": configuration_names(first, spec),
        "baseline": int(start[0]) if len(start) else None,
        "best_ms": [float(f"{one:.4g}") if np.isfinite(one) else None for one in best],
        "times": steps.tolist(),
        "steps": STEPS,
        "untimed": (np.bincount(problems) - timed).tolist(),
        "known": _known(rows.iloc[np.lexsort((configurations, lines))], imported),
    }


def _known(rows: pd.DataFrame, imported: bool) -> list[dict[str, Any]]:
    """What else is known of rows, by column of :data:`KNOWN`; columns without a value are left out.

    Parameters
    ----------
    rows
        Timed rows by problem, then by configuration.
    imported
        Whether another tool measured them: whole numbers that it did not state are 0 in a sweep.

    Returns
    -------
    list of dict
        ``title``, ``unit``, ``values``: what occurs, None for nothing; ``places``: of each row, the
        place of its value, empty where all rows share one.
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
            "places": places.tolist() if len(values) > 1 else [],
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
