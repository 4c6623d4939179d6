"""Multiplies the rows of the acoustic study: recorded rows stand for those of more sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from harness.projects import find_studies, read_settings, write_settings

STUDY = "acoustic_tile"
SWEEPS = "data/recorded/*/acoustic.parquet"
TIMES = ("time_ms", "first_ms", "spread_ms")
REPEATED_TIMES = "times_ms"
ALIGNED_POINTS = 16
"""Rows of a multiple of so many float64 are aligned: for them no padded configuration exists."""
NOISE = 0.01
"""Standard deviation of the logarithm of a made-up time."""
SEED = 2026


def multiply_rows(folder: Path, factor: int) -> int:
    """Multiply the recorded acoustic rows of a copy of the project; number of rows then.

    For each recorded size come ``factor - 1`` new ones, slightly larger, in the same parts of the
    study's splits. Rows of a new size are those of the nearest recorded size with unaligned rows
    (the new sizes have unaligned rows, too, so the same configurations exist), with times scaled by
    the number of points and by noise.
    """
    paths = sorted(folder.glob(SWEEPS))
    tables = {path: pyarrow.parquet.read_table(path) for path in paths}
    sizes = {size for table in tables.values() for size in table["n"].unique().to_pylist()}
    added = new_sizes(sizes, factor)
    random = np.random.default_rng(SEED)
    rows = 0
    for path, table in tables.items():
        larger = pyarrow.concat_tables([table, *_replicas(table, added, random)])
        pyarrow.parquet.write_table(larger, path, compression="zstd")
        rows += len(larger)
    _extend_splits(folder, added)
    return rows


def new_sizes(sizes: Iterable[int], factor: int) -> dict[int, list[int]]:
    """The ``factor - 1`` next unaligned sizes that are free, for each size."""
    added: dict[int, list[int]] = {}
    taken = set(sizes)
    for size in sorted(taken):
        added[size] = []
        candidate = size
        while len(added[size]) < factor - 1:
            candidate += 1
            if candidate not in taken and not _aligned(candidate):
                added[size].append(candidate)
                taken.add(candidate)
    return added


def _aligned(size: int) -> bool:
    return size % ALIGNED_POINTS == 0


def _replicas(
    table: pyarrow.Table, added: Mapping[int, list[int]], random: np.random.Generator
) -> Iterator[pyarrow.Table]:
    """Rows of the new sizes of one GPU's sweep."""
    recorded = table["n"].to_numpy()
    unaligned = [size for size in np.unique(recorded) if not _aligned(size)]
    for size in np.unique(recorded):
        source = min(unaligned, key=lambda other: abs(int(other) - int(size)))
        rows = table.filter(pyarrow.array(recorded == source)).combine_chunks()
        for new in added[int(size)]:
            noise = np.exp(random.normal(0, NOISE, len(rows)))
            yield _scaled(rows, new, (new / source) ** 3 * noise)


def _scaled(rows: pyarrow.Table, size: int, factors: np.ndarray[Any, Any]) -> pyarrow.Table:
    """``rows`` for another size, each time multiplied by the row's factor."""
    sizes = pyarrow.array(np.full(len(rows), size), rows.schema.field("n").type)
    columns = {"n": sizes}
    for name in TIMES:
        columns[name] = pyarrow.array(rows[name].to_numpy() * factors)
    lists = rows[REPEATED_TIMES].combine_chunks()
    repeats = np.diff(lists.offsets.to_numpy())
    times = lists.flatten().to_numpy() * np.repeat(factors, repeats)
    columns[REPEATED_TIMES] = pyarrow.ListArray.from_arrays(lists.offsets, pyarrow.array(times))
    for name, column in columns.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(name)
        rows = rows.set_column(place, field, column.cast(field.type))
    return rows


def _extend_splits(folder: Path, added: Mapping[int, list[int]]) -> None:
    """Put each new size where the study's splits have the size that it came from."""
    splits: dict[str, dict[str, Any]] = find_studies(folder)[STUDY]["splits"]
    for split in splits.values():
        for part in ("train", "test", "among"):
            if problems := split.get(part):
                sizes = {each for size in problems["n"] for each in (size, *added[size])}
                split[part] = {**problems, "n": sorted(sizes)}
    settings = read_settings(folder)
    settings["studies"] = {STUDY: {}, **(settings.get("studies") or {})}
    settings["studies"][STUDY]["splits"] = splits
    write_settings(folder, settings)
