"""Sections of the acoustic study: the published tables beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.experiment.published import Records, facts_of
from launchwise.report import scores, wording
from launchwise.report.blocks import MISSING, Block, Bullets, Fold, Section, Table, Text
from launchwise.report.fields import (
    Field,
    Shown,
    beside,
    decimals,
    field,
    grouped,
    percents,
    table_of,
)
from launchwise.report.scores import scores_on
from launchwise.report.study import StudyData

from . import claims, paper_tables, recipe
from .paper_tables import PRINTED_SPEED

NEEDED = {"results", "facts", "best_tiles"}  # published tables that the section needs


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    if not published.keys() >= NEEDED:
        return []
    recorded = recipe.read_recipe(study)
    found = [paper(study, published, recorded)]
    if recorded is not None:
        blocks = recipe.blocks(study, recorded, published["results"], facts_of(published))
        found.append(Section(f"{study.name}-recipe", "The paper's recipe on our sweeps", blocks))
    return found


def paper(
    study: StudyData, published: Mapping[str, Records], recorded: recipe.Recipe | None
) -> Section:
    """The paper's tables beside ours, its conclusions, and its inconsistencies."""
    results = published["results"]
    facts = facts_of(published)
    gpu = paper_tables.recorded_gpu(study)
    found: list[Block] = [
        Text(
            f"Published: {results[0]['source'].rpartition(', table')[0]}. Their figures are from "
            "other GPUs, an OpenMP kernel and their own tiles: compare trends, not times. Columns "
            "marked “paper” are theirs, columns marked “ours” are measured by this pipeline."
        ),
        _beside(study, results),
        Text(
            "Improved: the paper counts its three runs per problem; we show runs and problems. "
            "Coefficient: mean of baseline time over time of the recommendation. All variants: "
            "thread blocks are among the candidates, which the paper does not have as a kernel of "
            "its own; models of the paper's tiles alone, one of which a thread walks as in the "
            "paper's listing, stand under “The paper's recipe on our sweeps”. The last row knows "
            "every measured time. Times here are those of pairs where a configuration was in any, "
            "else of the sweep; elsewhere in this section they are the sweep's.",
            "note",
        ),
        *_program(study, results),
        Bullets(claims.judged(study, published, recorded)),
        _leaves(study, facts, recorded),
        Text(
            "The paper's tree learns from every run that its filter leaves, with the run's tile as "
            "class. Our default learns only from rows within "
            f"{study.settings.near_best_percent:g} % of the best of their problem. The last column "
            "counts as the paper does: every training row is an example, with Weka's defaults and "
            f"the paper's tiles alone.{_examples(recipe.classifier(recorded))} The paper does not "
            "print the tree, its inputs or its accuracy.",
            "note",
        ),
        Text("Inconsistencies in the paper:"),
        Bullets([row["conflict"] for row in published.get("contradictions", [])]),
        Text("Differences in measurement:"),
        Bullets(claims.differences(study, published)),
        Fold("Tiles of the paper, and features", _tables(study, published, gpu)),
    ]
    return Section(f"{study.name}-paper", "Comparison with the paper", found)


def _program(study: StudyData, results: Records) -> list[Block]:
    found = paper_tables.program(study)
    if found is None:
        return []
    theirs = wording.listed(
        f"{float(one['improvement_coefficient']):.2f} ({one['title']})"
        for one in results
        if one["model"] == "tree"
    )
    return [
        found,
        Text(
            "Variant openmp: the paper's listing in C, compiled by Clang, timed by the host's "
            "clock as its users see it. Gains are over its own loops without tiles, as in the "
            f"paper, whose tree recommends tiles that gain {theirs} in the mean. The variant "
            "omp_tile deals out tiles alike, in CUDA: it is another kernel. The last column "
            "compares untiled loops: time of the program divided by that of our CUDA kernel "
            "(linear), which CUDA events time. Times are single rows of the sweep.",
            "note",
        ),
    ]


def _tables(study: StudyData, published: Mapping[str, Records], gpu: str) -> list[Block]:
    shown = list(dict.fromkeys([gpu, *paper_tables.with_program(study)]))
    tiles = [paper_tables.best_tiles(study, published, one) for one in shown]
    cells = [cell for table in tiles for row in table.rows for cell in row.cells]
    once = sum(cell.detail == paper_tables.ONCE for cell in cells)
    said = f" {wording.plural(once, 'tile')} of theirs left out: a single launch." if once else ""
    return [
        *tiles,
        Text(
            "The third number of a printed tile is the contiguous axis, our x. “–”: not "
            f"measured. Speed-ups of ours are of single rows of the sweep.{said}",
            "note",
        ),
        paper_tables.features(study, published),
    ]


