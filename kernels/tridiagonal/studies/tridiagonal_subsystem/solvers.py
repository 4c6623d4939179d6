"""The paper's sub-system sizes by who solves stage 2 on the host: gtsv of LAPACK, or Thomas.

The study's candidates have gtsv. The companion paper on streams has the Thomas algorithm; the paper
on sub-systems does not name its solver. The longer stage 2 takes, the larger is the best m.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.learning.row_arrays import arrays
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Text
from launchwise.report.fields import Field, decimals, field, grouped, significant, table_of
from launchwise.report.study_tables import StudyData
from launchwise.report.theme import kinds_of

from ..host_runs import ANY_VARIANT, SOLVERS, THREADS, alike, host_runs, least, slower
from .series import CHOICE, SIZE

LEAST = 100_000  # rows from which stage 2 and copies take most of the time


def by_solver(study: StudyData) -> dict[str, pd.DataFrame]:
    """Title of a case to the paper's m and the best with each solver, by judged times.

    Sizes count where both solvers have the paper's m and another one, and their two times are
    :func:`~host_runs.alike`. Returns a DataFrame: ``n``,
    ``paper_m`` and, for each of :data:`SOLVERS`, ``<solver>_ms`` (paper's m), ``_best_m``,
    ``_best_ms``, ``_loss`` (%) and ``_tied`` (bool: within the errors of both times).
    """
    found: dict[str, list[pd.DataFrame]] = {}
    for solver in SOLVERS:
        rows = host_runs(study, threads=THREADS, solver=solver)
        rows = rows[(rows["m1"] == 0) & (rows[SIZE] >= LEAST)]
        for gpu, of_gpu in rows.groupby("gpu", sort=True):
            for kind, part in kinds_of(study, of_gpu):
                if len(made := _of_one(study, part, solver)):
                    found.setdefault(f"{gpu}, {kind}", []).append(made)
    whole = {title: parts for title, parts in found.items() if len(parts) == len(SOLVERS)}
    joined = {title: parts[0].merge(parts[1]) for title, parts in whole.items()}
    return {title: table for title, table in joined.items() if len(table)}


def _of_one(study: StudyData, rows: pd.DataFrame, solver: str) -> pd.DataFrame:
    best = least(rows, [SIZE, CHOICE])
    known = Columns(study.spec.derived, arrays(best, study.spec))
    first = least(best, [SIZE]).set_index(SIZE)
    best["_tied"] = ~slower(best, SIZE)
    paper = best[(best[CHOICE] == known.value("published_m"))]
    paper = paper[paper[SIZE].isin(best[SIZE].value_counts().loc[lambda count: count > 1].index)]
    paper = paper[alike(paper, first.loc[paper[SIZE]])].set_index(SIZE)
    first = first.loc[paper.index]
    columns = {
        "paper_m": paper[CHOICE],
        f"{solver}_ms": paper["time_ms"],
        f"{solver}_best_m": first[CHOICE],
        f"{solver}_best_ms": first["time_ms"],
        f"{solver}_loss": 100 * (paper["time_ms"] / first["time_ms"] - 1),
        f"{solver}_tied": paper["_tied"],
    }
    return pd.DataFrame(columns).reset_index()


def _fields(solver: str, name: str) -> list[Field]:
    return grouped(
        f"stage 2 by {name}",
        field("paper's m", f"{solver}_ms", significant(4), "ms"),
        field("best m", f"{solver}_best_m", wording.count, "rows"),
        field("best m", f"{solver}_best_ms", significant(4), "ms"),
        field("paper's m loses", f"{solver}_loss", decimals(1), "%"),
    )


def solver_tables(found: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Iterator[Block]:
    first = field(SIZE, SIZE, wording.count, "rows"), field("paper's m", "paper_m", wording.count)
    fields = [*first, *(one for solver in SOLVERS.items() for one in _fields(*solver))]
    for title, table in found.items():
        name = names.get(title, title)
        caption = f"The paper's m by solver of stage 2, on one card or in pairs, {name}"
        yield Fold(caption, [table_of(caption, fields, table), Text(ANY_VARIANT, "note")])
