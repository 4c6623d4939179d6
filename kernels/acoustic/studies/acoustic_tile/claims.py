"""Conclusions of the paper, judged by our figures, and how its setting differs from ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from launchwise.experiment.published import Records, facts_of
from launchwise.report import scores, wording
from launchwise.report.scores import scores_on
from launchwise.report.study import StudyData
from launchwise.tables.rows import selected

from . import paper_tables
from .recipe import GLOBAL, ORACLE, PAPERS, PRINTED, Recipe, asked_problems

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
    asked = asked_problems(study, "test")
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
