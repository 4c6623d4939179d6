"""What members of a committee predict of held-out candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from launchwise.learning.baselines import BASELINES
from launchwise.learning.choosing.plans import HeldOut, first_rows
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.splits import case_numbers

LOG = "log time by "
"""Prefix of columns with the log of a member's predicted times."""

UNIT = "held out with"
"""Column with the number of a row's size or GPU: what it was held out with."""

PART = "part"
"""Column with the number of the fold that a row was held out of: folds number cases anew."""


def judged(
    members: Mapping[str, Recommender], asked: pd.DataFrame, numbers: np.ndarray, domain: Domain
) -> pd.DataFrame:
    """Predictions of fitted members for held-out candidates whose usual choice has a time.

    Parameters
    ----------
    asked
        Held-out rows, with features and :data:`UNIT`.
    numbers
        Number of each row's case: int64, shape (rows,).

    Returns
    -------
    pandas.DataFrame
        A row for each candidate: ``case``, ``time_ms``, ``usual``, :data:`UNIT`, a column of
        losses by the name of each member, and logs of times after :data:`LOG`; maybe without rows.
    """
    candidates = domain.is_candidate(asked)
    asked, numbers = asked[candidates].reset_index(drop=True), numbers[candidates]
    usual = domain.is_usual(asked)
    # Without the time of what is usual nothing can be compared with it.
    comparable = np.isin(numbers, numbers[usual])
    asked, numbers = asked[comparable].reset_index(drop=True), numbers[comparable]
    if asked.empty:
        return pd.DataFrame()
    found = {
        "case": numbers,
        "time_ms": asked["time_ms"],
        "usual": usual[comparable],
        UNIT: asked[UNIT],
    }
    losses, log_times = losses_of(members, asked, usual[comparable], domain)
    timed = {f"{LOG}{name}": each for name, each in log_times.items()}
    return pd.DataFrame({**found, **losses, **timed})


def losses_of(
    members: Mapping[str, Recommender], rows: pd.DataFrame, usual: np.ndarray, domain: Domain
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Predictions of the members for rows.

    Returns
    -------
    losses
        Each member's predicted log time relative to the usual choice of the case, (rows,).
    log_times
        Log of the predicted times (ms) of each member that predicts times, (rows,).
    """
    cases = case_numbers(rows, domain.spec)
    # Relative to the usual choice; without it to the baseline, else to any row.
    reference = first_rows(cases, ~usual, ~domain.is_baseline(rows))
    found, timed = {}, {}
    for name, member in members.items():
        losses = member.losses(rows)
        found[name] = losses - losses[reference][cases]
        # What heuristics carry over is no time.
        if name not in BASELINES and np.isfinite(losses).all():
            timed[name] = losses
    return found, timed


def together(parts: Sequence[pd.DataFrame], names: Sequence[str]) -> HeldOut | None:
    """Tables of several folds (:func:`judged`) as one, each with cases of its own.

    Returns
    -------
    HeldOut or None
        With those members of ``names`` that predict every row; None without rows or members.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    parts = [part.assign(**{PART: number}) for number, part in enumerate(parts)]
    table = pd.concat(parts, ignore_index=True)
    names = [name for name in names if name in table and table[name].notna().all()]
    if not names:
        return None
    log_times = {
        name: table[f"{LOG}{name}"].to_numpy(dtype=float)
        for name in names
        if f"{LOG}{name}" in table
    }
    return HeldOut(
        cases=table.groupby([PART, "case"], sort=False).ngroup().to_numpy(),
        losses={name: table[name].to_numpy(dtype=float) for name in names},
        times_ms=table["time_ms"].to_numpy(dtype=float),
        usual=table["usual"].to_numpy(dtype=bool),
        log_times=log_times,
        units=table[UNIT].to_numpy(),
    )
