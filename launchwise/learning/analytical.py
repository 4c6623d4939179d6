"""Predicts run times with a cost model, without measurements of the kernel.

A run is a row of phases. A kernel takes as long as its slowest resource, and somewhat longer if
several are nearly as slow: with t_r the time of each resource alone, the p-norm of all t_r, p =
:data:`SHARPNESS`. Resources of an SM (L1, shared memory, instructions, arithmetic) are as slow as
the SM with most blocks; waiting is as long as the chain of one thread for every round of resident
blocks (Little's law, Volkov 2016). Transfers take their bytes divided by the bus rate, plus a
constant per call. Phases add, but those that streams run side by side hide behind the longest of
them.

Sources: the roofline of Williams, Waterman, Patterson (2009) with one roof per level of
memory (Ilic et al. 2014), and occupancy and waves as in Hong, Kim (2009).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.vectors import Columns
from launchwise.gpus.machine import ARITHMETIC, BLOCKS_PER_SM, Machine
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.row_arrays import of_gpus
from launchwise.workloads.cost import (
    COST_FILE,
    LEAST,
    RESIDENT,
    Cost,
    HostWork,
    KernelCost,
    Transfer,
    least_us,
    plain_cost,
)
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import Spec

SHARPNESS = 3.0
"""Exponent p of the norm over resources: 1 adds their times, infinity takes the slowest."""

RESOURCES = ("dram", "l2", "l1", "shared", "instructions", "arithmetic", "waiting")
"""Resources that may limit a kernel."""

PARTS = (*RESOURCES, "launches", "transfers", "host")  # Parts that may limit a run

FULL = {"grid": "gpu_sms", "block": "gpu_max_threads_per_block"}
"""Blocks and threads per block of a variant whose launch is unknown: all SMs equally loaded."""


@dataclass(frozen=True)
class Estimate:
    """Predicted times and what they are made of."""

    time_ms: np.ndarray  # float64, ms, shape (rows,)
    # Name of `PARTS` to ms, shape (rows,): what each would take alone, summed over phases.
    parts: dict[str, np.ndarray]
    # Phase of the cost to ms, shape (rows,), without what streams hide of it; phases of variants
    # that no row has are missing.
    phases: dict[str, np.ndarray]

    def bound_by(self) -> np.ndarray:
        """Name of the largest part of each row: objects, shape (rows,)."""
        names = np.array(PARTS, dtype=object)
        return np.asarray(names[np.argmax([self.parts[name] for name in PARTS], axis=0)])


class CostModel:
    """Predicts the time of any configuration of a workload on any GPU that has a profile.

    ``spec``: the workload; where it has no ``cost.yaml`` its ``work`` stands for one.
    ``profiles``: GPUs that may be asked for.
    """

    def __init__(self, spec: Spec, profiles: Mapping[str, GpuProfile]) -> None:
        self._spec = spec
        self._profiles = profiles
        self._last: tuple[pd.DataFrame, Estimate] | None = None
        self._cost: Cost = spec.cost or plain_cost(spec.work.model_dump())

    @cached_property
    def _machines(self) -> dict[str, dict[str, float]]:
        return {gpu: asdict(Machine.of(profile)) for gpu, profile in self._profiles.items()}

    @cached_property
    def _facts(self) -> dict[str, dict[str, float]]:
        return {
            gpu: {**profile.features(), **gpu_facts(profile.model_dump())}
            for gpu, profile in self._profiles.items()
        }

    def estimate(self, rows: pd.DataFrame) -> Estimate:
        """Predict; once where the same table is asked about several times in a row.

        ``rows``: columns ``gpu``, the problem's and the configuration's. Raises UserError when
        ``cost.yaml`` gives a row no time above 0, or a part of it one below; ValueError when one of
        its expressions cannot be evaluated.
        """
        if self._last is None or self._last[0] is not rows:
            self._last = rows, self._estimated(rows)
        return self._last[1]

    def copies_at_unknown_rate(self, rows: pd.DataFrame) -> np.ndarray:
        """Rows that copy between host and a GPU whose link is unknown: booleans, shape (rows,).
        Nothing that is computed of them is known to be near their time."""
        unknown = [gpu for gpu, one in self._profiles.items() if not one.host_link_is_known]
        found = rows["gpu"].isin(unknown).to_numpy(dtype=bool, copy=True)
        if self._cost.transfers and found.any():
            found[found] = self.estimate(rows[found]).parts["transfers"] > 0
            return found
        return np.zeros(len(rows), dtype=bool)

    def _estimated(self, rows: pd.DataFrame) -> Estimate:
        constants = of_gpus(rows, self._machines)
        known = {f"machine_{name}": values for name, values in constants.items()}
        run = _Run(self._spec, self._cost, known | self._names(rows), constants)
        times = run.total_ms()
        least = np.min(list(run.parts.values()), axis=0)
        bad = ~(np.isfinite(times) & (times > 0) & (least >= 0))
        if bad.any():
            row = rows.iloc[int(bad.argmax())]
            names = ("gpu", *self._spec.problem_columns, *self._spec.tunable_columns)
            told = ", ".join(f"{name}={row[name]}" for name in names)
            message = (
                f"takes {times[bad][0]:g} ms by {COST_FILE}, a part of it {least[bad][0]:g} ms"
            )
            raise UserError(self._spec.workload, told, message)
        return Estimate(times, run.parts, run.phases)

    def _names(self, rows: pd.DataFrame) -> dict[str, np.ndarray]:
        """Names that expressions may read, each of shape (rows,)."""
        known = of_gpus(rows, self._facts)
        for name in (*self._spec.problem_columns, *self._spec.tunable_columns):
            values = rows[name].to_numpy()
            # float64 holds every size exactly, and cannot wrap when sizes are multiplied.
            known[name] = values.astype(float if values.dtype.kind in "iuf" else object)
        return known


class _Run:
    """Times of phases, computed for all rows; a row counts the phases of its variant."""

    def __init__(
        self, spec: Spec, cost: Cost, known: dict[str, np.ndarray], machine: dict[str, np.ndarray]
    ) -> None:
        self._spec, self._cost = spec, cost
        variants = known["variant"]
        self._rows_of = {name: variants == name for name in set(variants.tolist())}
        least = {LEAST: least_us(spec.work.bytes, spec.work.flop)}
        self._columns = Columns({**spec.derived, **least, **cost.derived}, known)
        self._machine = machine
        self.parts = {name: np.zeros(len(variants)) for name in PARTS}
        self._host_driven = self._value(cost.host_driven) != 0
        self.phases: dict[str, np.ndarray] = {}
        for name, phase in cost.phases().items():
            if phase.variants is None or self._rows_of.keys() & set(phase.variants):
                self.phases[name] = self._phase(phase)

    def _value(self, text: str) -> np.ndarray:
        return self._columns.value(text).astype(float, copy=False)

    def total_ms(self) -> np.ndarray:
        """Time of whole runs, ms, shape (rows,)."""
        total = np.sum(list(self.phases.values()), axis=0)
        for overlap in self._cost.overlaps:
            side_by_side = [self.phases[each] for each in overlap.phases if each in self.phases]
            if side_by_side:
                hidden = np.sum(side_by_side, axis=0) - np.max(side_by_side, axis=0)
                total = total - hidden * (1 - 1 / self._value(overlap.streams))
        return np.asarray(total)

    def _phase(self, phase: KernelCost | Transfer | HostWork) -> np.ndarray:
        present = self._columns.value(phase.when).astype(bool)
        if phase.variants is not None:
            own = [self._rows_of[name] for name in phase.variants if name in self._rows_of]
            present = present & np.logical_or.reduce(own)
        if isinstance(phase, KernelCost):
            return self._kernel(phase, present)
        if isinstance(phase, Transfer):
            return self._transfer(phase, present)
        return self._host(phase, present)

    def _add(self, name: str, ms: np.ndarray, present: np.ndarray) -> np.ndarray:
        """Count ``ms`` as a part of the runs that have it."""
        # Expressions of a phase that a run does not have may divide by zero.
        counted = np.where(present, ms, 0.0)
        self.parts[name] += counted
        return counted

    def _kernel(self, kernel: KernelCost, present: np.ndarray) -> np.ndarray:
        machine = self._machine
        launches = self._value(kernel.launches)
        alone = self._alone_ns(kernel)
        each = [self._add(name, launches * alone[name] / 1e6, present) for name in RESOURCES]
        start = np.where(self._host_driven, machine["host_launch_us"], machine["launch_us"])
        begun = self._add("launches", launches * start / 1e3, present)
        return begun + np.linalg.norm(each, ord=SHARPNESS, axis=0)

    def _alone_ns(self, kernel: KernelCost) -> dict[str, np.ndarray]:
        """Time of one launch if limited by each of :data:`RESOURCES` alone, ns, shape (rows,)."""
        machine = self._machine
        blocks = self._shape(kernel.blocks, "grid")
        resident = self._resident(kernel, self._shape(kernel.threads, "block"))
        self._columns.bind(RESIDENT, resident)
        busy = np.minimum(blocks, machine["sms"])
        # By what the SM with most blocks has more than its share.
        uneven = np.ceil(blocks / machine["sms"]) * machine["sms"] / blocks
        rounds = np.ceil(blocks / (machine["sms"] * resident))
        zero = np.zeros(len(blocks))
        uses = {str(name): self._value(text) for name, text in kernel.uses.items()}
        rates = {
            "dram_bytes": np.minimum(machine["dram_gbs"], busy * machine["dram_gbs_a_sm"]),
            "l2_bytes": np.minimum(machine["l2_gbs"], busy * machine["l2_gbs_a_sm"]),
            "l1_bytes": machine["l1_gbs"] / uneven,
            "shared_traffic_bytes": machine["l1_gbs"] / uneven,
            "instructions": 32 * machine["instructions_gips"] / uneven,
            **{f"{name}_flop": machine[name] / uneven for name in ARITHMETIC},
        }
        ns = {name: uses[name] / rate if name in uses else zero for name, rate in rates.items()}
        chain = [self._value(text) * machine[f"{name}_ns"] for name, text in kernel.waits.items()]
        return {
            "dram": ns["dram_bytes"],
            "l2": ns["l2_bytes"],
            "l1": ns["l1_bytes"],
            "shared": ns["shared_traffic_bytes"],
            "instructions": ns["instructions"],
            "arithmetic": np.sum([ns[f"{name}_flop"] for name in ARITHMETIC], axis=0),
            "waiting": np.sum(chain, axis=0) * rounds if chain else zero,
        }

    def _shape(self, text: str | None, which: str) -> np.ndarray:
        """Blocks of a launch or threads of a block: ``text``, or each variant's own. Imported ones
        have neither: they count as a full block on every SM."""
        if text is not None:
            return self._value(text)
        texts = [
            getattr(self._spec.variants[name], which) or (FULL[which],) for name in self._rows_of
        ]
        shapes = [self._value(" * ".join(f"({text})" for text in each)) for each in texts]
        return np.select(list(self._rows_of.values()), shapes)

    def _resident(self, kernel: KernelCost, threads: np.ndarray) -> np.ndarray:
        """Resident blocks per SM, at least 1."""
        machine = self._machine
        # Registers are given to warps in units of 8 a thread.
        registers = np.ceil(self._value(kernel.registers) / 8) * 8 * np.ceil(threads / 32) * 32
        # A block takes 1 KB of shared memory for itself (compute capability 8.0 and newer).
        shared = self._value(kernel.shared_bytes) + 1024
        limits = [
            machine["max_threads_per_sm"] // (np.ceil(threads / 32) * 32),
            machine["registers_per_sm"] // registers,
            machine["shared_per_sm_bytes"] // shared,
            np.full(len(threads), float(BLOCKS_PER_SM)),
        ]
        return np.maximum(np.min(limits, axis=0), 1.0)

    def _transfer(self, transfer: Transfer, present: np.ndarray) -> np.ndarray:
        machine = self._machine
        locked = self._value(transfer.page_locked) != 0
        rate = np.where(
            locked, machine[f"to_{transfer.to}_gbs"], machine[f"pageable_to_{transfer.to}_gbs"]
        )
        ms = self._value(transfer.bytes) / rate / 1e6
        calls = self._value(transfer.copies) * machine["copy_us"] / 1e3
        return self._add("transfers", ms + calls, present)

    def _host(self, work: HostWork, present: np.ndarray) -> np.ndarray:
        machine = self._machine
        waits = self._value(work.synchronisations) * machine["synchronise_us"] / 1e3
        solved = self._value(work.solved_rows) * machine["host_solve_ns"] / 1e6
        return self._add("host", waits + solved, present)
