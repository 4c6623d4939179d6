"""Intervals of expected times, stretched until they hold what blind tests measured.

A model measures its errors on held-out sizes of its sweep. Problems that somebody draws later
differ more from the sweep than its sizes differ from each other, so these intervals are too narrow
for them. Recorded blind tests measured such problems, and no model learns from them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.learning.conformal import SHARE, time_limits
from launchwise.learning.final import Final
from launchwise.learning.splits import cases_in
from launchwise.learning.stored import Calibration

FEWEST = 20
"""Fewest blind problems that say how far intervals reach."""

CALIBRATED = "within"
"""Situation of the problems of blind tests: their GPU was swept, their sizes lie in between."""


def calibrate(final: Final, times: Mapping[str, pd.DataFrame]) -> Calibration | None:
    """Compare intervals of answers to blind problems with what was measured of these answers.

    Returns None for fewer than :data:`FEWEST` problems with an interval and a measured time.
    ``times``: GPU to judged times (:func:`launchwise.tables.times.times_schema`), those of blind
    tests among them; no model learnt from these.
    """
    spec, domain = final.spec, final.domain
    blind = pd.concat([table[table["blind"]] for table in times.values()], ignore_index=True)
    swept = {case.key for case in cases_in(final.measured, spec)}
    asked = [case for case in cases_in(blind, spec) if case.key not in swept]
    if len(asked) < FEWEST:
        return None
    choices = domain.choices(asked)
    ranking = final.recommender.ranking(domain.keeping_features(choices))
    first = ranking.first(1)
    rows = choices.iloc[first].reset_index(drop=True)
    situations = final.known.situations(rows)
    limits = time_limits(ranking.predicted_ms[first], situations, final.intervals)
    known = blind[[*spec.key_columns, "time_ms"]]
    measured = rows[spec.key_columns].merge(known, on=spec.key_columns, how="left")["time_ms"]
    found = np.isfinite(limits).all(axis=1) & measured.notna() & (situations == CALIBRATED)
    if found.sum() < FEWEST:
        return None
    centre, half = _centre_and_half(limits[found])
    away = np.abs(np.log(measured[found].to_numpy()) - centre) / half
    stretch = float(np.quantile(away, SHARE, method="weibull"))
    return Calibration(int(found.sum()), float((away <= 1).mean()), stretch)


def stretched(limits: np.ndarray, stretch: float | np.ndarray) -> np.ndarray:
    """Limits around the same geometric mean, as wide in logarithms times ``stretch``.

    float64, shape (rows, 2); ``stretch`` is a number or has shape (rows,).
    """
    centre, half = _centre_and_half(limits)
    wide = half * stretch
    return np.exp(np.column_stack([centre - wide, centre + wide]))


def _centre_and_half(limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logs = np.log(limits)
    return logs.mean(axis=1), (logs[:, 1] - logs[:, 0]) / 2
