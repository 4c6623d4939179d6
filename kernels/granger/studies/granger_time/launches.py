"""The published launch in float32 and float64: rows and counters."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from launchwise.learning.analytical import CostModel
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Bullets, Section, Table, Text
from launchwise.report.fields import decimals, field, grouped, table_of
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.workloads.space import baseline
from launchwise.workloads.statuses import TIMED

from .counted import counted
from .formula import Facts, span

PUBLISHED, ONCE = "published", "no_duplicates"
TYPES = ("float32", "float64")


def launches(study: StudyData, facts: Facts) -> Section | None:
    """The published launch in both types; None where it was measured in one at most."""
    rows = _timed(study, PUBLISHED)
    pairs = _by_type(rows, study)
    if pairs.empty:
        return None
    text = (
        "The copies of a regression write the same Q and do not wait for each other. So a time of "
        "this launch says what the race costs, not what the algorithm needs."
    )
    once = _by_type(_timed(study, ONCE), study)
    blocks: list[Block] = [Text(text), _table(study, pairs, once), Bullets([*_rows(rows, pairs)])]
    blocks += counted(study, PUBLISHED)
    return Section(f"{study.name}-launch", "The published launch in float32 and float64", blocks)


def _key(study: StudyData) -> list[str]:
    return ["gpu", *(name for name in study.problem_columns if name != "dtype")]


def _timed(study: StudyData, variant: str) -> pd.DataFrame:
    named = {**baseline(study.spec), "variant": variant}
    rows = pd.concat(study.swept.values(), ignore_index=True)
    here = rows["status"].isin(TIMED)
    for name, value in named.items():
        here &= rows[name] == value
    kept = ["time_ms", "repeats", "relative_error", "sm_clock_mhz"]
    rows = rows[here].reindex(columns=[*study.spec.key_columns, *kept])
    if len(rows):
        estimate = CostModel(study.spec, study.profiles).estimate(rows)
        rows = rows.assign(model_ms=estimate.time_ms)
    return rows.drop(columns=list(named))


def _by_type(rows: pd.DataFrame, study: StudyData) -> pd.DataFrame:
    """One row per GPU and problem that both types have.

    Columns end in the type; ``ratio`` is the time in float32 divided by that in float64, NaN where
    one of the two is that of one launch.
    """
    key = _key(study)
    parts = [rows[rows["dtype"] == name].drop(columns="dtype") for name in TYPES]
    pairs = parts[0].merge(parts[1], on=key, suffixes=[f"_{name}" for name in TYPES])
    ratio = pairs["time_ms_float32"] / pairs["time_ms_float64"]
    known = (pairs[[f"repeats_{name}" for name in TYPES]] > 1).all(axis=1)
    return pairs.assign(ratio=ratio.where(known))


def _table(study: StudyData, pairs: pd.DataFrame, once: pd.DataFrame) -> Table:
    key = _key(study)
    varying = [name for name in key[1:] if pairs[name].nunique() > 1]
    same = [name for name in key[1:] if name not in varying]
    fields = [
        field("GPU", "gpu"),
        field("problem", lambda row: wording.problem(row, varying) or MISSING),
    ]
    for dtype in TYPES:
        fields += grouped(
            dtype,
            field("launches", f"repeats_{dtype}", wording.count, "timed"),
            field("measured", f"time_ms_{dtype}", wording.number, "ms"),
            field("error", f"relative_error_{dtype}", wording.percent, "%"),
            field("cost model", f"model_ms_{dtype}", wording.number, "ms"),
        )
    fields += grouped(
        "float32 / float64",
        field(PUBLISHED, "ratio", decimals(2), "×"),
        field(ONCE, "once", decimals(2), "×"),
    )
    beside = once[[*key, "ratio"]].rename(columns={"ratio": "once"})
    rows = pairs.merge(beside, on=key, how="left")
    fixed = wording.problem(records(rows)[0], same)
    caption = f"Rows of {PUBLISHED}, {fixed}; a row of one launch has no error"
    return table_of(caption, fields, rows)


def _rows(rows: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Number of rows that rest on one launch, and of pairs in which float32 is slower."""
    single = rows[rows["repeats"] == 1]
    if len(single):
        clock = " No clock was read." if single["sm_clock_mhz"].isna().all() else ""
        yield (
            "Rows of one launch:",
            f"{len(single)} of {len(rows)}. It is the first launch, timing stopped after it, "
            f"and its error is unknown.{clock} Such a row gives no ratio.",
        )
    pairs = pairs[pairs["ratio"].notna()]
    if pairs.empty:
        return
    slower = pairs[pairs["ratio"] > 1]
    yield (
        "float32 against float64:",
        f"float32 is slower in {len(slower)} of {wording.plural(len(pairs), 'pair')} of "
        f"rows, on {slower['gpu'].nunique()} of {wording.plural(pairs['gpu'].nunique(), 'GPU')}; "
        f"float32 / float64 is {span(pairs['ratio'])}.",
    )
