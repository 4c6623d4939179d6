"""Sections of the acoustic study: the published tables beside ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launchwise.experiment.published import Records, facts_of
from launchwise.report import models, wording
from launchwise.report.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Fold,
    Row,
    Section,
    Table,
    Text,
    table,
)
from launchwise.report.numbers import scores_on
from launchwise.report.single_launches import settings_to_repeat
from launchwise.report.study import StudyData

from . import paper_tables, recipe
from .claims import differences, judged

NEEDED = {"results", "facts", "gpus", "best_tiles"}
"""Published tables that the section needs."""


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """The study's own sections; none if a table is missing."""
    if not published.keys() >= NEEDED:
        return []
    recorded = recipe.read_recipe(study)
    found = [paper(study, published, recorded)]
    if recorded is not None:
        blocks = recipe.blocks(recorded, published["results"], facts_of(published))
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
        Bullets(judged(study, published, recorded)),
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
        Bullets(differences(study, published)),
        Fold("Best tiles, features, hardware and environment", _tables(study, published, gpu)),
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
        *(block for one in shown for block in _again(study, published, one)),
        paper_tables.features(study, published),
        Text(paper_tables.unvaried(study, published), "note"),
        paper_tables.hardware(published),
        paper_tables.environment(study, published),
    ]


def _again(study: StudyData, published: Mapping[str, Records], gpu: str) -> list[Block]:
    rows = paper_tables.tiles_once(study, published, gpu)
    if rows.empty:
        return []
    label = f"{gpu}: {wording.plural(len(rows), 'row')} of one launch, measured again by"
    return [Text(label, "label"), settings_to_repeat(gpu, study.spec, rows)]


def _beside(study: StudyData, results: Records) -> Table:
    gpus = list(dict.fromkeys(record["title"] for record in results))
    theirs = {(record["title"], record["model"]): record for record in results}
    split = models.first_split(study)
    scores = {
        gpu: paper_tables.scores_by_model(scores_on(study, split, gpu)) for gpu in study.whole
    }
    here = [gpu for gpu, found in scores.items() if found]
    names = list(dict.fromkeys(record["model"] for record in results))
    columns = [Column("model", number=False)]
    for gpu in gpus:
        part = paper_tables.with_problems(f"paper, {gpu}", _printed_problems(results, gpu))
        columns += [
            Column("improved", "% of runs", group=part),
            Column("coefficient", "× baseline", group=part),
        ]
    for gpu in here:
        asked = scores[gpu].get("oracle", {}).get("problems")
        part = paper_tables.with_problems(f"ours, {gpu}, all variants", asked)
        columns += [
            Column("improved", "% of runs", group=part),
            Column("improved", "% of problems", group=part),
            Column("coefficient", "× baseline", group=part),
        ]
    top = {
        gpu: max(
            (scores[gpu][name]["coefficient"] for name in names if name in scores[gpu]), default=0
        )
        for gpu in here
    }
    rows = []
    for name in [*names, paper_tables.LIMIT]:
        cells = [Cell(paper_tables.LIMIT if name == paper_tables.LIMIT else study.title(name))]
        for gpu in gpus:
            record = theirs.get((gpu, name), {})
            printed = record.get("improvement_coefficient", "–")
            most = max(r["improvement_coefficient"] for r in results if r["title"] == gpu)
            cells += [Cell(record.get("improved_percent", "–"), role="theirs")]
            cells += [Cell(printed, best=printed == most, role="theirs")]
        for gpu in here:
            got = scores[gpu].get("oracle" if name == paper_tables.LIMIT else name, {})
            value = got.get("coefficient")
            cells += [
                Cell(wording.percent(got.get("improved_runs"), 2)),
                Cell(wording.percent(got.get("improved"), 2)),
                Cell(wording.fixed(value, 2), best=value is not None and value == top[gpu]),
            ]
        rows.append(Row(cells))
    return Table("The paper's tables 4 and 5 beside ours, test sizes of the paper", columns, rows)


def _printed_problems(results: Records, title: str) -> str | None:
    return next((one.get("problems") for one in results if one["title"] == title), None)


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
    split = models.first_split(study)
    folds = models.folds_of(study, "c45", split)
    ours: Mapping[str, Any] = folds[0] if folds else {}
    counted = recipe.classifier(recorded)
    rare = ours.get("rare_classes")
    cross = f"{facts['cross_validation_folds']}-fold cross-validation"
    left = wording.count(int(facts["runs_left_as_printed"]))

    def both(shown: Any, *keys: str) -> list[str]:
        cells = []
        for said in (ours, counted):
            value: Any = said
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            cells.append(shown(value))
        return cells

    near = f"{cross}: within {study.settings.near_best_percent:g} % of the best (%)"
    score = "cross_validation"
    rows = [
        ["leaves of the tree", facts["c45_leaves"], *both(wording.count, "leaves")],
        ["classes (configurations) that it can answer", "–", *both(wording.count, "classes")],
        [
            "classes with fewer than 3 training examples",
            "–",
            wording.count(None if rare is None else len(rare)),
            "–",
        ],
        [f"{cross}: very best (%)", "–", *both(wording.percent, score, "accuracy")],
        [near, "–", *both(wording.percent, score, "accuracy_near_best")],
        [f"{cross}: fraction of the best", "–", *both(wording.fixed, score, "fraction")],
        ["rows that pass the Tukey filter", left, *both(wording.count, "rows")],
        ["rows that the tree learns from", left, *both(wording.count, "examples")],
        ["trials of each search", facts["search_trials"], *both(wording.count, "trials")],
    ]
    columns = [
        Column("figure", number=False),
        Column("paper"),
        Column("ours", "default"),
        Column("ours", "every run an example"),
    ]
    return table("The paper's J48 beside our C4.5 (– where the paper prints none)", columns, rows)
