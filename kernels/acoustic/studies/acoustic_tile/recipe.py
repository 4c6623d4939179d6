"""The paper's recipe on our sweeps: its figures, its search, its provenance.

``benchmarks/paper_recipe.py`` writes ``recorded/recipe.json``; nothing here computes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records
from launchwise.report import numbers, wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
from launchwise.report.fields import (
    THEIRS,
    Field,
    Part,
    beside,
    decimals,
    field,
    grouped,
    significant,
    table_of,
)
from launchwise.report.numbers import STOPPED_EARLY
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import selected

FILE = Path("recorded", "recipe.json")
GLOBAL = "recipe"  # run of the recipe as published, on rows of our kernels
PAPERS = "openmp"  # run as published, on rows of the paper's program

RUNS = {PAPERS: "C with OpenMP", GLOBAL: "CUDA"}
"""Runs that are shown, to the kernel whose tiles they choose."""

PRINTED = "_printed"  # end of the name of a model with the hyper-parameters that the paper prints

TREE, PRINTED_TREE = "tree", f"tree{PRINTED}"
SPEED = "improvement_coefficient"  # mean speed-up over untiled, by the paper's name
ORACLE, BEST_TILE = "oracle", "best tile of each problem"
OURS = {"n_neighbors": "k"}  # printed hyper-parameter to our name, where they differ

Recipe = Mapping[str, Any]


def read_recipe(study: StudyData) -> Recipe | None:
    """The recorded runs; None where the study's folder holds none."""
    path = None if study.folder is None else study.folder / FILE
    return read_json(path) if path is not None and path.is_file() else None


def runs_of(study: StudyData, recipe: Recipe) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Run, title, and figures by model of the recipe's runs on each whole card."""
    slices = {gpu for gpu, profile in study.profiles.items() if profile.is_slice}
    for run, kernel in RUNS.items():
        for gpu, figures in recipe["runs"].get(run, {"gpus": {}})["gpus"].items():
            if gpu not in slices:
                yield run, f"{gpu}, {kernel}", figures


def blocks(
    study: StudyData, recipe: Recipe, results: Records, facts: Mapping[str, str]
) -> list[Block]:
    """The recipe's figures beside the paper's, its hyper-parameter search, and its provenance."""
    run, versions = recipe["runs"][GLOBAL], recipe["versions"]
    counts = run["training"]
    removed = counts["removed"]["global"]
    return [
        Text("Other GPUs and an OpenMP program: compare trends, not times."),
        _table(study, recipe, results),
        Text(
            "Ours: the recipe of config/paper.yaml, with the paper's eleven features, one filter "
            f"over all times, and {recipe['overlay']['search']['trials']} trials per model, on "
            "the paper's program and on its tiles in CUDA (omp_tile). Speed-up: mean of untiled "
            "time over time of the recommendation, single rows of the sweep. The best tile is "
            "known from every measured time and may be untiled. In CUDA the filter removes "
            f"{removed['percent']:.1f} % of {wording.count(counts['measured'])} training rows (the "
            f"paper {facts['runs_removed_percent']} %) and all rows of "
            f"{wording.plural(removed['problems_lost'], 'problem')}."
            f"{_launched_once(study, recipe)}{_measured_since(study, recipe)}"
            f"{_classifier(run, facts)}",
            "note",
        ),
        Fold(
            "Hyper-parameters that the searches found, beside the paper's",
            [
                _hyperparameters(run["models"], facts),
                Text(
                    f"Seed {recipe['seed']}; searches by Optuna {versions.get('optuna', '–')}, one "
                    "core. The paper does not name its measure of precision; ours is the mean "
                    "absolute percentage error on held-out problems. Recorded until "
                    f"{wording.moment(recipe['measured_at'])} at commit "
                    f"{wording.short(run['commit'])} by benchmarks/paper_recipe.py, "
                    f"{wording.number(run['wall_s'] / 60, 2)} minutes. scikit-learn "
                    f"{versions.get('scikit-learn', '–')}, XGBoost "
                    f"{versions.get('xgboost-cpu', '–')}, LightGBM "
                    f"{versions.get('lightgbm', '–')}.",
                    "note",
                ),
            ],
        ),
    ]


def _variants(recipe: Recipe) -> list[str]:
    """Variants of the recipe's tiles."""
    study = next(entry for entry in recipe["overlay"]["studies"].values() if entry)
    return list(study["candidates"]["variant"])


def asked_problems(study: StudyData, part: str) -> dict[str, list[Any]]:
    """Problems of the paper's split: those to ``train`` or to ``test``."""
    return dict(getattr(study.settings.splits[numbers.first_split(study)], part))


