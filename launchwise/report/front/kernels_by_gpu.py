"""Every kernel on every GPU in one table: speed, energy and price over one set of problems each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

import numpy as np

from launchwise.gpus.prices import Price
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Fold, Section, Table, Text
from launchwise.report.fields import field, table_of
from launchwise.report.gpus import gpu_comparison
from launchwise.report.gpus.gpu_comparison import Entry
from launchwise.report.study import StudyData
from launchwise.workloads.parts import Value

FEWEST_PROBLEMS = 4
"""Problems that whole cards and predictions must share; with fewer, predictions have no place."""

MS_PER_HOUR = 3.6e6


@dataclass(frozen=True)
class Place:
    """A kernel on a GPU, over the problems of its :class:`KernelColumn`; means are geometric."""

    speed: float  # time of the reference / its own, mean
    time_ms: float  # mean of the best times
    energy_j: float | None  # of one run, over problems with energy; None where one has none
    runs_per_euro: float | None  # None without a price per hour
    predicted: bool  # from a datasheet


@dataclass(frozen=True)
class KernelColumn:
    """A study: the GPU that speeds are relative to, the common problems, and its GPUs.

    ``with_energy`` are those of the problems of which all whole cards know the energy.
    """

    study: StudyData
    reference: str
    problems: Sequence[tuple[Value, ...]]
    with_energy: Sequence[tuple[Value, ...]]
    places: Mapping[str, Place]


def column(study: StudyData, prices: Mapping[str, Price]) -> KernelColumn | None:
    """A study over the problems of all whole cards, and of predictions if there are any.

    Slices have a place where they measured all of these. None where there is a single GPU.
    """
    of_gpu: dict[str, dict[tuple[Value, ...], Entry]] = {}
    for each in gpu_comparison.entries(study, None):
        of_gpu.setdefault(each.gpu, {})[each.problem] = each
    whole = [gpu for gpu in study.whole if gpu in of_gpu]
    if not whole:
        return None
    common = set.intersection(*(set(of_gpu[gpu]) for gpu in whole))
    predicted = [set(own) for gpu, own in of_gpu.items() if gpu in study.described]
    if len(both := common.intersection(*predicted)) >= FEWEST_PROBLEMS:
        common = both
    taking = {gpu: own for gpu, own in of_gpu.items() if common and common <= own.keys()}
    if len(taking) < 2:
        return None
    problems = [problem for problem in of_gpu[whole[0]] if problem in common]
    with_energy = [
        problem
        for problem in problems
        if all(taking[gpu][problem].energy_j is not None for gpu in whole)
    ]
    if len(with_energy) < FEWEST_PROBLEMS and len(with_energy) < len(problems):
        with_energy = []
    reference = [taking[whole[0]][problem].best_ms for problem in problems]
    places = {}
    for gpu, own in taking.items():
        rows = [own[problem] for problem in problems]
        times = np.array([row.best_ms for row in rows])
        joules = [own[problem].energy_j for problem in with_energy]
        known = [joule for joule in joules if joule is not None]
        per_hour = prices[gpu].euro_per_hour if gpu in prices else None
        time_ms = geometric_mean(times)
        places[gpu] = Place(
            speed=geometric_mean(np.array(reference) / times),
            time_ms=time_ms,
            energy_j=geometric_mean(np.array(known)) if known and known == joules else None,
            runs_per_euro=None if per_hour is None else MS_PER_HOUR / per_hour / time_ms,
            predicted=rows[0].basis == "predicted",
        )
    return KernelColumn(study, whole[0], problems, with_energy, places)


def section(studies: Sequence[StudyData], prices: Mapping[str, Price]) -> Section | None:
    """The table; None where no kernel ran on two GPUs."""
    found = [each for each in (column(study, prices) for study in studies) if each is not None]
    if not found:
        return None
    theirs = [each for each in found if _is_imported(each)]
    ours = [each for each in found if not _is_imported(each)]
    blocks: list[Block] = []
    if ours:
        blocks.append(_table(ours))
    if theirs:
        table = _table(theirs)
        blocks.append(Fold("Measured by others", [table]) if ours else table)
    words = (
        "Each GPU runs its own fastest configuration. All GPUs of a column have the same problems; "
        "means are geometric. A dash: the GPU lacks some of them. Joule (J) of one run, over those "
        "problems of which the sweeps of all whole cards recorded it: their number stands in the "
        "heading. Hatched: predicted from datasheets."
    )
    if not prices:
        words += " Runs per euro need a table of prices (prices in config.yaml)."
    return Section("kernels-by-gpu", "Every kernel on every GPU", [*blocks, Text(words, "note")])


def _is_imported(one: KernelColumn) -> bool:
    return not one.study.profiles[one.reference].has_measured_ceilings


def _table(columns: Sequence[KernelColumn]) -> Table:
    """A row per GPU, those that any study measured first."""
    placed = [each for one in columns for each in one.places.items()]
    ordered = sorted(placed, key=lambda each: each[1].predicted)
    fields = [field("GPU", str)]
    for one in columns:
        title, unit = one.study.settings.title, _heading(one)
        fields.append(field(title, partial(_cell, one), unit=unit, number=True))
    gpus = dict.fromkeys(gpu for gpu, _ in ordered)
    return table_of("Speed, joule and runs per euro", fields, gpus)


def _heading(one: KernelColumn) -> str:
    said = f"× {one.reference}, {wording.plural(len(one.problems), 'problem')}"
    return f"{said}; J of {len(one.with_energy)}" if one.with_energy else said


def _cell(one: KernelColumn, gpu: str) -> Cell:
    place = one.places.get(gpu)
    if place is None:
        return Cell(MISSING)
    more = []
    if place.energy_j is not None:
        more.append(f"{wording.number(place.energy_j)} J")
    if place.runs_per_euro is not None:
        more.append(f"{wording.number(place.runs_per_euro, 2)} / €")
    asked = {"study": one.study.name, "gpus": _compared(one, gpu), "beside": one.reference}
    return Cell(
        wording.number(place.speed, 2 if place.predicted else 3),
        role="predicted" if place.predicted else "",
        detail=", ".join(more),
        link=f"gpus.html#compare?{urlencode(asked, safe=',')}",
    )


def _compared(one: KernelColumn, gpu: str) -> str:
    """GPUs that the page of GPUs compares: those that decide the problems of the column, and this.

    As groups, which that page knows, so that the address stays short.
    """
    predicted = [each for each, place in one.places.items() if place.predicted]
    groups = ["whole" if not one.study.profiles[one.reference].is_slice else "slices"]
    if predicted and len(predicted) == len(set(one.study.described)):
        groups.append("predicted")
    if gpu in one.study.whole or (gpu in predicted and "predicted" in groups):
        return ",".join(groups)
    return ",".join([*groups, gpu])
