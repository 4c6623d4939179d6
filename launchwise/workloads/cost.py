"""``kernels/<workload>/cost.yaml``: hardware demands of each variant's run, as typed data.

The numbers are read off the sources, never fitted to a sweep: bytes that pass each level of the
memory, instructions, and what a thread waits for one after the other. Expressions may read the
problem, the configuration, the derived names of ``spec.yaml`` and of this file, the GPU's
attributes (:data:`launchwise.gpus.profile.GPU_FEATURES`) and limits, constants of its machine
(``machine_dram_ns`` and so on, see :class:`launchwise.gpus.machine.Machine`), ``least_us``, the
shortest time that any kernel could take for the problem on the GPU, and ``resident_blocks``, what
an SM holds of the kernel at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from launchwise.base.errors import check_known
from launchwise.base.expressions import Expression, check_names
from launchwise.base.typed import Strict
from launchwise.gpus.machine import ARITHMETIC, Machine

COST_FILE = "cost.yaml"

RESIDENT = "resident_blocks"
"""Name by which expressions of a kernel read how many of its blocks an SM holds at once."""

LEAST = "least_us"
"""Name by which expressions read :meth:`launchwise.gpus.machine.Fastest.least_us` of the problem: a
sweep empties L2 for problems of 20 us or more by it (``graph_below_us`` of its method)."""

MACHINE = tuple(f"machine_{name}" for name in Machine.names())
"""Names by which expressions read constants of the machine."""

USES: Mapping[str, str] = {
    "dram_bytes": "traffic between L2 and device memory, bytes",
    "l2_bytes": "traffic between L1 and L2, bytes, in whole sectors of 32; includes `dram_bytes`",
    "l1_bytes": "traffic between registers and L1, bytes; 128 for each cycle of a warp's access",
    "shared_traffic_bytes": "traffic between registers and shared memory, bytes; as `l1_bytes`",
    "instructions": "instructions of all threads, idle lanes of a warp included",
    "float32_flop": "float32 operations; a multiply-add counts 2",
    "float64_flop": "float64 operations; a multiply-add counts 2",
    "tf32_flop": "TF32 operations on tensor cores; a multiply-add counts 2",
    "float16_flop": "float16 operations on tensor cores; a multiply-add counts 2",
    "bfloat16_flop": "bfloat16 operations on tensor cores; a multiply-add counts 2",
}
"""Resources used by all blocks of a launch together."""

WAITS: Mapping[str, str] = {
    "dram": "dependent loads that device memory answers",
    "l2": "dependent loads that L2 answers",
    "l1": "dependent loads that L1 answers",
    "shared": "dependent loads from shared memory",
    "float32": "dependent float32 operations; each takes as long as a multiply-add",
    "float64": "dependent float64 operations; each takes as long as a multiply-add",
    "float32_division": "dependent float32 divisions",
    "float64_division": "dependent float64 divisions",
    "barrier": "barriers of the thread's block",
}
"""Waits of one thread."""


def _of_keys(descriptions: Mapping[str, str], title: str, about: str) -> tuple[Any, Any]:
    """Validator and JSON schema of a mapping that has these keys alone."""

    def complete(schema: dict[str, Any]) -> None:
        values = schema["additionalProperties"]
        each = {name: {**values, "description": text} for name, text in descriptions.items()}
        schema |= {"properties": each, "additionalProperties": False}

    def known(found: dict[str, str]) -> dict[str, str]:
        check_known("", "key", found, descriptions)
        return found

    field = Field(
        title=title, description=f"{about}; 0 for keys left out", json_schema_extra=complete
    )
    return AfterValidator(known), field


_uses = _of_keys(USES, "uses", "resources that all blocks of one launch use together")
_waits = _of_keys(WAITS, "waits", "waits of the longest waiting thread, in sequence")
Uses = Annotated[dict[str, Expression], _uses[0], _uses[1]]
Waits = Annotated[dict[str, Expression], _waits[0], _waits[1]]


class KernelCost(Strict, title="kernel"):
    """One kernel of a run. Its expressions hold for one launch."""

    variants: list[str] | None = Field(None, min_length=1)
    """variants that have the kernel; all when left out"""
    when: Expression = Field("1", description="condition under which a run has the kernel")
    launches: Expression = Field("1", description="launches per run, one after the other")
    blocks: Expression | None = None
    """blocks per grid; the variant's grid when left out"""
    threads: Expression | None = None
    """threads per block; the variant's block when left out"""
    registers: Expression = Field("32", description="registers per thread")
    shared_bytes: Expression = Field("0", description="shared memory per block, bytes")
    least_bytes: Expression | None = None
    """least bytes of a launch that does several runs at once (`launches` below 1): every array that
    these need together, once. By the problem alone; each run's share is its limit of copying, in
    place of the problem's bytes"""
    uses: Uses = Field(description="resources that all blocks of the launch use together")
    waits: Waits = Field({}, description="waits of the longest waiting thread")


