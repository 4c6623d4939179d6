"""Schemas of what is learned: training rows, recommendations, evaluation, curves, predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.tables.schema import (
    POSITIVE,
    Column,
    Demand,
    Schema,
    at_least,
    at_most,
    configuration_schema,
    key_schema,
    metric_columns,
    one_of,
    problem_schema,
    real_column,
    stage_schema,
    text_column,
    value_column,
    whole_column,
)
from launchwise.tables.times import PAIRS, SWEEP
from launchwise.workloads.metrics import MEASURED, named
from launchwise.workloads.spec import Spec


def removed_schema(spec: Spec) -> Schema:
    """Schema of filtered rows: keys, time, bounds of the Tukey filter (ms) and its scope."""
    return Schema(
        "removed",
        {
            "split": text_column(),
            "fold": text_column(),
            "scope": text_column(one_of(["problem", "global"])),
            **key_schema(spec),
            "time_ms": real_column(POSITIVE),
            "lower_ms": real_column(),
            "upper_ms": real_column(),
        },
    )


def training_schema(spec: Spec) -> Schema:
    """Schema of training rows: measured rows that pass the Tukey filter of a fold, each once.

    ``folds`` names the folds that learn from a row, as ``split/fold`` with blanks between them (see
    :data:`FOLDS`). Stages keep their times here, and builds what the compiler said
    of them: models may learn of it. ``status`` tells times from those of ``slow`` rows, which are
    the shortest of a few launches and no more (of rows before that rule, their first launch).
    """
    return Schema(
        "training",
        {
            "folds": text_column(),
            **key_schema(spec),
            "status": value_column(MEASURED),
            "time_ms": real_column(POSITIVE),
            **metric_columns(named("registers", "spill_bytes")),
            **stage_schema(spec),
        },
        unique=spec.key_columns,
    )


def candidates_schema(spec: Spec) -> Schema:
    """Schema of test candidates: a row per (split, fold, GPU, test problem, configuration)."""
    return Schema(
        "candidates",
        {"split": text_column(), "fold": text_column(), **key_schema(spec)},
        unique=["split", "fold", *spec.key_columns],
    )


SAID = ("rank", "predicted_ms", "loss", "expected_gain", "spread")
"""Columns of what a method says of candidates."""


def said_schema() -> Schema:
    """Schema of what one method says of test candidates, row by row those of their table.

    ``rank`` is the place among the candidates of a case, from 1; 0 beyond those that are kept.
    ``predicted_ms`` is empty where no time is predicted. ``loss`` is the logarithm of the time but
    for a constant of the case, where ``predicted_ms`` does not tell it. ``expected_gain`` is the
    expected time of what is usual over that of the row, ``spread`` the deviation of its logarithm
    among the members of an answering method; both are empty for other methods.
    """
    return Schema(
        "said of candidates",
        {
            "rank": whole_column(),
            "predicted_ms": real_column(POSITIVE, nullable=True),
            "loss": real_column(nullable=True),
            "expected_gain": real_column(POSITIVE, nullable=True),
            "spread": real_column(at_least(0), nullable=True),
        },
    )


GAINS = ("expected_gain", "least_gain", "most_gain")
"""Columns of an expected gain over what is usual: itself, and the limits of its interval."""


def predicted_column(model: str) -> str:
    """Column of a model's predicted times: ms."""
    return f"{model}_ms"


def evaluation_schema(spec: Spec) -> Schema:
    """Schema of the evaluation: one row per (model, split, fold, GPU, test problem).

    ``time_ms`` is the measured time of the recommended configuration (an expectation for random
    draws); ``improvement`` is baseline over it, ``gain`` what is usual over it (where that has a
    time, else the baseline; ``is_usual``: it is just that), ``fraction`` is best over it. A
    recommendation that no sweep measured has no time; ``status`` says why. ``basis`` is that of
    ``time_ms`` (see :func:`launchwise.tables.times.times_schema`). ``best_of_5`` and
    ``best_of_20`` are the fraction that measuring so many recommendations reaches. Of the problem,
    ``configurations`` have a measured time; ``needle_index`` of them are within 5 % of the best.
    """
    return Schema(
        "evaluation",
        {
            "study": text_column(),
            "model": text_column(),
            "role": text_column(one_of(["model", "baseline", "oracle"])),
            "split": text_column(),
            "fold": text_column(),
            **key_schema(spec),
            "status": text_column(),
            "predicted_ms": real_column(POSITIVE, nullable=True),
            **dict.fromkeys(GAINS, real_column(POSITIVE, nullable=True)),
            "time_ms": real_column(POSITIVE, nullable=True),
            "basis": text_column(),
            "baseline_ms": real_column(POSITIVE, nullable=True),
            "usual_ms": real_column(POSITIVE, nullable=True),
            "is_usual": Column("bool"),
            "best_ms": real_column(POSITIVE),
            "configurations": whole_column(1),
            "needle_index": whole_column(1),
            "improvement": real_column(nullable=True),
            "gain": real_column(nullable=True),
            "fraction": real_column(nullable=True),
            "best_of_5": real_column(at_least(0), nullable=True),
            "best_of_20": real_column(at_least(0), nullable=True),
            "improved_runs": real_column(at_least(0), nullable=True),
            "spearman": real_column(nullable=True),
            "absolute_percentage_error": real_column(nullable=True),
        },
        unique=["model", "split", "fold", "gpu", *spec.problem_columns],
    )


