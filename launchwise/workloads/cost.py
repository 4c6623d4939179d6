"""``kernels/<workload>/cost.yaml``: what a run of each variant asks of the hardware, as typed data.

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
from typing import Any, Literal

from pydantic import Field

from launchwise.base.errors import unknown
from launchwise.base.expressions import check_names
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

Use = Literal[
    "dram_bytes",
    "l2_bytes",
    "l1_bytes",
    "shared_traffic_bytes",
    "instructions",
    "float32_flop",
    "float64_flop",
    "tf32_flop",
    "float16_flop",
    "bfloat16_flop",
]
"""What a launch takes of what all threads share, all blocks together.

``dram_bytes`` through device memory; ``l2_bytes`` between L1 and L2, in whole sectors of 32 bytes,
those to device memory among them; ``l1_bytes`` and ``shared_traffic_bytes`` between registers and
L1 or shared memory, where a warp's access counts with all the 128 bytes that each of its cycles
could have moved; ``instructions`` of threads, all kinds, idle lanes of a warp included;
``…_flop`` two a fused multiply-add, the last three on tensor cores.
"""

Wait = Literal[
    "dram",
    "l2",
    "l1",
    "shared",
    "float32",
    "float64",
    "float32_division",
    "float64_division",
    "barrier",
]
"""What one thread waits for, each time for the one before: loads by the level that answers,
arithmetic, barriers of its block."""


class KernelCost(Strict):
    """One kernel of a run; its expressions hold for one launch."""

    variants: list[str] | None = Field(None, min_length=1, description="all where left out")
    when: str = Field("1", description="whether a run has it at all")
    launches: str = Field("1", description="how often a run launches it, one after the other")
    blocks: str | None = Field(None, description="the variant's grid where left out")
    threads: str | None = Field(None, description="of a block; the variant's where left out")
    registers: str = Field("32", description="of a thread")
    shared_bytes: str = Field("0", description="of a block")
    uses: dict[Use, str]
    waits: dict[Wait, str] = Field({}, description="of the thread that waits longest")


class Transfer(Strict):
    """Copies between host and device, all of a run in one direction."""

    variants: list[str] | None = Field(None, min_length=1)
    when: str = "1"
    to: Literal["device", "host"]
    bytes: str
    copies: str = Field("1", description="calls")
    page_locked: str = Field("1", description="whether the host's memory is page-locked")


class HostWork(Strict):
    """What the host does itself between copies and launches."""

    variants: list[str] | None = Field(None, min_length=1)
    when: str = "1"
    synchronisations: str = Field("0", description="times that it waits for the device")
    solved_rows: str = Field("0", description="rows that LAPACK solves")


class Overlap(Strict):
    """Phases that several streams run side by side, each a part of them."""

    streams: str
    phases: list[str] = Field(min_length=2)


class Cost(Strict):
    """What runs of a workload ask of the hardware, phase by phase."""

    derived: dict[str, str] = Field({}, description="names for the expressions below")
    host_driven: str = Field(
        "0", description="whether the host launches each kernel, and its clock times the run"
    )
    kernels: dict[str, KernelCost] = Field(min_length=1)
    transfers: dict[str, Transfer] = Field({})
    host: dict[str, HostWork] = Field({})
    overlaps: list[Overlap] = Field([])

    def phases(self) -> dict[str, KernelCost | Transfer | HostWork]:
        """Everything that takes time, by name."""
        return {**self.kernels, **self.transfers, **self.host}

    def check(self, known: Iterable[str], variants: Iterable[str]) -> None:
        """Insist that every name means something.

        Parameters
        ----------
        known
            Names of the spec that expressions may read.
        variants
            Variants of the workload; each needs a kernel.

        Raises
        ------
        ValueError
            Key and reason in one line.
        """
        names = {*known}
        if taken := sorted(names & {RESIDENT, LEAST, *MACHINE}):
            raise ValueError(f"{taken[0]} of spec.yaml means something else here")
        names |= {RESIDENT, LEAST, *MACHINE}
        for name, text in self.derived.items():
            if name in names:
                raise ValueError(f"derived.{name}: the name is taken")
            check_names(f"derived.{name}", text, names)
            names.add(name)
        check_names("host_driven", self.host_driven, names)
        phases = self.phases()
        if len(phases) < len(self.kernels) + len(self.transfers) + len(self.host):
            raise ValueError("kernels, transfers and host have a name in common")
        for name, phase in phases.items():
            for key, text in _texts(phase):
                check_names(f"{name}.{key}", text, names)
            for variant in phase.variants or []:
                if variant not in list(variants):
                    raise ValueError(f"{name}.variants: {unknown('variant', variant, variants)}")
        for number, overlap in enumerate(self.overlaps):
            check_names(f"overlaps.{number}.streams", overlap.streams, names)
            for phase_name in overlap.phases:
                if phase_name not in phases:
                    message = unknown("phase", phase_name, phases)
                    raise ValueError(f"overlaps.{number}.phases: {message}")
        for variant in variants:
            if not any(variant in (each.variants or [variant]) for each in self.kernels.values()):
                raise ValueError(f"kernels: none is of variant {variant!r}")


def _texts(phase: Strict) -> Iterable[tuple[str, str]]:
    """Keys and expressions of a phase."""
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

    Parameters
    ----------
    work
        Of the spec: ``bytes``, ``flop`` and ``precision`` as expressions.
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
