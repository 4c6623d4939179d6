"""The published launch in float32 and float64: rows, and possible causes of the difference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from launchwise.learning.analytical import CostModel
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Bullets, Column, Section, Table, Text, table
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.statuses import TIMED

from .counted import counted
from .formula import Facts
from .formula_counts import SPECIAL_OPERATIONS, flop_counted

PUBLISHED, ONCE = "published", "no_duplicates"
TYPES = ("float32", "float64")
BUILD = ("registers", "spill_bytes", "occupancy")
"""Columns of the build that may differ between types."""


@dataclass
class Pairs:
    """Rows of one variant, float32 beside float64.

    Parameters
    ----------
    rows
        Timed rows of the variant, of all GPUs.
    """

    rows: pd.DataFrame
    key: list[str]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per GPU and problem; columns end in the type."""
        parts = [self.rows[self.rows["dtype"] == name] for name in TYPES]
        names = [name for name in self.rows if name not in self.key and name != "dtype"]
        parts = [
            part[[*self.key, *names]].rename(columns={one: f"{one}_{dtype}" for one in names})
            for part, dtype in zip(parts, TYPES, strict=True)
        ]
        return parts[0].merge(parts[1], on=self.key)

    @property
    def ratio(self) -> pd.Series:
        """Time in float32 divided by that in float64, one per row of :attr:`table`."""
        return self.table["time_ms_float32"] / self.table["time_ms_float64"]


def launches(study: StudyData, facts: Facts) -> Section | None:
    """The published launch in both types; None where it was measured in one at most."""
    pairs = Pairs(_timed(study, PUBLISHED), _key(study))
    if pairs.table.empty:
        return None
    problems = pairs.table[_key(study)]
    once = Pairs(_timed(study, ONCE).merge(problems, on=_key(study)), _key(study))
    text = (
        "The copies of a regression write the same Q and do not wait for each other. So a time of "
        "this launch says what the race costs, not what the algorithm needs."
    )
    blocks: list[Block] = [Text(text), _table(study, pairs, once)]
    blocks.append(Bullets([*_rows(pairs), *_candidates(study, facts, pairs, once)]))
    blocks += counted(study, PUBLISHED)
    return Section(f"{study.name}-launch", "The published launch in float32 and float64", blocks)


def _key(study: StudyData) -> list[str]:
    return ["gpu", *(name for name in study.problem_columns if name != "dtype")]


def _timed(study: StudyData, variant: str) -> pd.DataFrame:
    """Timed rows of a variant at the baseline's tunables, with the cost model's time and bound."""
    named = {**baseline(study.spec), "variant": variant}
    kept = ["time_ms", "repeats", "relative_error", "sm_clock_mhz", *BUILD]
    parts = []
    for rows in study.sweeps.values():
        here = rows["status"].isin(TIMED)
        for name, value in named.items():
            here &= rows[name] == value
        parts.append(rows[here])
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.reindex(columns=[*study.spec.key_columns, *kept])
    if rows.empty:
        return rows
    estimate = CostModel(study.spec, study.profiles).estimate(rows)
    rows = rows.assign(model_ms=estimate.time_ms, bound_by=estimate.bound_by())
    return rows.drop(columns=list(named))


def _table(study: StudyData, pairs: Pairs, once: Pairs) -> Table:
    problem = [name for name in pairs.key if name != "gpu"]
    varying = [name for name in problem if pairs.table[name].nunique() > 1]
    same = [name for name in problem if name not in varying]
    columns = [Column("GPU", number=False), Column("problem", number=False)]
    for dtype in TYPES:
        columns += [
            Column("launches", "timed", group=dtype),
            Column("measured", "ms", group=dtype),
            Column("error", "%", group=dtype),
            Column("cost model", "ms", group=dtype),
        ]
    columns += [Column(name, "×", group="float32 / float64") for name in (PUBLISHED, ONCE)]
    beside = once.table[pairs.key].assign(once=once.ratio)
    rows = pairs.table.assign(ratio=pairs.ratio).merge(beside, on=pairs.key, how="left")
    cells = []
    for row in records(rows):
        found = [row["gpu"], wording.problem(row, varying) or MISSING]
        for dtype in TYPES:
            found += [
                wording.count(row[f"repeats_{dtype}"]),
                wording.number(row[f"time_ms_{dtype}"]),
                wording.percent(row[f"relative_error_{dtype}"]),
                wording.number(row[f"model_ms_{dtype}"]),
            ]
        cells.append([*found, *(wording.fixed(row[name], 2) for name in ("ratio", "once"))])
    fixed = wording.problem(records(rows)[0], same)
    caption = f"Rows of {PUBLISHED}, {fixed}; a row of one launch has no error"
    return table(caption, columns, cells)


