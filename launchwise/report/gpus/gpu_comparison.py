"""GPU comparison: what the page's script compares.

A measured GPU has the fastest configuration that the study may choose, a datasheet-only GPU the
answer of the lookup. The script keeps to problems that all shown GPUs have, but for speeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from launchwise.gpus.datasheets import Datasheet, Price
from launchwise.learning.row_arrays import least_ms
from launchwise.report.blocks import Block, Compared, Section, Text
from launchwise.report.gpus import card_ratios
from launchwise.report.gpus.gpu_attributes import UNKNOWN, Spread, predicted_choices, within
from launchwise.report.numbers import records, winners
from launchwise.report.study import StudyData, remembered
from launchwise.tables.measurements import fastest_in_pairs
from launchwise.workloads.parts import Value

ENERGY = (
    "Energy is of sustained running, times are of single launches: where energy divided by time is "
    "above the card's power limit, sustained running is slower than the time shown."
)


@dataclass(frozen=True)
class Entry:
    """One problem on one GPU; times in ms, None where something is unknown."""

    gpu: str
    basis: str
    problem: tuple[Value, ...]
    best_ms: float
    error: float | None  # relative standard error between visits; None of a predicted time
    baseline_ms: float | None
    least_ms: float  # the roofline
    gain: float | None = None  # time of the usual choice / that of the fastest, in pairs
    gain_low: float | None = None
    gain_high: float | None = None
    energy_j: float | None = None  # of one run; None where the sweep has none of just that row
    baseline_energy_j: float | None = None


NUMBERS = [field.name for field in fields(Entry) if field.name not in ("gpu", "basis", "problem")]
"""Fields of an entry that are numbers, in the order in which the script gets them."""


@remembered
def entries(study: StudyData) -> list[Entry]:
    """Every problem of a study on every GPU that has a time for it."""
    return [*_measured(study), *_predicted(study)]


def _measured(study: StudyData) -> Iterator[Entry]:
    columns = study.problem_columns
    best = winners(study)
    least = least_ms(best, study.spec, study.profiles)
    gains = {
        (gpu, *(row[name] for name in columns)): row
        for gpu, pairs in study.pairs.items()
        for row in records(fastest_in_pairs(pairs, study.problem_columns))
    }
    for row, shortest in zip(records(best), least.tolist(), strict=True):
        problem = tuple(row[name] for name in columns)
        key = (row["gpu"], *problem)
        pair = gains.get(key, {})
        yield Entry(
            gpu=row["gpu"],
            basis="measured",
            problem=problem,
            best_ms=row["best_ms"],
            error=_known(row["best_error"]),
            baseline_ms=_known(row["baseline_ms"]),
            gain=_known(pair.get("gain")),
            gain_low=_known(pair.get("gain_low")),
            gain_high=_known(pair.get("gain_high")),
            least_ms=shortest,
            energy_j=_known(row.get("best_energy_j")),
            baseline_energy_j=_known(row.get("baseline_energy_j")),
        )


def _predicted(study: StudyData) -> Iterator[Entry]:
    for row in records(predicted_choices(study)):
        time, shortest = row["predicted_ms"], row["roofline_ms"]
        yield Entry(
            gpu=row["gpu"],
            basis="predicted",
            problem=tuple(row[name] for name in study.problem_columns),
            best_ms=time,
            error=None,
            baseline_ms=_known(row["baseline_ms"]),
            least_ms=shortest,
        )


def _known(value: Any) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def above_limit(study: StudyData, cards: Mapping[str, Datasheet]) -> list[tuple[Entry, float]]:
    """Entries whose energy divided by their time is above the power limit of the card, W."""
    limits = {gpu: tdp_w(gpu, profile.card_model, cards) for gpu, profile in study.profiles.items()}
    with_energy = (each for each in entries(study) if each.energy_j is not None)
    with_limit = ((each, limits.get(each.gpu)) for each in with_energy)
    return [
        (each, limit)
        for each, limit in with_limit
        if limit is not None and 1e3 * (each.energy_j or 0.0) / each.best_ms > limit
    ]


def data(
    study: StudyData, apart: Spread | None, cards: Mapping[str, Datasheet] = MappingProxyType({})
) -> dict[str, Any]:
    """Data of a study for the script, as JSON values. ``entries`` hold the place of the GPU, that
    of the problem, and :data:`NUMBERS`; ``above`` the two places of entries of
    :func:`above_limit`. ``kind`` of a GPU: whole, slice or predicted."""
    found = entries(study)
    basis = {each.gpu: each.basis for each in found}
    problems = list(dict.fromkeys(each.problem for each in found))
    gpus = {gpu: place for place, gpu in enumerate(basis)}
    places = {problem: place for place, problem in enumerate(problems)}
    return {
        "parameters": [
            {"name": name, "unit": study.spec.problem[name].unit} for name in study.problem_columns
        ],
        "gpus": [
            {"name": gpu, "basis": basis[gpu], "kind": _kind(study, gpu, basis[gpu])}
            for gpu in gpus
        ],
        "problems": [list(problem) for problem in problems],
        "entries": [
            [gpus[each.gpu], places[each.problem], *(_short(each, name) for name in NUMBERS)]
            for each in found
        ],
        "above": [[gpus[each.gpu], places[each.problem]] for each, _ in above_limit(study, cards)],
        "ratios": [
            [gpus[gpu], gpus[other], one.predicted, one.count, *one.numbers]
            for (gpu, other), one in card_ratios.of_study(study).items()
        ],
        "within": within(apart),
    }


def _kind(study: StudyData, gpu: str, basis: str) -> str:
    if basis == "predicted":
        return basis
    return "slice" if study.profiles[gpu].is_slice else "whole"


def _short(entry: Entry, name: str) -> float | None:
    value = getattr(entry, name)
    return None if value is None else float(f"{value:.4g}")


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
