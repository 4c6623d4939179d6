"""Parts of ``spec.yaml`` as typed data: problem parameters, tunables, variants, work."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from launchwise.base.errors import unknown
from launchwise.base.expressions import Expression
from launchwise.base.literals import visible
from launchwise.base.typed import Strict
from launchwise.workloads.arguments import NULL, Formula, Repeated, Sizes, Step
from launchwise.workloads.metrics import COUNTERS, SWEEP
from launchwise.workloads.sources import OFFLOADING, TRITON

_OPTIONS = (
    *("-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20", "-std=c++23", "-O0", "-O1", "-O2"),
    *("-O3", "-use_fast_math", "-fmad=true", "-fmad=false", "-maxrregcount=64", "-lineinfo"),
    *("-extra-device-vectorization", "-expt-relaxed-constexpr", "-extended-lambda"),
)


def compiler_option(text: str) -> str:
    """The option itself. Raises ValueError when ``spec.yaml`` may not name it."""
    bare = re.sub(r"^--", "-", text)
    if re.sub(r"(?<=^-maxrregcount=)\d{1,3}$", "64", bare) not in _OPTIONS:
        raise ValueError(unknown("option", text, _OPTIONS))
    return text


CompilerOption = Annotated[str, AfterValidator(compiler_option)]
"""Options that change how a kernel is compiled, and nothing else on the machine."""

Value = int | str


def _in_line(value: Value) -> Value:
    if isinstance(value, str) and visible(value) != value:
        raise ValueError(f"{visible(value)!r} must be plain characters of one line")
    return value


ListedValue = Annotated[Value, AfterValidator(_in_line)]
"""A value that a spec lists: a text becomes a macro of the compiler, and a line ends that."""

NO_ELEMENT = f"write {NULL} among a kernel's arguments for a null pointer, else max(1, ...)"
"""What is said of an array without elements."""

GPU_NAMES = (
    *("gpu_memory_bytes", "gpu_max_threads_per_block", "gpu_shared_per_block_bytes"),
    "gpu_compute_capability",
)
"""Facts of the GPU that constraints may read, beside problem, derived names and tunables."""

MEASURED_COLUMNS = tuple(each.name for each in SWEEP)
"""Columns of a sweep beside problem and configuration: no parameter may have their names."""

LATER_COLUMNS = (
    *("study", "model", "role", "split", "fold", "scope", "rank", "predictor", "predicted_ms"),
    *("baseline_ms", "usual_ms", "best_ms", "shortest_ms", "bytes_ms", "flop_ms"),
    *("lower_ms", "upper_ms", "expected_gain", "least_gain", "most_gain", "is_usual"),
    *("best_of_5", "best_of_20"),
    *("improvement", "fraction", "improved_runs", "spearman", "absolute_percentage_error"),
    *("bound_by", "position", "launches", "kernel", "grid_blocks", "block_threads"),
    *(each.name for each in COUNTERS),
    *("case", "baseline", "oracle"),
    *("gain", "noise", "rate", "limit_share", "configurations", "worst", "loss"),
)
"""Columns that later stages and the report put beside a problem and a configuration: no parameter
may have their names either."""


class ProblemParameter(Strict, title="problem parameter"):
    """One dimension of the problem space."""

    type: Literal["integer", "category"] = Field(description="integers, or one of listed texts")
    values: list[ListedValue] | None = Field(None, min_length=1)
    """allowed values; required for a category"""
    minimum: int | None = Field(None, description="smallest allowed integer; none when left out")
    maximum: int | None = Field(None, description="largest allowed integer; none when left out")
    unit: str = Field("", description="unit, for the report")
    description: str = Field("", description="meaning of the parameter, for the report")

    @model_validator(mode="after")
    def _bounds(self) -> ProblemParameter:
        if self.type == "category" and self.values is None:
            raise ValueError("a category needs values")
        expected = int if self.type == "integer" else str
        if strange := [value for value in self.values or [] if not isinstance(value, expected)]:
            raise ValueError(f"values: {strange[0]!r} is not of type {self.type}")
        if None not in (self.minimum, self.maximum) and self.minimum > self.maximum:  # type: ignore[operator]
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self

    def check(self, value: Any) -> str | None:
        """Complaint about ``value``, or None."""
        expected = int if self.type == "integer" else str
        if not isinstance(value, expected) or isinstance(value, bool):
            return f"must be of type {self.type}, not {value!r}"
        if self.values is not None and value not in self.values:
            return f"{value!r} is not among {', '.join(map(str, self.values))}"
        if self.minimum is not None and value < self.minimum:  # type: ignore[operator]
            return f"{value} is below the minimum {self.minimum}"
        if self.maximum is not None and value > self.maximum:  # type: ignore[operator]
            return f"{value} is above the maximum {self.maximum}"
        return None


class Tunable(Strict, title="tunable"):
    """A parameter that launchwise may choose."""

    kind: Literal["build", "launch"]
    """build: every value needs a compilation; launch: none does"""
    values: list[ListedValue] = Field(min_length=1)
    """values to choose from"""
    neutral: ListedValue = ""
    """value in the rows of variants without this tunable; the first value when left out"""
    unit: str = ""
    """unit, for the report"""
    description: str = ""
    """meaning of the tunable, for the report"""

    @model_validator(mode="before")
    @classmethod
    def _neutral(cls, raw: Any) -> Any:
        if isinstance(raw, Mapping) and "neutral" not in raw:
            values = raw.get("values")
            if isinstance(values, list) and values:
                return {**raw, "neutral": values[0]}
        return raw


WARP_SIZE = 32
USUAL_WARPS = 4  # Warps per program instance where nothing says `num_warps`


def threads_of_triton(tunables: Collection[str]) -> Sizes:
    """Block of a variant in Triton with these tunables."""
    threads = f"{WARP_SIZE} * num_warps" if "num_warps" in tunables else WARP_SIZE * USUAL_WARPS
    return str(threads), "1", "1"


class Variant(Repeated, title="variant"):
    """One CUDA implementation: source file, tunables, launch."""

    source: str | None = None
    """CUDA source file in the workload's folder; none if imported. One that ends in `.c` is C with
    OpenMP's `target`, for Clang: it has no `block`, `grid`, `shared_bytes`. One that ends in `.py`
    has a function of Triton, which chooses `block` and `shared_bytes`"""
    title: str = ""
    """name of the variant in the report"""
    kernel: str | None = None
    """name of its `__global__` function, or of its function in C or Triton, for a spec with
    `arguments`; of a template with its arguments, `gemm<BM, BN, dtype>`: build tunables, listed
    problem values, types. The file then needs neither `KERNEL` nor `extern "C"`"""
    kernels: list[Step] = Field([])
    """several kernels that run one after the other, instead of `kernel`"""
    arguments: list[str] | None = None
    """arguments in the kernel's order, or `nullptr`; all when left out"""
    tunables: list[str] = Field([])
    """tunables that the variant has"""
    constraints: list[Expression] = Field([])
    """conditions that configurations of the variant satisfy"""
    block: Sizes | None = None
    """threads per block in x, y, z"""
    grid: Sizes | None = None
    """blocks per grid in x, y, z"""
    shared_bytes: Formula = "0"
    """dynamic shared memory per block, bytes. Host code: state it, `0` for none, if a run is one
    launch with this `block` and `grid`; left out, answers name no launch"""
    verified: bool = True
    """false for published code with a known race: it is timed although its results may be wrong,
    and it is never recommended"""

    @model_validator(mode="after")
    def _launched(self) -> Variant:
        if self.offloads:
            whole = f"{self.source} is C: its function runs the whole problem"
            self._without("block", "grid", "shared_bytes", "kernels", "repeat", "swap", why=whole)
        elif self.is_triton:
            chosen = f"{self.source} is Triton, which chooses it"
            if self.block not in (None, threads_of_triton(self.tunables)):
                raise ValueError(f"block: {chosen} by num_warps")
            self._without("shared_bytes", why=chosen)
            self._without("kernels", why=f"{self.source} is Triton: name one function by kernel")
            if self.kernel is None:
                raise ValueError(f"kernel is missing: which function of {self.source}?")
            if self.grid is None:
                raise ValueError(f"grid is missing: how is {self.source} launched?")
        elif self.source is not None:
            for key in ("block", "grid"):
                if getattr(self, key) is None:
                    raise ValueError(f"{key} is missing: how is {self.source} launched?")
        elif self.kernel is not None or self.kernels:
            raise ValueError("source is missing: which file has the kernel?")
        return self

    @property
    def offloads(self) -> bool:
        """Whether its source is C with OpenMP: a call in place of a launch."""
        return self.source is not None and self.source.endswith(OFFLOADING)

    @property
    def is_triton(self) -> bool:
        """Whether its source is Python with a function of Triton."""
        return self.source is not None and self.source.endswith(TRITON)

    def _without(self, *keys: str, why: str) -> None:
        for key in keys:
            if key in self.model_fields_set:
                raise ValueError(f"{key}: {why}")

    # Kept: a sweep asks for each configuration.
    @cached_property
    def steps(self) -> list[Step]:
        """Its kernels in the order in which they run; none for a kernel that host code launches."""
        if self.kernels or self.kernel is None:
            return self.kernels
        if self.offloads:
            one = ("1", "1", "1")
            return [Step(kernel=self.kernel, arguments=self.arguments, block=one, grid=one)]
        known = {name: getattr(self, name) for name in ("block", "grid", "shared_bytes")}
        return [Step(kernel=self.kernel, arguments=self.arguments, **known)]

    @property
    def grids(self) -> list[Sizes]:
        """Grids of its kernels, also that of a kernel that host code launches."""
        return [grid for grid in (self.grid, *(step.grid for step in self.kernels)) if grid]

    @cached_property
    def kernel_names(self) -> list[str]:
        """Names of its ``__global__`` functions as the spec gives them, each once."""
        return list(dict.fromkeys(step.kernel for step in self.steps))


class Work(Strict, title="work"):
    """Least work of a problem by its definition, independent of any variant."""

    items: Expression = Field(description="work items of the problem")
    item: str = Field(description="name of the work items, in plural, such as points")
    bytes: Expression = Field(description="least traffic to and from device memory, bytes")
    flop: Expression = Field(description="floating-point operations")
    footprint_bytes: Expression = Field(description="device memory that measuring needs, bytes")
    host_bytes: Expression = Field("0", description="host memory that measuring needs, bytes")
    precision: Expression = "'float32'"
    """type of the arithmetic: `'float32'` or `'float64'`"""


# Limits of an unknown GPU: every CUDA card of the last ten years allows these.
UNKNOWN_GPU = {
    "gpu_memory_bytes": 1 << 62,
    "gpu_max_threads_per_block": 1024,
    "gpu_shared_per_block_bytes": 48 * 1024,
    "gpu_compute_capability": 60,
}
