"""Searches in simulation on public and recorded sweeps, and evaluations until one is near the best.

A table has a row per configuration and a column per card: its time in ms, inf where it failed, NaN
where it was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from harness.projects import ROOT, homes_of
from launchwise.gpus.profile import read_profile
from launchwise.search.candidates import away
from launchwise.search.transfer_search import LARGEST_LOSS, TransferSearch
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.metrics import MEASURED, UNVERIFIED
from launchwise.workloads.spec import load_spec

NEAR = {"within_5_percent": 1.05, "within_1_percent": 1.01}
PUBLIC, RECORDED = ROOT / "data" / "public", ROOT / "data" / "recorded"
WORKLOADS = ("convolution", "pnpoly", "pnpoly_turing")  # public workloads whose cards are searched
KERNELS = ("acoustic", "granger", "sentiment", "tridiagonal")  # of the project, with several cards
CARDS = ("h100", "h200")  # whole cards with recorded sweeps

LEAST_TIMED = 20
AFTER = (1, 5, 20)  # evaluations after which the shares of searches are compared


@cache
def public(workload: str) -> tuple[dict[str, Path], pd.DataFrame]:
    """Sweep of each card of a public workload's study (none in doubt), and the table of all."""
    homes = homes_of(f"{workload}_transfer")
    spec = load_spec(PUBLIC / "workloads" / workload)
    paths = {gpu: home / f"{workload}.parquet" for gpu, home in homes.items()}
    columns = {}
    for gpu, path in paths.items():
        rows = read_table(path, measurement_schema(spec))
        times = rows.assign(time_ms=rows["time_ms"].where(rows["status"].isin(MEASURED)))
        columns[gpu] = times.set_index(spec.tunable_columns)["time_ms"]
    return paths, pd.DataFrame(columns).fillna(np.inf)


def recorded(workload: str) -> dict[tuple[Any, ...], pd.DataFrame]:
    """Values of each problem that both whole cards measured to the table of all cards."""
    spec = load_spec(ROOT / "kernels" / workload)
    found: dict[Any, dict[str, pd.Series]] = {}
    for path in sorted(RECORDED.glob(f"*/{workload}.parquet")):
        rows = read_table(path, measurement_schema(spec))
        rows = rows[rows["status"] != UNVERIFIED]
        rows = rows.assign(time_ms=rows["time_ms"].where(rows["status"].isin(MEASURED), np.inf))
        # A group has a part of every column: of the many columns of a sweep these alone.
        keys = [*spec.problem_columns, *spec.tunable_columns]
        rows = rows[[*keys, "time_ms"]].drop_duplicates(keys)
        groups: Any = rows.groupby(spec.problem_columns, observed=True)
        for problem, part in groups:
            times = part.set_index(spec.tunable_columns)["time_ms"]
            found.setdefault(problem, {})[path.parent.name] = times
    tables = {
        problem: pd.DataFrame(each).dropna(subset=[*CARDS])
        for problem, each in found.items()
        if {*CARDS} <= {*each}
    }
    return {
        problem: table
        for problem, table in tables.items()
        if np.isfinite(table[CARDS[0]]).sum() >= LEAST_TIMED
    }


def others_of(gpu: str, table: pd.DataFrame) -> list[str]:
    """Cards of a table that a search of ``gpu`` may know: those of its vendor, no slice of it."""
    return [
        each
        for each in map(str, table)
        if each.split(".")[0] != gpu.split(".")[0] and is_amd(each) == is_amd(gpu)
    ]


def is_amd(gpu: str) -> bool:
    """Whether a card is one of AMD."""
    return str(facts_of(gpu)["arch"]).startswith("gfx")


@cache
def facts_of(gpu: str) -> dict[str, Any]:
    """Profile of a public or recorded card."""
    folder = PUBLIC / "gpus" / gpu
    return read_profile(
        (folder if folder.is_dir() else RECORDED / gpu) / "profile.json"
    ).model_dump()


def losses(table: pd.DataFrame) -> pd.DataFrame:
    """Log times over the best of each card, at most :data:`LARGEST_LOSS`."""
    return (table / table.min()).clip(upper=np.exp(LARGEST_LOSS)).map(np.log)


def search_of(
    candidates: pd.Index[Any],
    known: Sequence[pd.Series],
    gpu: str | None = None,
    winners: bool = False,
) -> TransferSearch:
    """A search of some candidates that knows the times of columns, ms. On ``gpu`` it weighs them by
    what is known of the cards that they are named after. ``winners``: it knows the fastest
    configuration of each alone, and no time."""
    found = [np.log(each / each.min()).reindex(candidates).to_numpy(float) for each in known]
    if winners:
        found = [np.where(each == 0, 0.0, np.nan) for each in found]
    points = pd.get_dummies(candidates.to_frame(index=False).infer_objects()).to_numpy(float)
    losses = np.array(found).reshape(len(found), len(candidates)).T
    own = None if gpu is None else facts_of(gpu)
    away_from = [away(own, own and facts_of(str(each.name))) for each in known]
    return TransferSearch(points, losses, away_from, [winners] * len(found))


def measured(search: TransferSearch, own: np.ndarray) -> Iterator[float | None]:
    """Times in the order in which a search evaluates candidates, None of one that failed.

    ``own``: time of each candidate, ms: float64, shape (candidates,).
    """
    while len(search.tried) < len(own):
        place = search.propose()
        time_ms = float(own[place]) if np.isfinite(own[place]) else None
        search.tell(place, time_ms)
        yield time_ms


def evaluations(times: Sequence[float | None], best_ms: float) -> dict[str, int | None]:
    """How many evaluations it took, by the keys of :data:`NEAR`; None where it never got there.

    ``times``: of the configurations in the order in which they were evaluated, ms; None where one
    failed.
    """
    found = {}
    for name, factor in NEAR.items():
        hits = (place for place, time in enumerate(times, 1) if time and time <= factor * best_ms)
        found[name] = next(hits, None)
    return found


def share(times: Sequence[float | None], best_ms: float) -> float:
    """Best time over the best one evaluated: 1 when it was found, 0 when nothing worked."""
    known = [time for time in times if time is not None]
    return best_ms / min(known) if known else 0.0


def shares(times: Sequence[float | None], best_ms: float) -> dict[str, float]:
    """:func:`share` after :data:`AFTER` evaluations."""
    return {f"best_of_{count}": share(times[:count], best_ms) for count in AFTER}


def mean_shares(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Means of :func:`shares` over searches."""
    names = (f"best_of_{count}" for count in AFTER)
    return {name: fmean(row[name] for row in rows) for name in names}
