"""GPUs of a report: attributes, measured ceilings, and what the page's script compares.

A measured GPU has the fastest configuration that the study may choose, a datasheet-only GPU the
answer of the lookup. The script keeps to problems that all shown GPUs have, but for speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from launchwise.gpus.datasheets import Datasheet, Price
from launchwise.gpus.profile import WITH_HOST, Ceilings, GpuProfile
from launchwise.learning.row_arrays import least_ms
from launchwise.report import wording
from launchwise.report.answer.predicted_times import UNKNOWN, Spread, predicted_choices, within
from launchwise.report.blocks import MISSING, Block, Compared, Fold, Section
from launchwise.report.fields import by_gpu, field, of_texts, significant
from launchwise.report.numbers import contests, winners
from launchwise.report.pages import card_ratios
from launchwise.report.study_tables import StudyData
from launchwise.report.theme import rounded
from launchwise.tables.rows import row_numbers

UNITS = {"gbs": ("GB/s", 1.0), "gflops": ("TFLOP/s", 1e3), "us": ("µs", 1.0), "ns": ("ns", 1.0)}
"""Suffix of a ceiling's name -> unit in which it is shown, and factor to that unit."""

_four = significant(4)

_three = "{:.3g}".format  # ``60``, without zeros that were not measured

ATTRIBUTES = [
    field("device", "device_name"),
    field("compute capability", "capability_text", number=True),
    field("SMs used", lambda p: f"{p.sms} of {p.whole_card_sms}", unit="of the card's"),
    field("CUDA cores", "cores", wording.count),
    field("SM clock", "clock_mhz", _four, "MHz"),
    field("memory", lambda p: p.memory_bytes / 1e9, _three, "GB"),
    field("memory bandwidth, theoretical", "memory_bandwidth_gbs", _four, "GB/s"),
    field("L2 cache", lambda p: p.l2_bytes / 2**20, _three, "MB"),
    field("shared memory per SM", lambda p: p.shared_per_sm_bytes / 2**10, _three, "KB"),
    field("registers per SM", "registers_per_sm", wording.count),
    field("driver / CUDA", lambda p: " / ".join(filter(None, (p.driver, p.toolkit))) or MISSING),
]


