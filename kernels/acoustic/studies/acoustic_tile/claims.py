"""The paper's recipe on our sweeps, and its conclusions, judged by our figures.

``benchmarks/paper_recipe.py`` writes ``recorded/recipe.json``; nothing here computes it anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records, facts_of
from launchwise.report import scores, wording
from launchwise.report.blocks import MISSING, Block, Fold, Table, Text
from launchwise.report.fields import Field, beside, decimals, field, grouped, table_of
from launchwise.report.measure_again import STOPPED_EARLY
from launchwise.report.scores import scores_on
from launchwise.report.study import StudyData
from launchwise.tables.rows import selected

from . import paper_tables
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


def _problems(study: StudyData, part: str) -> dict[str, list[Any]]:
    """Problems of the paper's split: those to ``train`` or to ``test``."""
    found: dict[str, list[Any]] = getattr(study.settings.splits[scores.first_split(study)], part)
    return found


def _launched_once(study: StudyData, recipe: Recipe) -> str:
    """How many of the recipe's training rows are single launches."""
    kernels = {"variant": [*_variants(recipe), "linear"]}
    rows = study.timed[selected(study.timed, kernels)]
    rows = rows[selected(rows, _problems(study, "train"))]
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
    rows = rows[selected(rows, _problems(study, "test"))]
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


Statement = tuple[str, str]
RARELY_PERCENT = 5.0  # largest share of slowed problems for "hardly ever loses", %

PLACES = {GLOBAL: "with the tiles of our kernels", PAPERS: "with the paper's program"}
"""Runs that judge the paper's conclusions, to where they hold."""


def judged(
    study: StudyData, published: Mapping[str, Records], recipe: Recipe | None
) -> list[Statement]:
    """Conclusions of the paper's section 6, and whether they hold here."""
    facts = facts_of(published)
    found = []
    runs = {} if recipe is None else recipe["runs"]
    for name, place in PLACES.items():
        if run := runs.get(name):
            gpus = run["gpus"]
            found += [
                _best_model(run, place),
                _share(gpus, facts, place),
                _losses(gpus, published["results"], place),
            ]
    return [*found, *_speed_up(study, published), *_earlier_gain(study, facts), *_few_trials(study)]


def _models(figures: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: one for name, one in figures.items() if name != ORACLE and not name.endswith(PRINTED)
    }


def _best_model(run: Mapping[str, Any], place: str) -> Statement:
    gpus = run["gpus"]
    titles = {name: one["title"] for name, one in run["models"].items()}
    ranks, wins = [], 0
    for gpu, figures in gpus.items():
        by_speed = sorted(
            _models(figures).items(), key=lambda pair: -pair[1]["improvement_coefficient"]
        )
        names = [name for name, _ in by_speed]
        first, tree = by_speed[0], names.index("tree") + 1
        wins += tree == 1
        ranks.append(
            f"{gpu}: place {tree} of {len(names)}, {_speed(figures['tree'])} (first: "
            f"{titles[first[0]]}, {_speed(first[1])})"
        )
    verdict = "holds" if wins == len(gpus) else "does not hold" if not wins else "holds in part"
    return (
        f"“The regression tree is the best model on both GPUs” {verdict} {place} and "
        "hyper-parameters that the paper's recipe finds.",
        f"By mean speed-up, {'; '.join(ranks)}.{_best_of_printed(gpus)}",
    )


def _best_of_printed(gpus: Mapping[str, Any]) -> str:
    tree, first = f"tree{PRINTED}", []
    for gpu, figures in gpus.items():
        own = {name: one for name, one in figures.items() if name.endswith(PRINTED)}
        if tree not in own:
            return ""
        speeds = {name: one["improvement_coefficient"] for name, one in own.items()}
        if speeds[tree] == max(speeds.values()):
            first.append(f"{gpu} ({_speed(own[tree])})")
    found = wording.listed(first) if first else "none"
    return f" With the hyper-parameters that the paper prints, the tree is first on: {found}."


def _speed(figures: Mapping[str, float]) -> str:
    return f"{figures['improvement_coefficient']:.3f}×"


def _share(gpus: Mapping[str, Any], facts: Mapping[str, str], place: str) -> Statement:
    least = float(facts.get("improved_percent_claimed", "nan"))
    shares = {gpu: one["tree"]["percent_runs_improved"] for gpu, one in gpus.items()}
    verdict = "holds" if all(share > least for share in shares.values()) else "does not hold"
    listed = "; ".join(
        f"{gpu}: {share:.1f} % of runs (best tile: "
        f"{gpus[gpu][ORACLE]['percent_runs_improved']:.1f} %)"
        for gpu, share in shares.items()
    )
    return (
        f"“The tree improves more than {least:g} % on both” {verdict} {place}.",
        f"{listed}. Where even the best tile loses to untiled, no model can improve.",
    )


def _losses(gpus: Mapping[str, Any], results: Records, place: str) -> Statement:
    trees = {gpu: one["tree"] for gpu, one in gpus.items()}
    listed = "; ".join(
        f"{gpu}: slower than untiled on {tree['percent_slower']:.1f} % of problems, at worst "
        f"{tree['worst_speed_up']:.2f}×"
        for gpu, tree in trees.items()
    )
    rest = wording.listed(
        f"{100 - float(record['improved_percent']):.2f} % ({record['title']})"
        for record in results
        if record["model"] == "tree"
    )
    rare = all(tree["percent_slower"] < RARELY_PERCENT for tree in trees.values())
    return (
        f"“The tree hardly ever loses” {'holds' if rare else 'does not hold'} {place}.",
        f"{listed}. The paper prints no loss; of its runs {rest} were not faster than untiled.",
    )


