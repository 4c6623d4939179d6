"""The answering method: simple rules, unless several models agree that another choice is faster.

Every member predicts the log time of a candidate relative to the usual choice of its case. Of the
usual choice and the choices of simple rules, the one of the least mean is the reference. The
candidate of the least mean of all is the answer if the mean of its differences to the reference,
and caution times their deviation, is below 0; else the reference is. Nothing is chosen by test
cases, and nothing is fitted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

LARGEST_LOSS = 3.0
"""Predicted log time relative to the usual choice above which more makes no difference."""


@dataclass(frozen=True)
class Consensus:
    """What members expect together of candidates; each attribute has shape (rows,)."""

    # Whether a row is the answer to its case: booleans, one a case.
    answers: np.ndarray
    # Mean log time relative to the usual choice: float64; the others follow by it.
    loss: np.ndarray
    # Deviation of the members' log times: float64.
    spread: np.ndarray
    # Geometric mean of the predicted times: float64; NaN where none is predicted.
    times_ms: np.ndarray


def caution_of(weight: float, problems: int) -> float:
    """Factor of the members' deviation: the fewer problems they learnt from, the larger it is.

    Parameters
    ----------
    weight
        Hyper-parameter of the answering method.
    problems
        Distinct problems of the training rows, whatever their GPUs.
    """
    return weight / math.sqrt(max(problems, 1))


def consensus(
    losses: Mapping[str, np.ndarray],
    log_times: Sequence[np.ndarray],
    cases: np.ndarray,
    usual: np.ndarray,
    baseline: np.ndarray,
    contenders: np.ndarray,
    caution: np.ndarray,
) -> Consensus:
    """What members expect of every candidate of some cases, and the answers.

    Parameters
    ----------
    losses
        Member to its log times but for a constant of each case: float64, shape (rows,). One that
        says nothing of some row has no part.
    log_times
        Logarithms of predicted times (ms), each of shape (rows,).
    cases
        Number of each row's case, from 0 and none left out: int64, shape (rows,).
    usual, baseline
        Rows with the usual choice and the baseline of their case: booleans, shape (rows,).
    contenders
        Rows of which one is the reference: booleans, shape (rows,); where a case has none, the
        usual choice is, else the baseline.
    caution
        Factor of each case's deviation: float64, shape (cases,); infinite: the reference answers.
    """
    # Relative to the usual choice; without it to the baseline, else to any row.
    start = first_rows(cases, ~usual, ~baseline)
    relative = np.array(
        [each - each[start][cases] for each in losses.values() if np.isfinite(each).all()]
    ).reshape(-1, len(cases))
    if not len(relative):
        relative = np.where(usual, 0.0, LARGEST_LOSS)[None]
    relative = np.clip(relative, -LARGEST_LOSS, LARGEST_LOSS)
    centre = relative.mean(axis=0)
    reference = first_rows(cases, ~contenders, centre, ~usual, ~baseline)
    reference = np.where(contenders[reference], reference, start)
    fastest = first_rows(cases, centre, ~usual, ~baseline)
    apart = relative[:, fastest] - relative[:, reference]
    with np.errstate(invalid="ignore"):
        sure = apart.mean(axis=0) + caution * apart.std(axis=0) < 0
    answers = np.zeros(len(cases), dtype=bool)
    answers[np.where(sure & np.isfinite(caution), fastest, reference)] = True
    known = [each for each in log_times if np.isfinite(each).all()]
    times = np.exp(np.mean(known, axis=0)) if known else np.full(len(cases), np.nan)
    return Consensus(answers, centre, relative.std(axis=0), times)


def first_rows(cases: np.ndarray, *criteria: np.ndarray) -> np.ndarray:
    """Row that comes first in each case, criterion by criterion the smallest, then in their order.

    int64, shape (cases,); ``cases`` and each criterion have shape (rows,).
    """
    # lexsort is stable and compares its last key first.
    order = np.lexsort((*reversed(criteria), cases))
    return order[np.flatnonzero(np.diff(cases[order], prepend=-1))]
