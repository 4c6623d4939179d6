"""Profile of a GPU: attributes, measured ceilings, physical card."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.storage import read_json, write_json
from launchwise.base.typed import Strict, validated

GPU_FEATURES = {
    "gpu_sms": "sms",
    "gpu_cores": "cores",
    "gpu_memory_bandwidth_gbs": "memory_bandwidth_gbs",
    "gpu_shared_per_sm_bytes": "shared_per_sm_bytes",
    "gpu_l2_bytes": "l2_bytes",
    "gpu_clock_mhz": "clock_mhz",
}
"""Features of a GPU for models: name of the feature to attribute of the profile.

The paper's five (SMs, cores, bandwidth, shared memory, L2), the clock, and the measured copy
bandwidth, which is no attribute but a ceiling.
"""

FEATURES_OF_GPU = (*GPU_FEATURES, "gpu_copy_bandwidth_gbs")
"""Names of all features of a GPU (see :meth:`GpuProfile.features`)."""

LIKENESS_FACTS = (
    *("sms", "cores", "clock_mhz", "memory_bandwidth_gbs"),
    *("arch", "compute_capability"),
)
"""What says how alike two GPUs are (:mod:`launchwise.search.candidates`)."""

CORES_PER_SM = {
    (3, 5): 192,
    (3, 7): 192,
    (5, 0): 128,
    (5, 2): 128,
    (6, 0): 64,
    (6, 1): 128,
    (7, 0): 64,
    (7, 5): 64,
    (8, 0): 64,
    (8, 6): 128,
    (8, 9): 128,
    (9, 0): 128,
    (10, 0): 128,
    (10, 3): 128,
    (12, 0): 128,
}
"""FP32 lanes of one SM by compute capability (CUDA C++ Programming Guide, throughput table)."""

COPY_SHARE = 0.9
"""Copy bandwidth divided by that of bus width and memory clock, where it was not measured."""

LAUNCH_OVERHEAD_US = 2.0  # Time per launch of an empty kernel, us, where it was not measured

BY_MMA = "tensor cores by mma, float32 sums: kernels by other instructions (wgmma) may exceed it"


class Ceilings(Strict):
    """Ceilings of a GPU, measured by the ``describe`` stage.

    Of a datasheet-only card they are estimates (see :mod:`launchwise.gpus.datasheets`), and so they
    are where only the attributes of a card were read (see :meth:`GpuProfile.of_attributes`).
    Profiles of versions before 3 have the first four only, older ones lack the creation of a
    stream; whoever needs a missing one estimates it (see :mod:`launchwise.gpus.machine`).
    """

    copy_bandwidth_gbs: float = Field(gt=0, description="bytes read + written, 1e9 B/s")
    launch_overhead_us: float = Field(gt=0, description="one empty kernel, back to back")
    float32_gflops: float | None = Field(None, gt=0, description="fused multiply-adds, 2 FLOP each")
    float64_gflops: float | None = Field(None, gt=0, description="fused multiply-adds, 2 FLOP each")
    tf32_gflops: float | None = Field(None, gt=0, description=BY_MMA)
    float16_gflops: float | None = Field(None, gt=0, description=BY_MMA)
    bfloat16_gflops: float | None = Field(None, gt=0, description=BY_MMA)
    l2_bandwidth_gbs: float | None = Field(None, gt=0, description="reads that L2 answers")
    dram_latency_ns: float | None = Field(None, gt=0, description="dependent loads that L2 misses")
    l2_latency_ns: float | None = Field(None, gt=0, description="dependent loads that L2 answers")
    l1_latency_ns: float | None = Field(None, gt=0, description="dependent loads that L1 answers")
    shared_latency_ns: float | None = Field(None, gt=0, description="dependent loads, shared")
    float32_latency_ns: float | None = Field(None, gt=0, description="dependent multiply-adds")
    float64_latency_ns: float | None = Field(None, gt=0, description="dependent multiply-adds")
    float32_division_ns: float | None = Field(None, gt=0, description="dependent divisions")
    float64_division_ns: float | None = Field(None, gt=0, description="dependent divisions")
    barrier_ns: float | None = Field(None, gt=0, description="a barrier of a block of 256 threads")
    graph_launch_us: float | None = Field(None, gt=0, description="an empty kernel of a long graph")
    host_synchronize_us: float | None = Field(None, gt=0, description="an empty kernel, waited for")
    to_device_gbs: float | None = Field(None, gt=0, description="from page-locked memory")
    to_host_gbs: float | None = Field(None, gt=0, description="to page-locked memory")
    pageable_to_device_gbs: float | None = Field(None, gt=0, description="from pageable memory")
    pageable_to_host_gbs: float | None = Field(None, gt=0, description="to pageable memory")
    copy_overhead_us: float | None = Field(None, gt=0, description="a copy of 4 bytes, in a row")
    stream_creation_us: float | None = Field(None, gt=0, description="one stream, by the driver")
    host_solve_ns: float | None = Field(
        None, gt=0, description="one row of a float64 system that LAPACK's gtsv solves on the host"
    )

    def flop_gflops(self, precision: str) -> float:
        """Measured rate of a type, 1e9 FLOP/s; NaN where it was not measured."""
        found = getattr(self, f"{precision}_gflops", None)
        return math.nan if found is None else float(found)


WITH_HOST = (
    *("launch_overhead_us", "host_synchronize_us", "copy_overhead_us", "stream_creation_us"),
    *("to_device_gbs", "to_host_gbs", "pageable_to_device_gbs", "pageable_to_host_gbs"),
    "host_solve_ns",
)
"""Ceilings of a GPU with its host: beside another host the same card has others."""

MEASURED_ONLY: dict[str, Any] = {
    "card": "",
    "memory_clock_mhz": 0.0,
    "memory_bus_bits": 0,
    "driver": "",
    "toolkit": "",
    "commit": "",
    "measured_at": "",
}
"""Attributes known only by measurement, with their values for datasheet-only GPUs."""


class GpuProfile(Strict):
    """``results/gpus/<gpu>.json``. ``card`` is a hash of the physical card's UUID: slices of one
    card share it. ``source`` says whether the ceilings were measured, the GPU is datasheet-only
    (:meth:`described`), or the driver was asked for attributes alone (:meth:`of_attributes`)."""

    name: str
    source: Literal["measured", "described", "attributes"] = "measured"
    device_name: str
    card: str
    whole_card_sms: int = Field(ge=1)
    compute_capability: tuple[int, int] = Field(
        description="compute capability, major and minor; in expressions 10 major + minor"
    )
    arch: str
    sms: int = Field(ge=1, description="SMs in use")
    cores: int = Field(ge=1, description="FP32 lanes of all SMs")
    clock_mhz: float = Field(gt=0, description="highest SM clock, MHz")
    memory_clock_mhz: float = Field(ge=0)
    memory_bus_bits: int = Field(ge=0)
    memory_bytes: int = Field(ge=1, description="device memory, bytes")
    memory_bandwidth_gbs: float = Field(
        ge=0, description="bandwidth of device memory from bus width and memory clock, 1e9 B/s"
    )
    l2_bytes: int = Field(ge=0, description="L2 cache, bytes")
    shared_per_sm_bytes: int = Field(ge=1, description="shared memory per SM, bytes")
    shared_per_block_bytes: int = Field(ge=1, description="most shared memory per block, bytes")
    registers_per_sm: int = Field(ge=1)
    max_threads_per_sm: int = Field(ge=1)
    max_threads_per_block: int = Field(ge=1, description="most threads per block")
    driver: str
    toolkit: str
    commit: str
    measured_at: str
    ceilings: Ceilings

    @classmethod
    def described(cls, **known: Any) -> GpuProfile:
        """Profile of a datasheet-only GPU: attributes of its datasheet, estimated ceilings. Raises
        pydantic.ValidationError when something is missing or is no such value."""
        return cls(source="described", **MEASURED_ONLY, **known)

    @classmethod
    def of_attributes(cls, **known: Any) -> GpuProfile:
        """Profile of a card whose driver was asked for its attributes alone. Its two required
        ceilings are estimates: :data:`COPY_SHARE` of the memory bandwidth, and
        :data:`LAUNCH_OVERHEAD_US`."""
        copies = COPY_SHARE * known["memory_bandwidth_gbs"] or 1.0
        estimated = Ceilings(copy_bandwidth_gbs=copies, launch_overhead_us=LAUNCH_OVERHEAD_US)
        return cls(source="attributes", ceilings=estimated, **known)

    @property
    def has_attributes_alone(self) -> bool:
        """Whether its two ceilings are estimates from its attributes."""
        return self.source == "attributes"

    @property
    def has_measured_ceilings(self) -> bool:
        """Whether its ceilings were measured; those of a card that was imported are estimates."""
        return self.source == "measured"

    @property
    def card_model(self) -> str:
        """The model of the card: slices and copies of one model tell nothing of another model. A
        sweep in several visits may meet several cards of a model, so ``card`` is too fine to say
        whether a GPU was seen."""
        return self.device_name

    @property
    def is_amd(self) -> bool:
        """Whether the card is one of AMD, which has no compute capability."""
        return self.arch.startswith("gfx")

    @property
    def capability_text(self) -> str:
        """Compute capability such as ``8.6``; the architecture such as ``gfx90a`` of AMD's."""
        return self.arch if self.is_amd else "{}.{}".format(*self.compute_capability)

    @property
    def is_slice(self) -> bool:
        """Whether only some SMs of the card are used."""
        return self.sms < self.whole_card_sms

    @property
    def host_link_is_known(self) -> bool:
        """Whether the rate of copies to the device was measured or stated."""
        return self.ceilings.to_device_gbs is not None

    def features(self) -> dict[str, float]:
        """Values of :data:`GPU_FEATURES` and ``gpu_copy_bandwidth_gbs``."""
        known = {name: float(getattr(self, key)) for name, key in GPU_FEATURES.items()}
        return {**known, "gpu_copy_bandwidth_gbs": self.ceilings.copy_bandwidth_gbs}


def read_profile(path: str | Path, name: str | None = None) -> GpuProfile:
    """Read a profile; with ``name``, insist that it describes that GPU."""
    profile = validated(GpuProfile, read_json(path), path)
    if name is not None and profile.name != name:
        raise UserError(path, "name", f"is {profile.name!r}, not {name!r}")
    return profile


def write_profile(path: str | Path, profile: GpuProfile) -> None:
    write_json(path, profile.model_dump(mode="json"))
