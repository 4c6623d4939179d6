"""Errors of predicted run times, by predictor, on the test problems of every study.

    python benchmarks/prediction_errors.py benchmarks/results/prediction_errors.json

On recorded sweeps, with the pipeline's own splits, filter, predictors (default hyper-parameters, no
search) and errors (:mod:`launchwise.learning.prediction_errors`).
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from harness.ablated import Material, material_of
from harness.command_line import arguments, write_result

from launchwise.learning.prediction_errors import prediction_errors
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.training_rows import clean
from launchwise.learning.truth import Truth
from launchwise.tables.learning import predicted_column, rows_of_fold

STUDIES = (
    *("acoustic_kernels", "acoustic_tile", "granger_time", "sentiment_host"),
    *("sentiment_inference", "tridiagonal_device", "tridiagonal_recursion"),
    *("tridiagonal_streams", "tridiagonal_subsystem"),
)
SMALLEST = "granger_time"
KINDS = ("roofline", "analytical", "learnt")
LEARNS = frozenset({"learnt"})
KEPT = ("median_percent", "spearman", "spearman_within", "rows")


def errors(material: Material, split: str) -> list[dict[str, Any]]:
    """Errors of every predictor over the test problems of a split, all GPUs together."""
    domain, folds = material.domain(), material.folds[split]
    training = clean(material.sweeps, folds, domain.spec, material.study.fences).training
    tables = []
    for fold in folds:
        rows = rows_of_fold(training, fold.split, fold.fold)
        choices = domain.choices(fold.test).assign(split=split)
        predicted = {
            predicted_column(kind): recommender_class(kind)(domain).fit(rows).predict(choices)
            for kind in KINDS
        }
        tables.append(choices.assign(**predicted))
    timed = Truth(material.sweeps, domain).timed(pd.concat(tables, ignore_index=True))
    return [
        {"split": split, "model": row["model"], **{key: row[key] for key in KEPT}}
        for row in prediction_errors(timed, KINDS, domain)
        if row["gpu"] == "all" and not row["by"]
    ]


def ranges(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Smallest and largest error and correlation of each predictor over studies and splits."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        # What does not learn is asked about every problem alike.
        for kinds in (("problems",), ("leave_one_gpu_out",)) if kind in LEARNS else (None,):
            mine = [
                row
                for row in rows
                if row["model"] == kind and (kinds is None or row["kind"] in kinds)
            ]
            name = kind if kinds is None else f"{kind}, {kinds[0]}"
            found[name] = {
                key: {"min": min(known), "max": max(known)} if known else None
                for key in KEPT[:3]
                for known in [[row[key] for row in mine if row[key] is not None]]
            }
    return found


def main() -> None:
    """Measure the errors of every study and write the file."""
    given = arguments(__doc__).parse_args()
    found: list[dict[str, Any]] = []
    for name in [SMALLEST] if given.smallest else STUDIES:
        material = material_of(name)
        for split, asked in material.study.splits.items():
            known = {"study": name, "kind": asked.kind}
            found += [{**known, **row} for row in errors(material, split)]
        for row in [row for row in found if row["study"] == name]:
            figures = "  ".join(f"{row[key]!s:.6}" for key in KEPT)
            print(f"{name:22} {row['split']:14} {row['model']:11} {figures}")
    write_result(given.output, {"errors": found, "ranges": ranges(found)})


if __name__ == "__main__":
    main()
