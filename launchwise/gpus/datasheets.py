"""GPUs that nobody has at hand: their figures from datasheets, and profiles made of them.

``data/cards.csv`` holds one figure a row, with its unit and where it stands. What a datasheet
promises no kernel reaches, so the ceilings of a described card are its figures by the shares that
a measured GPU reaches of its own.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from launchwise.base.errors import UserError, unknown
from launchwise.base.typed import Strict
from launchwise.gpus.machine import tensor_share
from launchwise.gpus.profile import CORES_PER_SM, Ceilings, GpuProfile

CARDS_FILE = "data/cards.csv"

COLUMNS = ("card", "figure", "value", "unit", "source")

FIGURES = {
    "compute_capability": "1",
    "sms": "1",
    "boost_clock_mhz": "MHz",
    "float32_gflops": "GFLOP/s",
    "float64_gflops": "GFLOP/s",
    "memory_bandwidth_gbs": "GB/s",
    "memory_bytes": "B",
    "l2_bytes": "B",
    "shared_per_sm_bytes": "B",
    "shared_per_block_bytes": "B",
    "registers_per_sm": "1",
    "max_threads_per_sm": "1",
    "max_threads_per_block": "1",
}
"""What must be known of a card -> its unit (1 for a number of things)."""

SIZES = (
    "sms",
    "memory_bytes",
    "l2_bytes",
    "shared_per_sm_bytes",
    "shared_per_block_bytes",
    "registers_per_sm",
    "max_threads_per_sm",
    "max_threads_per_block",
)
"""Whole numbers, which have the same names in a profile."""

TENSOR_FIGURES = {
    "tf32_gflops": "GFLOP/s",
    "float16_gflops": "GFLOP/s",
    "bfloat16_gflops": "GFLOP/s",
}
"""Dense rates of tensor cores, float32 sums; cards without such cores have none."""

UNITS = {**FIGURES, **TENSOR_FIGURES}

# What the H200 of data/recorded/h200/profile.json reaches of its own figures. Other cards may reach
# less or more: whoever measures one knows better.
COPY_SHARE = 0.848
"""Of the memory bandwidth by a copy: 4080 of 4814 GB/s."""

FLOP_SHARES = {"float32_gflops": 0.939, "float64_gflops": 0.990}
"""Of the peaks by multiply-adds: 62.8 of 2 x 16896 x 1.98 = 66.9 TFLOP/s, 33.1 of half of that."""

LAUNCH_OVERHEAD_US = 5.30
"""An empty kernel launched behind another; mostly the host's work, whatever the card is."""


class Card(Strict):
    """What documents say of a card.

    Parameters
    ----------
    figures
        Name of a figure to its value, in the unit that :data:`UNITS` has.
    sources
        Name of a figure to where it stands.
    where
        The table that it was read from, for messages.
    """

    name: str
    figures: dict[str, float] = Field({})
    sources: dict[str, str] = Field({})
    where: str = CARDS_FILE

    @property
    def missing(self) -> list[str]:
        """Figures without which the card cannot be described."""
        return [figure for figure in FIGURES if figure not in self.figures]

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor number."""
        major, minor = divmod(round(10 * self.figures["compute_capability"]), 10)
        return major, minor

    @property
    def cores(self) -> int:
        """FP32 lanes of all SMs."""
        return int(self.figures["sms"]) * CORES_PER_SM[self.compute_capability]


def read_cards(path: str | Path = CARDS_FILE) -> dict[str, Card]:
    """Every card of a table, by name; one that lacks figures is among them (:attr:`Card.missing`).

    Raises
    ------
    UserError
        When the table is no such table; naming card and figure when a figure is unknown, given
        twice, not a positive number, in another unit, or without a source.
    """
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            reader = csv.DictReader(handle, strict=True)
            columns, records = list(reader.fieldnames or []), list(reader)
    except OSError as error:
        raise UserError(path, "", f"cannot be read: {error.strerror}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(path, "", f"is no CSV: {error}") from error
    if columns != list(COLUMNS):
        message = f"must have the columns {', '.join(COLUMNS)} (got {', '.join(columns) or 'none'})"
        raise UserError(path, "", message)
    figures: dict[str, dict[str, float]] = {}
    sources: dict[str, dict[str, str]] = {}
    for number, record in enumerate(records, start=2):
        if None in record or None in record.values() or not record["card"]:
            raise UserError(path, f"row {number}", f"must have {len(COLUMNS)} fields and a card")
        card, figure = record["card"], record["figure"]
        known = figures.setdefault(card, {})
        if figure in known:
            raise UserError(path, f"{card}.{figure}", "is given twice")
        known[figure] = _value(record, path)
        sources.setdefault(card, {})[figure] = record["source"]
    return {
        name: Card(name=name, figures=figures[name], sources=sources[name], where=str(path))
        for name in figures
    }


def _value(record: Mapping[str, str], path: str | Path) -> float:
    """The value of a row, after checking all of it."""
    figure, key = record["figure"], f"{record['card']}.{record['figure']}"
    if figure not in UNITS:
        raise UserError(path, key, unknown("figure", figure, UNITS))
    if record["unit"] != UNITS[figure]:
        raise UserError(path, key, f"must be in {UNITS[figure]} (got {record['unit']!r})")
    if not record["source"].strip():
        raise UserError(path, key, "must name its source")
    try:
        value = float(record["value"])
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise UserError(path, key, f"must be a positive number (got {record['value']!r})")
    if figure in SIZES and value % 1:
        raise UserError(path, key, f"must be a whole number (got {record['value']!r})")
    return value


def described_profile(name: str, cards: Mapping[str, Card], card: str | None = None) -> GpuProfile:
    """The profile of a card from its datasheet, with estimated ceilings.

    Parameters
    ----------
    name
        Of the GPU.
    card
        Of the card, where it is not the GPU's.

    Raises
    ------
    UserError
        When there is no such card, figures of it are missing, or its compute capability is not
        in :data:`launchwise.gpus.profile.CORES_PER_SM`.
    """
    card = name if card is None else card
    if card not in cards:
        where = next((each.where for each in cards.values()), CARDS_FILE)
        raise UserError(where, "", unknown("card", card, cards))
    found = cards[card]
    if found.missing:
        raise UserError(found.where, card, f"lacks {', '.join(found.missing)}")
    figures, capability = found.figures, found.compute_capability
    if capability not in CORES_PER_SM:
        told = "{}.{}".format(*capability)
        message = f"has compute capability {told}, and nobody said how many cores its SMs have"
        raise UserError(found.where, card, message)
    return GpuProfile.described(
        name=name,
        device_name=card,
        whole_card_sms=int(figures["sms"]),
        compute_capability=capability,
        arch="sm_{}{}".format(*capability),
        cores=found.cores,
        clock_mhz=figures["boost_clock_mhz"],
        memory_bandwidth_gbs=figures["memory_bandwidth_gbs"],
        **{key: int(figures[key]) for key in SIZES},
        ceilings=Ceilings(
            copy_bandwidth_gbs=COPY_SHARE * figures["memory_bandwidth_gbs"],
            launch_overhead_us=LAUNCH_OVERHEAD_US,
            **{key: share * figures[key] for key, share in FLOP_SHARES.items()},
            **{
                key: tensor_share(capability) * figures[key]
                for key in TENSOR_FIGURES
                if key in figures
            },
        ),
    )
