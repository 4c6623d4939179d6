"""How much faster one GPU is than another: one number per pair, the same on every page.

The problems of a pair are those that both measured whole: of the study's candidates that either
measured there, the other lacks none that it can run. Each problem's configurations that are most
surely fast are compared, by judged times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from launchwise.base.literals import csv_table
from launchwise.base.robust import FASTER, SLOWER, outcome
from launchwise.learning.merit import FEWEST, SHARE
from launchwise.report import wording
from launchwise.report.answer.predicted_times import predicted_choices
from launchwise.report.blocks import Block, Section, Table, Text
from launchwise.report.fields import field, table_of
from launchwise.report.numbers import records, winners
from launchwise.report.study_tables import StudyData, remembered
from launchwise.tables.rows import DEFAULT_ERROR, Z95, row_numbers
from launchwise.workloads.space import feasible, gpu_facts

TABLE = "data/card_ratios.csv"  # Path of every ratio as CSV, below the report's folder

WORDS = (
    "Ratio: geometric mean over the problems that both GPUs measured whole, each GPU with the "
    "configuration that is most surely fast; of studies that share problems, those that all "
    "measured. Intervals hold how problems differ and how far times of another visit lie from "
    f"these, at one level for all ({100 * DEFAULT_ERROR:g} % where none was measured); of all "
    "kernels, each of which counts once, how kernels differ. Problems that the host's clock timed "
    "do not count: another host of the same card takes another time."
)

STUDY, KERNEL, ALL = "study", "kernel", "all kernels"
"""What a ratio is over: the problems of a study, those of a kernel's studies, or kernels."""

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class CardRatio:
    """Time on ``other`` divided by time on ``gpu``, geometric mean."""

    over: str  # STUDY, KERNEL or ALL
    name: str  # of the study or the workload
    gpu: str
    other: str
    count: int  # problems, or kernels
    ratio: float
    interval: Interval  # 95 %; None for two to four, and for predicted times
    predicted: bool = False  # whether one of both is known from its datasheet alone

    def turned(self) -> CardRatio:
        """The same, of ``other`` over ``gpu``."""
        limits = self.interval and (1 / self.interval[1], 1 / self.interval[0])
        gpu, other = self.other, self.gpu
        return replace(self, gpu=gpu, other=other, ratio=1 / self.ratio, interval=limits)

    @property
    def counted(self) -> str:
        """``66 problems``."""
        return wording.plural(self.count, "kernel" if self.over == ALL else "problem")

    @property
    def numbers(self) -> list[float | None]:
        """The ratio and its limits, as data of the page's script."""
        ends = self.interval or (None, None)
        return [None if end is None else float(f"{end:.5g}") for end in (self.ratio, *ends)]

    @property
    def verdict(self) -> str:
        """What the interval says where it leaves the order open, after a comma."""
        said = FASTER if self.interval is None else outcome(*self.interval)
        return "" if said in (FASTER, SLOWER) else f", {said}"

    @property
    def number(self) -> str:
        """The ratio as every page shows it."""
        return wording.number(self.ratio, 2) if self.predicted else wording.fixed(self.ratio, 2)


def mean_ratio(logs: np.ndarray, errors: np.ndarray) -> tuple[float, Interval]:
    """Geometric mean of ratios and its 95 % interval.

    Student's t of how far ratios lie apart, and the errors of their times between visits, at one
    level for all; of one problem those alone. Of few problems, resampled ones would cover less.

    ``logs``: logarithms of the ratios, float64, shape (problems,), at least one.
    ``errors``: their standard errors between visits, of the same shape.
    """
    count, middle = len(logs), float(logs.mean())
    if 1 < count < FEWEST:
        return float(np.exp(middle)), None
    width = Z95 * float(np.sqrt((errors**2).mean()))
    if count > 1:
        freedom = stdtrit(count - 1, (1 + SHARE) / 2)
        width = float(np.hypot(width, freedom * np.sqrt(logs.var(ddof=1) / count)))
    low, middle, high = (float(np.exp(end)) for end in (middle - width, middle, middle + width))
    return middle, (low, high)


