"""The GPUs of a report: attributes, measured ceilings, and times predicted from datasheets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from launchwise.gpus.profile import WITH_HOST, Ceilings, GpuProfile
from launchwise.learning.row_arrays import least_ms
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Fold, Section
from launchwise.report.fields import by_gpu, field, of_texts, significant
from launchwise.report.study import StudyData, remembered

UNITS = {"gbs": ("GB/s", 1.0), "gflops": ("TFLOP/s", 1e3), "us": ("µs", 1.0), "ns": ("ns", 1.0)}
"""Suffix of a ceiling's name -> unit in which it is shown, and factor to that unit."""

_four = significant(4)

ATTRIBUTES = [
    field("device", "device_name"),
    field("compute capability", "capability_text", number=True),
    field("SMs used", lambda p: f"{p.sms} of {p.whole_card_sms}", unit="of the card's"),
    field("CUDA cores", "cores", wording.count),
    field("SM clock", "clock_mhz", _four, "MHz"),
    field("memory", lambda p: p.memory_bytes / 1e9, wording.number, "GB"),
    field("memory bandwidth, theoretical", "memory_bandwidth_gbs", _four, "GB/s"),
    field("L2 cache", lambda p: p.l2_bytes / 2**20, wording.number, "MB"),
    field("shared memory per SM", lambda p: p.shared_per_sm_bytes / 2**10, wording.number, "KB"),
    field("registers per SM", "registers_per_sm", wording.count),
    field("driver / CUDA", lambda p: " / ".join(filter(None, (p.driver, p.toolkit))) or MISSING),
]


def section(
    profiles: Mapping[str, GpuProfile], described: Mapping[str, GpuProfile] | None = None
) -> Section:
    """Attributes and measured ceilings of the GPUs, those with measured ceilings first; slices,
    GPUs that others measured and datasheet-only GPUs in folds."""
    caption = "GPUs: attributes"
    cards = {
        gpu: one for gpu, one in profiles.items() if one.has_measured_ceilings and not one.is_slice
    }
    others = {gpu: one for gpu, one in profiles.items() if gpu not in cards}
    found: list[Block] = [by_gpu(caption, "attribute", ATTRIBUTES, cards)] if cards else []
    found += _micro_benchmarks(profiles)
    if others:
        table = by_gpu(f"{caption}, others", "attribute", ATTRIBUTES, others)
        found.append(Fold("Slices, and GPUs that others measured", [table]) if cards else table)
    if described:
        caption = "Datasheet-only GPUs: figures of data/cards.csv"
        table = by_gpu(caption, "attribute", ATTRIBUTES, described)
        found.append(Fold("Datasheet-only GPUs", [table]))
    return Section("gpus", "GPUs", found)


def _micro_benchmarks(profiles: Mapping[str, GpuProfile]) -> list[Block]:
    reached = {
        gpu: profile.ceilings.model_dump() if profile.has_measured_ceilings else {}
        for gpu, profile in profiles.items()
    }
    fields, meanings = [], []
    for name, one in Ceilings.model_fields.items():
        if all(own.get(name) is None for own in reached.values()):
            continue
        title, _, ending = name.rpartition("_")
        unit, factor = UNITS[ending]
        words = title.replace("_", " ") + (", of GPU and host" if name in WITH_HOST else "")
        fields.append(field(words, partial(_in_unit, name=name, factor=factor), _four, unit))
        meanings.append((words, one.description or ""))
    if not fields:
        return []
    table = by_gpu("Measured ceilings per GPU", "what", fields, reached)
    meaning = of_texts("What was measured", ("what", "of"), meanings, role="")
    return [Fold("Micro-benchmarks", [table, meaning])]


def _in_unit(reached: Mapping[str, float | None], name: str, factor: float) -> float | None:
    value = reached.get(name)
    return None if value is None else value / factor


@remembered
def predicted_choices(study: StudyData) -> pd.DataFrame:
    """The lookup's answers for datasheet-only GPUs that have a time. Returns columns ``gpu``, the
    problem's, the tunables', ``predicted_ms``, ``baseline_ms`` (NaN where it is unknown) and
    ``roofline_ms``."""
    rows = [
        {
            "gpu": each["gpu"],
            **each["problem"],
            **study.spec.neutral,
            **each["configuration"],
            "predicted_ms": each["time_ms"],
            "baseline_ms": (each["improvement"] or float("nan")) * each["time_ms"],
        }
        for each in study.answers
        if each["gpu"] in study.described and each["time_ms"] is not None
    ]
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame(rows)
    return table.assign(roofline_ms=least_ms(table, study.spec, study.described))


LEARNT = "learnt"  # Predictor of the times: trees that correct the cost model
SHARE = 0.9  # Share of the published times that lie within the interval
FEWEST = 10  # Fewest published times that give an interval

UNKNOWN = (
    "No interval: too few run times are published for cards that no sweep measured to say how far "
    "predictions are off."
)


@dataclass(frozen=True)
class Spread:
    """Errors of predictions on cards that no sweep measured. 90 % of the published times lie
    between predicted / factor and predicted x factor."""

    factor: float
    times: int
    gpus: tuple[str, ...]

    @property
    def words(self) -> str:
        """Basis of an interval."""
        return (
            f"Intervals: {wording.percent(SHARE, 0)} % of {self.times} published run times on "
            f"{wording.listed(self.gpus)}, which no sweep measured, lie within a factor "
            f"{self.factor:.2f} of what was predicted."
        )


def spread(studies: Sequence[StudyData]) -> Spread | None:
    """Of the whole runs whose number the publications state; None where there are too few."""
    tables = [study.published_times for study in studies if study.published_times is not None]
    used = ["predictor", "gpu", "phases", "runs", "published_ms", "predicted_ms"]
    if not tables:
        return None
    rows = pd.concat([table[used] for table in tables], ignore_index=True)
    rows = rows[(rows["predictor"] == LEARNT) & (rows["phases"] == "") & (rows["runs"] > 0)]
    if len(rows) < FEWEST:
        return None
    apart = np.abs(np.log((rows["predicted_ms"] / rows["published_ms"]).to_numpy(dtype=float)))
    gpus = tuple(dict.fromkeys(map(str, rows["gpu"])))
    # The next of the times, and upwards: so many lie within.
    factor = np.ceil(100 * np.exp(np.quantile(apart, SHARE, method="higher"))) / 100
    return Spread(float(factor), len(rows), gpus)


def within(apart: Spread | None) -> str:
    """What stands at every time that a datasheet alone gives, and at every ratio of such times."""
    if apart is None:
        return "error unknown"
    return f"within {wording.number(apart.factor, 2)} times"
