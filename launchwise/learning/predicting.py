"""Predicted run times: of the fastest configurations on any GPU, and beside published times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from launchwise.base.scripting import log
from launchwise.experiment.published import RunTime, read_run_times
from launchwise.gpus.datasheets import read_cards
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import FACTS, least_ms, limits_ms
from launchwise.learning.splits import Case, Fold
from launchwise.tables.files import table_of, write_table
from launchwise.tables.learning import published_times_schema, unmeasured_schema
from launchwise.tables.rows import selected
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    from launchwise.learning.final import Final


ROOFLINE = "roofline"
COST_MODEL = "analytical"


def held_against(
    domain: Domain,
    times: Sequence[RunTime],
    cards: Mapping[str, str],
    predictors: Mapping[str, Recommender],
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Predict published run times. Returns one row per (time, GPU, predictor), as
    :func:`launchwise.tables.learning.published_times_schema` declares it; and title of a series to
    the number of its times for which no configuration fits the GPU.

    ``domain``: the study's; its profiles hold the GPUs of ``cards``.
    ``times``: as :func:`launchwise.experiment.published.read_run_times` gives them. Those on other
        cards are left out.
    ``cards``: datasheet-only GPU to its card.
    ``predictors``: fitted predictors, by kind. The roofline is added; phases are predicted by the
        cost model alone.
    """
    rows: list[pd.DataFrame] = []
    unfit: dict[str, int] = {}
    domains: dict[str, Domain] = {}
    for time in times:
        for gpu in (name for name, card in cards.items() if card == time.card):
            configurations = _configurations(domain, domains, time, gpu)
            if configurations.empty:
                unfit[time.series] = unfit.get(time.series, 0) + 1
            else:
                rows.append(_predicted(domain, time, configurations, predictors))
    if rows:
        return pd.concat(rows, ignore_index=True), unfit
    return table_of([], published_times_schema(domain.spec)), unfit


def _configurations(
    domain: Domain, domains: dict[str, Domain], time: RunTime, gpu: str
) -> pd.DataFrame:
    """Feasible configurations that a published time may stand for, one per row."""
    key = str(time.selection) if "variant" in time.selection else ""
    if key not in domains:
        # What a source names need not be a candidate of the study.
        allowed = Domain(domain.spec, domain.profiles, dict(time.selection)) if key else domain
        domains[key] = allowed
    rows = domains[key].choices([Case(gpu, time.problem)])
    # The baseline is always among the choices.
    return rows[selected(rows, time.selection)].reset_index(drop=True)


def _predicted(
    domain: Domain, time: RunTime, rows: pd.DataFrame, predictors: Mapping[str, Recommender]
) -> pd.DataFrame:
    """One row per predictor, each with the configuration that it takes for the fastest."""
    estimate = domain.cost_model.estimate(rows)
    if time.phases:
        known = [estimate.phases[name] for name in time.phases if name in estimate.phases]
        predicted = {COST_MODEL: np.sum([np.zeros(len(rows)), *known], axis=0)}
    else:
        predicted = {ROOFLINE: limits_ms(rows, domain.spec, domain.profiles)[ROOFLINE]}
        predicted |= {name: one.judge(rows).predicted_ms for name, one in predictors.items()}
    bounds = estimate.bound_by()
    fastest = {name: int(np.argmin(times)) for name, times in predicted.items()}
    found = rows.iloc[list(fastest.values())].reset_index(drop=True)
    return found.assign(
        series=time.series,
        row=time.row,
        phases="+".join(time.phases),
        runs=time.runs or 0,
        predictor=list(fastest),
        published_ms=time.time_ms,
        predicted_ms=[
            float(predicted[name][place]) * (time.runs or 1) for name, place in fastest.items()
        ],
        bound_by=[str(bounds[place]) for place in fastest.values()],
        source=time.source,
    )


def tested_problems(folds: Sequence[Fold]) -> list[Problem]:
    """Test problems of the first split, each once."""
    tested = [case.problem for fold in folds if fold.split == folds[0].split for case in fold.test]
    return list({str(problem): problem for problem in tested}.values())