@remembered
def compared_problems(study: StudyData) -> pd.DataFrame:
    """Problems of two GPUs: those that both measured whole, or that one measured and the other has
    a predicted time of, or that both have one of. None that a host's clock timed on any GPU.

    Returns ``gpu``, ``other`` (each pair in the order of the study), the problem's columns,
    ``own_ms`` and ``other_ms``, ``own_error`` and ``other_error`` (relative, between visits; NaN
    of predicted times).
    """
    columns = study.problem_columns
    # Not the configuration that the tables name: of those that cannot be told apart that is the
    # usual choice, the slower the larger the errors of a GPU's times are.
    kept = {"surest_ms": "ms", "predicted_ms": "ms", "surest_error": "error"}
    parts = [part.rename(columns=kept) for part in (winners(study), predicted_choices(study))]
    times = pd.concat([part for part in parts if len(part)], ignore_index=True)
    times = times.reindex(columns=["gpu", *columns, "ms", "error", "by_host"])
    times["by_host"] = times["by_host"].eq(True)
    times = times[~times.groupby(columns)["by_host"].transform("any")]
    known = _candidates(study)
    keys = zip(*(times[name] for name in ("gpu", *columns)), strict=True)
    sets: dict[frozenset[int] | None, int] = {}
    times = times.assign(set=[sets.setdefault(known.get(key), len(sets)) for key in keys])
    pairs = times.merge(times, on=columns, suffixes=("", "_of_other"))
    place = {gpu: at for at, gpu in enumerate([*study.gpus, *study.described])}
    pairs = pairs[pairs["gpu"].map(place) < pairs["gpu_of_other"].map(place)]
    measured = pairs[["error", "error_of_other"]].notna().all(axis=1)
    whole = (pairs["set"] == pairs["set_of_other"]) | ~measured
    for at, row in zip(pairs.index[~whole], records(pairs[~whole]), strict=True):
        whole[at] = _is_whole(study, row, known)
    found = pairs[whole].reset_index(drop=True)
    sides = {"gpu_of_other": "other", "ms": "own_ms", "ms_of_other": "other_ms"}
    return found.rename(columns={**sides, "error": "own_error", "error_of_other": "other_error"})


Key = tuple[object, ...]


def _candidates(study: StudyData) -> dict[Key, frozenset[int]]:
    """GPU and problem to its candidates in ``study.rows``, whatever became of them: of each
    configuration the number of the first row that has it."""
    rows, key = study.rows, ["gpu", *study.problem_columns]
    cases, numbers = (row_numbers(rows, each) for each in (key, study.spec.tunable_columns))
    first = np.unique(numbers, return_index=True)[1]
    order = np.argsort(cases, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(cases[order])) + 1)
    heads = rows[key].iloc[[part[0] for part in parts]].itertuples(index=False, name=None)
    return {
        head: frozenset(first[numbers[part]].tolist())
        for head, part in zip(heads, parts, strict=True)
    }


def _is_whole(
    study: StudyData, row: Mapping[str, object], known: Mapping[Key, frozenset[int]]
) -> bool:
    """Whether each candidate that one GPU of a pair lacks is one that it cannot run."""
    problem = {name: row[name] for name in study.problem_columns}
    gpus = [str(row[name]) for name in ("gpu", "gpu_of_other")]
    own, other = (known[gpu, *problem.values()] for gpu in gpus)
    for gpu, lacking in zip(gpus, (other - own, own - other), strict=True):
        facts = gpu_facts(study.profiles[gpu].model_dump())
        for configuration in records(study.rows.iloc[sorted(lacking)][study.spec.tunable_columns]):
            if feasible(study.spec, problem, configuration, facts):
                return False
    return True


def _ratio(over: str, name: str, gpus: Key, rows: pd.DataFrame) -> CardRatio:
    own, other, *errors_of = (
        rows[name].to_numpy(dtype=float)
        for name in ("own_ms", "other_ms", "own_error", "other_error")
    )
    logs, errors = np.log(other / own), np.hypot(*errors_of)
    predicted = bool(np.isnan(errors).any())
    ratio, limits = mean_ratio(logs, errors)
    known = None if predicted else limits
    gpu, beside = map(str, gpus)
    return CardRatio(over, name, gpu, beside, len(rows), ratio, known, predicted)


Ratios = dict[tuple[str, str], CardRatio]
"""Two GPUs to the ratio of the first over the second; each pair both ways."""


@remembered
def one_way(study: StudyData) -> list[CardRatio]:
    """Ratios of a study's GPUs, of datasheet-only ones by their predicted times: each pair once."""
    pairs = compared_problems(study).groupby(["gpu", "other"], sort=False)
    return [_ratio(STUDY, study.name, gpus, rows) for gpus, rows in pairs]


