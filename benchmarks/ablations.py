"""Effect of the Tukey filter, GPU features and number of measurements on recommendations.

    python benchmarks/ablations.py benchmarks/results/ablations.json

On recorded sweeps, with the pipeline's own splits, filter, recommenders (default hyper-parameters,
no search) and evaluation. Quality is the geometric mean over the test problems of best time divided
by the recommended configuration's time; its interval is a bootstrap over the test problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from harness.ablated import USUAL, Material, Variant, compared, material_of, seeded
from harness.command_line import arguments, write_result

from launchwise.experiment.study import Fences
from launchwise.gpus.profile import FEATURES_OF_GPU
from launchwise.learning.splits import case_numbers

STUDIES = ("acoustic_tile", "granger_time", "sentiment_inference", "tridiagonal_device")
NEW_GPU_STUDIES = (
    "acoustic_tile", "granger_time", "sentiment_inference", "convolution_transfer"
)  # fmt: skip
"""Studies that leave GPUs out; only those of the last are different cards, and no slices of one."""

SPLIT = "interpolation"  # split of every study of `STUDIES` that asks about held-out sizes
KINDS = ("forest", "learnt")
SEEDS = 5
PERCENTS = (1, 2, 5, 10, 20, 50, 100)
ENOUGH = 0.99
"""Quality relative to that of all training rows, from which on measurements are enough."""
CURVE = ("study", "sampled", "model")  # what tells a curve from others
NO_FILTER = Fences(factor=100)


def of_filter(material: Material, name: str, seeds: int) -> list[dict[str, Any]]:
    """The Tukey filter off, over all rows and per problem, for every split by problems."""
    filters = {"off": NO_FILTER, "global": Fences(scope="global"), "problem": Fences()}
    found = []
    for split, asked in material.study.splits.items():
        if asked.kind != "problems":
            continue
        for kind in KINDS:
            groups = {
                label: seeded(label, kind, material, fences, seeds)
                for label, fences in filters.items()
            }
            outcome = compared(material, split, groups, "problem")
            known = {"study": name, "split": split, "model": kind}
            found += [{**known, "filter": label, **each} for label, each in outcome.items()]
    return found


def of_gpu_features(material: Material, name: str, seeds: int) -> list[dict[str, Any]]:
    """All features, those without the GPU's own, and those that read nothing of the GPU."""
    domain = material.domain()
    case = material.folds["transfer"][0].test[:1]
    every = map(str, domain.features(domain.choices(case)))
    own = [one for one in every if one not in FEATURES_OF_GPU]
    # Such as waves: blocks divided by what the SMs hold.
    expressions, formulas = material.spec.features, material.spec.formulas
    of_gpu = frozenset(FEATURES_OF_GPU)
    blind = [
        one
        for one in own
        if one not in expressions or of_gpu.isdisjoint(formulas.raw_names(expressions[one]))
    ]
    domains = {
        "all": domain,
        "no GPU attributes": material.domain(own),
        "nothing of the GPU": material.domain(blind),
    }
    found = []
    for kind in KINDS:
        groups = {
            label: seeded(label, kind, material, material.study.fences, seeds) for label in domains
        }
        outcome = compared(material, "transfer", groups, "all", domains)
        known = {"study": name, "model": kind, "gpus": len(material.folds["transfer"])}
        found += [{**known, "features": label, **each} for label, each in outcome.items()]
    return found


def some_rows(material: Material, percent: float, seed: int) -> dict[str, pd.DataFrame]:
    """A share of the rows of each problem on each GPU, at least one, drawn at random. With the same
    seed a smaller share is a part of a larger one."""
    drawn = {}
    for number, (gpu, sweep) in enumerate(material.sweeps.items()):
        order = np.random.default_rng((seed, number)).permutation(len(sweep))
        cases = pd.Series(case_numbers(sweep, material.spec)).iloc[order]
        place = cases.groupby(cases).cumcount()
        least = np.ceil(cases.groupby(cases).transform("size") * percent / 100)
        drawn[gpu] = sweep.iloc[np.sort(order[(place < least).to_numpy()])].reset_index(drop=True)
    return drawn


