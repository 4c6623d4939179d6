"""What sections of the report show, and studies with other sweeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pandas as pd

from launchwise.report.blocks import Block, Fold, Section, Table
from launchwise.report.study import StudyData

Shown = Section | Sequence[Section] | Sequence[Block]


def tables(shown: Shown, folded: bool = False) -> list[Table]:
    """Tables of a section, of sections or among blocks; those in folds too where asked."""
    found: list[Table] = []
    for block in shown.blocks if isinstance(shown, Section) else shown:
        if isinstance(block, Table):
            found.append(block)
        elif isinstance(block, Section) or (folded and isinstance(block, Fold)):
            found += tables(block if isinstance(block, Section) else block.blocks, folded)
    return found


def texts(table: Table) -> list[list[str]]:
    """Cells of a table as texts."""
    return [[cell.text for cell in row.cells] for row in table.rows]


def cells(table: Table) -> dict[str, list[str]]:
    """First cell of each row to the others, as texts."""
    return {first: rest for first, *rest in texts(table)}


def rows_of(shown: Shown, caption: str) -> list[list[str]]:
    """Texts of the only table whose caption begins so, folds opened."""
    (found,) = (one for one in tables(shown, folded=True) if one.caption.startswith(caption))
    return texts(found)


def with_sweeps(study: StudyData, **sweeps: pd.DataFrame) -> StudyData:
    """A study with these sweeps instead of its own."""
    return dataclasses.replace(study, sweeps=sweeps, _known={})