def attributes(
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
        fold = "Slices, each with its card's whole memory and L2, and GPUs that others measured"
        found.append(Fold(fold, [table]) if cards else table)
    if described:
        caption = "Datasheet-only GPUs: figures of data/cards.csv"
        table = by_gpu(caption, "attribute", ATTRIBUTES, described)
        found.append(Fold("Datasheet-only GPUs", [table]))
    return Section("gpus", "GPUs", found)


def _micro_benchmarks(profiles: Mapping[str, GpuProfile]) -> list[Block]:
    reached = {
        gpu: profile.ceilings.model_dump()
        for gpu, profile in profiles.items()
        if profile.has_measured_ceilings
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


GAINS = ("gain", "gain_low", "gain_high")

NUMBERS = (
    *("best_ms", "error", "baseline_ms", "least_ms", *GAINS),
    *("energy_j", "baseline_energy_j"),
)
"""Columns of :func:`entries` that are numbers, in the order in which the script gets them."""


def entries(study: StudyData) -> pd.DataFrame:
    """Every problem of a study on every GPU that has a time for it.

    Returns a DataFrame: ``gpu``, ``basis`` (measured or predicted), columns of the problem, and
    :data:`NUMBERS`, NaN where something is unknown: times in ms; ``error``, relative standard error
    between visits; the gain of the sweep's fastest over the usual choice in pairs, with its
    interval; energies per run in J, of just the row that is named.
    """
    key, best = ["gpu", *study.problem_columns], winners(study)
    named = {"best_error": "error", "best_energy_j": "energy_j"}
    measured = best.drop(columns="gain").rename(columns=named).assign(
        basis="measured", least_ms=least_ms(best, study.spec, study.profiles)
    )  # fmt: skip
    pairs = [one[one["rounds"] > 0] for one in (contests(study, gpu) for gpu in study.pairs)]
    if pairs:
        measured = measured.merge(pd.concat(pairs)[[*key, *GAINS]], on=key, how="left")
    predicted = predicted_choices(study).rename(columns={"predicted_ms": "best_ms"})
    predicted = predicted.assign(basis="predicted")
    parts = [
        one.reindex(columns=[*key, "basis", *NUMBERS]) for one in (measured, predicted) if len(one)
    ]
    return pd.concat(parts, ignore_index=True).astype(dict.fromkeys(NUMBERS, float))


def data(
    study: StudyData, apart: Spread | None, cards: Mapping[str, Datasheet] = MappingProxyType({})
) -> dict[str, Any]:
    """Data of a study for the script, as JSON values. ``entries`` hold the place of the GPU, that
    of the problem, and :data:`NUMBERS`; ``above`` the places of entries whose energy divided by
    their time is above the power limit of the card. ``kind`` of a GPU: whole, slice or predicted.
    """
    found = entries(study)
    limits = {gpu: tdp_w(gpu, profile.card_model, cards) for gpu, profile in study.profiles.items()}
    above = 1e3 * found["energy_j"] / found["best_ms"] > found["gpu"].map(limits).astype(float)
    place, gpus = pd.factorize(found["gpu"])
    problem = row_numbers(found, study.problem_columns)
    first = np.unique(problem, return_index=True)[1]
    basis = dict(zip(found["gpu"], found["basis"], strict=True))
    numbers = (rounded(found[name]) for name in NUMBERS)
    places = list(zip(place.tolist(), problem.tolist(), strict=True))
    return {
        "parameters": [
            {"name": name, "unit": study.spec.problem[name].unit} for name in study.problem_columns
        ],
        "gpus": [
            {"name": gpu, "basis": basis[gpu], "kind": _kind(study, gpu, basis[gpu])}
            for gpu in gpus
        ],
        "problems": [
            list(values)
            for values in found[study.problem_columns]
            .iloc[first]
            .itertuples(index=False, name=None)
        ],
        "entries": [[*both, *values] for both, *values in zip(places, *numbers, strict=True)],
        "above": [each for each, is_above in zip(places, above, strict=True) if is_above],
        "ratios": [
            [*map(list(gpus).index, pair), one.predicted, one.count, *one.numbers]
            for pair, one in card_ratios.of_study(study).items()
        ],
        "within": within(apart),
        "predicted": UNKNOWN if apart is None else apart.words,
    }


def _kind(study: StudyData, gpu: str, basis: str) -> str:
    if basis == "predicted":
        return basis
    return "slice" if study.profiles[gpu].is_slice else "whole"


def tdp_w(gpu: str, card_model: str, cards: Mapping[str, Datasheet]) -> float | None:
    """Thermal design power of a GPU's whole card, W; None where no datasheet states it. A measured
    GPU or slice begins with the name of its card, a datasheet-only one says it."""
    for name in (gpu, gpu.partition(".")[0], card_model):
        if name in cards and "tdp_w" in cards[name].figures:
            return cards[name].figures["tdp_w"]
    return None


def section(
    studies: Sequence[StudyData],
    cards: Mapping[str, Datasheet],
    prices: Mapping[str, Price],
) -> Section | None:
    """The comparison; None where nothing was measured."""
    shown = [study for study in studies if len(study.measured)]
    if not shown:
        return None
    profiles = {
        gpu: profile
        for study in shown
        for gpu, profile in {**study.profiles, **study.described}.items()
    }
    # A slice has no limit of its own: the card's is that of all its slices.
    power = {
        gpu: None if profile.is_slice else tdp_w(gpu, profile.card_model, cards)
        for gpu, profile in profiles.items()
    }
    first = shown[0]
    block = Compared(
        id="compare",
        studies=[(study.name, study.settings.title) for study in shown],
        first={"study": first.name, "beside": first.whole[0]},
        tdp_w={gpu: watt for gpu, watt in power.items() if watt is not None},
        prices={
            gpu: [price.euro, price.euro_per_hour, price.date.isoformat(), price.source]
            for gpu, price in prices.items()
        },
        table=card_ratios.TABLE,
    )
    return Section("gpu-against-gpu", "GPU comparison", [block])