def _beside(study: StudyData, results: Records) -> Table:
    """Tables 4 and 5: theirs, and ours with all variants."""
    split, limit = scores.first_split(study), paper_tables.LIMIT
    names = list(dict.fromkeys(record["model"] for record in results))
    most: dict[str, str] = {}
    for one in results:
        most[one["title"]] = max(most.get(one["title"], ""), one[PRINTED_SPEED])
    coefficient = field(
        "coefficient",
        PRINTED_SPEED,
        unit="× baseline",
        number=True,
        best=lambda one: one[PRINTED_SPEED] == most[one["title"]],
    )
    ours = []
    for gpu in study.whole:
        own = paper_tables.scores_by_model(scores_on(study, split, gpu))
        if own:
            limits = {limit: own["oracle"]} if "oracle" in own else {}
            ours.append((_ours(gpu, own, names), {**own, **limits}))
    return beside(
        "The paper's tables 4 and 5 beside ours, test sizes of the paper",
        field("model", lambda name: limit if name == limit else study.title(name)),
        [*names, limit],
        *paper_tables.printed_results(results, coefficient),
        *ours,
    )


def _ours(gpu: str, scores: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> list[Field]:
    """Figures of each model on one of our GPUs, all variants among the candidates."""
    top = max((scores[name]["coefficient"] for name in names if name in scores), default=0)
    asked = scores.get("oracle", {}).get("problems")
    return grouped(
        paper_tables.with_problems(f"ours, {gpu}, all variants", asked),
        field("improved", "improved_runs", percents(2), "% of runs"),
        field("improved", "improved", percents(2), "% of problems"),
        field(
            "coefficient",
            "coefficient",
            decimals(2),
            "× baseline",
            best=lambda got: got["coefficient"] == top,
        ),
    )


def _examples(found: Mapping[str, Any]) -> str:
    """What a tree of all runs learns from and what pruning leaves of it; empty if not recorded."""
    if not found:
        return ""
    hits = found["cross_validation"]["accuracy"]
    return (
        f" These are {wording.count(found['examples'])} examples of "
        f"{wording.plural(found['classes'], 'tile')}; pruning leaves "
        f"{wording.plural(found['leaves'], 'leaf', 'leaves')}, and cross-validation names "
        f"{wording.percent(hits)} % of the tiles."
    )


def _leaves(study: StudyData, facts: dict[str, str], recorded: recipe.Recipe | None) -> Table:
    split = scores.first_split(study)
    folds = scores.folds_of(study, "c45", split)
    ours: Mapping[str, Any] = folds[0] if folds else {}
    counted = recipe.classifier(recorded)
    rare = ours.get("rare_classes")
    cross = f"{facts['cross_validation_folds']}-fold cross-validation"
    left = wording.count(int(facts["runs_left_as_printed"]))

    def figure(title: str, theirs: str, shown: Shown, *keys: str) -> tuple[str, ...]:
        return title, theirs, *(shown(_inside(said, keys)) for said in (ours, counted))

    near = f"{cross}: within {study.settings.near_best_percent:g} % of the best (%)"
    score, trials = "cross_validation", facts["search_trials"]
    count, percent = wording.count, wording.percent
    rows = [
        figure("leaves of the tree", facts["c45_leaves"], count, "leaves"),
        figure("classes (configurations) that it can answer", MISSING, count, "classes"),
        (
            "classes with fewer than 3 training examples",
            MISSING,
            count(None if rare is None else len(rare)),
            MISSING,
        ),
        figure(f"{cross}: very best (%)", MISSING, percent, score, "accuracy"),
        figure(near, MISSING, percent, score, "accuracy_near_best"),
        figure(f"{cross}: fraction of the best", MISSING, wording.fixed, score, "fraction"),
        figure("rows that pass the Tukey filter", left, count, "rows"),
        figure("rows that the tree learns from", left, count, "examples"),
        figure("trials of each search", trials, count, "trials"),
    ]
    caption = "The paper's J48 beside our C4.5 (– where the paper prints none)"
    return table_of(caption, LEAVES, rows)


LEAVES = [
    field("figure", 0),
    field("paper", 1, number=True),
    field("ours", 2, unit="default", number=True),
    field("ours", 3, unit="every run an example", number=True),
]


def _inside(value: Any, keys: Sequence[str]) -> Any:
    """What nested mappings hold; None where one lacks a key."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
