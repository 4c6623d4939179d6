"""Multiplies the measured GPUs of a copy of the project: each copy is a card of its own."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from harness.projects import find_studies, read_settings, workload_of, write_settings
from launchwise.gpus.profile import read_profile, write_profile

SEED = 2026
LEAST_CHANGE, LARGEST_CHANGE = 0.01, 0.03
"""Limits of the change of a copy's times, up or down."""

PER_TIME = ("bandwidth_gbs", "flop_rate_gflops")
"""Columns that are divided where a row's time is multiplied."""


def multiply_gpus(folder: Path, factor: int, studies: Iterable[str]) -> int:
    """Put ``factor - 1`` copies beside each measured GPU of a copy of the project.

    A copy has a name, a card and a model of card of its own; slices of a card are copied to slices
    of its copy. The times of each row are changed by 1 to 3 %. Blind tests are not copied.

    Parameters
    ----------
    studies
        Studies that will run: other rows are not copied.

    Returns
    -------
    int
        Number of GPUs that a study learns from.
    """
    settings, entries = read_settings(folder), find_studies(folder)
    workloads = {study: workload_of(folder, study) for study in studies}
    stems = {*workloads, *workloads.values()}
    measured = [
        name
        for name in settings["gpus"]
        if any(_is_learnt_from(folder, settings, name, *one) for one in workloads.items())
    ]
    changed = {study: dict((settings.get("studies") or {}).get(study) or {}) for study in workloads}
    for number in range(1, factor):
        for name in measured:
            copy, home = f"{name}.copy{number}", _home(settings, name)
            path = f"{home}.copy{number}"
            _copy_gpu(folder / home, folder / path, copy, number, stems)
            settings["gpus"][copy] = {**settings["gpus"][name], "path": path}
            for study, entry in entries.items():
                left_out = entry.get("leave_out") or {}
                if study in changed and name in left_out:
                    changed[study].setdefault("leave_out", dict(left_out))[copy] = left_out[name]
    write_settings(folder, {**settings, "studies": {**(settings.get("studies") or {}), **changed}})
    return factor * len(measured)


def rows_of_studies(folder: Path, studies: Iterable[str]) -> dict[str, dict[str, int]]:
    """Rows of the sweeps that each study of a copy learns from, by GPU."""
    settings = read_settings(folder)
    found: dict[str, dict[str, int]] = {}
    for study in studies:
        workload = workload_of(folder, study)
        found[study] = {
            gpu: pyarrow.parquet.read_metadata(
                folder / _home(settings, gpu) / f"{workload}.parquet"
            ).num_rows
            for gpu in settings["gpus"]
            if _is_learnt_from(folder, settings, gpu, study, workload)
        }
    return found


def _home(settings: dict[str, Any], gpu: str) -> str:
    """Folder of a recorded GPU."""
    return str(settings["gpus"][gpu].get("path", f"data/recorded/{gpu}"))


def _is_learnt_from(
    folder: Path, settings: dict[str, Any], gpu: str, study: str, workload: str
) -> bool:
    """Whether a study has recorded rows of a GPU."""
    entry = settings["gpus"][gpu]
    return (
        entry["source"] == "recorded"
        and not entry.get("held_out", False)
        and study in (entry.get("studies") or [study])
        and (folder / _home(settings, gpu) / f"{workload}.parquet").is_file()
    )


def _copy_gpu(source: Path, target: Path, name: str, number: int, stems: set[str]) -> None:
    """Copy profile, sweeps and pairs; files are told by what stands before their first dot."""
    target.mkdir(parents=True)
    profile = read_profile(source / "profile.json")
    known = {"name": name, "device_name": f"{profile.device_name} {number}"}
    card = _other_card(profile.card, number)
    write_profile(target / "profile.json", profile.model_copy(update={**known, "card": card}))
    for path in sorted(source.iterdir()):
        if path.name.partition(".")[0] not in stems:
            continue
        if path.suffix == ".parquet":
            random = np.random.default_rng([SEED, number, *path.name.encode()])
            rows = _changed(pyarrow.parquet.read_table(path), name, number, random)
            pyarrow.parquet.write_table(rows, target / path.name, compression="zstd")
        else:
            shutil.copy(path, target)


def _other_card(card: str, number: int) -> str:
    """Hash of another card's UUID; empty where that of the card is unknown."""
    return card and hashlib.sha256(f"{card} {number}".encode()).hexdigest()[: len(card)]


def _changed(
    rows: pyarrow.Table, gpu: str, number: int, random: np.random.Generator
) -> pyarrow.Table:
    """Rows of another card, each row's times multiplied by a factor."""
    up = random.choice([-1.0, 1.0], len(rows))
    factors = np.exp(up * random.uniform(LEAST_CHANGE, LARGEST_CHANGE, len(rows)))
    columns: dict[str, Any] = {"gpu": pyarrow.array([gpu] * len(rows))}
    if "card" in rows.column_names:
        cards = rows["card"].to_pylist()
        others = {card: _other_card(card, number) for card in set(cards)}
        columns["card"] = pyarrow.array([others[card] for card in cards])
    for field in rows.schema:
        if field.name in PER_TIME:
            columns[field.name] = pyarrow.array(_numbers(rows, field.name) / factors)
        elif field.name.endswith("_ms") and pyarrow.types.is_list(field.type):
            columns[field.name] = _times_of_lists(rows[field.name], factors)
        elif field.name.endswith("_ms") and pyarrow.types.is_floating(field.type):
            columns[field.name] = pyarrow.array(_numbers(rows, field.name) * factors)
    for name, values in columns.items():
        field = rows.schema.field(name)
        missing = rows[name].combine_chunks().is_null()
        values = pyarrow.compute.if_else(missing, None, values.cast(field.type))
        rows = rows.set_column(rows.schema.get_field_index(name), field, values)
    return rows


def _numbers(rows: pyarrow.Table, name: str) -> np.ndarray[Any, Any]:
    """A column of real numbers, NaN where one is missing."""
    return np.asarray(rows[name].to_numpy(), dtype=float)


def _times_of_lists(column: pyarrow.ChunkedArray, factors: np.ndarray[Any, Any]) -> pyarrow.Array:
    """Lists of times, each multiplied by the factor of its row."""
    lists = column.combine_chunks()
    times = lists.flatten().to_numpy(zero_copy_only=False)
    repeats = np.diff(lists.offsets.to_numpy())
    return pyarrow.ListArray.from_arrays(
        lists.offsets, pyarrow.array(times * np.repeat(factors, repeats))
    )
