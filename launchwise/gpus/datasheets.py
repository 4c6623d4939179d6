"""Tables of cards: figures of datasheets, profiles computed from them, and prices.

``data/cards.csv`` holds one figure per row, with its unit and its source. No kernel reaches the
figures of a datasheet, so the ceilings of a datasheet-only card are its figures times the
efficiency of one measured GPU: its measured ceilings divided by the figures of its own datasheet.
Prices are an optional table of the user's, one row per GPU.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from launchwise.base.errors import UserError, unknown
from launchwise.base.places import shipped
from launchwise.base.storage import read_records
from launchwise.base.typed import Strict, validated
from launchwise.gpus.machine import HOPPER, tensor_share
from launchwise.gpus.profile import CORES_PER_SM, Ceilings, GpuProfile, read_profile

CARDS_FILE = "data/cards.csv"

REFERENCE_PROFILE = "data/recorded/h200/profile.json"
"""Profile of the measured GPU whose efficiency the ceilings of datasheet-only cards assume. The
GPU has the name of its card in :data:`CARDS_FILE`."""

COLUMNS = ("card", "figure", "value", "unit", "source")

FIGURES = {
    **{"compute_capability": "1", "sms": "1", "boost_clock_mhz": "MHz"},
    **{"float32_gflops": "GFLOP/s", "float64_gflops": "GFLOP/s", "memory_bandwidth_gbs": "GB/s"},
    **{"memory_bytes": "B", "l2_bytes": "B", "shared_per_sm_bytes": "B"},
    **{"shared_per_block_bytes": "B", "registers_per_sm": "1", "max_threads_per_sm": "1"},
    "max_threads_per_block": "1",
}
"""Required figure of a card to its unit (1 for a count)."""

SIZES = [name for name, unit in FIGURES.items() if unit in "1B" and name != "compute_capability"]
"""Integer figures; a profile has the same names."""

TENSOR_FIGURES = dict.fromkeys(("tf32_gflops", "float16_gflops", "bfloat16_gflops"), "GFLOP/s")
"""Dense rates of tensor cores with float32 accumulation; empty for cards without tensor cores."""

AMD_FIGURES = {"gfx_target": "hex", "wavefront_threads": "1"}
"""Figures that a card of AMD has instead of a compute capability: the number in LLVM's name of its
target (90a of ``gfx90a``, hexadecimal) and the threads of a wavefront. Its SMs are compute units,
its shared memory is the local data share (LDS)."""

STREAM_PROCESSORS_PER_CU = 64
"""FP32 lanes of a compute unit (CDNA 2, RDNA 2 and RDNA 3 architecture documents of AMD)."""

NO_CAPABILITY = (0, 0)  # Compute capability of a card of AMD, which has none

POWER_FIGURES = {"tdp_w": "W"}
"""Thermal design power of the whole card; empty for cards whose maker leaves it to the machine."""

UNITS = {**FIGURES, **TENSOR_FIGURES, **AMD_FIGURES, **POWER_FIGURES}

FLOP_FIGURES = ("float32_gflops", "float64_gflops")
"""Peaks of multiply-adds. They and the tensor rates have the same names among the ceilings."""


class Datasheet(Strict):
    """Figures of a card from documents."""

    name: str
    figures: dict[str, float] = Field({})  # name of a figure to its value, in its unit of UNITS
    sources: dict[str, str] = Field({})  # name of a figure to the document that states it
    where: str = CARDS_FILE  # path of the table, for messages

    @property
    def missing(self) -> list[str]:
        """Figures without which a card has no profile."""
        instead = AMD_FIGURES if self.is_amd else {"compute_capability": "1"}
        needed = [*instead, *(figure for figure in FIGURES if figure != "compute_capability")]
        return [figure for figure in needed if figure not in self.figures]

    @property
    def is_amd(self) -> bool:
        return "gfx_target" in self.figures

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor number; :data:`NO_CAPABILITY` of a card of AMD."""
        if self.is_amd:
            return NO_CAPABILITY
        major, minor = divmod(round(10 * self.figures["compute_capability"]), 10)
        return major, minor

    @property
    def arch(self) -> str:
        """Architecture, such as ``sm_90`` or ``gfx90a``."""
        if self.is_amd:
            return f"gfx{int(self.figures['gfx_target']):x}"
        return "sm_{}{}".format(*self.compute_capability)

    @property
    def cores(self) -> int:
        """FP32 lanes of all SMs."""
        known = CORES_PER_SM.get(self.compute_capability, 0)
        return int(self.figures["sms"]) * (STREAM_PROCESSORS_PER_CU if self.is_amd else known)


