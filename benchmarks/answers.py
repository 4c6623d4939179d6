"""Answers of the answering model to every test problem of every study, beside heuristics.

Also those of users' tables to problems of blind tests, with their measurements withheld, and errors
of predicted times.

    python benchmarks/answers.py benchmarks/results/answers.json

The pipeline as ``config.yaml`` has it, on the recorded sweeps and pairs, in a copy of the project,
up to the evaluation. Test rows score the answering model once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from harness.command_line import arguments, provenance
from harness.projects import (
    copied_project,
    keep_studies,
    own_experiment,
    read_settings,
    snakemake,
    write_settings,
)

from launchwise.base.storage import read_json, write_json
from launchwise.exporting.entries import read_stored
from launchwise.learning.evaluation import ALL_GPUS, HEURISTICS, WORTH_PERCENT
from launchwise.learning.merit import HARM_PERCENT, geometric_mean
from launchwise.learning.splits import case_columns
from launchwise.workloads.spec import Spec

ANSWERING, ORACLE = "chosen", "oracle"
SMALLEST = "tridiagonal_streams"
FEW = "knn, nearest_size, best_on_average"  # members of the answering model of the smallest run

FIGURES = (
    *("problems", "fraction_geometric_mean", "fraction_interval", "fraction_p5", "fraction_worst"),
    *("best_of_5", "best_of_20", "gain_geometric_mean", "harmed", "kept_usual", "worthwhile"),
    *("missed", "intervals", "covered", "beside_best_heuristic", "beside_best_model"),
)

LEAST_GAINS = (0.9, 0.95, 0.98, 1.0)  # gains that a careful person may ask to be sure of

HOW_HARD = ("configurations_median", "needle_index_median")

PREDICTORS = ("roofline", "analytical", "learnt")
LEARNS = frozenset({"learnt"})  # of these, what asks about held-out problems and cards unlike
ERRORS = ("median_percent", "spearman", "spearman_within")


def answer_with(folder: Path, members: str) -> None:
    """Give the answering model of a copy of the project some members alone."""
    settings = read_settings(folder)
    model = {**settings["models"][ANSWERING], "parameters": {"members": members}}
    write_settings(folder, {**settings, "models": {**settings["models"], ANSWERING: model}})


def answers_of(evaluation: Path, study: str, spec: Spec) -> list[dict[str, Any]]:
    """Figures of the answering model, one row a split; the best fair heuristic beside it."""
    splits = read_json(evaluation / f"{study}.summary.json")["splits"]
    rows = pd.read_parquet(evaluation / f"{study}.parquet")
    best = rows.loc[rows["model"] == ORACLE, ["split", *case_columns(spec), "variant"]]
    rows = rows[rows["model"] == ANSWERING].merge(
        best, on=["split", *case_columns(spec)], suffixes=("", "_of_best"), validate="one_to_one"
    )
    found = []
    for split, parts in splits.items():
        models = parts[ALL_GPUS]["models"]
        mine = rows[rows["split"] == split]
        found.append(
            {
                "study": study,
                "split": split,
                **{name: models[ANSWERING][name] for name in FIGURES},
                **{name: parts[ALL_GPUS][name] for name in HOW_HARD},
                "least_gain": float(mine["gain"].fillna(0.0).min()),
                "harmed_twice": slower(mine["gain"], 2 * HARM_PERCENT),
                "below_baseline": slower(mine["improvement"], HARM_PERCENT),
                "careful": [careful(mine, least) for least in LEAST_GAINS],
                **where_it_is_lost(mine),
                "best_heuristic": best_heuristic(models),
            }
        )
    return found


def where_it_is_lost(rows: pd.DataFrame) -> dict[str, Any]:
    """Share of answers with the best's variant, and their mean fraction of the best. Also the share
    of the loss (1 - fraction, summed) that the worst tenth of the problems has."""
    fractions = rows["fraction"].fillna(0.0)
    same = fractions[rows["variant"] == rows["variant_of_best"]]
    loss = (1 - fractions).sort_values(ascending=False)
    worst = loss.head(math.ceil(len(loss) / 10))
    return {
        "same_variant": len(same) / len(rows),
        "fraction_same_variant": geometric_mean(same.to_numpy()) if len(same) else None,
        "worst_tenth": float(worst.sum() / loss.sum()) if loss.sum() else None,
    }


def slower(speeds: pd.Series[float], percent: float) -> int:
    """Number of relative speeds below 1 by more than ``percent``. ``speeds`` holds time of the
    other divided by time of the answer; NaN counts as slower."""
    return int((speeds.fillna(0.0) < 1 / (1 + percent / 100)).sum())


def careful(rows: pd.DataFrame, least_gain: float) -> dict[str, Any]:
    """Figures if answers without a sure gain of ``least_gain`` become the usual choice."""
    kept = rows["is_usual"] | ~(rows["least_gain"] >= least_gain)
    possible = rows["usual_ms"] / rows["best_ms"]
    return {
        "least_gain": least_gain,
        "harmed": slower(rows["gain"].mask(kept, 1.0), HARM_PERCENT),
        "missed": int((kept & (possible > 1 + WORTH_PERCENT / 100)).sum()),
    }


def best_heuristic(models: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Name and mean fraction of the fair heuristic that did best on the test problems."""
    fractions = {
        name: figures["fraction_geometric_mean"]
        for name, figures in models.items()
        if name in HEURISTICS and figures["fraction_geometric_mean"] is not None
    }
    name = max(fractions, key=lambda each: (fractions[each], each))
    return {"name": name, "fraction_geometric_mean": fractions[name]}