def learnable_rows(domain: Domain, sweeps: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Rows of sweeps that predictors learn from: candidates of the study, timed repeatedly. Returns
    columns that name a row, ``time_ms``, and registers and spills of its build. ``sweeps``:
    measurements (:func:`launchwise.tables.measurements.measurement_schema`), one table per GPU."""
    rows = pd.concat(list(sweeps), ignore_index=True)
    rows = rows[(rows["status"] == "ok") & domain.is_candidate(rows)]
    return rows[[*domain.spec.key_columns, "time_ms", *FACTS]].reset_index(drop=True)


def predict_times(
    domain: Domain,
    gpus: Sequence[str],
    problems: Sequence[Problem],
    predictors: Mapping[str, Recommender],
    top: int = 1,
) -> pd.DataFrame:
    """The fastest configurations by each predictor, and their predicted times.

    No time is below ``shortest_ms`` (:func:`launchwise.learning.row_arrays.least_ms`). Of a GPU
    whose link to the host is unknown, runs that copy over it have no time. Returns one row per
    (predictor, GPU, problem, rank), as :func:`launchwise.tables.learning.unmeasured_schema`
    declares it. ``gpus``: GPUs of the domain; each needs a profile and no measurement.
    ``problems``: of the domain's workload. One that no configuration fits but the baseline has that
    one. ``top``: configurations of each problem, from the fastest.
    """
    choices = domain.choices([Case(gpu, problem) for gpu in gpus for problem in problems])
    known = choices.assign(baseline=domain.is_baseline(choices))
    key = ["gpu", *domain.spec.problem_columns]
    found = []
    for name, predictor in predictors.items():
        ranked = predictor.rank(known)
        start = ranked.loc[ranked["baseline"], [*key, "predicted_ms"]]
        start = start.rename(columns={"predicted_ms": "baseline_ms"})
        first = ranked[ranked["rank"] <= top].merge(start, on=key, how="left")
        found.append(first.drop(columns="baseline").assign(predictor=name))
    table = _with_known_link(pd.concat(found, ignore_index=True), known, domain)
    limits = limits_ms(table, domain.spec, domain.profiles)
    table = table.assign(bytes_ms=limits["bytes"], flop_ms=limits["flop"])
    table["shortest_ms"] = least_ms(table, domain.spec, domain.profiles)
    for name in ("predicted_ms", "baseline_ms"):
        # Trees extrapolate from other GPUs: what they say may be faster than any run can be.
        table[name] = table[[name, "shortest_ms"]].max(axis=1, skipna=False)
    bound_by = domain.cost_model.estimate(table).bound_by()
    table["bound_by"] = pd.Series(bound_by, index=table.index, dtype=str)
    return table.astype({"rank": np.int64})


def problems_left_out(
    table: pd.DataFrame, spec: Spec, gpus: Iterable[str], problems: Sequence[Problem]
) -> dict[str, int]:
    """GPU to how many of the problems :func:`predict_times` left out for its unknown link."""
    predicted = table[["gpu", *spec.problem_columns]].drop_duplicates()["gpu"].value_counts()
    counts = {gpu: len(problems) - int(predicted.get(gpu, 0)) for gpu in gpus}
    return {gpu: count for gpu, count in counts.items() if count}


def _with_known_link(table: pd.DataFrame, known: pd.DataFrame, domain: Domain) -> pd.DataFrame:
    """The table without rows that copy over an unknown link, and without such baselines' times.

    ``known``: every candidate of the problems, with ``baseline``.
    """
    model = domain.cost_model
    start = known[known["baseline"]].reset_index(drop=True)
    key = ["gpu", *domain.spec.problem_columns]
    copying = start.loc[model.copies_at_unknown_rate(start), key]
    without = pd.MultiIndex.from_frame(table[key]).isin(pd.MultiIndex.from_frame(copying))
    table = table.assign(baseline_ms=table["baseline_ms"].mask(without))
    return table[~model.copies_at_unknown_rate(table)].reset_index(drop=True)


def predictors_of(domain: Domain, learnt: Recommender | None = None) -> dict[str, Recommender]:
    """The cost model, which needs no fit, alone and with trees that are fitted, if any."""
    analytical: Recommender = recommender_class(COST_MODEL)(domain)
    return {COST_MODEL: analytical} | ({} if learnt is None else {"learnt": learnt})


def write_predictions(
    path: Path, product: Final, folds: Sequence[Fold], described: Sequence[str]
) -> None:
    """Predict the test problems of a study's first split on datasheet-only GPUs."""
    domain, problems = product.domain, tested_problems(folds)
    predictors = predictors_of(domain, product.predictor)
    table = predict_times(domain, described, problems, predictors)
    left_out = problems_left_out(table, domain.spec, described, problems)
    if left_out:
        log.info("without a known link to the host (host_gbs): %s", left_out)
    facts = {"learnt_from": product.facts["rows"], "left_out": left_out}
    write_table(path, table, unmeasured_schema(domain.spec), facts)


def predict_published(
    path: Path, product: Final, study_folder: Path, cards: Path, described: Mapping[str, str]
) -> None:
    """Predict the published run times of a study.

    ``study_folder``: of the study, with its published run times if it has any; ``cards``: table of
    cards; ``described``: datasheet-only GPUs to their cards.
    """
    known = read_run_times(study_folder, product.spec, read_cards(cards))
    predictors = predictors_of(product.domain, product.predictor) if known.times else {}
    table, unfit = held_against(product.domain, known.times, described, predictors)
    log.info("%d published times", len(table.drop_duplicates(["series", "row", "gpu"])))
    facts = {"skipped": known.skipped, "unfit": unfit}
    write_table(path, table, published_times_schema(product.spec), facts)
