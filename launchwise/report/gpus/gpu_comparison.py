"""GPU comparison: what the page's script compares.

A measured GPU has the fastest configuration that the study may choose, a datasheet-only GPU the
answer of the lookup. The script keeps to problems that all shown GPUs have, but for speeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from launchwise.gpus.datasheets import Datasheet, Price
from launchwise.learning.row_arrays import least_ms
from launchwise.report.blocks import Block, Compared, Section, Text
from launchwise.report.gpus import card_ratios
from launchwise.report.gpus.gpu_attributes import UNKNOWN, Spread, predicted_choices, within
from launchwise.report.numbers import winners
from launchwise.report.study import StudyData
from launchwise.report.theme import rounded
from launchwise.tables.measurements import fastest_of_sweep
from launchwise.tables.rows import row_numbers

ENERGY = (
    "Energy is of sustained running, times are of single launches: where energy divided by time is "
    "above the card's power limit, sustained running is slower than the time shown."
)


GAINS = ("gain", "gain_low", "gain_high")

NUMBERS = (
    *("best_ms", "error", "baseline_ms", "least_ms", *GAINS),
    *("energy_j", "baseline_energy_j"),
)
"""Columns of :func:`entries` that are numbers, in the order in which the script gets them."""


def entries(study: StudyData) -> pd.DataFrame:
    """Every problem of a study on every GPU that has a time for it.

    Returns a DataFrame: ``gpu``, ``basis`` (measured or predicted), columns of the problem, and
    :data:`NUMBERS`, NaN where something is unknown: times in ms, ``least_ms`` that of the roofline;
    ``error``, relative standard error between visits; the gain of the sweep's fastest over the
    usual choice in pairs, with its interval; energies per run in J, of just the row that is named.
    """
    key, best = ["gpu", *study.problem_columns], winners(study)
    named = {"best_error": "error", "best_energy_j": "energy_j"}
    measured = best.drop(columns="gain").rename(columns=named).assign(
        basis="measured", least_ms=least_ms(best, study.spec, study.profiles)
    )  # fmt: skip
    pairs = [fastest_of_sweep(one[one["rounds"] > 0]) for one in study.pairs.values()]
    if pairs:
        measured = measured.merge(pd.concat(pairs)[[*key, *GAINS]], on=key, how="left")
    named = {"predicted_ms": "best_ms", "roofline_ms": "least_ms"}
    predicted = predicted_choices(study).rename(columns=named).assign(basis="predicted")
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
            [
                *map(list(gpus).index, pair),
                one.predicted,
                one.count,
                *one.numbers,
            ]
            for pair, one in card_ratios.of_study(study).items()
        ],
        "within": within(apart),
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
    apart: Spread | None,
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
    power = {gpu: tdp_w(gpu, profile.card_model, cards) for gpu, profile in profiles.items()}
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
    predicted = UNKNOWN
    if apart is not None:
        predicted = f"Hatched rows are predicted from datasheets. {apart.words}"
    blocks: list[Block] = [block, Text(f"{ENERGY} {predicted}", "note")]
    return Section("gpu-against-gpu", "GPU comparison", blocks)