def curves_schema() -> Schema:
    """Schema of learning curves: one row per (split, GPU, model, number of measurements).
    ``fraction`` is the geometric mean over test problems of best time over the best of the first
    ``measured`` recommendations, ``fraction_p5`` its 5th percentile; the GPU ``all`` is all of them
    together, the model ``random`` the mean over all orders."""
    return Schema(
        "learning curves",
        {
            "study": text_column(),
            "split": text_column(),
            "gpu": text_column(),
            "model": text_column(),
            "measured": whole_column(1),
            "problems": whole_column(1),
            "fraction": real_column(at_least(0), at_most(1 + 1e-9)),
            "fraction_p5": real_column(at_least(0), at_most(1 + 1e-9)),
        },
        unique=["split", "gpu", "model", "measured"],
    )


def fastest_measured_schema(spec: Spec) -> Schema:
    """Schema of the fastest measured candidates of each (GPU, problem), and of what is usual.
    ``rank`` is the place among all measured candidates by judged time, from 1, which the one has
    that :func:`launchwise.tables.rows.fastest_rows` names with its ``alike`` and ``unsure``. The
    usual choice and the baseline are there whatever their rank. Times, limits, errors and ``basis``
    are those of :func:`launchwise.tables.times.times_schema`. ``blind``: by a blind test, not by
    the sweep."""
    limit = real_column(POSITIVE, nullable=True)
    return Schema(
        "fastest measured",
        {
            **key_schema(spec),
            "rank": whole_column(1),
            "time_ms": real_column(POSITIVE),
            "time_low_ms": limit,
            "time_high_ms": limit,
            "error": real_column(at_least(0)),
            "alike": whole_column(1),
            "unsure": real_column(at_least(1)),
            "basis": text_column(one_of([PAIRS, SWEEP])),
            "ratio_error": real_column(at_least(0), nullable=True),
            "is_usual": Column("bool"),
            "is_baseline": Column("bool"),
            "blind": Column("bool"),
        },
        unique=spec.key_columns,
    )


FOLDS = "folds"  # Column of training rows with the names of folds, blanks between them


def fold_name(split: str, fold: str) -> str:
    """Name of a fold in :data:`FOLDS`."""
    return f"{split}/{fold}"


def folds_of_rows(masks: Mapping[str, np.ndarray]) -> np.ndarray:
    """Values of the column :data:`FOLDS`: texts, shape (rows,); empty where no fold has a row.

    ``masks``: fold to the rows that it learns from: booleans, shape (rows,).
    """
    names = list(masks)
    combined, codes = np.unique(np.column_stack(list(masks.values())), axis=0, return_inverse=True)
    texts = [
        " ".join(name for name, inside in zip(names, each, strict=True) if inside)
        for each in combined
    ]
    return np.array(texts, dtype=object)[codes.reshape(-1)]


def rows_of_fold(rows: pd.DataFrame, split: str, fold: str) -> pd.DataFrame:
    """Rows that a fold learns from, without the column :data:`FOLDS`."""
    codes, texts = pd.factorize(rows[FOLDS])
    learnt = [fold_name(split, fold) in text.split() for text in texts]
    own = rows[np.array(learnt, dtype=bool)[codes]]
    return own.drop(columns=FOLDS).reset_index(drop=True)


def of_split(rows: pd.DataFrame, split: str) -> pd.DataFrame:
    """Rows that a fold of a split learns from, with the names of its folds alone."""
    codes, texts = pd.factorize(rows[FOLDS])
    own = [
        " ".join(name for name in text.split() if name.startswith(f"{split}/")) for text in texts
    ]
    found = rows.assign(**{FOLDS: np.array(own, dtype=object)[codes]})
    return found[found[FOLDS] != ""].reset_index(drop=True)


def unmeasured_schema(spec: Spec) -> Schema:
    """Schema of predictions for datasheet-only GPUs: one row per (predictor, GPU, problem).

    ``predicted_ms`` is of the configuration that the predictor takes for the fastest,
    ``baseline_ms`` what it says of the baseline (empty where that copies over a link to the host of
    unknown rate); ``shortest_ms``, ``bytes_ms`` and ``flop_ms`` hold
    for the problem, and no predicted time is below ``shortest_ms``; ``bound_by`` is the largest
    part of the cost model's estimate.
    """
    times = ("predicted_ms", "shortest_ms", "bytes_ms", "flop_ms")
    return Schema(
        "unmeasured",
        {
            "predictor": text_column(),
            "gpu": text_column(),
            **problem_schema(spec),
            "rank": whole_column(1),
            **configuration_schema(spec),
            **{name: real_column(at_least(0)) for name in times},
            "baseline_ms": real_column(at_least(0), nullable=True),
            "bound_by": text_column(),
        },
        demands=[_above_shortest("predicted_ms"), _above_shortest("baseline_ms")],
        unique=["predictor", "gpu", *spec.problem_columns, "rank"],
    )


def _above_shortest(name: str) -> Demand:
    words = "must not be below shortest_ms"
    return Demand(words, lambda table: ~(table[name] < table["shortest_ms"]), name)


def published_times_schema(spec: Spec) -> Schema:
    """Schema of predictions beside published run times: one row per (time, GPU, predictor).

    ``series`` and ``row`` name the published time, ``phases`` what it covers (joined by ``+``;
    empty for the whole run), ``runs`` how many runs (0 where the source does not say).
    ``published_ms`` is the time of all its runs. ``predicted_ms`` is of as many runs, or of one
    where their number is unknown, with the configuration of the row; ``bound_by`` is the largest
    part of the cost model's estimate of it.
    """
    return Schema(
        "published times",
        {
            "series": text_column(),
            "row": whole_column(2),
            "phases": text_column(),
            "runs": whole_column(),
            "predictor": text_column(),
            **key_schema(spec),
            "published_ms": real_column(POSITIVE),
            "predicted_ms": real_column(POSITIVE),
            "bound_by": text_column(),
            "source": text_column(),
        },
        unique=["series", "row", "predictor", "gpu"],
    )
