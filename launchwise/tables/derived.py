"""Columns of a sweep that follow from its others: repeats, rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.tukey import MIN_SAMPLE_SIZE, fences_of_rows, median_error, robust_spread
from launchwise.workloads.metrics import SWEEP
from launchwise.workloads.spec import Spec


def of_repeats(times_ms: Sequence[Sequence[float]]) -> dict[str, np.ndarray]:
    """Number, robust spread, relative error of the median and outliers of each row's repeats.

    Returns
    -------
    dict
        Column to its values, shape (rows,); NaN where there are too few repeats. Outliers lie
        outside the Tukey filter (1.5 interquartile ranges); none is removed.
    """
    counts = np.array([len(times) for times in times_ms], dtype=np.int64)
    spread, error = np.full((2, len(counts)), math.nan)
    outliers = np.zeros(len(counts), dtype=np.int64)
    for count in np.unique(counts[counts > 1]):
        places = np.flatnonzero(counts == count)
        times = np.array([times_ms[int(place)] for place in places], dtype=float)
        spread[places], error[places] = robust_spread(times), median_error(times)
        if count >= MIN_SAMPLE_SIZE:
            low, high = fences_of_rows(times)
            outliers[places] = ((times < low[:, None]) | (times > high[:, None])).sum(axis=1)
    return {
        "repeats": counts,
        "spread_ms": spread,
        "relative_error": error,
        "outlier_repeats": outliers,
    }


def of_formulas(
    table: pd.DataFrame, spec: Spec, least_work: float = -math.inf
) -> dict[str, np.ndarray]:
    """Every metric that has a formula: column to its values, shape (rows,).

    Bytes and FLOP are the problem's own (``work`` in the spec), so a configuration that moves more
    bytes than it must shows a lower bandwidth.

    Parameters
    ----------
    least_work
        Bytes or FLOP of a problem that stand for unknown ones if they are no more.
    """

    @cache
    def work(*values: Any) -> tuple[float, float]:
        problem = dict(zip(spec.problem_columns, values, strict=True))
        return spec.value(spec.work.bytes, problem), spec.value(spec.work.flop, problem)

    problems = table[spec.problem_columns].itertuples(index=False, name=None)
    amounts = np.array([work(*values) for values in problems], dtype=float).reshape(-1, 2)
    amounts[amounts <= least_work] = math.nan
    known = {str(name): np.asarray(column) for name, column in table.items()}
    known |= {"bytes": amounts[:, 0], "flop": amounts[:, 1]}
    return {each.name: each.formula(known) for each in SWEEP if each.formula is not None}
