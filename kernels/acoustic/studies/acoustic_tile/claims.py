"""Conclusions of the paper, judged by our figures, and how its setting differs from ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Table
from launchwise.report.fields import of_texts
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import selected

from .paper_tables import PROGRAM
from .recipe import ORACLE, PRINTED, SPEED, TREE, Recipe, asked_problems, runs_of

RARELY_PERCENT = 5.0  # largest share of slowed problems for "hardly ever loses", %

Figures = Mapping[str, Mapping[str, float]]  # of one run on one GPU, by model
Judged = tuple[str, bool]  # what is measured, and whether the conclusion holds there


def judged(study: StudyData, published: Mapping[str, Records], recipe: Recipe) -> Table:
    """Conclusions of the paper's section 6: a column per kernel and GPU of the recipe's runs."""
    facts = facts_of(published)
    least = float(facts.get("improved_percent_claimed", "nan"))
    runs = {title: figures for _, title, figures in runs_of(study, recipe)}
    trees = [one for one in published["results"] if one["model"] == TREE]
    improved = [float(one["improved_percent"]) for one in trees]

    def row(claim: str, paper: str, of: Callable[[Figures], Judged]) -> list[str]:
        found = [of(figures) for figures in runs.values()]
        held = f"{sum(holds for _, holds in found)} of {len(found)}"
        return [claim, paper, *(text for text, _ in found), held]

    rows = [
        row("The tree is the best model: place by speed-up", "first on both", _place),
        row(
            f"It improves more than {least:g} %: % of runs",
            " and ".join(f"{one:.2f}" for one in improved),
            lambda figures: _share(figures, least),
        ),
        row(
            f"It hardly ever loses (below {RARELY_PERCENT:g} %): slower problems; worst",
            " and ".join(f"{100 - one:.2f}" for one in improved) + " % of runs not faster",
            _losses,
        ),
    ]
    caption = (
        "Conclusions on the regression tree, paper: "
        f"{wording.listed(one['title'] for one in trees)}"
    )
    return of_texts(caption, ("conclusion", "paper", *runs, "holds on"), rows)


def _place(figures: Figures) -> Judged:
    """Place of the tree among the models whose hyper-parameters were searched for, as its own."""
    names = [one for one in figures if one != ORACLE and not one.endswith(PRINTED)]
    faster = sum(figures[name][SPEED] > figures[TREE][SPEED] for name in names)
    return f"{faster + 1} of {len(names)}", not faster


def _share(figures: Figures, least: float) -> Judged:
    share = figures[TREE]["percent_runs_improved"]
    return f"{share:.1f}", share > least


def _losses(figures: Figures) -> Judged:
    tree = figures[TREE]
    text = f"{tree['percent_slower']:.1f} %; {tree['worst_speed_up']:.2f}×"
    return text, tree["percent_slower"] < RARELY_PERCENT


def differences(study: StudyData, published: Mapping[str, Records]) -> list[str]:
    times = published["best_tiles"]
    slowest = max(times, key=lambda record: float(record["time_s"]))
    return [
        "The source f of equation 1 is left out; the paper's listings show none either.",
        f"The paper times whole simulations, up to {slowest['time_s']} s, of an unknown number of "
        "steps; here one step is measured, so times do not compare.",
        "Theirs is an OpenMP offload with -ffast-math. Ours of that kind (openmp) is written anew "
        "from the listing, for a known radius, and compiled by a newer Clang; the other kernels "
        "are CUDA without fast mathematics.",
        "The paper prints neither its tree nor a list of the tiles that it tried.",
        _unmeasured(study),
    ]


def _unmeasured(study: StudyData) -> str:
    """Test problems of the paper that have rows here."""
    asked = asked_problems(study, "test")
    kinds = math.prod(len(study.spec.problem[name].values or ()) for name in ("order", "dtype"))
    tested = study.timed[selected(study.timed, asked) & study.timed["gpu"].isin(study.whole)]
    said = []
    for name, rows in (("any", tested), ("the paper's", tested[tested["variant"] == PROGRAM])):
        for gpu, own in rows.groupby("gpu", sort=False):
            problems = len(own[study.problem_columns].drop_duplicates())
            said.append(f"{problems} with rows of {name} kernel on {gpu}")
    return f"Of {kinds * len(asked['n'])} test problems: {wording.listed(said)}."
