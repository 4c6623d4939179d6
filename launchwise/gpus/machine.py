"""A GPU as the cost model sees it: rates and latencies, measured or estimated.

Constants that the ``describe`` stage did not measure are estimated from the GPU's attributes with
the defaults below, so that datasheet-only GPUs have a machine too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, get_type_hints

from launchwise.gpus.profile import GpuProfile

ARITHMETIC = ("float32", "float64", "tf32", "float16", "bfloat16")
"""Types whose rates a machine has, the last three those of tensor cores."""

L1_BYTES_PER_CYCLE = 128.0
"""Bytes per cycle of an SM's L1 or shared memory (CUDA C++ Best Practices Guide: 32 banks of 4
bytes)."""

L2_BYTES_PER_CYCLE = 64.0  # Bytes per cycle that one SM can read from L2 (Volta and newer)

L2_BYTES_PER_CYCLE_ALL_SMS = {
    (7, 0): 2048 / 80,
    (8, 0): 5120 / 108,
    (9, 0): 5120 / 132,
    (10, 0): 5120 / 132,
}
"""Bytes per cycle and SM from L2 when all SMs read, by compute capability. The NVIDIA A100
whitepaper gives 2048 bytes per cycle for a V100 and 5120 for an A100. An H100 is assumed to have
5120, a B200 the H100's rate per SM."""

L2_BYTES_PER_CYCLE_OTHER = 2048 / 80
"""Bytes per cycle and SM from L2 for other GPUs: the rate of Volta."""

WARP_INSTRUCTIONS_PER_CYCLE = 4.0
"""Warp instructions per cycle and SM: four schedulers, one instruction each (Maxwell and newer)."""

BLOCKS_PER_SM = 32
"""Most resident blocks per SM (7.0, 8.0, 9.0; cards between reach their thread limit first)."""

CYCLES = {
    "dram": 650.0,
    "l2": 270.0,
    "l1": 40.0,
    "shared": 30.0,
    "float32": 4.0,
    "float64": 8.0,
    "float32_division": 40.0,
    "float64_division": 120.0,
    "barrier": 40.0,
}
"""Default latencies, cycles, for GPUs without measured ones: typical of micro-benchmarks from Volta
to Hopper (Jia et al. 2018; Luo et al. 2024)."""

TENSOR_FLOP_PER_CYCLE = {
    (8, 0): {"tf32": 1024.0, "float16": 2048.0, "bfloat16": 2048.0},
    (9, 0): {"tf32": 2048.0, "float16": 4096.0, "bfloat16": 4096.0},
}
"""Dense tensor FLOP per cycle and SM, 2 per multiply-add (whitepapers of A100 and H100). Described
cards use the rates of their datasheets."""

GRAPH_LAUNCH_US = 1.8
SYNCHRONISE_US = 10.0
COPY_US = 5.0
TO_DEVICE_GBS = 12.0  # PCIe 3.0 with 16 lanes, the slowest link of the supported cards
PAGEABLE_SHARE = 0.3
HOST_SOLVE_NS = 20.0

HOPPER = (9, 0)
"""First compute capability whose full tensor rates need instructions of whole warp groups."""


def tensor_share(capability: tuple[int, int]) -> float:
    """Rate of ``mma`` instructions divided by the card's dense tensor rate, from the literature.
    For GPUs whose tensor rates were not measured: 0.95 up to Ada (Sun et al. 2022); 0.62 from
    Hopper on, where only ``wgmma`` reaches the rest (Luo et al. 2024)."""
    return 0.95 if capability < HOPPER else 0.62


