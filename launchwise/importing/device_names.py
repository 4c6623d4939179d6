"""Cards of devices that files of others name, and times that no such card takes."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.names import assigned
from launchwise.base.places import shipped
from launchwise.base.storage import read_records
from launchwise.gpus.datasheets import Datasheet

DEVICE_NAMES_FILE = "data/device_names.csv"
"""Names that drivers give to devices, and the card of each in ``data/cards.csv``."""

_VENDORS = re.compile(r"\b(nvidia|amd|geforce|radeon|pro|instinct|tesla|quadro|gpu|graphics)\b")


def read_device_names() -> dict[str, str]:
    """Device name, simplified (:func:`simplified`), to card. Raises UserError when the file is no
    such table."""
    return {simplified(one): card for card, names in cuda_names().items() for one in names}


def cuda_names(path: str | Path | None = None) -> dict[str, list[str]]:
    """Card to what drivers call its devices. Raises UserError when the file is no such table."""
    found: dict[str, list[str]] = {}
    for _, record in read_records(path or shipped(DEVICE_NAMES_FILE), ("device", "card"))[1]:
        found.setdefault(record["card"], []).append(record["device"])
    return found


def simplified(name: str) -> str:
    """``name`` without maker, product line, punctuation and case."""
    return "".join(parts_of_name(name))


def parts_of_name(name: str) -> list[str]:
    """Words of ``name`` without maker and product line, in lower case."""
    return re.findall(r"[a-z0-9]+", _VENDORS.sub("", name.lower().replace("_", " ")))


def card_of(
    device: str, cards: Mapping[str, Datasheet], names: Mapping[str, str]
) -> Datasheet | None:
    """Datasheet of a device: by its name in the table, else by that of the card; None if unknown.
    ``names``: simplified device name to card (:func:`read_device_names`)."""
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


MOST_UNEXPLAINED = 20.0
"""Ratio of times on two cards, beyond that of their bandwidths and peaks, from which one of them is
flagged."""

MOST_AHEAD = 10.0  # Ratio of the next time to the shortest; in the sweeps of data/ below 3


@dataclass(frozen=True)
class Timed:
    name: str  # name of the GPU
    datasheet: Datasheet | None  # of its card; None where it is unknown
    problem: tuple[Any, ...]  # names and values of the problem that the file states
    times_ms: Mapping[tuple[Any, ...], float]  # configuration's values to its time, ms
    least_bytes: float | None  # least bytes that the problem moves; None where unknown
    # Work items of the problem if all its sizes are integers; None where one is a text.
    items: float | None

    @property
    def bandwidth_gbs(self) -> float | None:
        """Bandwidth of the card, GB/s; None where it is unknown."""
        return self.datasheet.figures.get("memory_bandwidth_gbs") if self.datasheet else None

    def least_ms(self, moved_bytes: float) -> float:
        """Time that ``moved_bytes`` take at the card's bandwidth, ms; what L2 holds is free.
        Repeats find in L2 what the one before left there."""
        if self.datasheet is None or self.bandwidth_gbs is None:
            return 0.0
        beyond = max(0.0, moved_bytes - self.datasheet.figures.get("l2_bytes", 0.0))
        return beyond / self.bandwidth_gbs / 1e6


def doubts(sweeps: Sequence[Timed]) -> dict[int, list[str]]:
    """Position of each flagged sweep to the reason."""
    found: dict[int, list[str]] = {}
    for place, sweep in enumerate(sweeps):
        too_fast = _faster_than_memory(sweep) if sweep.least_bytes is not None else ""
        if words := too_fast or _far_ahead(sweep):
            found[place] = [words]
    by_problem: dict[tuple[Any, ...], list[int]] = {}
    for place, sweep in enumerate(sweeps):
        if sweep.times_ms and place not in found:
            by_problem.setdefault(sweep.problem, []).append(place)
    for places in by_problem.values():
        for place, words in _off_the_others(sweeps, places).items():
            found.setdefault(place, []).append(words)
    return dict(sorted(found.items()))


def _faster_than_memory(sweep: Timed) -> str:
    """Words for rows that take less time than their bytes need; empty where there are none."""
    limit = sweep.least_ms(sweep.least_bytes or 0.0)
    count = sum(time < limit for time in sweep.times_ms.values())
    if not count:
        return ""
    return (
        f"{count} of {len(sweep.times_ms)} times are shorter than the {limit:.3g} ms that the "
        f"least {sweep.least_bytes:.3g} bytes, less what L2 holds, take at "
        f"{sweep.bandwidth_gbs:g} GB/s"
    )


def _far_ahead(sweep: Timed) -> str:
    """Words for a shortest time that is an outlier; empty where there is none."""
    first, *others = sorted(sweep.times_ms, key=lambda each: sweep.times_ms[each])
    if len(others) < 2:
        return ""
    ahead = sweep.times_ms[others[0]] / (shortest := sweep.times_ms[first])
    if ahead < MOST_AHEAD:
        return ""
    of = f"{', '.join(map(str, first))} at {assigned(dict(sweep.problem))}"
    return f"the shortest time, {shortest:.3g} ms of {of}, is {ahead:.3g} times below the next one"


def unexplained(one: Timed, other: Timed) -> float:
    """Ratio of the times of two cards beyond the range that the cards explain; 1 if within. The
    ratio is the median over common configurations (of all, where there are none). The cards explain
    any ratio between that of their bandwidths and that of their peaks."""
    common = one.times_ms.keys() & other.times_ms.keys()
    if common:
        ratio = statistics.median(one.times_ms[key] / other.times_ms[key] for key in common)
    else:
        ratio = statistics.median(one.times_ms.values())
        ratio /= statistics.median(other.times_ms.values())
    explained = [1.0]
    if one.datasheet and other.datasheet:
        pairs = [
            (one.datasheet.figures.get(name), other.datasheet.figures.get(name))
            for name in ("memory_bandwidth_gbs", "float32_gflops")
        ]
        explained = [theirs / own for own, theirs in pairs if own and theirs] or explained
    return max(ratio / max(explained), min(explained) / ratio, 1.0)


def _off_the_others(sweeps: Sequence[Timed], places: Sequence[int]) -> dict[int, str]:
    """Position of each sweep that disagrees with others of the same problem to words."""
    groups = _agreeing(sweeps, places)
    if len(groups) < 2:
        return {}
    most = max(len(group) for group in groups)
    largest = [group for group in groups if len(group) == most]
    if len(largest) > 1:
        # As many say the one as say the other: times below one byte per item decide, if any are.
        possible = [group for group in largest if not any(_too_fast(sweeps[n]) for n in group)]
        largest = possible if len(possible) == 1 else []
    trusted = set(largest[0]) if largest else set()
    found = {}
    for place in places:
        if place in trusted:
            continue
        others = sorted(trusted) if trusted else [n for n in places if n != place]
        factors = [unexplained(sweeps[place], sweeps[other]) for other in others]
        farthest = others[factors.index(max(factors))]
        found[place] = (
            f"times differ from those of {sweeps[farthest].name} for the same problem by "
            f"{max(factors):.3g} times beyond what bandwidth and peak explain"
        )
        if not trusted:
            found[place] += "; which of them is wrong is not known"
    return found


def _too_fast(sweep: Timed) -> bool:
    """Whether a sweep has times below those of one byte per work item."""
    if sweep.items is None or not math.isfinite(sweep.items):
        return False
    return min(sweep.times_ms.values()) < sweep.least_ms(sweep.items)


def _agreeing(sweeps: Sequence[Timed], places: Sequence[int]) -> list[list[int]]:
    """Groups of sweeps whose times agree with one another, directly or through others."""
    groups: list[list[int]] = []
    for place in places:
        alike = [n for n in places if unexplained(sweeps[place], sweeps[n]) < MOST_UNEXPLAINED]
        near = [group for group in groups if not set(group).isdisjoint(alike)]
        groups = [group for group in groups if group not in near]
        groups.append([place, *(n for group in near for n in group)])
    return groups
