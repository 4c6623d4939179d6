"""Sections of the acoustic study: the published tables beside ours."""

from __future__ import annotations

from collections.abc import Mapping

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Fold, Section, Text
from launchwise.report.study_tables import StudyData

from . import claims, paper_tables, recipe

NEEDED = {"results", "facts", "best_tiles"}  # published tables that the section needs


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """None where a published table or the recorded recipe is missing."""
    recorded = recipe.read_recipe(study)
    if recorded is None or not published.keys() >= NEEDED:
        return []
    results, facts = published["results"], facts_of(published)
    contradictions = [row["conflict"] for row in published.get("contradictions", [])]
    paper: list[Block] = [
        claims.judged(study, published, recorded),
        Text(paper_tables.printed_here(study, published, paper_tables.recorded_gpu(study))),
        Text("What differs, and what could not be had:"),
        Bullets(claims.differences(study, published)),
        Fold("Tiles of the paper", _tables(study, published)),
        Fold(
            wording.plural(len(contradictions), "contradiction") + " in the paper",
            [Bullets(contradictions)],
        ),
    ]
    return [
        Section(
            f"{study.name}-recipe",
            "The paper's models beside ours",
            recipe.blocks(study, recorded, results, facts),
        ),
        Section(f"{study.name}-paper", "The paper's conclusions, tested", paper),
    ]


def _tables(study: StudyData, published: Mapping[str, Records]) -> list[Block]:
    tiles = paper_tables.best_tiles(study, published, paper_tables.recorded_gpu(study))
    once = sum(cell.detail == paper_tables.ONCE for row in tiles.rows for cell in row.cells)
    said = f" {wording.plural(once, 'tile')} of theirs left out: a single launch." if once else ""
    return [
        tiles,
        Text(
            "The third number of a printed tile is the contiguous axis, our x. “–”: not "
            f"measured. Speed-ups of ours are of single rows of the sweep.{said}",
            "note",
        ),
    ]
