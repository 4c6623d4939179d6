"""The GPUs of a report: attributes and measured ceilings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from launchwise.gpus.profile import Ceilings, GpuProfile
from launchwise.report import wording
from launchwise.report.blocks import Block, Column, Fold, Section, Table, Text, table, turned
from launchwise.report.fields import field, grouped, table_of

UNITS = {"gbs": ("GB/s", 1.0), "gflops": ("TFLOP/s", 1e3), "us": ("µs", 1.0), "ns": ("ns", 1.0)}
"""Suffix of a ceiling's name -> unit in which it is shown, and factor to that unit."""

ATTRIBUTES = (
    ("device", "", lambda p: p.device_name),
    ("compute capability", "", lambda p: p.capability_text),
    ("SMs used", "of the card's", lambda p: f"{p.sms} of {p.whole_card_sms}"),
    ("CUDA cores", "", lambda p: wording.count(p.cores)),
    ("SM clock", "MHz", lambda p: wording.number(p.clock_mhz, 4)),
    ("memory", "GB", lambda p: wording.number(p.memory_bytes / 1e9)),
    ("memory bandwidth, theoretical", "GB/s", lambda p: wording.number(p.memory_bandwidth_gbs, 4)),
    (
        "copy bandwidth, measured",
        "GB/s",
        lambda p: _measured(p, p.ceilings.copy_bandwidth_gbs, 4),
    ),
    ("launch overhead, measured", "µs", lambda p: _measured(p, p.ceilings.launch_overhead_us, 3)),
    ("L2 cache", "MB", lambda p: wording.number(p.l2_bytes / 2**20)),
    ("shared memory per SM", "KB", lambda p: wording.number(p.shared_per_sm_bytes / 2**10)),
    ("registers per SM", "", lambda p: wording.count(p.registers_per_sm)),
    (
        "driver / CUDA",
        "",
        lambda p: " / ".join(filter(None, (p.driver, p.toolkit))) or wording.MISSING,
    ),
)


def _measured(profile: GpuProfile, value: float, digits: int) -> str:
    return wording.number(value if profile.has_measured_ceilings else None, digits)


def section(
    profiles: Mapping[str, GpuProfile], described: Mapping[str, GpuProfile] | None = None
) -> Section:
    """Attributes and measured ceilings of the GPUs; datasheet-only GPUs in a fold."""
    columns = [Column("attribute", number=False), *(Column(name) for name in profiles)]
    rows = [
        [f"{title} ({unit})" if unit else title, *(read(profile) for profile in profiles.values())]
        for title, unit, read in ATTRIBUTES
    ]
    attributes = table("GPUs: attributes and measured ceilings", columns, rows)
    found: list[Block] = [turned(attributes, "GPU")]
    found += _micro_benchmarks(profiles)
    by_card: dict[str, list[str]] = {}
    for name, profile in profiles.items():
        by_card.setdefault(profile.card_model, []).append(name)
    for names in by_card.values():
        if len(names) > 1:
            found.append(
                Text(
                    f"{wording.listed(names)} are one model of card, used whole or in part: a "
                    "name that ends with sm and a number is a slice with so many SMs.",
                    "note",
                )
            )
    if described:
        found.append(Fold("Datasheet-only GPUs", [_datasheets(described)]))
    return Section("gpus", "GPUs", found)


def _datasheets(described: Mapping[str, GpuProfile]) -> Table:
    def of(read: Callable[[GpuProfile], Any]) -> Callable[[tuple[str, str]], Any]:
        return lambda row: read(described[row[1]])

    four = partial(wording.number, digits=4)
    fields = [
        field("generation", lambda row: row[0]),
        field("GPU", lambda row: row[1]),
        field("compute capability", of(lambda one: one.capability_text), number=True),
        field("SMs", of(lambda one: one.sms), wording.count),
        field("CUDA cores", of(lambda one: one.cores), wording.count),
        field("SM clock", of(lambda one: one.clock_mhz), four, "MHz"),
        field("memory", of(lambda one: one.memory_bytes / 1e9), wording.number, "GB"),
        field("bandwidth", of(lambda one: one.memory_bandwidth_gbs), four, "GB/s"),
        field("L2 cache", of(lambda one: one.l2_bytes / 2**20), wording.number, "MB"),
        *grouped(
            "ceilings, estimated",
            field("copies", of(lambda one: one.ceilings.copy_bandwidth_gbs), four, "GB/s"),
            field("FP32", of(lambda one: one.ceilings.float32_gflops), _tera, "TFLOP/s"),
            field("FP64", of(lambda one: one.ceilings.float64_gflops), _tera, "TFLOP/s"),
        ),
    ]
    rows = [
        ("" if number else name, gpu)
        for name, gpus in by_generation(described, described).items()
        for number, gpu in enumerate(gpus)
    ]
    caption = "Datasheet-only GPUs: figures of data/cards.csv, and estimated ceilings"
    return table_of(caption, fields, rows)


def _tera(rate: float | None) -> str:
    return wording.number(None if rate is None else rate / 1e3)


def by_generation(profiles: Mapping[str, GpuProfile], gpus: Iterable[str]) -> dict[str, list[str]]:
    """Generation to its GPUs: the newest first, GPUs of a generation in the order given."""
    known = sorted(gpus, key=lambda gpu: profiles[gpu].compute_capability, reverse=True)
    found: dict[str, list[str]] = {}
    for gpu in known:
        found.setdefault(profiles[gpu].generation, []).append(gpu)
    return found


def _micro_benchmarks(profiles: Mapping[str, GpuProfile]) -> list[Block]:
    rows, meanings = [], []
    for name, one in Ceilings.model_fields.items():
        values = [
            getattr(profile.ceilings, name) if profile.has_measured_ceilings else None
            for profile in profiles.values()
        ]
        if all(value is None for value in values):
            continue
        title, _, ending = name.rpartition("_")
        unit, own = UNITS[ending]
        told = [wording.number(None if value is None else value / own, 4) for value in values]
        words = title.replace("_", " ")
        rows.append([f"{words} ({unit})", *told])
        meanings.append([words, one.description or ""])
    if len(rows) <= sum(one.is_required() for one in Ceilings.model_fields.values()):
        return []
    columns = [Column("what", number=False), *(Column(name) for name in profiles)]
    reached = table("Measured ceilings per GPU", columns, rows)
    meaning = table("What was measured", [columns[0], Column("of", number=False)], meanings)
    return [Fold("Micro-benchmarks", [turned(reached, "GPU"), meaning])]
