"""A published prediction of a kernel's time, and what was measured and estimated of its launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.gpus.datasheets import Datasheet, described_profile, reference_efficiency
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.analytical import PARTS, CostModel
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.report import wording
from launchwise.report.numbers import records
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import fastest_rows
from launchwise.tables.times import by_sweep
from launchwise.workloads.metrics import TIMED
from launchwise.workloads.space import baseline


def size(count: float) -> str:
    unit, factor = ("MB", 1e6) if count >= 1e6 else ("kB", 1e3)
    return f"{wording.number(count / factor, 4)} {unit}"


@dataclass(frozen=True)
class Facts:
    """The published launch and its counts; fields as ``facts.csv``."""

    county: int
    countx: int
    rows: int
    cols: int
    threads: int
    flop_a_thread: float
    kilobytes_begin: float
    kilobytes_gram_schmidt: float
    kilobytes_solve: float
    launch_overhead_us: float

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> Facts | None:
        """From names and numbers as printed; None where one of them is missing."""
        names = [field.name for field in fields(cls)]
        if any(name not in facts for name in names):
            return None
        whole = {field.name for field in fields(cls) if field.type == "int"}
        known = {name: int(facts[name]) if name in whole else float(facts[name]) for name in names}
        return cls(**known)  # type: ignore[arg-type]

    @property
    def problem(self) -> dict[str, int | str]:
        sizes = {name: getattr(self, name) for name in ("county", "countx", "rows", "cols")}
        return {**sizes, "dtype": "float32"}

    @property
    def flop(self) -> float:
        return self.flop_a_thread * self.threads

    @property
    def bytes(self) -> float:
        kilobytes = self.kilobytes_begin + self.kilobytes_gram_schmidt + self.kilobytes_solve
        return 1e3 * kilobytes * self.threads


@dataclass(frozen=True)
class Rates:
    """Inputs of the formula per GPU: FLOP/s and bytes/s."""

    peak: float
    bandwidth: float

    @classmethod
    def of(cls, profile: GpuProfile) -> Rates:
        """Ceilings of a profile; FLOP by cores and clock where they were not measured."""
        known = profile.ceilings
        gflops = known.float32_gflops or 2e-3 * profile.cores * profile.clock_mhz
        return cls(1e9 * gflops, 1e9 * known.copy_bandwidth_gbs)

    def predicted_us(self, facts: Facts) -> float:
        """The published formula."""
        longer = max(facts.flop / self.peak, facts.bytes / self.bandwidth)
        return 1e6 * longer + facts.launch_overhead_us


@dataclass(frozen=True)
class Printed:
    """A GPU of the source: its peak and bandwidth there, and the printed prediction."""

    gpu: str
    rates: Rates
    predicted_us: float


def printed_of(published: Mapping[str, Records]) -> Iterator[Printed]:
    """The rows of the published table."""
    for row in published.get("predictions", []):
        rates = Rates(float(row["peak_float32_flops"]), float(row["bandwidth_bytes_a_second"]))
        yield Printed(row["gpu"], rates, float(row["predicted_us"]))


@dataclass(frozen=True)
class Source:
    """The published launch, its counts and its table of predictions."""

    facts: Facts
    printed: Sequence[Printed]

    @classmethod
    def of(cls, published: Mapping[str, Records]) -> Source | None:
        """None where a fact is missing."""
        facts = Facts.of(facts_of(published))
        return None if facts is None else cls(facts, list(printed_of(published)))


PUBLISHED, ONCE, BEST = "published", "no_duplicates", "best"
"""Rows shown per GPU: two variants, and the fastest verified one."""

Row = dict[str, Any]


@dataclass
class Known:
    """The study, the source, and the datasheets of the cards that the source predicts for."""

    study: StudyData
    source: Source
    cards: Mapping[str, Datasheet]

    @cached_property
    def gpus(self) -> dict[str, GpuProfile]:
        """Profiles: GPUs of the source with a complete datasheet, then those of the study."""
        named = [one.gpu for one in self.source.printed]
        known = [gpu for gpu in named if gpu in self.cards and not self.cards[gpu].missing]
        measured = {gpu: self.study.profiles[gpu] for gpu in self.study.gpus}
        if not known:
            return measured
        efficiency = reference_efficiency(self.cards)
        described = {gpu: described_profile(gpu, self.cards, efficiency) for gpu in known}
        return {**described, **measured}

    @property
    def added(self) -> list[str]:
        """GPUs of the study that are whole cards and no GPUs of the source."""
        named = {one.gpu for one in self.source.printed}
        profiles = self.study.profiles
        return [gpu for gpu in self.study.gpus if gpu not in named and not profiles[gpu].is_slice]

    @cached_property
    def measured(self) -> dict[str, dict[str, Row]]:
        """GPU of the study to :func:`chosen` of its sweep at the published size. Of the whole
        sweep: splits and candidates of the study may have less. Times are those of the sweep, as
        the published launch was in no pairs."""
        found = {}
        for gpu, rows in self.study.sweeps.items():
            here = rows["status"].isin(TIMED)
            for name, value in self.source.facts.problem.items():
                here &= rows[name] == value
            # Without errors the fastest row is that of least time, not the simplest that ties.
            swept = by_sweep(rows[here]).drop(columns="error", errors="ignore")
            found[gpu] = chosen(swept, self.study)
        return found

    @cached_property
    def estimated(self) -> dict[str, dict[str, Row]]:
        """GPU to :func:`chosen` of the cost model's estimates, with parts (µs) and bounds."""
        spec, problem = self.study.spec, self.source.facts.problem
        verified = Domain(spec, self.gpus).choices([Case(gpu, problem) for gpu in self.gpus])
        launched = {**problem, **baseline(spec), "variant": PUBLISHED}
        unverified = pd.DataFrame([{"gpu": gpu, **launched} for gpu in self.gpus])
        rows = pd.concat([unverified, verified], ignore_index=True)
        estimate = CostModel(spec, self.gpus).estimate(rows)
        parts = {name: 1e3 * estimate.parts[name] for name in PARTS}
        rows = rows.assign(time_ms=estimate.time_ms, bound_by=estimate.bound_by(), **parts)
        by_gpu = rows.groupby("gpu", sort=False)
        return {str(gpu): chosen(part, self.study) for gpu, part in by_gpu}

    def formula_us(self, gpu: str) -> float:
        """The printed prediction; of a GPU that the source does not have by its formula."""
        for one in self.source.printed:
            if one.gpu == gpu:
                return one.predicted_us
        facts = self.source.facts
        return Rates.of(self.gpus[gpu]).predicted_us(facts)


def chosen(rows: pd.DataFrame, study: StudyData) -> dict[str, Row]:
    """The fastest row of one GPU for each of :data:`PUBLISHED`, :data:`ONCE`, :data:`BEST`. Adds
    ``time_us``."""
    rows = rows.assign(time_us=1e3 * rows["time_ms"])
    parts = {name: rows[rows["variant"] == name] for name in (PUBLISHED, ONCE)}
    parts[BEST] = rows[rows["variant"].isin(list(study.spec.recommendable.variants))]
    fastest = {name: fastest_rows(part, ["gpu"], study.spec) for name, part in parts.items()}
    return {name: records(part)[0] for name, part in fastest.items() if len(part)}
