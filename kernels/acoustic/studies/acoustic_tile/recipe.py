"""The paper's recipe on our sweeps: its figures, its search, its provenance.

``benchmarks/paper_recipe.py`` writes ``recorded/recipe.json``; nothing here computes it anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records
from launchwise.report import scores, wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
from launchwise.report.fields import Field, beside, decimals, field, grouped, table_of
from launchwise.report.measure_again import STOPPED_EARLY
from launchwise.report.study import StudyData
from launchwise.tables.rows import selected

from .paper_tables import PRINTED_SPEED, printed_results, with_problems

FILE = Path("recorded", "recipe.json")
GLOBAL = "recipe"  # run of the recipe as published, on rows of our kernels
PAPERS = "openmp"  # run as published, on rows of the paper's program

PRINTED = "_printed"  # end of the name of a model with the hyper-parameters that the paper prints

ORACLE, BEST_TILE = "oracle", "best tile of each problem"
OURS = {"n_neighbors": "k"}  # printed hyper-parameter to our name, where they differ

Recipe = Mapping[str, Any]


def read_recipe(study: StudyData) -> Recipe | None:
    """The recorded runs; None where the study's folder holds none."""
    path = None if study.folder is None else study.folder / FILE
    return read_json(path) if path is not None and path.is_file() else None


def blocks(
    study: StudyData, recipe: Recipe, results: Records, facts: Mapping[str, str]
) -> list[Block]:
    """The recipe's figures beside the paper's, its hyper-parameter search, and its provenance."""
    run, versions = recipe["runs"][GLOBAL], recipe["versions"]
    counts = run["training"]
    removed = counts["removed"]["global"]
    return [
        Text(
            "The recipe of config/paper.yaml on our sweeps: the paper's tiles as "
            f"{wording.listed(_variants(recipe))}, its eleven features, raw times, unscaled kNN, "
            f"{recipe['overlay']['search']['trials']} trials per model that minimise the error of "
            "predicted times, then the fastest predicted tile. Trained on the sizes of the paper, "
            "tested on its test sizes."
        ),
        _table(run, results),
        Text(
            "Improved: share of runs faster than untiled. Speed-up: mean of untiled time over time "
            "of the recommendation, the paper's improvement coefficient. “Best tile” knows every "
            "measured time and may answer untiled: no model can reach more with these tiles. "
            "Single rows of the sweep judged this run, its models and its best tile: pairs hold "
            "few walked tiles. "
            f"The filter over all times removes {wording.count(removed['rows'])} of "
            f"{wording.count(counts['measured'])} training rows "
            f"({removed['percent']:.1f} %; the paper {facts['runs_removed_percent']} %) "
            f"and all rows of {wording.plural(removed['problems_lost'], 'problem')}."
            f"{_launched_once(study, recipe)}{_measured_since(study, recipe)}",
            "note",
        ),
        Fold(
            "Hyper-parameters that the searches found, beside the paper's",
            [
                _hyperparameters(run["models"], facts),
                Text(
                    f"Seed {recipe['seed']}; searches by Optuna {versions.get('optuna', '–')}, one "
                    "core. The paper does not name its measure of precision; ours is the mean "
                    "absolute percentage error on held-out problems.",
                    "note",
                ),
            ],
        ),
        Text(
            f"Recorded until {wording.moment(recipe['measured_at'])} at commit "
            f"{wording.short(run['commit'])} by benchmarks/paper_recipe.py, "
            f"{wording.seconds(run['wall_s'] / 60)} minutes. "
            f"scikit-learn {versions.get('scikit-learn', '–')}, XGBoost "
            f"{versions.get('xgboost-cpu', '–')}, LightGBM {versions.get('lightgbm', '–')}.",
            "note",
        ),
    ]


def _variants(recipe: Recipe) -> list[str]:
    """Variants of the recipe's tiles."""
    study = next(entry for entry in recipe["overlay"]["studies"].values() if entry)
    return list(study["candidates"]["variant"])


def asked_problems(study: StudyData, part: str) -> dict[str, list[Any]]:
    """Problems of the paper's split: those to ``train`` or to ``test``."""
    found: dict[str, list[Any]] = getattr(study.settings.splits[scores.first_split(study)], part)
    return found


def _launched_once(study: StudyData, recipe: Recipe) -> str:
    """How many of the recipe's training rows are single launches."""
    kernels = {"variant": [*_variants(recipe), "linear"]}
    rows = study.timed[selected(study.timed, kernels)]
    rows = rows[selected(rows, asked_problems(study, "train"))]
    once = int((rows["status"] == STOPPED_EARLY).sum())
    return (
        f" {wording.count(once)} of {wording.count(len(rows))} training rows were stopped after "
        "one launch, which the recipe keeps; the paper repeats each run three times."
        if once
        else ""
    )


def _measured_since(study: StudyData, recipe: Recipe) -> str:
    """GPUs with rows of the recipe's tiles for more test problems than its recorded run had."""
    rows = study.timed[selected(study.timed, {"variant": _variants(recipe)})]
    rows = rows[selected(rows, asked_problems(study, "test"))]
    counts = rows[["gpu", *study.problem_columns]].drop_duplicates()["gpu"].value_counts()
    had = {gpu: one[ORACLE]["problems"] for gpu, one in recipe["runs"][GLOBAL]["gpus"].items()}
    told = [
        f"{had[gpu]} of the {counts[gpu]} problems on {gpu}"
        for gpu in had
        if counts.get(gpu, 0) > had[gpu]
    ]
    return f" The run had {wording.listed(told)} that have rows today." if told else ""


def _table(run: Mapping[str, Any], results: Records) -> Table:
    here, models = run["gpus"], run["models"]
    searched = [name for name in dict.fromkeys(one["model"] for one in results) if name in models]
    printed = [name for name in models if name.endswith(PRINTED)]
    return beside(
        "Tables 4 and 5 of the paper beside ours: one Tukey filter over all times, as published",
        field("model", lambda name: models[name]["title"] if name in models else BEST_TILE),
        [*searched, *printed, ORACLE],
        *printed_results(results, field("speed-up", PRINTED_SPEED, unit="× untiled", number=True)),
        *((_ours(f"ours, {gpu}", found), found) for gpu, found in here.items()),
    )


def _ours(title: str, found: Mapping[str, Any]) -> list[Field]:
    """Figures of each model on one GPU; the best one is marked, the oracle never."""
    key = "improvement_coefficient"
    oracle = found.get(ORACLE, {})
    top = max(one[key] for name, one in found.items() if name != ORACLE)
    speed = field("speed-up", key, wording.fixed, "× untiled")
    return grouped(
        with_problems(title, oracle.get("problems")),
        field("improved", "percent_runs_improved", decimals(2), "% of runs"),
        replace(speed, best=lambda one: one is not oracle and one[key] == top),
    )


HYPERPARAMETERS = [
    field("model", "title"),
    field("paper", "theirs"),
    field("ours", "ours"),
    field("trials", "trials", wording.count),
    field("search", "seconds_search", wording.seconds, "s"),
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


def classifier(recipe: Recipe | None) -> Mapping[str, Any]:
    """Training record of J48 with every run as an example and Weka's defaults, if recorded."""
    if recipe is None:
        return {}
    found: Mapping[str, Any] = recipe["runs"][GLOBAL]["models"].get(f"c45{PRINTED}", {})
    return found