def _speed_up(study: StudyData, published: Mapping[str, Records]) -> list[Statement]:
    split = scores.first_split(study)
    theirs = wording.listed(
        f"{float(record['improvement_coefficient']):.2f} ({record['title']})"
        for record in published["results"]
        if record["model"] == "tree"
    )
    parts = []
    for gpu in study.gpus:
        limit = paper_tables.walked_limit(study, split, gpu)
        if "blocks" in limit:
            parts.append(
                f"{gpu}: {limit['forced']:.3f} if it must tile, {limit['coefficient']:.3f} if "
                f"untiled may be recommended, {limit['blocks']:.3f} with thread blocks"
            )
    if not parts:
        return []
    return [
        (
            f"Mean speed-ups of {theirs}:",
            f"the best tile of each test problem reaches {'; '.join(parts)} (single rows of the "
            "sweep: pairs hold few walked tiles). What our models reach beyond the second figure "
            "comes from thread blocks, not from a better choice of the paper's tiles.",
        )
    ]


def _earlier_gain(study: StudyData, facts: Mapping[str, str]) -> list[Statement]:
    most = paper_tables.program_gains(study).groupby("gpu", observed=True)["gain"].max()
    if most.empty or "earlier_speed_up" not in facts:
        return []
    listed = "; ".join(f"{gpu}: {gain:.2f}" for gpu, gain in most.items())
    return [
        (
            f"Up to {facts['earlier_speed_up']} times by tiles and unrolling in an earlier work:",
            f"the best tile of the paper's program, relative to untiled, at most {listed}. What "
            "unrolling adds is not measured.",
        )
    ]


def _few_trials(study: StudyData) -> list[Statement]:
    split = scores.first_split(study)
    parts = []
    for gpu in study.whole:
        own = paper_tables.scores_by_model(scores_on(study, split, gpu))
        draws = {
            int(name.removeprefix("random_")): one["fraction"]
            for name, one in own.items()
            if name.startswith("random_")
        }
        if "tree" in own and draws:
            tried = ", ".join(
                f"{100 * draws[count]:.1f} % after {count}" for count in sorted(draws)
            )
            parts.append(
                f"on {gpu} the tree of our default settings reaches "
                f"{100 * own['tree']['fraction']:.1f} "
                f"% of best without a trial; random trials reach {tried}"
            )
    if not parts:
        return []
    return [("“Good tiles for unseen sizes without many trials”:", f"{'; '.join(parts)}.")]


def _kernels(study: StudyData) -> str:
    ours = "CUDA, compiled for a known radius and without fast mathematics"
    theirs = "an OpenMP offload with -ffast-math"
    if not paper_tables.with_program(study):
        return f"The kernels are {ours}; theirs are {theirs}."
    return (
        f"The kernels are {ours}, except openmp, which is as theirs {theirs}: written anew from "
        "the listing, for a known radius, and compiled by a newer Clang."
    )


def differences(study: StudyData, published: Mapping[str, Records]) -> list[str]:
    times = published["best_tiles"]
    slowest = max(times, key=lambda record: float(record["time_s"]))
    return [
        "The source f of equation 1 is left out. The listings of the paper show none either.",
        "One time step is measured, in milliseconds. The paper times whole simulations, up to "
        f"{slowest['time_s']} s, and does not print the number of steps, so times do not compare.",
        _kernels(study),
        f"Our GPUs are {wording.listed(study.gpus)}; {_theirs_here(study, published)}.",
        *_unmeasured(study),
    ]


def _unmeasured(study: StudyData) -> Iterator[str]:
    """Test problems of the paper without rows here."""
    asked = _problems(study, "test")
    kinds = math.prod(len(study.spec.problem[name].values or ()) for name in ("order", "dtype"))
    tested = study.timed[selected(study.timed, asked) & study.timed["gpu"].isin(study.whole)]
    program = tested[tested["variant"] == paper_tables.PROGRAM]
    for name, rows in (("any kernel", tested), ("the paper's program", program)):
        for gpu, own in rows.groupby("gpu", sort=False):
            counts = own[study.problem_columns].drop_duplicates()["n"].value_counts()
            if left := [str(n) for n in asked["n"] if counts.get(n, 0) < kinds]:
                yield (
                    f"On {gpu}, {counts.sum()} of the {kinds * len(asked['n'])} test problems have "
                    f"rows of {name}; of n = {wording.listed(left)} some or all were never "
                    "measured."
                )


def _theirs_here(study: StudyData, published: Mapping[str, Records]) -> str:
    """Which of the paper's GPUs were measured here, by the names that drivers give."""

    def squeezed(name: str) -> str:
        return name.lower().replace(" ", "")

    titles = dict.fromkeys(record["title"] for record in published["results"])
    names = [squeezed(study.profiles[gpu].device_name) for gpu in study.gpus]
    here = [title for title in titles if any(squeezed(title) in name for name in names)]
    if not here:
        return "none of theirs was measured here"
    return f"of theirs, {wording.listed(here)} {'was' if len(here) == 1 else 'were'} measured here"
