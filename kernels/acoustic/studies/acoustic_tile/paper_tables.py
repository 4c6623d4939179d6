"""The paper's tables 1 and 2, each beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.report import scores, wording
from launchwise.report.blocks import MISSING, Cell, Table
from launchwise.report.fields import (
    THEIRS,
    Field,
    Part,
    decimals,
    field,
    grouped,
    of_texts,
    table_of,
)
from launchwise.report.measure_again import of_one_launch
from launchwise.report.numbers import records
from launchwise.report.study import StudyData, remembered
from launchwise.tables.rows import selected
from launchwise.tables.times import by_sweep

LIMIT = "best candidate of each problem"  # row of tables 4 and 5 that no model can exceed
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


@remembered
def program_gains(study: StudyData) -> pd.DataFrame:
    """Gain of the best tile of the paper's program over untiled on each problem, by the sweep.
    Columns ``gpu``, ``order``, ``gain``, ``tile`` (words) and ``linear`` (time of the untiled
    program / time of untiled CUDA; NaN where that has none); no rows without the program."""
    found = [
        {"gpu": gpu, "order": order, **one}
        for (gpu, _, order, _), part in of_problems(study).items()
        if gpu in with_program(study) and (one := _gain(part, READINGS[-1])) is not None
    ]
    return pd.DataFrame(found, columns=["gpu", "order", "gain", "tile", "linear"])


def program(study: StudyData) -> Table | None:
    """Gains of the best tile of the paper's program by GPU and order; None without its rows."""
    groups = program_gains(study).groupby(["gpu", "order"], observed=True)
    rows = [
        {
            "gpu": gpu,
            "order": order,
            "gains": gains["gain"],
            "tiles": tiles,
            "linear": gains["linear"],
        }
        for (gpu, order), gains in groups
        for tiles in [gains["tile"].value_counts()]
    ]
    return table_of("Tiles of the paper's program, C with OpenMP", GAINS, rows) if rows else None


GAINS = [
    field("GPU", "gpu"),
    field("order", "order", number=True),
    field("problems", lambda row: len(row["gains"]), number=True),
    *grouped(
        "gain of the best tile, × untiled",
        field("mean", lambda row: row["gains"].mean(), decimals(2)),
        field("least", lambda row: row["gains"].min(), decimals(2)),
        field("most", lambda row: row["gains"].max(), decimals(2)),
    ),
    field(
        "most frequent best tile",
        lambda row: row["tiles"].index[0],
        unit="i × j × k",
        detail=lambda row: f"{row['tiles'].iloc[0]} of {len(row['gains'])} problems",
    ),
    field(
        "untiled CUDA",
        lambda row: row["linear"].mean(),
        decimals(2),
        "× untiled program",
        detail=lambda row: _of(row["linear"]),
    ),
]


def _of(linear: pd.Series) -> str:
    """How many problems have untiled CUDA, where not all have."""
    known = int(linear.notna().sum())
    return "" if known == len(linear) else f"{known} of {len(linear)} problems"


def _gain(rows: pd.DataFrame, reading: Reading) -> dict[str, Any] | None:
    """Gain and best tile of the program on one problem, and untiled CUDA relative to it."""
    best = _best(rows, reading)
    if best is None or pd.isna(untiled := reading.untiled_ms(rows)):
        return None
    return {
        "gain": untiled / best["time_ms"],
        "tile": _shape(best, reading.names),
        "linear": untiled / READINGS[0].untiled_ms(rows),
    }


def features(study: StudyData, published: Mapping[str, Records]) -> Table:
    """Table 2: the paper's features, our names, and whether they vary here."""
    dropped = set(scores.dropped_features(study, scores.first_split(study)))
    listed = published.get("features", [])
    rows = [
        [
            *(record[name] for name in ("feature", "part", "ours")),
            "no" if record["ours"].removeprefix("gpu_") in dropped else "yes",
        ]
        for record in listed
    ]
    caption = (
        f"Features of the paper (its table 2), all {len(listed)} among the "
        f"{len(study.spec.features or {})} of the workload and those of the GPU"
    )
    titles = ("feature", "of the", "our name", "varies in our training rows")
    return of_texts(caption, titles, rows, role="")


def recorded_gpu(study: StudyData) -> str:
    """The whole card with most rows: where tables show one GPU of ours."""
    counts = {gpu: len(study.sweeps[gpu]) for gpu in study.whole}
    return max(counts, key=lambda gpu: counts[gpu])


def walked_limit(study: StudyData, split: str, gpu: str) -> dict[str, float]:
    """Speed-up of the best walked tile of each test problem, untiled where none is faster. Returns
    a dictionary: ``coefficient`` (mean speed-up over untiled); ``forced``, the mean without untiled
    among the candidates; ``blocks``, the mean with thread blocks among them, where there are any.
    All by the times of the sweep (:func:`by_sweep`). Empty without measurements."""
    rows = study.timed
    rows = rows[(rows["gpu"] == gpu) & rows["variant"].isin([WALKED, BLOCK, "linear"])]
    rows = by_sweep(rows)
    rows = rows[selected(rows, getattr(study.settings.splits.get(split), "test", {}))]
    by_variant = rows.groupby([*study.problem_columns, "variant"])["time_ms"].min().unstack()
    if not {WALKED, "linear"} <= set(by_variant):
        return {}
    gains = (by_variant["linear"] / by_variant[WALKED]).dropna()
    found = {"coefficient": float(gains.clip(lower=1).mean()), "forced": float(gains.mean())}
    if BLOCK in by_variant:
        best = by_variant.loc[gains.index, [WALKED, BLOCK, "linear"]].min(axis=1)
        found["blocks"] = float((by_variant["linear"] / best).mean())
    return found


def with_problems(part: str, problems: int | str | None) -> str:
    """Title of a GPU's columns with its number of test problems, where that is known."""
    return part if problems in (None, "") else f"{part}: {wording.plural(int(problems), 'problem')}"


def scores_by_model(scores: pd.DataFrame) -> dict[str, dict[str, Any]]:
    return {record["model"]: record for record in records(scores)}


PRINTED_SPEED = "improvement_coefficient"  # column of the published results


def printed_results(results: Records, speed: Field) -> Iterator[Part]:
    """Tables 4 and 5, a part per GPU of theirs: share of improved runs, speed-up."""
    for title in dict.fromkeys(record["title"] for record in results):
        own = {record["model"]: record for record in results if record["title"] == title}
        problems = next(iter(own.values())).get("problems")
        improved = field("improved", "improved_percent", unit="% of runs", number=True)
        group = with_problems(f"paper, {title}", problems)
        yield grouped(group, improved, speed, role=THEIRS), own