class Transfer(Strict, title="transfer"):
    """Copies between host and device: all of a run in one direction."""

    variants: list[str] | None = Field(None, min_length=1)
    """variants that have the copies; all when left out"""
    when: Expression = Field("1", description="condition under which a run has the copies")
    to: Literal["device", "host"] = Field(description="direction of the copies")
    bytes: Expression = Field(description="all copies together, bytes")
    copies: Expression = Field("1", description="copy calls")
    page_locked: Expression = "1"
    """condition under which the host memory is page-locked"""


class HostWork(Strict, title="host work"):
    """Work of the host between copies and launches."""

    variants: list[str] | None = Field(None, min_length=1)
    """variants that have the work; all when left out"""
    when: Expression = "1"
    """condition under which a run has the work"""
    synchronisations: Expression = "0"
    """times that the host waits for the device"""
    solved_rows: Expression = "0"
    """rows of linear systems that LAPACK solves on the host"""


class Overlap(Strict, title="overlap"):
    """Phases that several streams run at the same time, each on a part of the data."""

    streams: Expression = Field(description="streams; 1 for no overlap")
    phases: list[str] = Field(min_length=2)
    """names of kernels, transfers or host work that overlap"""


class Cost(Strict, title="cost.yaml"):
    """Demands of each run on the hardware, phase by phase: input of the cost model."""

    derived: dict[str, Expression] = Field({})
    """names for subexpressions; each may read those before it"""
    host_driven: Expression = "0"
    """condition under which the host launches each kernel and times the run"""
    kernels: dict[str, KernelCost] = Field(min_length=1)
    """kernels by name; every variant has at least one"""
    transfers: dict[str, Transfer] = Field({}, description="copies by name")
    host: dict[str, HostWork] = Field({}, description="host work by name")
    overlaps: list[Overlap] = Field([], description="phases that overlap")

    def phases(self) -> dict[str, KernelCost | Transfer | HostWork]:
        """Everything that takes time, by name."""
        return {**self.kernels, **self.transfers, **self.host}

    def several(self, variant: str) -> KernelCost | None:
        """The kernel of a variant whose launch does several runs at once; None for the others."""
        own = (each for each in self.kernels.values() if each.least_bytes is not None)
        return next((each for each in own if variant in (each.variants or [variant])), None)

    def check(self, known: Iterable[str], variants: Iterable[str]) -> None:
        """Insist that every name means something.

        ``known``: names of the spec that expressions may read.
        ``variants``: variants of the workload; each needs a kernel.
        Raises ValueError: key and reason in one line.
        """
        names = {*known}
        if taken := sorted(names & {RESIDENT, LEAST, *MACHINE}):
            raise ValueError(f"{taken[0]} is defined in spec.yaml but reserved in cost.yaml")
        names |= {RESIDENT, LEAST, *MACHINE}
        for name, text in self.derived.items():
            if name in names:
                raise ValueError(f"derived.{name}: the name is already in use")
            check_names(f"derived.{name}", text, names)
            names.add(name)
        check_names("host_driven", self.host_driven, names)
        phases = self.phases()
        if len(phases) < len(self.kernels) + len(self.transfers) + len(self.host):
            raise ValueError("kernels, transfers and host share a name")
        for name, phase in phases.items():
            for key, text in _texts(phase):
                check_names(f"{name}.{key}", text, names)
            if isinstance(phase, KernelCost) and phase.least_bytes is not None:
                # How many runs a launch does is the same for every problem.
                check_names(f"{name}.launches", phase.launches, ())
            check_known(f"{name}.variants", "variant", phase.variants or [], list(variants))
        for number, overlap in enumerate(self.overlaps):
            check_names(f"overlaps.{number}.streams", overlap.streams, names)
            check_known(f"overlaps.{number}.phases", "phase", overlap.phases, phases)
        for variant in variants:
            if not any(variant in (each.variants or [variant]) for each in self.kernels.values()):
                raise ValueError(f"kernels: none covers variant {variant!r}")


def _texts(phase: Strict) -> Iterable[tuple[str, str]]:
    for key, value in phase:
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", str(text)) for name, text in value.items())
        elif isinstance(value, str) and key != "to":
            yield key, value


def least_us(moved_bytes: str, flop: str) -> str:
    """:meth:`launchwise.gpus.machine.Fastest.least_us` as an expression of two others."""
    fastest = ", ".join(f"machine_{name}" for name in ARITHMETIC)
    return f"max(({moved_bytes}) / machine_dram_gbs, ({flop}) / max({fastest})) / 1e3"


def plain_cost(work: Mapping[str, Any]) -> Cost:
    """Cost of a workload that has no ``cost.yaml``: its least bytes and its FLOP, in one launch.

    ``work``: of the spec: ``bytes``, ``flop`` and ``precision`` as expressions.
    """
    double = f"({work['precision']}) == 'float64'"
    moved = f"({work['bytes']})"
    return Cost(
        kernels={
            "whole": KernelCost(
                uses={
                    "dram_bytes": moved,
                    "l2_bytes": moved,
                    "float32_flop": f"0 if {double} else ({work['flop']})",
                    "float64_flop": f"({work['flop']}) if {double} else 0",
                }
            )
        }
    )
