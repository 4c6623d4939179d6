"""Cards of devices that files of others name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.places import shipped
from launchwise.base.storage import read_records
from launchwise.gpus.datasheets import Datasheet

DEVICE_NAMES_FILE = "data/device_names.csv"
"""Names that drivers give to devices, and the card of each in ``data/cards.csv``."""

COLUMNS = ["device", "card"]

_VENDORS = re.compile(r"\b(nvidia|amd|geforce|radeon|pro|instinct|tesla|quadro|gpu|graphics)\b")


def read_device_names(path: str | Path | None = None) -> dict[str, str]:
    """Device name, simplified (:func:`simplified`), to card.

    Raises
    ------
    UserError
        When the file is no such table.
    """
    return {simplified(device): card for device, card in _device_names(path)}


def cuda_names(path: str | Path | None = None) -> dict[str, list[str]]:
    """Card to what drivers call its devices.

    Raises
    ------
    UserError
        When the file is no such table.
    """
    found: dict[str, list[str]] = {}
    for device, card in _device_names(path):
        found.setdefault(card, []).append(device)
    return found


def _device_names(path: str | Path | None) -> list[tuple[str, str]]:
    path = path or shipped(DEVICE_NAMES_FILE)
    columns, records = read_records(path)
    if columns != COLUMNS:
        raise UserError(path, "", f"must have the columns {', '.join(COLUMNS)}")
    return [(record["device"], record["card"]) for _, record in records]


def simplified(name: str) -> str:
    """``name`` without maker, product line, punctuation and case."""
    return "".join(parts_of_name(name))


def parts_of_name(name: str) -> list[str]:
    """Words of ``name`` without maker and product line, in lower case."""
    return re.findall(r"[a-z0-9]+", _VENDORS.sub("", name.lower()))


def card_of(
    device: str, cards: Mapping[str, Datasheet], names: Mapping[str, str]
) -> Datasheet | None:
    """Datasheet of a device: by its name in the table, else by that of the card; None if unknown.

    Parameters
    ----------
    names
        Simplified device name to card (:func:`read_device_names`).
    """
    wanted = simplified(device)
    if not wanted:
        return None
    if wanted in names:
        return cards.get(names[wanted])
    found = [card for card in cards if simplified(card) == wanted]
    return cards[found[0]] if found else None


def gpu_name(device: str) -> str:
    """A name that a GPU may have in settings, made of a device's."""
    return re.sub(r"[^A-Za-z0-9]+", "_", device).strip("_").lower()
