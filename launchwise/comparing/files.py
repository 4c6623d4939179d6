"""A comparison as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from launchwise.base.literals import csv_table
from launchwise.comparing.rows import CONDITIONS
from launchwise.comparing.sweep_comparison import (
    NONE,
    SHIFT_PERCENTILES,
    Comparison,
    SweepComparison,
)
from launchwise.workloads.space import label, used
from launchwise.workloads.spec import Spec

VERSION = 1  # Of the JSON document

_RATIO = ["ratio", "ratio_low", "ratio_high"]


def as_json(comparison: Comparison, complaints: Sequence[str]) -> dict[str, Any]:
    """Everything of a comparison, JSON-able; docs/how-to/compare_sweeps.md describes it.

    ``complaints``: from :func:`launchwise.comparing.sweep_comparison.complaints`.
    """
    return {
        "version": VERSION,
        "old": comparison.old,
        "new": comparison.new,
        "threshold": comparison.rule.threshold,
        "confidence": comparison.rule.confidence,
        "complaints": list(complaints),
        "outcomes": comparison.outcomes,
        "verdicts": comparison.verdicts,
        "only_old": [{"gpu": gpu, "workload": workload} for gpu, workload in comparison.only_old],
        "only_new": [{"gpu": gpu, "workload": workload} for gpu, workload in comparison.only_new],
        "sweeps": [_sweep(one) for one in comparison.sweeps],
    }


def _sweep(one: SweepComparison) -> dict[str, Any]:
    remeasured, shift = one.shift
    return {
        "workload": one.spec.workload,
        "gpu": one.gpu,
        "new_gpu": one.new_gpu,
        "matched": one.matched,
        "same_measurement": one.carried,
        "outcomes": one.outcomes,
        "verdicts": one.verdicts,
        "remeasured": remeasured,
        "ratio_percentiles": shift
        and {str(name): value for name, value in zip(SHIFT_PERCENTILES, shift, strict=True)},
        "differences": [asdict(each) for each in one.differences],
        "answers": _answers(one),
        "rows": [
            {"problem": problem, "configuration": configuration, **facts}
            for problem, configuration, facts in zip(
                problems(one.rows, one.spec),
                configurations(one.rows, one.spec),
                _records(_facts(one.rows)),
                strict=True,
            )
        ],
    }


def _answers(one: SweepComparison) -> list[dict[str, Any]]:
    best = {
        side: [
            None if place == NONE else found
            for place, found in zip(
                one.answers[f"{side}_best"],
                # Position -1 is of the last row, and left out.
                configurations(one.rows.iloc[one.answers[f"{side}_best"]], one.spec),
                strict=True,
            )
        ]
        for side in ("old", "new")
    }
    facts = _records(one.answers[["verdict", *_RATIO]])
    return [
        {"problem": problem, "old_best": old, "new_best": new, **each}
        for problem, old, new, each in zip(
            problems(one.answers, one.spec), best["old"], best["new"], facts, strict=True
        )
    ]


def csv_text(comparison: Comparison) -> str:
    """One line per row of every sweep, with a head. Problem and configuration are texts such as
    ``n=512 dtype=float32`` and ``tiled bx=32 by=8``."""
    tables = []
    for one in comparison.sweeps:
        keys = {
            "workload": one.spec.workload,
            "gpu": one.gpu,
            "new_gpu": one.new_gpu,
            "problem": [
                " ".join(f"{name}={value}" for name, value in each.items())
                for each in problems(one.rows, one.spec)
            ],
            "configuration": [label(each, one.spec) for each in configurations(one.rows, one.spec)],
        }
        facts = _facts(one.rows)
        tables.append(pd.concat([pd.DataFrame(keys, index=facts.index), facts], axis=1))
    found = csv_table(pd.concat(tables, ignore_index=True))
    return found.to_csv(index=False, lineterminator="\n")


def problems(rows: pd.DataFrame, spec: Spec) -> list[dict[str, Any]]:
    """Problem of each row."""
    return _dicts(rows[spec.problem_columns])


def configurations(rows: pd.DataFrame, spec: Spec) -> list[dict[str, Any]]:
    """Configuration of each row, without the tunables that its variant does not have."""
    return [used(each, spec) for each in _dicts(rows[spec.tunable_columns])]


def _dicts(table: pd.DataFrame) -> list[dict[str, Any]]:
    names = [str(name) for name in table]
    columns = (table[name].tolist() for name in names)
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _facts(rows: pd.DataFrame) -> pd.DataFrame:
    """Values of each row besides its key: repeats by their number."""
    found = {"outcome": rows["outcome"]}
    for name in ("status", "time_ms"):
        found |= {f"{side}_{name}": rows[f"{side}_{name}"] for side in ("old", "new")}
    for side in ("old", "new"):
        counts = rows[f"{side}_times_ms"].map(len, na_action="ignore")
        found[f"{side}_repeats"] = counts.astype("Int64")
    found |= {name: rows[name] for name in _RATIO}
    for name in ("reason", *CONDITIONS):
        found |= {f"{side}_{name}": rows[f"{side}_{name}"] for side in ("old", "new")}
    return pd.DataFrame(found)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with None where there is no value: JSON has no NaN."""
    objects = table.astype(object)
    return _dicts(objects.where(objects.notna(), None))
