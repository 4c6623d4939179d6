"""Learning to rank beside regression: the same trees, features, rows and test problems.

    python benchmarks/ranking.py benchmarks/results/ranking.json

On recorded sweeps, with the pipeline's own splits, filter and evaluation. Regression is LightGBM on
log time relative to the best of the problem, ranking is LightGBM's LambdaMART; both grow as many
trees of the same size, with default hyper-parameters. Quality is the geometric mean over the test
problems, and over the seeds, of best time divided by the recommended configuration's time; its
interval is a bootstrap over the test problems.
"""

from __future__ import annotations

from typing import Any

from harness.ablated import compared, material_of, seeded
from harness.command_line import arguments, write_result

KINDS = {"regression": "lightgbm", "ranking": "lambdarank"}
STUDIES = (
    *("acoustic_tile", "granger_time", "sentiment_inference"),
    *("tridiagonal_device", "tridiagonal_subsystem", "convolution_transfer"),
)
SMALLEST = "granger_time"
SEEDS = 3


def of_study(name: str, seeds: int) -> list[dict[str, Any]]:
    """A row per split and kind; ``over_reference`` is relative to regression."""
    material = material_of(name)
    found = []
    for split in material.folds:
        groups = {
            label: seeded(label, kind, material, material.study.fences, seeds)
            for label, kind in KINDS.items()
        }
        outcome = compared(material, split, groups, "regression")
        found += [
            {"study": name, "split": split, "model": label, **each}
            for label, each in outcome.items()
        ]
    return found


def main() -> None:
    """Compare on every study and split."""
    given = arguments(__doc__).parse_args()
    studies, seeds = ((SMALLEST,), 1) if given.smallest else (STUDIES, SEEDS)
    rows = []
    for name in studies:
        for row in of_study(name, seeds):
            rows.append(row)
            print(name, row["split"], row["model"], f"{row['quality']:.3f}", flush=True)
    write_result(given.output, {"seeds": seeds, "kinds": KINDS, "compared": rows})


if __name__ == "__main__":
    main()
