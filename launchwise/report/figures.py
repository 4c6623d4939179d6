"""What figures of a study share: kinds of problems, their panels, the axis of sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from launchwise.learning.row_arrays import keys_of
from launchwise.report import theme, wording
from launchwise.report.blocks import Panel
from launchwise.report.numbers import winners
from launchwise.report.study import StudyData

MAX_KINDS = 12
"""Panels of one figure; a study with more kinds of problems shows the most measured ones."""


COPIES_MATTER = 0.1
"""Largest copy-bandwidth share below which a study counts as not bound by memory."""


def kinds_of(study: StudyData, table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(title, rows) of every kind of problem (all parameters but the size), in order.

    Of more than :data:`MAX_KINDS`, those with the most measured problems: a kind with one size
    shows nothing of sizes.
    """
    if not study.kinds:
        yield "", table
        return
    groups = list(table.groupby(study.kinds, sort=True))
    if len(groups) > MAX_KINDS:
        problems = Counter(keys_of(winners(study), study.kinds))
        measured = sorted(groups, key=lambda group: -problems[group[0]])
        most = {values for values, _ in measured[:MAX_KINDS]}
        groups = [(values, rows) for values, rows in groups if values in most]
    for values, rows in groups:
        named = dict(zip(study.kinds, values, strict=True))
        yield wording.problem(named, study.kinds), rows


def row_of(
    study: StudyData, rows: pd.DataFrame, gpu: str, *, sized: bool = False
) -> dict[str, Any]:
    """What a trace says of the rows behind its points, all of one kind of problem, for the script.

    ``sized``: they are one problem; else the size of each is the point's place on the axis.
    """
    first = rows.iloc[0]
    problem = [
        str(first[name]) if sized or name != study.size else None for name in study.problem_columns
    ]
    return {"gpu": gpu, "problem": problem}


def own_scales(panels: Sequence[Panel]) -> str:
    """Words for panels with a scale of their own each."""
    return " Each panel has its own scale." if len(panels) > 1 else ""


def size_axis(study: StudyData) -> str:
    """Title of the axis along which problems grow."""
    return wording.with_unit(study.size, study.spec.problem[study.size].unit)


def size_layout(study: StudyData, table: pd.DataFrame) -> dict[str, Any]:
    """Axis of problem sizes: logarithmic where they span two decades, categories where texts."""
    title = size_axis(study)
    if study.spec.problem[study.size].type == "category":
        return theme.axis(title, type="category")
    # By the sizes of the whole study: panels beside each other have one kind of axis.
    every = study.rows[study.size].astype(float)
    if len(every) and every.min() > 0 and every.max() / every.min() > 100:
        return theme.log_axis(title, table[study.size].astype(float))
    return theme.axis(title)


def copies_matter(best: pd.DataFrame) -> bool:
    """Whether shares of the copy bandwidth say anything of a study's fastest configurations."""
    return bool(best["limit_share"].max() >= COPIES_MATTER)


def has_sizes(study: StudyData, table: pd.DataFrame) -> bool:
    """Whether a plot against size would show more than a point."""
    return bool(table[study.size].nunique() > 1)


def slug(name: str) -> str:
    """A name as part of an id: letters and digits alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