def read_cards(path: str | Path | None = None) -> dict[str, Datasheet]:
    """Datasheets of a table (the project's own when left out) by card, incomplete ones included
    (:attr:`Datasheet.missing`). Raises UserError when it is no such table; naming card and figure
    when a figure is unknown, given twice, not a positive number, in another unit, or without a
    source."""
    path = shipped(CARDS_FILE) if path is None else path
    _, records = read_records(path, COLUMNS)
    figures: dict[str, dict[str, float]] = {}
    sources: dict[str, dict[str, str]] = {}
    for line, record in records:
        if not record["card"]:
            raise UserError(path, f"line {line}", "must name a card")
        card, figure = record["card"], record["figure"]
        known = figures.setdefault(card, {})
        if figure in known:
            raise UserError(path, f"{card}.{figure}", "is given twice")
        known[figure] = _value(record, path)
        sources.setdefault(card, {})[figure] = record["source"]
    return {
        name: Datasheet(name=name, figures=figures[name], sources=sources[name], where=str(path))
        for name in figures
    }


def _value(record: Mapping[str, str], path: str | Path) -> float:
    figure, key = record["figure"], f"{record['card']}.{record['figure']}"
    if figure not in UNITS:
        raise UserError(path, key, unknown("figure", figure, UNITS))
    if record["unit"] != UNITS[figure]:
        raise UserError(path, key, f"must be in {UNITS[figure]} (got {record['unit']!r})")
    if not record["source"].strip():
        raise UserError(path, key, "must name its source")
    try:
        is_hex = record["unit"] == "hex"
        value = float(int(record["value"], 16) if is_hex else record["value"])
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise UserError(path, key, f"must be a positive number (got {record['value']!r})")
    if figure in SIZES and value % 1:
        raise UserError(path, key, f"must be a whole number (got {record['value']!r})")
    return value


@dataclass(frozen=True)
class Efficiency:
    """Measured ceilings of one GPU divided by the figures of its datasheet."""

    # Bandwidth of a device-to-device copy, read + written, divided by the memory bandwidth.
    copy_bandwidth: float
    # Each of FLOP_FIGURES and TENSOR_FIGURES to its measured divided by its stated rate: of tensor
    # cores that of ``mma`` and the dense one.
    rates: Mapping[str, float]
    # Time of an empty kernel launched behind another, us: mostly the host's work, so it is taken
    # over as it is.
    launch_overhead_us: float

    @classmethod
    def of(cls, measured: GpuProfile, datasheet: Datasheet) -> Efficiency:
        """Efficiency of a whole card with measured ceilings of all rates, by the datasheet of the
        same card. Raises UserError when a rate was not measured or the datasheet does not state
        it."""
        reached = measured.ceilings.model_dump(exclude_none=True)
        needed = (*FLOP_FIGURES, *TENSOR_FIGURES)
        if lacking := [key for key in needed if key not in reached]:
            message = f"lacks {', '.join(lacking)}"
            raise UserError(f"profile of {measured.name}", "ceilings", message)
        stated = datasheet.figures
        if lacking := [key for key in ("memory_bandwidth_gbs", *needed) if key not in stated]:
            raise UserError(datasheet.where, datasheet.name, f"lacks {', '.join(lacking)}")
        return cls(
            copy_bandwidth=reached["copy_bandwidth_gbs"] / stated["memory_bandwidth_gbs"],
            rates={key: reached[key] / stated[key] for key in needed},
            launch_overhead_us=reached["launch_overhead_us"],
        )

    def ceilings(self, datasheet: Datasheet) -> Ceilings:
        """Estimated ceilings of another card. Tensor cores before Hopper reach the share of the
        literature (:func:`launchwise.gpus.machine.tensor_share`), those from Hopper on that of this
        GPU. Cards without tensor cores get no tensor rates."""
        figures, capability = datasheet.figures, datasheet.compute_capability
        older = TENSOR_FIGURES if capability < HOPPER else ()
        shares = {**self.rates, **dict.fromkeys(older, tensor_share(capability))}
        return Ceilings(
            copy_bandwidth_gbs=self.copy_bandwidth * figures["memory_bandwidth_gbs"],
            launch_overhead_us=self.launch_overhead_us,
            **{key: share * figures[key] for key, share in shares.items() if key in figures},
        )