@remembered
def of_study(study: StudyData) -> Ratios:
    """Ratios of a study's GPUs, both ways."""
    every = [turn for each in one_way(study) for turn in (each, each.turned())]
    return {(each.gpu, each.other): each for each in every}


def of_kernels(studies: Sequence[StudyData]) -> Iterator[CardRatio]:
    """Ratios of measured GPUs per kernel, over the different problems of all its studies, each with
    the fastest configuration of any; then per pair over its kernels, each of which counts once.
    Studies that share problems choose among other variants: what only some of them measured would
    mix these, and does not count."""
    kernels: dict[str, list[StudyData]] = {}
    for study in studies:
        kernels.setdefault(study.spec.workload, []).append(study)
    found: dict[tuple[str, str], list[CardRatio]] = {}
    for name, members in kernels.items():
        key = ["gpu", "other", *members[0].problem_columns]
        parts = [compared_problems(study).assign(study=study.name) for study in members]
        rows = pd.concat(parts, ignore_index=True)
        rows = rows[rows[["own_error", "other_error"]].notna().all(axis=1)]
        own, other = (
            rows.sort_values(f"{side}_ms", kind="stable").drop_duplicates(key).set_index(key)
            for side in ("own", "other")
        )
        own[["other_ms", "other_error"]] = other[["other_ms", "other_error"]]
        own["studies"] = rows.groupby(key)["study"].agg(frozenset)
        for gpus, part in own.sort_index().groupby(["gpu", "other"], sort=False):
            sets = {*part["studies"]}
            whole = [not any(one < each for each in sets) for one in part["studies"]]
            each = _ratio(KERNEL, name, gpus, part[whole])
            found.setdefault((each.gpu, each.other), []).append(each)
            yield each
    for gpus, each_kernel in found.items():
        if len(each_kernel) > 1:
            logs = np.log([each.ratio for each in each_kernel])
            ratio, limits = mean_ratio(logs, np.zeros(len(logs)))
            yield CardRatio(ALL, ALL, *gpus, len(logs), ratio, limits)


def of_whole_cards(studies: Sequence[StudyData]) -> list[CardRatio]:
    """Ratios of every two whole cards that this pipeline measured: over all kernels, then over each
    kernel that has several studies, then over studies."""
    profiles = {gpu: each for study in studies for gpu, each in study.profiles.items()}
    whole = {
        gpu for gpu, each in profiles.items() if each.has_measured_ceilings and not each.is_slice
    }
    several = Counter(study.spec.workload for study in studies)
    found = [
        each
        for each in [*of_kernels(studies), *chain.from_iterable(map(one_way, studies))]
        if {each.gpu, each.other} <= whole and (each.over != KERNEL or several[each.name] > 1)
    ]
    return sorted(found, key=lambda each: (ALL, KERNEL, STUDY).index(each.over))


def section(studies: Sequence[StudyData]) -> Section | None:
    """A table for every two whole cards; None without any."""
    pairs: dict[tuple[str, str], list[CardRatio]] = {}
    for each in of_whole_cards(studies):
        pairs.setdefault((each.gpu, each.other), []).append(each)
    titles = {study.spec.workload: f"{study.spec.title}, all studies" for study in studies}
    titles |= {study.name: study.settings.title for study in studies} | {ALL: ALL}
    if not pairs:
        return None
    blocks: list[Block] = []
    fields = [field("over", lambda each: titles[each.name]), *FIGURES]
    blocks += [table_of(f"{gpu} over {other}", fields, own) for (gpu, other), own in pairs.items()]
    return Section("card-ratios", "Ratios of cards", [*blocks, Text(WORDS, "note")])


FIGURES = [
    field("ratio", "number", number=True, detail=lambda each: each.verdict.removeprefix(", ")),
    field("95 % interval", "interval", wording.interval),
    field("of", "counted"),
]


def of_pairs(found: Sequence[CardRatio]) -> Table:
    """Ratios of a study's cards, a row per pair."""
    pair = field("cards", lambda each: f"{each.gpu} over {each.other}")
    return table_of("How much faster", [pair, *FIGURES], found)


def csv_text(studies: Sequence[StudyData]) -> str:
    """Every ratio as CSV, each pair once."""
    rows = [
        {**asdict(each), **dict(zip(("ratio", "low", "high"), each.numbers, strict=True))}
        for each in [*chain.from_iterable(map(one_way, studies)), *of_kernels(studies)]
    ]
    table = pd.DataFrame(rows).drop(columns="interval", errors="ignore")
    return str(csv_table(table).to_csv(index=False))