def some_problems(material: Material, percent: float, seed: int) -> dict[str, pd.DataFrame]:
    """All rows of a share of the training problems, at least one, drawn at random. A problem is
    drawn with all its GPUs; with the same seed a smaller share is a part of a larger."""
    (fold,) = material.folds[SPLIT]
    problems = sorted({case.key[1:] for case in fold.train}, key=str)
    order = np.random.default_rng(seed).permutation(len(problems))
    count = math.ceil(len(problems) * percent / 100)
    chosen = {problems[place] for place in order[:count]}
    columns = sorted(material.spec.problem_columns)
    kept = {
        gpu: pd.MultiIndex.from_frame(sweep[columns]).isin(chosen)
        for gpu, sweep in material.sweeps.items()
    }
    return {gpu: sweep[kept[gpu]].reset_index(drop=True) for gpu, sweep in material.sweeps.items()}


SAMPLED = {"rows": some_rows, "problems": some_problems}


def of_size(
    material: Material, name: str, seeds: int, percents: Sequence[int]
) -> list[dict[str, Any]]:
    """Quality on held-out sizes after training on a share of the rows, or of the problems. The
    filter sees only what was drawn, as if nothing else had been measured."""
    usual = Variant(USUAL, USUAL, material.sweeps, material.study.fences, 0)
    found = []
    for sampled, sample in SAMPLED.items():
        drawn = {
            (percent, seed): sample(material, percent, seed)
            for percent in percents
            for seed in range(seeds)
        }
        for kind in KINDS:
            groups = {
                str(percent): [
                    Variant(
                        f"{percent} {seed}", kind, drawn[percent, seed], material.study.fences, seed
                    )
                    for seed in range(seeds)
                ]
                for percent in percents
            }
            outcome = compared(material, SPLIT, {**groups, USUAL: [usual]}, str(percents[-1]))
            known = {"study": name, "sampled": sampled, "model": kind}
            quality = outcome.pop(USUAL)["quality"]
            found += [
                {**known, "percent": int(percent), "usual_choice": quality, **each}
                for percent, each in outcome.items()
            ]
    return found


def enough(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each curve the smallest share from which on quality stays at :data:`ENOUGH` or more."""
    curves: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        curves.setdefault(tuple(row[key] for key in CURVE), []).append(row)
    found = []
    for curve in curves.values():
        first = curve[-1]
        for row in reversed(curve):
            if row["over_reference"] < ENOUGH:
                break
            first = row
        kept = ("percent", "training_rows", "training_problems", "quality")
        found.append({key: first[key] for key in (*CURVE, *kept)})
    return found


def main() -> None:
    """Run all three ablations, and write the file."""
    given = arguments(__doc__).parse_args()
    seeds, percents = (1, (10, 100)) if given.smallest else (SEEDS, PERCENTS)
    studies = STUDIES[1:2] if given.smallest else STUDIES
    new_gpu = studies if given.smallest else NEW_GPU_STUDIES
    materials = {name: material_of(name) for name in dict.fromkeys([*studies, *new_gpu])}
    size = [row for name in studies for row in of_size(materials[name], name, seeds, percents)]
    result: dict[str, Any] = {
        "seeds": seeds,
        "models": list(KINDS),
        "filter": [row for name in studies for row in of_filter(materials[name], name, seeds)],
        "gpu_features": [
            row for name in new_gpu for row in of_gpu_features(materials[name], name, seeds)
        ],
        "training_size": size,
    }
    curves = enough(size)
    for row in curves:
        print(*row.values())
    result["enough"] = {"over_reference": ENOUGH, "curves": curves}
    write_result(given.output, result)


if __name__ == "__main__":
    main()
