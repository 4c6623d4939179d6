"""The paper's tables 1 and 2, each beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.experiment.published import Records
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Cell, Table
from launchwise.report.fields import THEIRS, decimals, field, grouped, table_of
from launchwise.report.numbers import of_one_launch, records
from launchwise.report.study_tables import StudyData, remembered
from launchwise.tables.times import by_sweep

ONCE = "one launch"  # detail of a cell without a figure, as its row was stopped early

WALKED, BLOCK, PROGRAM = "omp_tile", "block3d", "openmp"

PRINTED_TILE = ("tile_3", "tile_2", "tile_1")  # columns of a printed tile in the order x, y, z


@dataclass(frozen=True)
class Reading:
    """What a printed tile is measured as."""

    group: str  # title of its columns
    variant: str  # variant that has such tiles
    names: tuple[str, str, str]  # tunables of its tile along x, y and z
    untiled: str = "linear"
    """Variant that its gains are relative to; of the variant itself, loops without tiles."""

    def tiled(self, rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["variant"] == self.variant) & (rows[self.names[0]] > 0)]

    def untiled_ms(self, rows: pd.DataFrame) -> float:
        """Time without tiles, ms; NaN where it was not measured, or by one launch alone."""
        plain = rows[rows["variant"] == self.untiled]
        if self.untiled == self.variant:
            plain = plain[plain[self.names[0]] == 0]
        return float(plain.loc[~of_one_launch(plain), "time_ms"].min())


READINGS = (
    Reading("ours, points of a thread", WALKED, ("tx", "ty", "tz")),
    Reading("ours, threads of a block", BLOCK, ("bx", "by", "bz")),
    Reading("ours, the program in C", PROGRAM, ("tile_k", "tile_j", "tile_i"), PROGRAM),
)
"""The program's gains are over its own loops without tiles, as in the paper."""


@remembered
def of_problems(study: StudyData) -> dict[Any, pd.DataFrame]:
    """Rows that readings compare, with the sweep's times: by GPU, n, order and dtype."""
    compared = ["linear", *(each.variant for each in READINGS)]
    rows = study.timed[study.timed["variant"].isin(compared)]
    groups = by_sweep(rows).groupby(["gpu", "n", "order", "dtype"], observed=True)
    return dict(list(groups))


@remembered
def with_program(study: StudyData) -> list[str]:
    """GPUs with rows of the paper's program."""
    own = study.timed.loc[study.timed["variant"] == PROGRAM, "gpu"].unique()
    return [gpu for gpu in study.gpus if gpu in own]


def readings(study: StudyData) -> list[Reading]:
    """Those to show: the program where a GPU has rows of it."""
    return [each for each in READINGS if each.variant != PROGRAM or with_program(study)]


def _of_printed(
    study: StudyData, record: Mapping[str, str], gpu: str
) -> tuple[pd.DataFrame, list[int]]:
    """Rows of a printed tile's problem on one of our GPUs, and the tile: points along x, y, z."""
    problem = (gpu, int(record["n"]), int(record["order"]), record["dtype"])
    rows = of_problems(study).get(problem, study.timed.iloc[:0])
    return rows, [int(record[name]) for name in PRINTED_TILE]


def title_of(published: Mapping[str, Records], gpu: str) -> str:
    known = {record["gpu"]: record["title"] for record in published["results"]}
    return known.get(gpu, gpu.upper())


def best_tiles(study: StudyData, published: Mapping[str, Records], gpu: str) -> Table:
    """Table 1; for the same problems our best tiles on ``gpu``, and the printed tiles' speed."""
    fields = [
        *grouped(
            "problem",
            field("GPU", lambda row: title_of(published, row["gpu"])),
            field("n", "n", unit="points", number=True),
            field("dtype", "dtype"),
            field("order", "order", number=True),
        ),
        *grouped(
            "paper",
            field("best tile", lambda row: _shape(row, PRINTED_TILE), unit="i × j × k"),
            field("time", "time_s", unit="s", number=True),
            role=THEIRS,
        ),
    ]
    for each in readings(study):
        name = each.variant
        fields += grouped(
            each.group,
            field("best tile", f"{name}_tile", unit="z × y × x"),
            field("speed-up", f"{name}_speed_up", decimals(2), "× untiled"),
            field("their tile", f"{name}_theirs", unit="× untiled", number=True),
        )
    rows = []
    for record in published["best_tiles"]:
        of_problem, tile = _of_printed(study, record, gpu)
        row: dict[str, Any] = dict(record)
        for each in readings(study):
            row |= _beside_printed(of_problem, tile, each)
        rows.append(row)
    return table_of(
        f"The paper's example of its results (its table 1), and ours on {gpu}", fields, rows
    )


def printed_here(study: StudyData, published: Mapping[str, Records], gpu: str) -> str:
    """At how many problems a printed tile is the fastest here, and what it loses in the mean."""
    said = []
    for each in readings(study):
        over_best = [
            float(theirs["time_ms"].iloc[0]) / best["time_ms"]
            for rows, tile in (_of_printed(study, one, gpu) for one in published["best_tiles"])
            if (best := _best(rows, each)) is not None
            and not of_one_launch(theirs := _fastest_of(rows, each, tile)).all()
        ]
        if over_best:
            lost = wording.percent(geometric_mean(np.array(over_best)) - 1, 0)
            held = f"{sum(one <= 1 for one in over_best)} of {len(over_best)}"
            group = each.group.removeprefix("ours, ")
            said.append(f"as {group}, at {held} problems ({lost} % slower in the mean)")
    return f"The printed tile is the fastest here on {gpu}: {'; '.join(said)}." if said else ""


def _shape(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """A tile as it is written: its last side first."""
    return "×".join(str(int(row[name])) for name in reversed(names))


def _best(rows: pd.DataFrame, reading: Reading) -> dict[str, Any] | None:
    tiled = reading.tiled(rows)
    found = tiled[tiled["status"] == "ok"]
    return None if found.empty else records(found.nsmallest(1, "time_ms"))[0]


def _beside_printed(rows: pd.DataFrame, tile: list[int], reading: Reading) -> dict[str, Any]:
    """Our best tile of a problem and its speed-up, and that of a printed tile."""
    best, untiled = _best(rows, reading), reading.untiled_ms(rows)
    theirs = _fastest_of(rows, reading, tile)
    said = Cell(MISSING, detail="" if theirs.empty else ONCE)
    if len(theirs) and not of_one_launch(theirs).all():
        said = Cell(wording.fixed(untiled / theirs["time_ms"].iloc[0], 2))
    return {
        f"{reading.variant}_tile": MISSING if best is None else _shape(best, reading.names),
        f"{reading.variant}_speed_up": None if best is None else untiled / best["time_ms"],
        f"{reading.variant}_theirs": said,
    }


def _fastest_of(rows: pd.DataFrame, reading: Reading, tile: list[int]) -> pd.DataFrame:
    """The fastest row with one tile; empty where it was not measured."""
    same = (rows[list(reading.names)].to_numpy() == tile).all(axis=1)
    return reading.tiled(rows[same]).sort_values("time_ms", kind="stable").head(1)


def recorded_gpu(study: StudyData) -> str:
    """The whole card with most rows: where tables show one GPU of ours."""
    counts = {gpu: len(study.sweeps[gpu]) for gpu in study.whole}
    return max(counts, key=lambda gpu: counts[gpu])