def _launched_once(study: StudyData, recipe: Recipe) -> str:
    """How many of the recipe's training rows are single launches."""
    asked = {"variant": [*_variants(recipe), "linear"], **asked_problems(study, "train")}
    rows = study.timed[selected(study.timed, asked)]
    once = int((rows["status"] == STOPPED_EARLY).sum())
    return (
        f" {wording.count(once)} of {wording.count(len(rows))} training rows were stopped after "
        "one launch, which the recipe keeps; the paper repeats each run three times."
        if once
        else ""
    )


def _measured_since(study: StudyData, recipe: Recipe) -> str:
    """GPUs with rows of the recipe's tiles for more test problems than its recorded run had."""
    asked = {"variant": _variants(recipe), **asked_problems(study, "test")}
    rows = study.timed[selected(study.timed, asked)]
    counts = rows[["gpu", *study.problem_columns]].drop_duplicates()["gpu"].value_counts()
    had = {gpu: one[ORACLE]["problems"] for gpu, one in recipe["runs"][GLOBAL]["gpus"].items()}
    told = [
        f"{had[gpu]} of the {counts[gpu]} problems on {gpu}"
        for gpu in had
        if counts.get(gpu, 0) > had[gpu]
    ]
    return f" The run had {wording.listed(told)} that have rows today." if told else ""


def _table(study: StudyData, recipe: Recipe, results: Records) -> Table:
    titles = {name: one["title"] for name, one in recipe["runs"][GLOBAL]["models"].items()}
    models = [*dict.fromkeys(one["model"] for one in results), PRINTED_TREE, ORACLE]
    return beside(
        "Tables 4 and 5 of the paper beside ours; % of runs improved, and speed-up over untiled",
        field("model", lambda name: titles.get(name, BEST_TILE)),
        models,
        *_theirs(results),
        *((_ours(title, found), found) for _, title, found in runs_of(study, recipe)),
    )


def _theirs(results: Records) -> Iterator[Part]:
    """Tables 4 and 5, a part per GPU of theirs."""
    for title in dict.fromkeys(record["title"] for record in results):
        own = {record["model"]: record for record in results if record["title"] == title}
        yield (
            grouped(
                _with_problems(f"paper, {title}", next(iter(own.values())).get("problems")),
                field("improved", "improved_percent", unit="%", number=True),
                field("speed-up", "improvement_coefficient", unit="×", number=True),
                role=THEIRS,
            ),
            own,
        )


def _ours(title: str, found: Mapping[str, Any]) -> list[Field]:
    """Figures of each model on one GPU; the best one is marked, the oracle never."""
    oracle = found.get(ORACLE, {})
    top = max(one[SPEED] for name, one in found.items() if name != ORACLE)
    speed = field("speed-up", SPEED, wording.fixed, "×")
    return grouped(
        _with_problems(title, oracle.get("problems")),
        field("improved", "percent_runs_improved", decimals(2), "%"),
        replace(speed, best=lambda one: one is not oracle and one[SPEED] == top),
    )


def _with_problems(part: str, problems: int | str | None) -> str:
    return part if problems in (None, "") else f"{part}: {wording.plural(int(problems), 'problem')}"


HYPERPARAMETERS = [
    field("model", "title"),
    field("paper", "theirs"),
    field("ours", "ours"),
    field("trials", "trials", wording.count),
    field("search", "seconds_search", significant(2), "s"),
]


def _hyperparameters(models: Mapping[str, Any], facts: Mapping[str, str]) -> Table:
    rows = []
    for name, model in models.items():
        if name.endswith(PRINTED):
            continue
        theirs = facts.get(name, facts.get(f"{name}_as_printed", ""))
        names = [pair.partition("=")[0] for pair in theirs.split()]
        known = model["parameters"]
        found = {one: known[OURS.get(one, one)] for one in names if OURS.get(one, one) in known}
        if not found and not theirs:
            found = {one: known[one] for one in ("minimum", "confidence") if one in known}
        ours = ", ".join(f"{one}={_rounded(value)}" for one, value in found.items())
        rows.append({**model, "theirs": theirs.replace(" ", ", ") or MISSING, "ours": ours})
    return table_of("Hyper-parameters, filter over all times", HYPERPARAMETERS, rows)


def _rounded(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _classifier(run: Mapping[str, Any], facts: Mapping[str, str]) -> str:
    """What J48 with every run as an example and Weka's defaults learns, beside the paper's."""
    if not (found := run["models"].get(f"c45{PRINTED}")):
        return ""
    hits = found["cross_validation"]["accuracy"]
    return (
        f" J48 by Weka's defaults learns from {wording.count(found['examples'])} rows of "
        f"{wording.plural(found['classes'], 'tile')}; pruning leaves "
        f"{wording.plural(found['leaves'], 'leaf', 'leaves')} (paper: {facts['c45_leaves']}), and "
        f"{facts['cross_validation_folds']}-fold cross-validation names {wording.percent(hits)} % "
        "of the tiles (paper: not printed)."
    )
