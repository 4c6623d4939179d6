"""The published launch in float32 and float64: rows and counters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Bullets, Fold, Section, Table, Text
from launchwise.report.fields import Field, decimals, field, grouped, table_of
from launchwise.report.numbers import records
from launchwise.report.study_tables import StudyData
from launchwise.tables.times import by_sweep
from launchwise.workloads.metrics import TIMED
from launchwise.workloads.space import baseline

from .formula import ONCE, PUBLISHED, Facts

FOLDER = Path("recorded")
METRICS = {
    "time_ns": "gpu__time_duration.sum",
    "instructions": "smsp__inst_executed.sum",
    "loaded": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "hit": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "stored": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "slice_max": "lts__t_sectors.max",
    "slice_mean": "lts__t_sectors.avg",
}
"""Column to counter of a launch; sectors of 32 bytes, those of one slice of L2 in the last two."""


def read_counted(folder: Path | None) -> pd.DataFrame | None:
    """Device, problem, variant and :data:`METRICS` of every recorded run; None without a record.
    Raises UserError if the file has another number of launches than runs, or lacks a counter."""
    if folder is None or not (path := folder / FOLDER / "counters.csv").is_file():
        return None
    job = read_json(folder / FOLDER / "counters.json")
    runs = job["runs"]
    # Lines of Nsight Compute's own begin with "=="; no counter does.
    read = pd.read_csv(path, comment="=", thousands=",")
    values = read.pivot(index="ID", columns="Metric Name", values="Metric Value").sort_index()
    if len(values) != len(runs):
        raise UserError(path, "ID", f"{len(values)} launches, counters.json lists {len(runs)} runs")
    if missing := sorted(set(METRICS.values()) - set(values)):
        raise UserError(path, "Metric Name", f"lacks {', '.join(missing)}")
    counted = values[list(METRICS.values())].set_axis(list(METRICS), axis=1).astype(float)
    asked = pd.DataFrame(
        [{**run["problem"], "variant": run["configuration"]["variant"]} for run in runs]
    )
    found = pd.concat([asked, counted.reset_index(drop=True)], axis=1)
    return found.assign(missed=found["loaded"] - found["hit"], device=job["device"])


def counted(study: StudyData, published: str) -> list[Block]:
    """The counters, and what they say of the two types; nothing where none are recorded."""
    found = read_counted(study.folder)
    if found is None:
        return []
    caption = CAPTION.format(found["device"].iloc[0])
    shown = table_of(caption, FIELDS, found.sort_values(["county", "variant", "dtype"]))
    return [Fold(caption, [shown, Bullets(list(_said(found, published)))])]


def _millions(title: str, name: str, unit: str) -> Field:
    return field(title, lambda row: row[name] / 1e6, wording.number, unit)


FIELDS = [
    field("county", "county", wording.count),
    field("variant", "variant"),
    field("type", "dtype"),
    _millions("time", "time_ns", "ms"),
    _millions("instructions", "instructions", "10⁶"),
    *grouped(
        "L1",
        _millions("loaded", "loaded", "10⁶ sectors"),
        _millions("missed", "missed", "10⁶ sectors"),
        field("hits", lambda row: row["hit"] / row["loaded"], wording.percent, "%"),
        _millions("stored", "stored", "10⁶ sectors"),
    ),
    *grouped(
        "slices of L2",
        field("busiest / mean", lambda row: row["slice_max"] / row["slice_mean"], decimals(2), "×"),
    ),
]
CAPTION = "Counters of one launch on {} (Nsight Compute, without control of clocks)"
"""With the name of the device."""


def _said(found: pd.DataFrame, published: str) -> Iterator[tuple[str, str]]:
    names = ["time_ns", "missed"]
    by_type = found.pivot(index=["county", "variant"], columns="dtype", values=names)
    ratio = pd.DataFrame({one: by_type[one, "float32"] / by_type[one, "float64"] for one in names})
    ours = ratio.xs(published, level="variant")
    follows = ((ours["missed"] > 1) == (ours["time_ns"] > 1)).all()
    yield (
        "Misses in L1:",
        f"{_each(ours['missed'])} times as many in float32, and {_each(ours['time_ns'])} times the "
        f"time{': time follows the misses' if follows else '; time does not follow them'}.",
    )
    alone = found[found["variant"] != published]
    if len(alone):
        shares = 100 * alone["hit"] / alone["loaded"]
        yield (
            "Without copies:",
            f"{wording.listed(sorted(alone['variant'].unique()))} hits L1 with "
            f"{wording.span(shares, 1)} % of its loads. So it is the other copies, which store to "
            "the same words, that cost a copy its hits. A sector holds 8 values of float32 and 4 "
            "of float64: a store spoils twice as many, which is the likely reason that float32 "
            "misses more.",
        )


def _each(values: pd.Series) -> str:
    return wording.listed([wording.fixed(value, 2) for value in values])


TYPES = ("float32", "float64")


def launches(study: StudyData, facts: Facts) -> Iterator[Section]:
    """The published launch in both types on whole cards; none where it was measured in one."""
    pairs = _by_type(_timed(study, PUBLISHED), study)
    if pairs.empty:
        return
    text = (
        "The copies of a regression write the same Q and do not wait for each other. So a time of "
        "this launch says what the race costs, not what the algorithm needs."
    )
    once = _by_type(_timed(study, ONCE), study)
    blocks: list[Block] = [Text(text), _table(study, pairs, once), Bullets([*_slower(pairs)])]
    blocks += counted(study, PUBLISHED)
    yield Section(f"{study.name}-launch", "The published launch in float32 and float64", blocks)


def _key(study: StudyData) -> list[str]:
    return ["gpu", *(name for name in study.problem_columns if name != "dtype")]


def _timed(study: StudyData, variant: str) -> pd.DataFrame:
    named = {**baseline(study.spec), "variant": variant}
    rows = by_sweep(pd.concat([study.swept[gpu] for gpu in study.whole], ignore_index=True))
    here = rows["status"].isin(TIMED)
    for name, value in named.items():
        here &= rows[name] == value
    kept = ["time_ms", "repeats", "relative_error"]
    rows = rows[here].reindex(columns=[*study.spec.key_columns, *kept])
    return rows.drop(columns=list(named))


def _by_type(rows: pd.DataFrame, study: StudyData) -> pd.DataFrame:
    """One row per GPU and problem that both types have. Columns end in the type; ``ratio`` is the
    time in float32 divided by that in float64, NaN where one of the two is that of one launch."""
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
            field("measured", f"time_ms_{dtype}", wording.number, "ms"),
            field("error", f"relative_error_{dtype}", wording.percent, "%"),
        )
    fields += grouped(
        "float32 / float64",
        field(PUBLISHED, "ratio", decimals(2), "×"),
        field(ONCE, "once", decimals(2), "×"),
    )
    own = once[[*key, "ratio"]].rename(columns={"ratio": "once"})
    rows = pairs.merge(own, on=key, how="left")
    fixed = wording.problem(records(rows)[0], same)
    beside = wording.configuration({**baseline(study.spec), "variant": ONCE}, study.spec)
    caption = f"Rows of {PUBLISHED}, {fixed}, and of {beside}; one launch: no error, no ratio"
    return table_of(caption, fields, rows)


def _slower(pairs: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Number of pairs of repeated rows in which float32 is slower."""
    pairs = pairs[pairs["ratio"].notna()]
    if pairs.empty:
        return
    slower = pairs[pairs["ratio"] > 1]
    yield (
        "float32 against float64:",
        f"float32 is slower in {len(slower)} of {wording.plural(len(pairs), 'pair')} of "
        f"rows, on {slower['gpu'].nunique()} of {wording.plural(pairs['gpu'].nunique(), 'GPU')}; "
        f"float32 / float64 is {wording.span(pairs['ratio'])}.",
    )
