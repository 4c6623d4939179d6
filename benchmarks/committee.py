"""The answering model in variants: what its members, folds and rows change, and what they cost.

    python benchmarks/committee.py benchmarks/results/committee.json --processes 16
    python benchmarks/committee.py OUTPUT.json --variants default folds_2 --studies granger_time
    python benchmarks/committee.py OUTPUT.json --variants default fit_rows_25000

Each variant answers the problems of the recorded blind tests anew, from today's rows of the GPUs
that the recorded answers were learnt from, and the test problems of every split, from its training
rows. All answers are judged by single rows of the sweeps. No row of a test problem is learnt from;
the run ends where one would be. Seconds are CPU time of fitting and of answering, one thread.

A product whose rows are of several cards takes over the plans of the splits' folds. The recorded
answers were learnt from one card each; the variants ``all_cards`` and ``all_cards_own_plans`` learn
from every card of the study instead, the tested one included, and differ in these plans alone.

With ``--add``, variants that OUTPUT holds from a run of the same commit, seeds and studies stay:
the variants can be measured in several runs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
from harness.blind import recorded_tests
from harness.command_line import arguments, provenance
from harness.committees import KINDS, Outcome, Task, Variant, run
from harness.projects import ROOT, find_studies

from launchwise.base.parallel import usable_cores
from launchwise.base.storage import read_json, write_json
from launchwise.learning.choosing.plans import SHARE
from launchwise.learning.merit import HARM_PERCENT, geometric_mean
from launchwise.learning.one_core import VARIABLES
from launchwise.learning.recommenders import MEMBERS
from launchwise.learning.row_cap import RowCap

SEEDS = (2026,)
SMALLEST = "tridiagonal_streams"
PARTS, FEW = ("h200", "interpolation"), {"members": "knn, nearest_size"}
"""Blind test, split and members of the smallest run."""
FIT_ROWS = (50_000, 25_000, 12_500)
LIBRARIES = ("lightgbm", "sklearn.ensemble", "xgboost")
"""Loaded before anything is timed."""


def without(*names: str) -> Variant:
    """All members but some."""
    members = ", ".join(name for name in MEMBERS if name not in names)
    return Variant(f"without {' and '.join(names)}", {"members": members})


VARIANTS = {
    "default": Variant("as in config.yaml"),
    "folds_2": Variant("two folds of held-out problems", {"folds": 2}),
    "folds_4": Variant("four folds of held-out problems", {"folds": 4}),
    "rows_12000": Variant("members are validated on 12 000 rows", {"most_rows": 12_000}),
    "rows_48000": Variant("members are validated on 48 000 rows", {"most_rows": 48_000}),
    "without_forest_and_xgboost": without("forest", "xgboost"),
    **{f"without_{name}": without(name) for name in MEMBERS if name != "best_on_average"},
    **{
        f"fit_rows_{most}": Variant(f"fits to {most} rows at most", cap=RowCap(most))
        for most in FIT_ROWS
    },
    **{
        f"whole_problems_{most}": Variant(
            f"fits to {most} rows at most, whole problems", cap=RowCap(most, fewest=most)
        )
        for most in FIT_ROWS
    },
    "all_cards": Variant("rows of all cards, plans of the folds", all_cards=True),
    "all_cards_own_plans": Variant(
        "rows of all cards, validated by itself", all_cards=True, inherits=False
    ),
}
"""By name. ``best_on_average`` is the fallback: no committee is without it."""


def load(libraries: Sequence[str]) -> None:
    """Import what members import when they are first fitted."""
    for name in libraries:
        import_module(name)


def outcomes_of(
    tasks: Sequence[Task], processes: int, libraries: Sequence[str]
) -> Iterator[Outcome]:
    """Outcomes in the order of the tasks, several at once, each on one thread."""
    # Read by libraries when they are loaded, in the processes that are started here.
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
    with ProcessPoolExecutor(
        min(processes, len(tasks)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=load,
        initargs=(libraries,),
    ) as pool:
        yield from pool.map(run, tasks)


def tasks_of(
    variants: Mapping[str, Variant], studies: Sequence[str], seeds: Sequence[int]
) -> list[Task]:
    """Every variant and seed on every blind test and split, study by study.

    Variants ``all_cards`` have no splits: a fold learns from its own training rows.
    """
    splits = find_studies(ROOT)
    tasks = []
    for study in studies:
        parts = [("blind", gpu) for gpu, other in recorded_tests() if other == study]
        parts += [("splits", split) for split in splits[study]["splits"]]
        tasks += [
            Task(name, variant, seed, kind, study, part)
            for kind, part in parts
            for name, variant in variants.items()
            for seed in seeds
            if kind == "blind" or not variant.all_cards
        ]
    return tasks


def totals(outcomes: Sequence[Outcome]) -> dict[str, Any] | None:
    """Figures of a variant over all studies, counts and seconds as means over the seeds."""
    if not outcomes:
        return None
    rows = pd.concat(
        [one.rows.assign(study=one.task.study, seed=one.task.seed) for one in outcomes]
    )
    by_study = rows.groupby(["seed", "study"])["fraction"].agg(geometric_mean)
    by_seed = by_study.groupby("seed").mean()
    seeds, intervals = len(by_seed), int(rows["interval"].sum())
    return {
        "problems": len(rows) // seeds,
        "fraction": float(by_seed.mean()),
        "fraction_of_seeds": by_seed.tolist(),
        "harmed": float(rows["harmed"].sum()) / seeds,
        "intervals": intervals / seeds,
        "covered": float(rows["covered"].sum()) / intervals if intervals else None,
        "fit_core_s": sum(one.fit_s for one in outcomes) / seeds,
        "answer_core_s": sum(one.answer_s for one in outcomes) / seeds,
        "studies": by_study.groupby("study").mean().to_dict(),
    }


def options(studies: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--processes", type=int, default=usable_cores(), metavar="N")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, metavar="NAME")
    parser.add_argument("--studies", nargs="+", choices=studies, default=studies, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, metavar="SEED")
    parser.add_argument("--add", action="store_true", help="keep the variants that OUTPUT holds")
    return parser.parse_args()


def earlier(output: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Variants of an earlier run of the same commit, seeds and studies.

    Raises
    ------
    SystemExit
        When the run was another.
    """
    known: dict[str, Any] = read_json(output)
    if strange := [name for name in facts if known.get(name) != facts[name]]:
        raise SystemExit(f"{output}: is of other {strange[0]}, nothing can be added")
    variants: dict[str, Any] = known["variants"]
    return variants


