"""The GPUs page: attributes, ceilings, and the best times of every GPU."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from launchwise.gpus.profile import GpuProfile
from recomputing.comparing import Figure, Ledger, Table
from recomputing.entries import NUMBERS, Entry
from recomputing.material import Material
from recomputing.pages import ShownPage, ShownTable, read_script

DIGITS = 4
"""Significant digits of times and gains in the data of the comparison."""

UNITS = {"gbs": ("GB/s", 1.0), "gflops": ("TFLOP/s", 1e3), "us": ("µs", 1.0), "ns": ("ns", 1.0)}
"""End of a ceiling's name to its unit on the page, and its factor to that unit."""

Read = Callable[[GpuProfile], Figure]


def _measured(name: str) -> Read:
    """A ceiling, where it was measured and is no estimate."""
    return lambda one: getattr(one.ceilings, name) if one.source == "measured" else None


def _teraflops(name: str) -> Read:
    """A rate, TFLOP/s; the profile has GFLOP/s."""

    def read(one: GpuProfile) -> Figure:
        rate = getattr(one.ceilings, name)
        return None if rate is None else rate / 1e3

    return read


ATTRIBUTES: dict[str, tuple[Read, int | None]] = {
    "CUDA cores": (lambda one: one.cores, None),
    "SM clock (MHz)": (lambda one: one.clock_mhz, 4),
    "memory (GB)": (lambda one: one.memory_bytes / 1e9, 3),
    "memory bandwidth, theoretical (GB/s)": (lambda one: one.memory_bandwidth_gbs, 4),
    "copy bandwidth, measured (GB/s)": (_measured("copy_bandwidth_gbs"), 4),
    "launch overhead, measured (µs)": (_measured("launch_overhead_us"), 3),
    "L2 cache (MB)": (lambda one: one.l2_bytes / 2**20, 3),
    "shared memory per SM (KB)": (lambda one: one.shared_per_sm_bytes / 2**10, 3),
    "registers per SM": (lambda one: one.registers_per_sm, None),
}
"""Column to its value and the significant digits that are shown of it."""

DATASHEETS: dict[str, tuple[Read, int | None]] = {
    "SMs": (lambda one: one.sms, None),
    "CUDA cores": (lambda one: one.cores, None),
    "SM clock (MHz)": (lambda one: one.clock_mhz, 4),
    "memory (GB)": (lambda one: one.memory_bytes / 1e9, 3),
    "bandwidth (GB/s)": (lambda one: one.memory_bandwidth_gbs, 4),
    "L2 cache (MB)": (lambda one: one.l2_bytes / 2**20, 3),
    "ceilings, estimated: copies (GB/s)": (lambda one: one.ceilings.copy_bandwidth_gbs, 4),
    "ceilings, estimated: FP32 (TFLOP/s)": (_teraflops("float32_gflops"), 3),
    "ceilings, estimated: FP64 (TFLOP/s)": (_teraflops("float64_gflops"), 3),
}


def compare(
    page: ShownPage,
    folder: Path,
    materials: Sequence[Material],
    entries: Mapping[str, Sequence[Entry]],
    spread: tuple[float, int] | None,
    power: Mapping[str, float],
    ledger: Ledger,
) -> None:
    """Compare the tables of GPUs, and the data of the comparison.

    Parameters
    ----------
    folder
        The report's.
    spread
        Of :func:`recomputing.entries.spread_of`.
    power
        Of :func:`power_of`.
    """
    measured = {gpu: one.profiles[gpu] for one in materials for gpu in one.gpus}
    described = {gpu: one.profiles[gpu] for one in materials for gpu in one.described}
    for each in page.tables_of("GPUs: attributes"):
        table = ledger.table(page.path, each.caption)
        _profiles(each, measured, ATTRIBUTES, table)
        _texts(each, measured, table)
    for each in page.tables_of("Measured ceilings per GPU"):
        _ceilings(each, measured, ledger.table(page.path, each.caption))
    for each in page.tables_of("Datasheet-only GPUs"):
        table = ledger.table(page.path, each.caption)
        _profiles(each, described, DATASHEETS, table)
        for row in each.records():
            one = described[row["GPU"].text]
            table.words(one.name, row["compute capability"], _capability(one))
    for _, said in page.sentences:
        if said.text.startswith("Hatched rows") and spread is not None:
            table = ledger.table(page.path, "sentences")
            said.seen = True
            table.numbers("intervals of predictions", said.text, 90, spread[1], spread[0])
    _comparisons(folder, materials, entries, ledger)
    table = ledger.table(page.path, "data/gpus.csv")
    _csv(folder / "data/gpus.csv", materials, entries, power, table)


def _capability(one: GpuProfile) -> str:
    if one.arch.startswith("gfx"):
        return one.arch
    return ".".join(map(str, one.compute_capability))


