"""A published prediction of a kernel's time: its counts, its formula, and the launch behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from launchwise.experiment.published import Records, facts_of
from launchwise.gpus.profile import GpuProfile

ITEMSIZE = 4
"""Bytes of a word: the kernel is written for float32."""

WARP = 32
"""Threads that take each step together, neighbours along x."""


def half_unit(text: str) -> float:
    """Half of the last digit of a printed number without exponent: the rounding error."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


@dataclass(frozen=True)
class Facts:
    """The published launch and its counts; fields as ``facts.csv``."""

    grid_x: int
    grid_y: int
    block_x: int
    block_y: int
    threads_a_dimension: int
    county: int
    countx: int
    rows: int
    cols: int
    threads: int
    flop_a_thread: float
    kilobytes_begin: float
    kilobytes_gram_schmidt: float
    kilobytes_solve: float
    bytes_a_thread: float
    bytes_total: float
    megabytes_total: float
    launch_overhead_us: float
    rounding_kilobytes: float
    """What rounding hides in the sum of the three parts of a thread's bytes, at most."""

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> Facts | None:
        """From names and numbers as printed; None where one of them is missing."""
        names = [field.name for field in fields(cls) if field.name != "rounding_kilobytes"]
        if any(name not in facts for name in names):
            return None
        whole = {field.name for field in fields(cls) if field.type == "int"}
        known = {name: int(facts[name]) if name in whole else float(facts[name]) for name in names}
        parts = [name for name in names if name.startswith("kilobytes_")]
        hidden = sum(half_unit(facts[name]) for name in parts)
        return cls(**known, rounding_kilobytes=hidden)  # type: ignore[arg-type]

    @property
    def problem(self) -> dict[str, int | str]:
        """The problem as the workload names it."""
        sizes = {name: getattr(self, name) for name in ("county", "countx", "rows", "cols")}
        return {**sizes, "dtype": "float32"}

    @property
    def parts(self) -> tuple[float, float, float]:
        """Bytes that a thread loads and stores, as printed: beginning, Gram-Schmidt, solution."""
        kilobytes = (self.kilobytes_begin, self.kilobytes_gram_schmidt, self.kilobytes_solve)
        return tuple(1e3 * part for part in kilobytes)  # type: ignore[return-value]

    @property
    def parts_counted(self) -> tuple[int, int, int]:
        """The same from the kernel's loops: words loaded and stored."""
        pairs = self.cols * (self.cols - 1) // 2
        # X to Q, intercepts; a product of two columns, subtracted from one; lengths and scaling.
        begin = self.rows * (2 * self.cols + 1)
        gram_schmidt = self.rows * (5 * pairs + 3 * self.cols)
        # Q^T X and Q^T y; R stored; b and R of the substitution.
        products = 2 * self.rows * (self.cols**2 + self.cols)
        solve = products + self.cols**2 + 2 * pairs + 2 * self.cols
        return ITEMSIZE * begin, ITEMSIZE * gram_schmidt, ITEMSIZE * solve

    @property
    def arrays(self) -> int:
        """Bytes of X, Q, R, b and the explained series of one regression."""
        return ITEMSIZE * (self.rows * (2 * self.cols + 1) + self.cols**2 + self.cols)

    @property
    def counts(self) -> Counts:
        """Inputs of the formula, from the printed parts."""
        return Counts(self.flop_a_thread * self.threads, sum(self.parts) * self.threads)

    @property
    def columns(self) -> list[tuple[int, int]]:
        """(block, thread) along x that do a regression; as many more along y do the same ones."""
        return [
            (block, thread)
            for block in range(self.grid_x)
            for thread in range(self.block_x)
            if block * self.threads_a_dimension + thread < self.county
        ]

    @property
    def threads_at_work(self) -> int:
        """Threads of the launch that do a regression, copies among them."""
        return len(self.columns) * self.block_y * self.grid_y

    @property
    def blocks_at_work(self) -> int:
        """Blocks with such a thread."""
        return len({block for block, _ in self.columns}) * self.grid_y

    @property
    def warps_at_work(self) -> int:
        """Warps with such a thread."""
        warps = {(block, thread // WARP) for block, thread in self.columns}
        return len(warps) * self.block_y * self.grid_y

    def lanes_share(self, sms: float) -> float:
        """Part of a GPU's lanes that work: SMs with a block, and lanes of its warps."""
        lanes = self.threads_at_work / (self.warps_at_work * WARP)
        return lanes * min(1.0, self.blocks_at_work / sms)


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
    memory_rounding: float

    @property
    def bytes_implied(self) -> tuple[float, float]:
        """Least and most bytes that give the printed time of the memory."""
        memory, half = self.times.memory, self.memory_rounding
        least, most = (
            1e-6 * time * self.rates.bandwidth for time in (memory - half, memory + half)
        )
        return least, most


def printed_of(published: Mapping[str, Records]) -> Iterator[Printed]:
    """The rows of the published table."""
    for row in published.get("predictions", []):
        yield Printed(
            row["gpu"],
            row["device"],
            Rates(float(row["peak_float32_flops"]), float(row["bandwidth_bytes_a_second"])),
            Times(*(float(row[f"{name}_us"]) for name in ("compute", "memory", "predicted"))),
            half_unit(row["memory_us"]),
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

    def bytes_implied(self) -> tuple[float, float]:
        """Least and most bytes that give every printed time of the memory."""
        least, most = zip(*(one.bytes_implied for one in self.printed), strict=True)
        return max(least), min(most)