def total(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts over all splits; the share of intervals that held, over all intervals."""
    rows = list(rows)
    counted = (
        *("problems", "harmed", "harmed_twice", "below_baseline"),
        *("kept_usual", "worthwhile", "missed"),
    )
    sums = {name: sum(each[name] for each in rows) for name in counted}
    of_careful = zip(*(each["careful"] for each in rows), strict=True)
    held = [each["intervals"] * each["covered"] for each in rows if each["intervals"]]
    intervals = sum(each["intervals"] for each in rows)
    return {
        **sums,
        "careful": [
            {
                "least_gain": part[0]["least_gain"],
                **{name: sum(each[name] for each in part) for name in ("harmed", "missed")},
            }
            for part in of_careful
        ],
        "missed_percent": 100 * sums["missed"] / sums["worthwhile"] if sums["worthwhile"] else None,
        "intervals": intervals,
        "covered": sum(held) / intervals if intervals else math.nan,
    }


def between_entries(folder: Path, study: str) -> list[dict[str, Any]]:
    """What a study's table reaches between its entries, a row per GPU with a blind test."""
    stored = read_stored(folder / "results" / "lookup" / f"{study}.json")
    return [
        {"study": study, "gpu": one.name, **asdict(one.tested)}
        for one in stored.devices
        if one.tested is not None
    ]


def with_mean(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, and their mean over problems."""
    fractions = [one["fraction"] for one in rows for _ in range(one["problems"])]
    every = {"problems": len(fractions), "fraction": geometric_mean(fractions)}
    return [*rows, {"study": "all", "gpu": "all", **every}]


def ranges(errors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Smallest and largest of :data:`ERRORS` of each predictor over studies and splits, all GPUs
    together. What does not learn is asked about every problem alike."""
    found = {}
    for model in PREDICTORS:
        for kind in ("problems", "leave_one_gpu_out") if model in LEARNS else ("",):
            rows = [row for row in errors if row["model"] == model and kind in ("", row["kind"])]
            figures = {key: [row[key] for row in rows if row[key] is not None] for key in ERRORS}
            found[f"{model}, {kind}" if kind else model] = {
                key: {"min": min(known), "max": max(known)} if known else None
                for key, known in figures.items()
            }
    return found


def predictions(evaluation: Path, study: str, splits: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Errors of every predictor over the test rows of each split, all GPUs together."""
    return [
        {"study": study, "kind": splits[row["split"]].kind, **row}
        for row in read_json(evaluation / f"{study}.summary.json")["predictions"]
        if row["gpu"] == ALL_GPUS and not row["by"] and row["model"] in PREDICTORS
    ]


def main() -> None:
    """Run the pipeline and collect what the answering model gives."""
    given = arguments(__doc__).parse_args()
    # Of the copy that is evaluated, whatever happens to the project meanwhile.
    made_by = provenance()
    with copied_project() as folder:
        if given.smallest:
            keep_studies(folder, [SMALLEST], ["knn", *PREDICTORS, ANSWERING])
            answer_with(folder, FEW)
        every = own_experiment()
        studies = [SMALLEST] if given.smallest else sorted(every.studies)
        targets = [f"results/evaluation/{study}.summary.json" for study in studies]
        snakemake(folder, "--cores", "all", "--quiet", "all", "--", *targets)
        evaluation = folder / "results" / "evaluation"
        rows, between, errors = [], [], []
        for study in studies:
            asked = every.studies[study]
            rows += answers_of(evaluation, study, every.specs[asked.workload])
            between += between_entries(folder, study)
            errors += predictions(evaluation, study, asked.splits)
    for row in rows:
        print(
            f"{row['study']:24} {row['split']:14} {row['problems']:4} problems, "
            f"{row['fraction_geometric_mean']:.3f} of the best, {row['harmed']} harmed, "
            f"{row['missed']} of {row['worthwhile']} missed"
        )
    limits = {"harm_percent": HARM_PERCENT, "worth_percent": WORTH_PERCENT}
    found = {"studies": rows, "all": total(rows), "between": with_mean(between)}
    predicted = {"studies": len({row["study"] for row in errors}), **ranges(errors)}
    write_json(given.output, {**made_by, **limits, **found, "predictions": predicted})


if __name__ == "__main__":
    main()
