"""What only the acoustic study has: the published tables beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
from launchwise.report.numbers import records, scores_on
from launchwise.report.published import Records, facts_of
from launchwise.report.study import StudyData

NEEDED = {"results", "facts", "gpus", "best_tiles"}
"""Published tables that the section stands on."""


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """The sections that the study has and others have not: none where a table is missing."""
    return [paper(study, published)] if published.keys() >= NEEDED else []


def paper(study: StudyData, published: Mapping[str, Records]) -> Section:
    """The paper's tables beside ours, and what does not add up in it."""
    results = published["results"]
    facts = facts_of(published)
    found: list[Block] = [
        Text(
            f"Published: {results[0]['source'].rpartition(', table')[0]}. Their figures are from "
            "other GPUs, an OpenMP kernel and their own tiles: a yardstick and not a race. Columns "
            "marked “paper” are theirs, columns marked “ours” are measured by this pipeline."
        ),
        _beside(study, results),
        Text(
            "Improved: the paper counts its three runs a problem; we show runs and problems. "
            "Coefficient: mean of baseline time over time of the recommendation.",
            "note",
        ),
        _leaves(study, facts),
        Text(
            "The paper's tree learns from every row that the fences leave, each with its tile as "
            f"class. Ours learns only from rows within {study.settings.near_best_percent:g} % of "
            "the best of their problem: the two numbers of leaves do not count alike.",
            "note",
        ),
        Bullets(_remarks(results, facts, study.title)),
        Fold("The paper's hardware and best tiles", _tables(published)),
    ]
    return Section(f"{study.name}-paper", "Beside the paper", found)


def _beside(study: StudyData, results: Records) -> Table:
    gpus = list(dict.fromkeys(record["title"] for record in results))
    theirs = {(record["title"], record["model"]): record for record in results}
    split = models.first_split(study)
    ours: dict[tuple[str, str], Any] = {}
    for gpu in study.whole:
        for record in records(scores_on(study, split, gpu)):
            ours[gpu, record["model"]] = record
    here = [gpu for gpu in study.whole if any(key[0] == gpu for key in ours)]
    columns = [Column("model", number=False)]
    for gpu in gpus:
        columns += [
            Column("improved", "% of runs", group=f"paper, {gpu}"),
            Column("coefficient", "× baseline", group=f"paper, {gpu}"),
        ]
    for gpu in here:
        columns += [
            Column("improved", "% of runs", group=f"ours, {gpu}"),
            Column("improved", "% of problems", group=f"ours, {gpu}"),
            Column("coefficient", "× baseline", group=f"ours, {gpu}"),
        ]
    names = list(dict.fromkeys([record["model"] for record in results]))
    top = {
        gpu: max(
            (ours[gpu, name]["coefficient"] for name in names if (gpu, name) in ours), default=0
        )
        for gpu in here
    }
    rows_ = []
    for name in names:
        cells = [Cell(study.title(name))]
        for gpu in gpus:
            record = theirs.get((gpu, name), {})
            value = record.get("improvement_coefficient", "–")
            best = value == max(r["improvement_coefficient"] for r in results if r["title"] == gpu)
            cells += [Cell(record.get("improved_percent", "–"), role="theirs")]
            cells += [Cell(value, best=best, role="theirs")]
        for gpu in here:
            got = ours.get((gpu, name), {})
            value = got.get("coefficient")
            cells += [
                Cell(wording.percent(got.get("improved_runs"), 2)),
                Cell(wording.percent(got.get("improved"), 2)),
                Cell(wording.fixed(value, 2), best=value is not None and value == top[gpu]),
            ]
        rows_.append(Row(cells))
    return Table("The paper's tables 4 and 5 beside ours, test sizes of the paper", columns, rows_)


def _leaves(study: StudyData, facts: dict[str, str]) -> Table:
    split = models.first_split(study)
    folds = models.folds_of(study, "c45", split)
    said: Mapping[str, Any] = folds[0] if folds else {}
    score = said.get("cross_validation", {})
    rare = said.get("rare_classes")
    cross = f"{facts['cross_validation_folds']}-fold cross-validation"
    left = wording.count(int(facts["runs_left_as_printed"]))
    rows = [
        ["leaves of the tree", facts["c45_leaves"], wording.count(said.get("leaves"))],
        ["classes (configurations) that it can answer", "–", wording.count(said.get("classes"))],
        [
            "classes with fewer than 3 training examples",
            "–",
            wording.count(None if rare is None else len(rare)),
        ],
        [f"{cross}: very best (%)", "–", wording.percent(score.get("accuracy"))],
        [
            f"{cross}: within {study.settings.near_best_percent:g} % of the best (%)",
            "–",
            wording.percent(score.get("accuracy_near_best")),
        ],
        [f"{cross}: fraction of the optimum", "–", wording.fixed(score.get("fraction"))],
        ["rows that the fences leave", left, wording.count(said.get("rows"))],
        ["rows that the tree learns from", left, wording.count(said.get("examples"))],
        ["trials of each search", facts["search_trials"], wording.count(said.get("trials"))],
    ]
    columns = [Column("figure", number=False), Column("paper"), Column("ours")]
    return table("The paper's J48 beside our C4.5 (– where the paper prints none)", columns, rows)


def _remarks(results: Records, facts: dict[str, str], title: Callable[[str], str]) -> list[str]:
    """What does not add up in the paper, checked against its own figures."""
    total, gone = int(facts["training_runs"]), int(facts["runs_removed"])
    found = []
    for record in results:
        share = float(record["improved_percent"]) / 100
        printed = float(record["improvement_coefficient"])
        # Each improved run counts more than 1, so the coefficient must exceed their share well.
        if printed - share < 0.05:
            rest = (printed - share) / (1 - share)
            found.append(
                f"The paper's cell of {title(record['model'])} on the {record['title']} "
                f"hardly adds up: coefficient {printed:.2f} with {100 * share:.1f} % improved. "
                f"The improved runs alone give at least {share:.3f}, so the rest would have run at "
                f"{rest:.2f} times the baseline's speed or less. It is no target."
            )
    found.append(
        "The paper's row of LightGBM hyper-parameters repeats XGBoost's numbers under other names "
        f"({facts['lightgbm_as_printed']}), so it cannot be repeated."
    )
    found.append(
        f"{wording.count(total)} - {wording.count(gone)} = {wording.count(total - gone)} runs "
        f"left, not the {wording.count(int(facts['runs_left_as_printed']))} that the paper prints."
    )
    return found


def _tables(published: Mapping[str, Records]) -> list[Block]:
    hardware = table(
        "Hardware of the paper (its table 3)",
        [Column("attribute", number=False), Column("RTX 2080 Super"), Column("V100")],
        [
            [
                f"{record['attribute']} ({record['unit']})"
                if record["unit"]
                else record["attribute"],
                record["rtx2080super"],
                record["v100"],
            ]
            for record in published["gpus"]
        ],
    )
    tiles = table(
        "Best tiles of the paper (its table 1); the third number is the contiguous axis, our x",
        [
            Column("GPU", number=False),
            Column("n", "points"),
            Column("dtype", number=False),
            Column("order"),
            Column("tile", "i × j × k", number=False),
            Column("time", "s"),
        ],
        [
            [
                record["gpu"],
                record["n"],
                record["dtype"],
                record["order"],
                f"{record['tile_1']}×{record['tile_2']}×{record['tile_3']}",
                record["time_s"],
            ]
            for record in published["best_tiles"]
        ],
    )
    return [hardware, tiles]
