"""The GPUs page: attributes, ceilings, and the best times of every GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from launchwise.gpus.profile import WITH_HOST, GpuProfile
from recomputing.comparing import Cell, Cells, Ledger
from recomputing.entries import NUMBERS, Entry
from recomputing.material import Material
from recomputing.pages import Record, ShownPage, read_script

DIGITS = 4  # significant digits of times and gains in the data of the comparison

UNITS = {"gbs": ("GB/s", 1.0), "gflops": ("TFLOP/s", 1e3), "us": ("µs", 1.0), "ns": ("ns", 1.0)}
"""End of a ceiling's name to its unit on the page, and its factor to that unit."""


def _attributes(one: GpuProfile) -> Cells:
    capability = ".".join(map(str, one.compute_capability))
    versions = " / ".join(filter(None, (one.driver, one.toolkit)))
    return {
        "device": one.device_name,
        "compute capability": one.arch if one.arch.startswith("gfx") else capability,
        "SMs used (of the card's)": f"{one.sms} of {one.whole_card_sms}",
        # A column of dashes is not shown.
        **({"driver / CUDA": versions} if versions else {}),
        "CUDA cores": one.cores,
        "SM clock (MHz)": Cell(one.clock_mhz, digits=4),
        "memory (GB)": Cell(one.memory_bytes / 1e9, digits=3),
        "L2 cache (MB)": Cell(one.l2_bytes / 2**20, digits=3),
        "memory bandwidth, theoretical (GB/s)": Cell(one.memory_bandwidth_gbs, digits=4),
        "shared memory per SM (KB)": Cell(one.shared_per_sm_bytes / 2**10, digits=3),
        "registers per SM": one.registers_per_sm,
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

    ``folder``: the report's.
    ``spread``: of :func:`recomputing.entries.spread_of`.
    ``power``: GPU to the thermal design power of its card, W.
    """
    measured = {gpu: one.profiles[gpu] for one in materials for gpu in one.gpus}
    described = {gpu: one.profiles[gpu] for one in materials for gpu in one.described}
    for caption, wanted in (
        ("GPUs: attributes", {gpu: _attributes(one) for gpu, one in measured.items()}),
        (
            "Measured ceilings per GPU",
            {
                gpu: partial(_ceilings, one)
                for gpu, one in measured.items()
                if one.has_measured_ceilings
            },
        ),
        ("Datasheet-only GPUs", {gpu: _attributes(one) for gpu, one in described.items()}),
    ):
        ledger.beside(page, caption, ["GPU"], wanted)
    for each in page.tables_of("Measured ceilings per GPU"):
        known = _known_ceilings(measured.values())
        headings = [name for name in next(iter(each.rows_by(["GPU"]).values())) if name != "GPU"]
        ledger.table(page.path, each.caption).same("ceilings", sorted(headings), sorted(known))
    for _, said in page.sentences:
        _, hatched, intervals = said.text.partition("Hatched rows")
        if hatched and spread is not None:
            said.seen = True
            table = ledger.table(page.path, "sentences")
            table.numbers("intervals of predictions", intervals, 90, *reversed(spread))
    _comparisons(folder, materials, entries, power, ledger)


def _ceiling_cells(one: GpuProfile) -> dict[str, Cell]:
    """Title of each ceiling to its value, where that was measured and is no estimate."""
    found = {}
    for name, ceiling in one.ceilings.model_dump().items():
        title, _, end = name.rpartition("_")
        (unit, factor), value = UNITS[end], ceiling if one.source == "measured" else None
        scaled = None if value is None else value / factor
        words = title.replace("_", " ") + (", of GPU and host" if name in WITH_HOST else "")
        found[f"{words} ({unit})"] = Cell(scaled, digits=4)
    return found


def _known_ceilings(profiles: Iterable[GpuProfile]) -> list[str]:
    """Titles of what some GPU has."""
    every = [_ceiling_cells(one) for one in profiles]
    return [name for name in every[0] if any(each[name].text is not None for each in every)]


def _ceilings(one: GpuProfile, row: Record) -> Cells:
    return {name: cell for name, cell in _ceiling_cells(one).items() if name in row}


def _comparisons(
    folder: Path,
    materials: Sequence[Material],
    entries: Mapping[str, Sequence[Entry]],
    power: Mapping[str, float],
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
        above = [
            (data["gpus"][gpu]["name"], *data["problems"][problem])
            for gpu, problem in data["above"]
        ]
        hot = [
            key
            for key, each in found.items()
            if 1e3 * (each.energy_j or 0.0) / each.best_ms > power.get(each.gpu, math.inf)
        ]
        table.same("energies above the limit", sorted(map(str, above)), sorted(map(str, hot)))
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

    ``cards``: table of datasheets.
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
