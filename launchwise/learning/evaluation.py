"""Evaluates models, baselines, random draws and the oracle on the unfiltered sweep.

Nothing is dropped in silence. A recommendation that failed on the GPU, or that no sweep measured,
keeps its row with its status, no time, and improvement, gain and fraction 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import write_sealed_json
from launchwise.learning import merit
from launchwise.learning.baselines import BASELINES
from launchwise.learning.conformal import Errors, with_limits
from launchwise.learning.curves import learning_curves, reached
from launchwise.learning.features import Domain
from launchwise.learning.learnt import Learnt
from launchwise.learning.prediction_errors import errors_of_cases, prediction_errors
from launchwise.learning.splits import Case, Fold, case_codes
from launchwise.learning.stored import Offsets, Situation
from launchwise.learning.summary import summarise
from launchwise.learning.truth import EXPECTED, ORACLE, SHORT_LISTS, Truth
from launchwise.tables.files import write_table
from launchwise.tables.learning import curves_schema, evaluation_schema
from launchwise.workloads import space


def evaluate(
    study: str,
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    timed: pd.DataFrame,
    shares: pd.DataFrame,
    domain: Domain,
    random_draws: Iterable[int],
    answering: str,
) -> tuple[pd.DataFrame, Errors]:
    """Evaluation with one row per (model, split, fold, GPU, problem).

    Raises UserError when a model recommends for no case, or for other cases than the splits test.

    ``learnt``: what models and simple rules say of the test candidates.
    ``timed``: its predicted times beside what was measured (:meth:`Truth.timed`).
    ``shares``: what the first recommendations reach (:func:`launchwise.learning.curves.reached`).
    ``random_draws``: how many random measurements the random baselines may take.
    ``answering``: model whose expected gains have intervals.
    Returns a table as :func:`launchwise.tables.learning.evaluation_schema` declares it, and the
    errors of the answering model.
    """
    first = _first_choices(learnt, folds, truth, timed, shares, domain)
    others = [_of_fold(fold, truth, domain, random_draws) for fold in folds]
    table = pd.concat([first, *others], ignore_index=True).assign(study=study)
    ratio = table["time_ms"].to_numpy(dtype=float)
    table["improvement"] = np.nan_to_num(table["baseline_ms"].to_numpy(dtype=float) / ratio)
    oracle = table["role"] == ORACLE
    for name in SHORT_LISTS.values():
        table[name] = table[name].where(~oracle, 1.0)
    table["is_usual"] = domain.is_usual(table)
    table["gain"] = np.nan_to_num(table["usual_ms"].to_numpy(dtype=float) / ratio)
    table["fraction"] = np.nan_to_num(table["best_ms"].to_numpy(dtype=float) / ratio)
    answers = table["model"] == answering
    answered = table[answers].reset_index(drop=True)
    errors = Errors.of(answered, folds, domain)
    limits = ["least_gain", "most_gain"]
    table[limits] = np.nan
    table.loc[answers, limits] = with_limits(answered, errors)[limits].to_numpy()
    return table, errors


def _first_choices(
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    timed: pd.DataFrame,
    shares: pd.DataFrame,
    domain: Domain,
) -> pd.DataFrame:
    """Rows of models and simple rules; arguments and errors as of :func:`evaluate`."""
    first = pd.concat([learnt.recommended(each, 1) for each in learnt.said], ignore_index=True)
    _check_complete(first, folds, domain)
    keys = ["model", "split", "fold", "case"]
    short_lists = shares[[*keys, *SHORT_LISTS]].rename(columns=SHORT_LISTS)
    first = truth.beside(first).merge(short_lists, on=keys, how="left")
    first = first.merge(errors_of_cases(timed, learnt.predicting), on=keys, how="left")
    first["role"] = np.where(first["model"].isin(BASELINES), "baseline", "model")
    first["improved_runs"] = _improved_runs(first, domain)
    return first


def _improved_runs(table: pd.DataFrame, domain: Domain) -> list[float]:
    """Share of runs improved of each row; recommending the baseline itself improves none."""
    rows = zip(table["times_ms"], table["baseline_times"], domain.is_baseline(table), strict=True)
    return [
        0.0
        if same or not isinstance(times, np.ndarray | list) or not len(times)
        else merit.improved_runs(np.asarray(times), np.asarray(baseline))
        for times, baseline, same in rows
    ]


def _check_complete(first: pd.DataFrame, folds: list[Fold], domain: Domain) -> None:
    codes, keys = case_codes(first, domain.spec)
    for model, rows in first.assign(case=codes).groupby("model", sort=False):
        for fold in folds:
            mine = rows[(rows["split"] == fold.split) & (rows["fold"] == fold.fold)]
            found = {keys[case] for case in mine["case"]}
            wanted = {case.key for case in fold.test}
            if found != wanted:
                message = (
                    f"{model} recommends for {len(found & wanted)} of {len(wanted)} test problems "
                    f"and for {len(found - wanted)} others"
                )
                raise UserError("recommendations", f"{fold.split}.{fold.fold}", message)


def _of_fold(fold: Fold, truth: Truth, domain: Domain, random_draws: Iterable[int]) -> pd.DataFrame:
    """Oracle and random draws for every test case of a fold."""
    cases = truth.numbers(case.key for case in fold.test)
    if (cases < 0).any():
        lost = fold.test[int(cases.argmin())].key
        raise UserError(
            "evaluate", f"{fold.split}.{fold.fold}", f"no sweep holds test problem {lost}"
        )
    rows = _case_rows(fold.test, domain)
    best = truth.best(cases)
    oracle = rows.assign(
        **{name: best[name] for name in domain.spec.tunable_columns},
        model=ORACLE,
        role=ORACLE,
    )
    oracle = truth.beside(oracle)
    oracle["improved_runs"] = _improved_runs(oracle, domain)
    pieces = [oracle]
    for draws in random_draws:
        # The table wants a configuration; of a mean over draws the baseline stands for none.
        random = truth.beside(rows.assign(**space.baseline(domain.spec)))
        pairs = np.array([truth.draws(case, draws) for case in cases])
        pieces.append(
            random.assign(
                model=f"random_{draws}",
                role="baseline",
                status=EXPECTED,
                basis="",
                time_ms=pairs[:, 0],
                improved_runs=pairs[:, 1],
            )
        )
    return pd.concat(pieces, ignore_index=True).assign(
        split=fold.split, fold=fold.fold, predicted_ms=np.nan
    )


def _case_rows(cases: Iterable[Case], domain: Domain) -> pd.DataFrame:
    return pd.DataFrame([{"gpu": case.gpu, **case.problem} for case in cases])[
        ["gpu", *domain.spec.problem_columns]
    ]


def write_evaluation(
    study: str,
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    domain: Domain,
    random_draws: Sequence[int],
    answering: str,
    files: tuple[Path, Path, Path],
    processes: int,
) -> Mapping[Situation, Offsets]:
    """Evaluate what models say of a study's test cases; intervals of its answers by situation.
    Writes ``files``: rows (:func:`evaluate`), curves, and a summary, with errors of predicted times
    that are counted in so many ``processes``."""
    timed, shares = truth.timed(learnt.predicted_times), reached(learnt, truth)
    rows, errors = evaluate(
        study, learnt, folds, truth, timed, shares, domain, random_draws, answering
    )
    # The report draws curves of the first split.
    first = folds[0].split
    drawn = [fold for fold in folds if fold.split == first]
    known = shares[shares["split"] == first], learnt.of_split(first)
    curves = learning_curves(*known, drawn, truth, domain.spec, answering).assign(study=study)
    models = {"models": list(learnt.facts)}
    write_table(files[0], rows, evaluation_schema(domain.spec), models)
    write_table(files[1], curves, curves_schema(), models)
    summary = {
        "study": study,
        "random_draws": list(random_draws),
        "predictions": prediction_errors(timed, learnt.predicting, domain, processes),
        **summarise(rows, domain.spec, domain.near_best_percent, learnt.facts),
    }
    write_sealed_json(files[2], summary)
    return errors.by_situation()
