"""A published prediction of a kernel's time: its counts, its formula, and the launch behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.gpus.profile import GpuProfile
from launchwise.report import wording


def size(count: float) -> str:
    """Bytes to four digits."""
    unit, factor = ("MB", 1e6) if count >= 1e6 else ("kB", 1e3)
    return f"{wording.number(count / factor, 4)} {unit}"


def span(values: Sequence[float] | pd.Series, places: int = 2) -> str:
    """Least to most of some numbers."""
    if not len(values):
        return "–"
    ends = [wording.fixed(value, places) for value in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


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
        """The problem as the workload names it."""
        sizes = {name: getattr(self, name) for name in ("county", "countx", "rows", "cols")}
        return {**sizes, "dtype": "float32"}

    @property
    def counts(self) -> Counts:
        """Inputs of the formula, from the printed parts."""
        kilobytes = self.kilobytes_begin + self.kilobytes_gram_schmidt + self.kilobytes_solve
        return Counts(self.flop_a_thread * self.threads, 1e3 * kilobytes * self.threads)


@dataclass(frozen=True)
class Counts:
    """Inputs of the formula per launch: FLOP and bytes."""

    flop: float
    bytes: float


@dataclass(frozen=True)
class Times:
    """Result of the formula, µs."""

    compute: float
    memory: float
    total: float


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

    def times(self, counts: Counts, facts: Facts, share: float = 1.0) -> Times:
        """The published formula; ``share`` of the peak where not all lanes work."""
        compute = 1e6 * counts.flop / (share * self.peak)
        memory = 1e6 * counts.bytes / self.bandwidth
        return Times(compute, memory, max(compute, memory) + facts.launch_overhead_us)


@dataclass(frozen=True)
class Printed:
    """A GPU of the source: its peak and bandwidth there, and the printed times, µs."""

    gpu: str
    device: str
    rates: Rates
    times: Times


def printed_of(published: Mapping[str, Records]) -> Iterator[Printed]:
    """The rows of the published table."""
    for row in published.get("predictions", []):
        yield Printed(
            row["gpu"],
            row["device"],
            Rates(float(row["peak_float32_flops"]), float(row["bandwidth_bytes_a_second"])),
            Times(*(float(row[f"{name}_us"]) for name in ("compute", "memory", "predicted"))),
        )


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