def shown(one: Outcome) -> str:
    """A line about an outcome."""
    task, fraction = one.task, geometric_mean(one.rows["fraction"].to_numpy())
    return (
        f"{task.study:22} {task.part:14} {task.name:26} {fraction:.4f} of the best, "
        f"{one.rows['harmed'].sum()} slower, {one.fit_s:.1f} + {one.answer_s:.1f} s"
    )


def smallest(variants: Mapping[str, Variant], seeds: Sequence[int]) -> list[Task]:
    """The variants with a few members, on one blind test and one split."""
    few = {
        name: replace(one, parameters={**one.parameters, **FEW}) for name, one in variants.items()
    }
    return [task for task in tasks_of(few, [SMALLEST], seeds) if task.part in PARTS]


def main() -> None:
    """Measure every variant and write the file."""
    given = options(sorted({study for _, study in recorded_tests()}))
    names = given.variants or [*VARIANTS][: 2 if given.smallest else None]
    variants = {name: VARIANTS[name] for name in names}
    studies = [SMALLEST] if given.smallest else list(given.studies)
    source = provenance()
    facts = {"commit": source["commit"], "seeds": list(given.seeds), "studies": studies}
    results = earlier(given.output, facts) if given.add and given.output.exists() else {}
    few = given.smallest
    tasks = smallest(variants, given.seeds) if few else tasks_of(variants, studies, given.seeds)
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    for one in outcomes_of(tasks, given.processes, () if few else LIBRARIES):
        outcomes.setdefault((one.task.name, one.task.kind), []).append(one)
        print(shown(one), flush=True)
    for name, variant in variants.items():
        figures = {kind: totals(outcomes.get((name, kind), [])) for kind in KINDS}
        results[name] = {"settings": variant.settings, "parameters": variant.parameters, **figures}
    limits = {"harm_percent": HARM_PERCENT, "nominal_coverage": SHARE}
    write_json(given.output, {**source, **facts, **limits, "variants": results})


if __name__ == "__main__":
    main()