def _rows(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Number of rows that rest on one launch, and of pairs in which float32 is slower."""
    single = pairs.rows[pairs.rows["repeats"] == 1]
    if len(single):
        clock = " No clock was read." if single["sm_clock_mhz"].isna().all() else ""
        yield (
            "Rows of one launch:",
            f"{len(single)} of {len(pairs.rows)}. It is the first launch, timing stopped after it, "
            f"and its error is unknown.{clock} Such a row tells orders of magnitude.",
        )
    slower = pairs.table[pairs.ratio > 1]
    cards = slower["gpu"].nunique()
    yield (
        "float32 against float64:",
        f"float32 is slower in {len(slower)} of {wording.plural(len(pairs.table), 'pair')} of "
        f"rows, on {cards} of {wording.plural(pairs.table['gpu'].nunique(), 'GPU')}; "
        f"float32 / float64 is {_span(pairs.ratio)}.",
    )


def _candidates(
    study: StudyData, facts: Facts, pairs: Pairs, once: Pairs
) -> Iterator[tuple[str, str]]:
    """Possible causes of the slower float32, each tested against the rows."""
    rows = pairs.table
    same = [name for name in BUILD if (rows[f"{name}_float32"] == rows[f"{name}_float64"]).all()]
    other = [name for name in BUILD if name not in same]
    said = f"{wording.listed(same)} are the same in both types" if same else ""
    said += f"{'; ' if same and other else ''}{wording.listed(other)} differ" if other else ""
    yield "Build:", f"{said}."
    if len(once.table):
        slower = int((once.ratio > 1).sum())
        yield (
            "Strided access and arithmetic:",
            f"{ONCE} runs the same code once per regression, with the same stride. There float32 "
            f"is slower in {slower} of {wording.plural(len(once.table), 'pair')} (float32 / "
            f"float64 {_span(once.ratio)}). {_not_the_cause(slower == 0)}",
        )
    special = SPECIAL_OPERATIONS * facts.cols
    every = wording.count(flop_counted(facts)["flop_a_thread"])
    yield (
        "NaN and denormal numbers:",
        "multiply-adds take as long with them as without. Only roots and divisions have a slower "
        f"path: {special} of {every} operations of a thread. {_not_the_cause(True)}",
    )
    yield "Traffic in L1:", _traffic(rows)
    yield (
        "What is left:",
        "copies store to the same words, and words of one sector belong together in a cache. "
        "No row can show what that costs, but counters can (command: kernels/granger/README.md).",
    )


def _traffic(rows: pd.DataFrame) -> str:
    """The cost model's time, which counts a line per lane, beside both measured times."""
    ratios = {name: rows[f"time_ms_{name}"] / rows[f"model_ms_{name}"] for name in TYPES}
    bounds = pd.concat([rows[f"bound_by_{name}"] for name in TYPES]).value_counts()
    return (
        f"the cost model takes {bounds.index[0]} for the limit of {bounds.iloc[0]} of "
        f"{bounds.sum()} rows: each lane reads a line of its own. Measured / cost model: float32 "
        f"{_span(ratios['float32'])}, float64 {_span(ratios['float64'])}."
    )


def _not_the_cause(excluded: bool) -> str:
    return "So it is not the cause." if excluded else "So it may be a part of the cause."


def _span(values: Any) -> str:
    """Least to most."""
    ends = [wording.fixed(value, 2) for value in (values.min(), values.max())]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