@dataclass(frozen=True)
class Machine:
    """Constants of one GPU: rates in 1e9 per second, latencies in ns or us, sizes in bytes."""

    sms: Annotated[float, "SMs"]
    max_threads_per_sm: Annotated[float, "most resident threads per SM"]
    registers_per_sm: Annotated[float, "32-bit registers per SM"]
    shared_per_sm_bytes: Annotated[float, "shared memory per SM, bytes"]
    dram_gbs: Annotated[float, "bandwidth of device memory, 1e9 B/s"]
    dram_gbs_a_sm: Annotated[float, "bandwidth of device memory for one SM alone, 1e9 B/s"]
    l2_gbs: Annotated[float, "bandwidth of L2, 1e9 B/s"]
    l2_gbs_a_sm: Annotated[float, "bandwidth of L2 for one SM alone, 1e9 B/s"]
    l1_gbs: Annotated[float, "bandwidth of L1 and of shared memory, all SMs together, 1e9 B/s"]
    instructions_gips: Annotated[float, "instruction rate, 1e9 warp instructions per second"]
    float32: Annotated[float, "arithmetic rate in float32, 1e9 FLOP/s"]
    float64: Annotated[float, "arithmetic rate in float64, 1e9 FLOP/s"]
    tf32: Annotated[float, "arithmetic rate in TF32 on tensor cores, 1e9 FLOP/s"]
    float16: Annotated[float, "arithmetic rate in float16 on tensor cores, 1e9 FLOP/s"]
    bfloat16: Annotated[float, "arithmetic rate in bfloat16 on tensor cores, 1e9 FLOP/s"]
    dram_ns: Annotated[float, "latency of a load from device memory, ns"]
    l2_ns: Annotated[float, "latency of a load from L2, ns"]
    l1_ns: Annotated[float, "latency of a load from L1, ns"]
    shared_ns: Annotated[float, "latency of a load from shared memory, ns"]
    float32_ns: Annotated[float, "latency of a multiply-add in float32, ns"]
    float64_ns: Annotated[float, "latency of a multiply-add in float64, ns"]
    float32_division_ns: Annotated[float, "latency of a division in float32, ns"]
    float64_division_ns: Annotated[float, "latency of a division in float64, ns"]
    barrier_ns: Annotated[float, "time of a barrier of one block, ns"]
    launch_us: Annotated[float, "time from one kernel to the next in a CUDA graph, us"]
    host_launch_us: Annotated[
        float, "time from one kernel to the next when the host launches each, us"
    ]
    synchronise_us: Annotated[float, "time that the host needs to wait for the device, us"]
    copy_us: Annotated[float, "overhead per copy between host and device, us"]
    to_device_gbs: Annotated[float, "copy rate from page-locked host memory to the device, 1e9 B/s"]
    to_host_gbs: Annotated[float, "copy rate from the device to page-locked host memory, 1e9 B/s"]
    pageable_to_device_gbs: Annotated[
        float, "copy rate from pageable host memory to the device, 1e9 B/s"
    ]
    pageable_to_host_gbs: Annotated[
        float, "copy rate from the device to pageable host memory, 1e9 B/s"
    ]
    host_solve_ns: Annotated[float, "time of LAPACK on the host per row of a linear system, ns"]

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def descriptions(cls) -> dict[str, str]:
        """Name of each constant to its description with unit."""
        types = get_type_hints(cls, include_extras=True)
        return {name: types[name].__metadata__[0] for name in cls.names()}

    @classmethod
    def of(cls, profile: GpuProfile) -> Machine:
        """Machine of a GPU: measured constants, estimates for the others."""
        known, measured = profile.ceilings, profile.ceilings.model_dump()
        ghz, sms = profile.clock_mhz / 1e3, float(profile.sms)
        rates = TENSOR_FLOP_PER_CYCLE.get(profile.compute_capability, {})
        share = tensor_share(profile.compute_capability)
        float32 = known.float32_gflops or 2 * profile.cores * ghz
        # Without tensor cores the arithmetic is done by the others.
        tensor_gflops = {
            name: measured[f"{name}_gflops"] or rates.get(name, 0.0) * sms * ghz * share or float32
            for name in ARITHMETIC[2:]
        }
        waits = {name: (f"{name}_latency_ns", f"{name}_ns") for name in CYCLES}
        latencies = {
            f"{name}_ns": measured.get(one) or measured.get(other) or CYCLES[name] / ghz
            for name, (one, other) in waits.items()
        }
        sizes = ("max_threads_per_sm", "registers_per_sm", "shared_per_sm_bytes")
        to_device = known.to_device_gbs or TO_DEVICE_GBS
        to_host = known.to_host_gbs or to_device
        return cls(
            sms=sms,
            **{name: float(getattr(profile, name)) for name in sizes},
            dram_gbs=known.copy_bandwidth_gbs,
            dram_gbs_a_sm=L2_BYTES_PER_CYCLE * ghz,
            l2_gbs=known.l2_bandwidth_gbs or _l2_bytes_per_cycle(profile) * ghz,
            l2_gbs_a_sm=L2_BYTES_PER_CYCLE * ghz,
            l1_gbs=L1_BYTES_PER_CYCLE * sms * ghz,
            instructions_gips=WARP_INSTRUCTIONS_PER_CYCLE * sms * ghz,
            float32=float32,
            float64=known.float64_gflops or float32 / 32,
            **tensor_gflops,
            **latencies,
            launch_us=known.graph_launch_us or GRAPH_LAUNCH_US,
            host_launch_us=known.launch_overhead_us,
            # What was measured is a launch and the wait for it.
            synchronise_us=max(1.0, known.host_synchronize_us - known.launch_overhead_us)
            if known.host_synchronize_us
            else SYNCHRONISE_US,
            copy_us=known.copy_overhead_us or COPY_US,
            to_device_gbs=to_device,
            to_host_gbs=to_host,
            pageable_to_device_gbs=known.pageable_to_device_gbs or PAGEABLE_SHARE * to_device,
            pageable_to_host_gbs=known.pageable_to_host_gbs or PAGEABLE_SHARE * to_host,
            host_solve_ns=known.host_solve_ns or HOST_SOLVE_NS,
        )


def _l2_bytes_per_cycle(profile: GpuProfile) -> float:
    together = L2_BYTES_PER_CYCLE_ALL_SMS.get(profile.compute_capability, L2_BYTES_PER_CYCLE_OTHER)
    # A slice's SMs draw more each, as the others rest.
    return float(min(together * profile.whole_card_sms, L2_BYTES_PER_CYCLE * profile.sms))


def full_tensor_gflops(profile: GpuProfile, name: str) -> float:
    """Rate of tensor cores in a type at the highest clock, 1e9 FLOP/s; 0 where it is unknown. No
    kernel is faster. The ceilings of a profile are measured with instructions of one warp, which
    reach a part of it from Hopper on (:func:`tensor_share`)."""
    rates = TENSOR_FLOP_PER_CYCLE.get(profile.compute_capability, {})
    return rates.get(name, 0.0) * profile.sms * profile.clock_mhz / 1e3


@dataclass(frozen=True)
class Fastest:
    """Upper limits of any kernel on a GPU."""

    gbs: float = math.inf  # bytes through device memory, 1e9 a second
    gflops: float = math.inf  # FLOP of whatever type is fastest, 1e9 a second

    @classmethod
    def of(cls, profile: GpuProfile) -> Fastest:
        """Limits of a GPU: copy bandwidth and highest FLOP rate, measured or estimated."""
        machine = Machine.of(profile)
        return cls(machine.dram_gbs, max(getattr(machine, name) for name in ARITHMETIC))

    def least_us(self, moved_bytes: float, flop: float) -> float:
        """Shortest time for the given bytes and FLOP, us."""
        return max(moved_bytes / self.gbs, flop / self.gflops) / 1e3