def _profiles(
    shown: ShownTable,
    profiles: Mapping[str, GpuProfile],
    columns: Mapping[str, tuple[Read, int | None]],
    table: Table,
) -> None:
    rows = {row["GPU"].text: row for row in shown.turned("GPU").records()}
    table.same("GPUs", sorted(rows), sorted(profiles))
    for gpu, row in rows.items():
        if (one := profiles.get(gpu)) is None:
            continue
        for name, (read, digits) in columns.items():
            table.cell(f"{gpu}, {name}", row[name], read(one), digits=digits)


def _texts(shown: ShownTable, profiles: Mapping[str, GpuProfile], table: Table) -> None:
    for row in shown.turned("GPU").records():
        if (one := profiles.get(row["GPU"].text)) is None:
            continue
        table.words(f"{one.name}, device", row["device"], one.device_name)
        table.words(f"{one.name}, capability", row["compute capability"], _capability(one))
        used = row["SMs used (of the card's)"]
        table.words(f"{one.name}, SMs", used, f"{one.sms} of {one.whole_card_sms}")
        versions = " / ".join(filter(None, (one.driver, one.toolkit))) or "–"
        table.words(f"{one.name}, driver", row["driver / CUDA"], versions)


def _ceilings(shown: ShownTable, profiles: Mapping[str, GpuProfile], table: Table) -> None:
    rows = {row["GPU"].text: row for row in shown.turned("GPU").records()}
    table.same("GPUs", sorted(rows), sorted(profiles))
    known = {}
    for name in next(iter(profiles.values())).ceilings.model_dump():
        title, _, end = name.rpartition("_")
        unit, factor = UNITS[end]
        values = {gpu: _measured(name)(one) for gpu, one in profiles.items()}
        if any(value is not None for value in values.values()):
            known[f"{title.replace('_', ' ')} ({unit})"] = values, factor
    headings = [one for one in next(iter(rows.values())) if one != "GPU"]
    table.same("ceilings", sorted(headings), sorted(known))
    for name, (values, factor) in known.items():
        for gpu, value in values.items():
            if gpu in rows and name in rows[gpu]:
                scaled = None if value is None else value / factor
                table.cell(f"{gpu}, {name}", rows[gpu][name], scaled, digits=4)


def _comparisons(
    folder: Path,
    materials: Sequence[Material],
    entries: Mapping[str, Sequence[Entry]],
    ledger: Ledger,
) -> None:
    for one in materials:
        path = f"data/{one.name}.gpus.js"
        table, data = ledger.table("gpus.html", path), read_script(folder / path)
        shown = {
            (data["gpus"][gpu]["name"], *data["problems"][problem]): (data["gpus"][gpu], numbers)
            for gpu, problem, *numbers in data["entries"]
        }
        found = {(each.gpu, *each.problem): each for each in entries[one.name]}
        table.same("problems", sorted(map(str, shown)), sorted(map(str, found)))
        for key, each in found.items():
            if key in shown:
                gpu, numbers = shown[key]
                place = " ".join(map(str, key))
                table.same(f"{place}, basis", gpu["basis"], each.basis)
                for name, number in zip(NUMBERS, numbers, strict=True):
                    value = getattr(each, name)
                    table.rounded(f"{place}, {name}", [number], [value], DIGITS)


def power_of(materials: Sequence[Material], cards: Path) -> dict[str, float]:
    """GPU to the thermal design power of its card, W: by its name, a slice's before the point.

    Parameters
    ----------
    cards
        Table of datasheets.
    """
    profiles = {gpu: each for one in materials for gpu, each in one.profiles.items()}
    rows = pd.read_csv(cards)
    rows = rows[rows["figure"] == "tdp_w"]
    known = dict(zip(rows["card"], rows["value"].astype(float), strict=True))
    found = {}
    for gpu, one in profiles.items():
        names = (gpu, gpu.partition(".")[0], one.device_name)
        if (watt := next((known[name] for name in names if name in known), None)) is not None:
            found[gpu] = watt
    return found


def _csv(
    path: Path,
    materials: Sequence[Material],
    entries: Mapping[str, Sequence[Entry]],
    power: Mapping[str, float],
    table: Table,
) -> None:
    with open(path, newline="", encoding="utf-8") as handle:
        shown = {(row["study"], row["gpu"], row["problem"]): row for row in csv.DictReader(handle)}
    found = {}
    for one in materials:
        for each in entries[one.name]:
            named = zip(one.problem, each.problem, strict=True)
            problem = " ".join(f"{name}={value}" for name, value in named)
            found[one.name, each.gpu, problem] = each
    table.same("rows", sorted(shown), sorted(found))
    for key, each in found.items():
        if (row := shown.get(key)) is None:
            continue
        place = " ".join(key)
        table.same(f"{place}, basis", row["basis"], each.basis)
        for name in NUMBERS:
            table.rounded(f"{place}, {name}", [_number(row[name])], [getattr(each, name)], DIGITS)
        table.rounded(f"{place}, TDP", [_number(row["tdp_w"])], [power.get(each.gpu)], DIGITS)


def _number(text: str) -> float | None:
    return float(text) if text else None
