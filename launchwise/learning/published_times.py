"""Predictions of published run times, on datasheet-only GPUs of the same cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from launchwise.base.scripting import log
from launchwise.experiment.run_times import Published, RunTime
from launchwise.learning.analytical import Estimate
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Recommender
from launchwise.learning.rooflines import limits_ms
from launchwise.learning.splits import Case
from launchwise.tables.files import table_of, write_table
from launchwise.tables.predictions import published_times_schema
from launchwise.tables.rows import selected

ROOFLINE = "roofline"
COST_MODEL = "analytical"


@dataclass(frozen=True)
class Held:
    """Published run times beside predictions."""

    # One row per (time, GPU, predictor), as
    # `launchwise.tables.predictions.published_times_schema` declares it.
    table: pd.DataFrame
    # Title of a series to the number of its times for which no configuration fits the GPU.
    unfit: dict[str, int]


def held_against(
    domain: Domain,
    times: Sequence[RunTime],
    cards: Mapping[str, str],
    predictors: Mapping[str, Recommender],
) -> Held:
    """Predict published run times.

    Parameters
    ----------
    domain
        The study's; its profiles hold the GPUs of ``cards``.
    times
        As :func:`launchwise.experiment.run_times.read_run_times` gives them. Those on other cards
        are left out.
    cards
        Datasheet-only GPU to its card.
    predictors
        Fitted predictors, by kind. The roofline is added; phases are predicted by the cost model
        alone.
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
        return Held(pd.concat(rows, ignore_index=True), unfit)
    return Held(table_of([], published_times_schema(domain.spec)), unfit)


def write_published(
    path: Path,
    domain: Domain,
    known: Published,
    cards: Mapping[str, str],
    predictors: Mapping[str, Recommender],
) -> None:
    """Write the table of predicted published run times (:func:`held_against`)."""
    held = held_against(domain, known.times, cards, predictors)
    log.info("%d published times", len(held.table.drop_duplicates(["series", "row", "gpu"])))
    facts = {"skipped": known.skipped, "unfit": held.unfit}
    write_table(path, held.table, published_times_schema(domain.spec), facts)


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
    domain: Domain,
    time: RunTime,
    rows: pd.DataFrame,
    predictors: Mapping[str, Recommender],
) -> pd.DataFrame:
    """One row per predictor, each with the configuration that it takes for the fastest."""
    estimate = domain.cost_model.estimate(rows)
    if time.phases:
        predicted = {COST_MODEL: _of_phases(estimate, time.phases, len(rows))}
    else:
        predicted = {ROOFLINE: limits_ms(rows, domain.spec, domain.profiles)[ROOFLINE]}
        predicted |= {name: one.predict(rows) for name, one in predictors.items()}
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


def _of_phases(estimate: Estimate, phases: Sequence[str], rows: int) -> np.ndarray:
    """Time of some phases of a run, ms, shape (rows,)."""
    known = [estimate.phases[name] for name in phases if name in estimate.phases]
    return np.sum(known, axis=0) if known else np.zeros(rows)
