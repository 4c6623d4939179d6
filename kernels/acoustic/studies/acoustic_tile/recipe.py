"""Results of the paper's recipe on our sweeps: tables of the recorded runs.

``recorded/recipe.json`` is written by ``benchmarks/paper_recipe.py``; nothing here computes anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
from launchwise.report.fields import Field, beside, decimals, field, grouped, table_of
from launchwise.report.study import StudyData

from .paper_tables import PRINTED_SPEED, printed_results, with_problems

FILE = Path("recorded", "recipe.json")
GLOBAL, PER_PROBLEM, DEFAULT = "recipe", "recipe_filter_per_problem", "default_models"
"""Runs: the recipe as published, with one filter per problem, and our default models."""

PAPERS = "openmp"  # run as published, on rows of the paper's program

PROGRAM = {
    PAPERS: "the paper's program, one Tukey filter over all times",
    "openmp_filter_per_problem": "the paper's program, one Tukey filter per problem",
}
"""Runs on rows of the paper's program, where a GPU has them, to their words."""

PRINTED = "_printed"  # end of the name of a model with the hyper-parameters that the paper prints

ORACLE, BEST_TILE = "oracle", "best tile of each problem"
OURS = {"n_neighbors": "k"}  # printed hyper-parameter to our name, where they differ

Recipe = Mapping[str, Any]


def read_recipe(study: StudyData) -> Recipe | None:
    """The recorded runs; None where the study's folder holds none."""
    path = None if study.folder is None else study.folder / FILE
    return read_json(path) if path is not None and path.is_file() else None


def blocks(recipe: Recipe, results: Records, facts: Mapping[str, str]) -> list[Block]:
    """The recipe's figures beside the paper's, its hyper-parameter search, and its provenance."""
    runs = recipe["runs"]
    overlay = recipe["overlay"]
    counts = runs[GLOBAL]["training"]
    removed = counts["removed"]
    versions = recipe["versions"]
    trials = overlay["search"]["trials"]
    return [
        Text(
            "The recipe of config/paper.yaml on our sweeps: the paper's tiles as "
            f"{_variants(recipe)}, "
            f"its eleven features, raw times, unscaled kNN, {trials} trials per model that "
            "minimise "
            "the error of predicted times, then the fastest predicted tile. Trained on the "
            "sizes of "
            "the paper, tested on its test sizes."
        ),
        _table(recipe, GLOBAL, results, "one Tukey filter over all times, as published"),
        _table(recipe, PER_PROBLEM, results, "one Tukey filter per problem, on log times"),
        _table(recipe, DEFAULT, results, "our default models on the paper's tiles alone"),
        *(_table(recipe, run, results, words) for run, words in PROGRAM.items() if run in runs),
        Text(
            "Improved: share of runs faster than untiled (of the program: than its own loops "
            "without tiles). Speed-up: mean of untiled time over time "
            "of the recommendation, the paper's improvement coefficient. “Best tile” knows every "
            "measured time and may answer untiled: no model can reach more with these tiles. "
            "Single rows of the sweep judged this run, its models and its best tile: pairs hold "
            "few walked tiles. "
            f"The filter over all times removes {wording.count(removed['global']['rows'])} of "
            f"{wording.count(counts['measured'])} training rows "
            f"({removed['global']['percent']:.1f} %; the paper {facts['runs_removed_percent']} %) "
            f"and all rows of {wording.plural(removed['global']['problems_lost'], 'problem')}; the "
            f"filter per problem removes {wording.count(removed['problem']['rows'])}.",
            "note",
        ),
        Fold(
            "Hyper-parameters that the searches found, beside the paper's",
            [
                _hyperparameters(recipe, facts),
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
            f"{_commits(runs)} by benchmarks/paper_recipe.py, "
            f"{wording.seconds(sum(run['wall_s'] for run in runs.values()) / 60)} minutes for all "
            f"{wording.count(len(runs))} runs. "
            f"scikit-learn {versions.get('scikit-learn', '–')}, XGBoost "
            f"{versions.get('xgboost-cpu', '–')}, LightGBM {versions.get('lightgbm', '–')}.",
            "note",
        ),
    ]


def _commits(runs: Mapping[str, Any]) -> str:
    by_commit: dict[str, list[str]] = {}
    for name, run in runs.items():
        by_commit.setdefault(wording.short(run["commit"]), []).append(name)
    if len(by_commit) == 1:
        return next(iter(by_commit))
    return wording.listed(f"{commit} ({', '.join(names)})" for commit, names in by_commit.items())


def _variants(recipe: Recipe) -> str:
    study = next(entry for entry in recipe["overlay"]["studies"].values() if entry)
    return wording.listed(study["candidates"]["variant"])


def _table(recipe: Recipe, run: str, results: Records, words: str) -> Table:
    here = recipe["runs"][run]["gpus"]
    models = recipe["runs"][run]["models"]
    searched = [name for name in dict.fromkeys(one["model"] for one in results) if name in models]
    printed = [name for name in models if name.endswith(PRINTED)]
    return beside(
        f"Tables 4 and 5 of the paper beside ours: {words}",
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


def _hyperparameters(recipe: Recipe, facts: Mapping[str, str]) -> Table:
    models = recipe["runs"][GLOBAL]["models"]
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