def reference_efficiency(
    cards: Mapping[str, Datasheet], path: str | Path | None = None
) -> Efficiency:
    """Efficiency of the reference GPU, relative to its datasheet in ``cards``. Raises UserError
    when there is no such profile, or its card or one of its figures is not in ``cards``."""
    measured = read_profile(path or shipped(REFERENCE_PROFILE))
    return Efficiency.of(measured, find_datasheet(measured.name, cards))


def slowest_bandwidths(cards: Mapping[str, Datasheet]) -> dict[str, float]:
    """Architecture, such as ``sm_90``, to the memory bandwidth of its slowest card, GB/s. Cards
    without a compute capability or a memory bandwidth are left out."""
    found: dict[str, float] = {}
    for each in cards.values():
        if {"compute_capability", "memory_bandwidth_gbs"} <= each.figures.keys():
            bandwidth = each.figures["memory_bandwidth_gbs"]
            found[each.arch] = min(bandwidth, found.get(each.arch, bandwidth))
    return found


def find_datasheet(card: str, cards: Mapping[str, Datasheet]) -> Datasheet:
    """The datasheet of a card. Raises UserError when there is none."""
    if card not in cards:
        where = next((each.where for each in cards.values()), CARDS_FILE)
        raise UserError(where, "", unknown("card", card, cards))
    return cards[card]


def described_profile(
    name: str,
    cards: Mapping[str, Datasheet],
    efficiency: Efficiency,
    card: str | None = None,
    host_gbs: float | None = None,
) -> GpuProfile:
    """The profile of a card from its datasheet, with ceilings estimated by ``efficiency``.

    ``card``: name of the card, where it is not the GPU's.
    ``host_gbs``: copy rate between host and GPU from page-locked memory, 1e9 B/s: no datasheet of a
        card says what host it is in. None where it is unknown.
    Raises UserError when there is no such card, figures of it are missing, or its compute
    capability (of a card of NVIDIA) is not in :data:`launchwise.gpus.profile.CORES_PER_SM`.
    """
    datasheet = find_datasheet(name if card is None else card, cards)
    if datasheet.missing:
        message = f"lacks {', '.join(datasheet.missing)}"
        raise UserError(datasheet.where, datasheet.name, message)
    figures, capability = datasheet.figures, datasheet.compute_capability
    if capability not in CORES_PER_SM and not datasheet.is_amd:
        message = "has compute capability {}.{}, whose cores per SM are unknown"
        raise UserError(datasheet.where, datasheet.name, message.format(*capability))
    return GpuProfile.described(
        name=name,
        device_name=datasheet.name,
        whole_card_sms=int(figures["sms"]),
        compute_capability=capability,
        arch=datasheet.arch,
        cores=datasheet.cores,
        clock_mhz=figures["boost_clock_mhz"],
        memory_bandwidth_gbs=figures["memory_bandwidth_gbs"],
        **{key: int(figures[key]) for key in SIZES},
        ceilings=efficiency.ceilings(datasheet).model_copy(
            update={"to_device_gbs": host_gbs, "to_host_gbs": host_gbs}
        ),
    )


PRICE_COLUMNS = ("gpu", "euro", "euro_per_hour", "date", "source")

Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Price(Strict):
    """Prices of a GPU."""

    euro: Amount | None = None  # to buy, euro; None where it is unknown
    # To rent, or of owning and running it, euro per hour; None where it is unknown.
    euro_per_hour: Amount | None = None
    date: datetime.date  # day of the price
    source: str

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if self.euro is None and self.euro_per_hour is None:
            raise ValueError("must state euro, euro_per_hour or both")
        return self


def read_prices(
    path: str | Path, gpus: Collection[str], cards: Collection[str] = ()
) -> dict[str, Price]:
    """Prices by GPU of the settings; rows of other known ``cards`` are checked and left out, so
    that one table serves several settings. Raises UserError in one line with that of the file: a
    column is missing or strange, a GPU unknown or given twice, a price no number or negative, a row
    has neither price, a date is none, a source is missing."""
    _, records = read_records(path, PRICE_COLUMNS)
    found: dict[str, Price] = {}
    for line, record in records:
        where = f"{path}: line {line}"
        known = {name: text.strip() for name, text in record.items() if text.strip()}
        gpu = known.pop("gpu", "")
        if gpu not in gpus and gpu not in cards:
            raise UserError(where, "", unknown("GPU", gpu, [*gpus, *cards]))
        if gpu in found:
            raise UserError(where, "", f"{gpu} is given twice")
        found[gpu] = validated(Price, known, where)
    return {gpu: price for gpu, price in found.items() if gpu in gpus}
