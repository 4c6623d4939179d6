"""Prices of GPUs: an optional table of the user's, one row per GPU."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.base.storage import read_records

COLUMNS = ("gpu", "euro", "euro_per_hour", "date", "source")


@dataclass(frozen=True)
class Price:
    """Prices of a GPU."""

    euro: float | None  # to buy, euro; None where it is unknown
    # To rent, or of owning and running it, euro per hour; None where it is unknown.
    euro_per_hour: float | None
    date: str  # day of the price, ISO
    source: str  # source of the price


def read_prices(
    path: str | Path, gpus: Collection[str], cards: Collection[str] = ()
) -> dict[str, Price]:
    """Prices by GPU of the settings; rows of other known ``cards`` are checked and left out, so
    that one table serves several settings. Raises UserError in one line with that of the file: a
    column is missing or strange, a GPU unknown or given twice, a price no number or negative, a row
    has neither price, a date is none, a source is missing."""
    _, records = read_records(path, COLUMNS)
    found: dict[str, Price] = {}
    for line, record in records:
        where = f"line {line}"
        gpu = record["gpu"].strip()
        if gpu not in gpus and gpu not in cards:
            raise UserError(path, where, unknown("GPU", gpu, [*gpus, *cards]))
        if gpu in found:
            raise UserError(path, where, f"{gpu} is given twice")
        found[gpu] = _price(record, path, where)
    return {gpu: price for gpu, price in found.items() if gpu in gpus}


def _price(record: Mapping[str, str], path: str | Path, where: str) -> Price:
    euro, per_hour = (_amount(record, name, path, where) for name in COLUMNS[1:3])
    if euro is None and per_hour is None:
        raise UserError(path, where, "must state euro, euro_per_hour or both")
    date = record["date"].strip()
    try:
        datetime.date.fromisoformat(date)
    except ValueError as error:
        message = f"date: must be a day such as 2026-11-24 (got {date!r})"
        raise UserError(path, where, message) from error
    source = record["source"].strip()
    if not source:
        raise UserError(path, where, "source: must say where the price is from")
    return Price(euro, per_hour, date, source)


def _amount(record: Mapping[str, str], name: str, path: str | Path, where: str) -> float | None:
    text = record[name].strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise UserError(path, where, f"{name}: must be a positive number (got {text!r})")
    return value
