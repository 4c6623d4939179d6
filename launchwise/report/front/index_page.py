"""The front page: lookup, gains, every kernel on every GPU, blind tests, links to studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from urllib.parse import urlencode

import numpy as np

from launchwise.gpus.datasheets import Price
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Fold, Notice, Section, Table, Text
from launchwise.report.fields import field, grouped, percents, table_of
from launchwise.report.front import finder, tuning_gain
from launchwise.report.gpus import gpu_comparison
from launchwise.report.gpus.gpu_comparison import Entry
from launchwise.report.health import sweep_health
from launchwise.report.scores import AGAINST_USUAL, of_mean
from launchwise.report.site.stand_ins import MissingStudy
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
    ``with_energy`` are those of the problems of which all whole cards know the energy."""

    study: StudyData
    reference: str
    problems: Sequence[tuple[Value, ...]]
    with_energy: Sequence[tuple[Value, ...]]
    places: Mapping[str, Place]


def column(study: StudyData, prices: Mapping[str, Price]) -> KernelColumn | None:
    """A study over the problems of all whole cards, and of predictions if there are any. Slices
    have a place where they measured all of these. None where there is a single GPU."""
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
    As groups, which that page knows, so that the address stays short."""
    predicted = [each for each, place in one.places.items() if place.predicted]
    groups = ["whole" if not one.study.profiles[one.reference].is_slice else "slices"]
    if predicted and len(predicted) == len(set(one.study.described)):
        groups.append("predicted")
    if gpu in one.study.whole or (gpu in predicted and "predicted" in groups):
        return ",".join(groups)
    return ",".join([*groups, gpu])


def sections(
    studies: Sequence[StudyData],
    missing: Sequence[MissingStudy] = (),
    notices: Sequence[Notice] = (),
    least_gain: float | None = None,
    prices: Mapping[str, Price] = MappingProxyType({}),
    settings_files: Sequence[str] = (),
) -> list[Section]:
    """Sections of the front page, the lookup first; ``notices`` is what a reader must know before.
    ``least_gain`` is the gain that must be sure, None where the expected one decides."""
    found: list[Section] = []
    unwell = sweep_health.notice(sweep_health.of_studies(studies))
    if (lookup := finder.block(studies, settings_files)) is not None:
        lead = "Choose a kernel, a GPU and a problem: the lookup answers any size."
        if least_gain is not None:
            lead += f" Where a gain of {least_gain:g} is not sure, the answer is the usual choice."
        strip = [*notices, *([] if unwell is None else [unwell])]
        found.append(Section("look-up", "Which configuration?", [*strip, Text(lead), lookup]))
    elif notices:
        found.append(Section("not-here", "Missing from this report", notices))
    others = (
        tuning_gain.section(studies),
        section(studies, prices),
        blind_tests(studies),
        Section("studies", "Studies", [_studies(studies, missing)]),
    )
    return [*found, *(one for one in others if one is not None)]


MOST_NAMED = 14  # GPUs that a line names; of more it says how many there are


def named_gpus(gpus: Sequence[str]) -> str:
    """``a, b and c``, or the first of many and their number."""
    if len(gpus) <= MOST_NAMED:
        return wording.listed(gpus)
    return f"{', '.join(gpus[:3])} and {wording.count(len(gpus) - 3)} more"


STUDIES = [
    field("study", "title", detail=itemgetter("name"), link=itemgetter("link")),
    field("question", "question"),
    field("GPUs", "gpus"),
    field("measured", "rows", unit="rows", number=True),
]


def _studies(studies: Sequence[StudyData], missing: Sequence[MissingStudy]) -> Table:
    rows = [
        {
            "name": study.name,
            "title": study.settings.title,
            "link": f"#{study.name}-answer",
            "question": study.settings.question,
            "gpus": named_gpus(study.gpus),
            "rows": wording.count(len(study.rows)),
        }
        for study in studies
    ]
    rows += [each.row for each in missing]
    return table_of("Studies of this report", STUDIES, rows)


BLIND_NOTE = (
    "Problems were drawn at random from the ranges of each study, and none of them had been "
    "measured. The answers were recorded with a digest and the commit. Then these problems were "
    "measured in full, and answer, usual choice and fastest configuration were timed in pairs. "
    "Mean, percentile and speed are from these pairs; the best is the fastest of at most eight "
    "configurations that ran in them, so fractions are upper bounds. The best of five measurements "
    "is from single rows of the test's sweep. "
    "Slower: slower than the usual choice by more than 2 %. Kept: the answer was the usual choice; "
    "missed: of these, problems whose best configuration is more than 5 % faster. "
    "New: the study had no row of this GPU when it answered."
)

BLIND = [
    field("study", "title"),
    field("GPU", lambda got: f"{got['gpu']}, new" if got["new_gpu"] else got["gpu"]),
    field("problems", "problems", wording.count, "count"),
    *grouped(
        "fraction of the best",
        field("mean", "fraction_geometric_mean", wording.fixed, "geometric, 95 %", detail=of_mean),
        field("5th percentile", "fraction_p5", wording.fixed),
        field("5 measured", "best_of_5", wording.fixed, "geometric, single rows"),
    ),
    *AGAINST_USUAL,
    *grouped(
        "90 % intervals",
        field("gains covered", "covered", percents(0), "%"),
        field("times covered", "times_covered", percents(0), "%"),
    ),
    field(
        "commit and day",
        lambda got: f"{wording.short(got['commit'])}, {got['frozen_at'][:10]}",
        unit="digest of the answers",
        detail=itemgetter("digest"),
    ),
]


def blind_tests(studies: Sequence[StudyData]) -> Section | None:
    """Figures of every blind test, one row per study and GPU; None without any."""
    rows = [
        {**got, "title": study.settings.title, "gpu": gpu}
        for study in studies
        for gpu, got in study.blind.items()
    ]
    if not rows:
        return None
    made = table_of("Blind tests: answered first, measured afterwards", BLIND, rows)
    return Section("blind", "Blind tests", [Text(BLIND_NOTE, "note"), made])
