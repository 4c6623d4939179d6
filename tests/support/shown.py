"""What sections of the report show, and studies with other sweeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import pandas as pd

from launchwise.report.blocks import Block, Bullets, File, Fold, Section, Table, Text
from launchwise.report.study_tables import StudyData

Shown = Section | Sequence[Section] | Sequence[Block]
Kind = TypeVar("Kind", bound=Block)


def blocks_of(shown: Shown, kind: type[Kind], folded: bool = False) -> list[Kind]:
    """Blocks of a kind in a section, in sections or among blocks; in folds and files too where
    asked."""
    found: list[Kind] = []
    for block in shown.blocks if isinstance(shown, Section) else shown:
        if isinstance(block, kind):
            found.append(block)
        if folded and isinstance(block, File) and isinstance(block.content, kind):
            found.append(block.content)
        if isinstance(block, Section) or (folded and isinstance(block, Fold)):
            found += blocks_of(block.blocks, kind, folded)
    return found


def tables(shown: Shown, folded: bool = False) -> list[Table]:
    return blocks_of(shown, Table, folded)


def notes(shown: Shown) -> list[str]:
    return [block.text for block in blocks_of(shown, Text)]


def statements(shown: Shown) -> list[tuple[str, str]]:
    """Items of lists: the bold beginning, empty where there is none, and the rest."""
    items = [item for block in blocks_of(shown, Bullets) for item in block.items]
    return [("", item) if isinstance(item, str) else item for item in items]


def said(shown: Shown) -> dict[str, str]:
    """:func:`statements` by their beginnings."""
    return dict(statements(shown))


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
