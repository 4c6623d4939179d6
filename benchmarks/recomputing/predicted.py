"""Predicted run times on the GPUs page: beside published times, and beside measured ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from recomputing.comparing import Cell, Cells, Ledger, Table
from recomputing.entries import published
from recomputing.material import Material, geometric_mean
from recomputing.pages import Shown, ShownPage

PREDICTORS = {"learnt": "cost model + trees", "analytical": "cost model", "roofline": "roofline"}
"""Kinds of predictors to their titles."""

FEWEST_FOR_RHO, FEWEST_FOR_FACTOR = 4, 3
"""Fewest times of a rank correlation, and of errors after a common factor."""

AROUND = "error after a common factor: "


def compare(page: ShownPage, materials: Sequence[Material], ledger: Ledger) -> None:
    """Compare both tables."""
    tables = page.tables_of("Predictions against published run times")
    for each in tables:
        begin = each.rows[0][:2] if each.rows else []
        for row in each.rows:
            # A study and what its times are of stand in the first of their rows.
            begin = row[:2] if row[0].text else begin
            row[:2] = begin
    published_rows = {key: _published(own) for key, own in _parts(materials)}
    ledger.beside(page, tables, ["study", "times of", "predictor"], published_rows)
    for _, said in page.sentences:
        if " judge the predictions on cards " in said.text:
            _lead(said, materials, ledger.table(page.path, "sentences"))
    errors = {key: figures for one in materials for key, figures in _errors(one)}
    caption = "Errors of predicted times"
    ledger.beside(page, caption, ["study", "split", "predictor"], errors)


def _scopes(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """What published times are of."""
    whole, known = rows["phases"] == "", rows["runs"] > 0
    yield "whole runs", rows[whole & known]
    yield "whole runs, their number unknown", rows[whole & ~known]
    yield "phases of runs", rows[~whole]


def _parts(materials: Sequence[Material]) -> Iterator[tuple[tuple[str, str, str], pd.DataFrame]]:
    for study, rows in published(materials).items():
        for scope, own in _scopes(rows):
            for kind, title in PREDICTORS.items():
                if len(each := own[own["predictor"] == kind]):
                    yield (study, scope, title), each


def _published(own: pd.DataFrame) -> Cells:
    """Errors of predicted / published, and of the same over its geometric mean. The former only
    where the source says how many runs all times cover."""
    ratio = (own["predicted_ms"] / own["published_ms"]).to_numpy(dtype=float)
    mean = geometric_mean(ratio)
    absolute = bool((own["runs"] > 0).all())
    rho = own["predicted_ms"].corr(own["published_ms"], method="spearman")
    around = ratio / mean if len(ratio) >= FEWEST_FOR_FACTOR else np.full(1, np.nan)
    median = 100 * float(np.median(np.abs(ratio - 1)))
    return {
        "times (published)": len(own),
        "median error (%)": median if absolute else None,
        "predicted / published (×, geometric mean)": Cell(mean, digits=3),
        "rho (rank correlation)": float(rho) if len(own) >= FEWEST_FOR_RHO else None,
        f"{AROUND}median (%)": 100 * float(np.median(np.abs(around - 1))),
        f"{AROUND}least (×)": float(around.min()),
        f"{AROUND}greatest (×)": float(around.max()),
    }


def _lead(said: Shown, materials: Sequence[Material], table: Table) -> None:
    """Published times and cards; then medians of the table, least to most of the studies."""
    every = pd.concat(published(materials).values(), ignore_index=True)
    times = every.drop_duplicates(["series", "row", "gpu", "source"])
    first = said.text.partition(".")[0]
    table.numbers("published times and cards", first, len(times), every["gpu"].nunique())
    said.seen = True
    spans: dict[tuple[bool, str], list[float]] = {}
    for (_, scope, title), own in _parts(materials):
        ratio = (own["predicted_ms"] / own["published_ms"]).to_numpy(dtype=float)
        absolute = scope == "whole runs"
        if scope != "phases of runs":
            around = ratio if absolute else ratio / geometric_mean(ratio)
            error = 100 * float(np.median(np.abs(around - 1)))
            spans.setdefault((absolute, title), []).append(error)
    rest = said.text.partition(".")[2]
    for absolute, begin in ((True, "Median error of whole runs"), (False, "Where the number")):
        values: list[float] = []
        for title in PREDICTORS.values():
            known = spans.get((absolute, title), [])
            if known:
                # One number where the ends read the same.
                ends = dict.fromkeys(f"{end:.3g}" for end in (min(known), max(known)))
                values += map(float, ends)
        counts = [len(known) for (one, _), known in spans.items() if one == absolute]
        longest = max(counts, default=0)
        if longest:
            part = begin + rest.partition(begin)[2].partition(").")[0]
            table.numbers(begin, part, *values, longest, digits=3)


def _errors(one: Material) -> Iterator[tuple[tuple[str, str, str], Cells]]:
    """Errors |predicted / measured - 1| of each split's test rows that were timed repeatedly. Bias:
    geometric mean of predicted / measured. Rho: Spearman's, over all rows, and the mean over the
    problems that have one."""
    predicted = one.table(f"learnt/{one.name}/candidates.parquet")
    timed = one.timed[one.timed["status"] == "ok"]
    if predicted is None:
        return
    for model in one.settings.models:
        said = one.table(f"learnt/{one.name}/{model}.parquet")
        if model in PREDICTORS and said is not None:
            predicted[f"{model}_ms"] = said["predicted_ms"]
    keys = one.spec.key_columns
    both = predicted.merge(timed[[*keys, "time_ms"]], on=keys)
    for split in one.settings.splits:
        rows = both[both["split"] == split]
        for model in one.settings.models:
            column = f"{model}_ms"
            if model in PREDICTORS and column in rows and rows[column].notna().any():
                own = rows[rows[column].notna()]
                yield (one.name, split, PREDICTORS[model]), _figures(own, column, one.case)


def _figures(rows: pd.DataFrame, column: str, case: Sequence[str]) -> Cells:
    ratio = (rows[column] / rows["time_ms"]).to_numpy(dtype=float)
    error = 100 * np.abs(ratio - 1)
    ranked = rows[[*case, column, "time_ms"]]
    groups = ranked.groupby([*case], sort=False)
    ranks = groups[[column, "time_ms"]].rank()
    centred = ranks - ranks.groupby([ranked[name] for name in case], sort=False).transform("mean")
    products = pd.DataFrame(
        {
            "both": centred[column] * centred["time_ms"],
            "one": centred[column] ** 2,
            "other": centred["time_ms"] ** 2,
        }
    )
    sums = products.groupby([ranked[name] for name in case], sort=False).sum()
    known = sums[(sums["one"] > 0) & (sums["other"] > 0)]
    within: pd.Series = known["both"] / np.sqrt(known["one"] * known["other"])
    return {
        "rows (tested)": len(rows),
        "error: median (%)": float(np.median(error)),
        "error: mean (%)": float(error.mean()),
        "error: 90th (percentile, %)": float(np.quantile(error, 0.9)),
        "bias (×)": geometric_mean(ratio),
        "order: all (rho)": rows[column].corr(rows["time_ms"], method="spearman"),
        "order: within (rho)": float(within.mean()) if len(within) else None,
    }
