"""The tests' workload: made-up times whose best depends on size and GPU, and cases to learn from.

The times follow the reasons that ``kernels/stencil/cost.yaml`` has, in numbers of their own.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from launchwise.gpus.profile import Ceilings, GpuProfile
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import FACTS
from launchwise.learning.splits import Case
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec
from tests.support.samples import STENCIL, measurements, profile

GPUS = ("card.sm16", "card.sm72")
TRAINED, ASKED = (256, 300, 512), (500, 550)
FAR: list[Problem] = [{"n": n, "dtype": "float64", "order": 16} for n in (333, 640)]
"""Problems unlike those that models learn from."""


def slice_of_card(name: str) -> GpuProfile:
    """A card of 132 SMs, or a slice with its share of SMs and bandwidth and with the card's L2."""
    sms = int(name.partition(".sm")[2] or 132)
    share = sms / 132
    return profile(
        name,
        sms=sms,
        cores=128 * sms,
        l2_bytes=20_000_000,
        memory_bandwidth_gbs=4900 * share,
        ceilings=Ceilings(copy_bandwidth_gbs=4300 * share, launch_overhead_us=2.0),
    )


def stencil_domain(spec: Spec) -> Domain:
    """The workload on :data:`GPUS`."""
    return Domain(spec, {gpu: slice_of_card(gpu) for gpu in GPUS})


def copying_stencil(folder: Path) -> Path:
    """The workload in ``folder``, with arrays in memory of the device or of the host. Those of the
    host are copied at each run. The baseline always tells the host how it ended."""
    made = folder / STENCIL.name
    shutil.copytree(STENCIL, made, ignore=shutil.ignore_patterns("studies", "__pycache__"))
    spec = yaml.safe_load((made / "spec.yaml").read_text())
    memory = {"type": "category", "values": ["device", "pinned"], "description": "of the arrays"}
    spec["problem"]["memory"] = memory
    (made / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    cost = yaml.safe_load((made / "cost.yaml").read_text())
    copied = {"when": "memory == 'pinned'"}
    cost["transfers"] = {
        "inputs": {**copied, "to": "device", "bytes": "3 * itemsize * points", "copies": "3"},
        "result": {**copied, "to": "host", "bytes": "itemsize * points"},
        "ending": {"variants": ["linear"], "to": "host", "bytes": "4"},
    }
    (made / "cost.yaml").write_text(yaml.safe_dump(cost, sort_keys=False))
    return made


def small_stencil(into: Path) -> Path:
    """Copy the workload to ``into/kernels/stencil``, with a small space and free to be changed.
    Problems of 20 points have 20 configurations, seven of them of ``column``."""
    folder = into / "kernels" / STENCIL.name
    # What is usual and the study name values that this smaller space does not have.
    ignored = shutil.ignore_patterns("usual.yaml", "studies", "__pycache__")
    shutil.copytree(STENCIL, folder, ignore=ignored)
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    values = {"bx": [8, 64], "by": [1, 8], "bz": [1, 8], "tz": [*range(1, 9)]}
    for name, own in values.items():
        spec["tunables"][name]["values"] = own
    (folder / "spec.yaml").write_text(
        yaml.safe_dump(spec, sort_keys=False, default_flow_style=None)
    )
    return folder


HOST = """
from launchwise.workloads.declared.declared_workload import DeclaredWorkload

{code}

class Changed(DeclaredWorkload):
    def open(self, *given):
        session = super().open(*given)
        change(session)
        return session
"""


def change_sessions(folder: Path, code: str) -> None:
    """Give the workload host code that calls ``change(session)`` of ``code`` at each opening."""
    host = folder / "host" / "workload.py"
    host.parent.mkdir()
    host.write_text(HOST.format(code=code))


def cases(sizes: tuple[int, ...], gpus: tuple[str, ...] = GPUS) -> list[Case]:
    """Problems of one type and order."""
    return [Case(gpu, {"n": n, "dtype": "float32", "order": 8}) for gpu in gpus for n in sizes]


def times_ms(rows: pd.DataFrame, gpu: GpuProfile) -> np.ndarray:
    """Made-up times of configurations on one GPU, before noise, shape ``(rows,)``, ms. Memory
    decides. Walking or stacking points along z saves reads of planes that L2 cannot keep and leaves
    SMs idle: the first wins for large grids on few SMs, the second elsewhere."""
    is_block = rows["variant"].eq("block3d").to_numpy()
    is_column = rows["variant"].eq("column").to_numpy()
    names = ("n", "bx", "by", "bz", "tz")
    n, bx, by, bz, tz = (rows[name].to_numpy(dtype=float) for name in names)
    radius = rows["order"].to_numpy() // 2
    itemsize = np.where(rows["dtype"] == "float32", 4, 8)
    points, walked = (n - 2 * radius) ** 3, bz * tz
    kept = np.minimum(1, gpu.l2_bytes / (4 * (2 * radius + walked) * n**2 * itemsize))
    words = 4 + (1 - kept) * radius / walked
    lanes = np.where(is_block, np.minimum(32, bx), 32)
    threads = np.where(is_block, bx * by * bz, 256)
    is_loose = (n * itemsize % 128 != 0) & (rows["row_padding"] == 0).to_numpy()
    losses = (
        (1 + 0.08 * is_loose)
        * (1 + 0.08 * np.abs(np.log2(threads / 256)))
        * (1 + 0.15 * gpu.sms / 132 * np.log2(walked))
        * np.where(is_block, 1, np.where(is_column, 1.05, 1.1))
    )
    bandwidth = gpu.ceilings.copy_bandwidth_gbs * 1e6
    moved_ms = points * itemsize * words * 32 / lanes / bandwidth
    return gpu.ceilings.launch_overhead_us / 1e3 + moved_ms * losses


def sweep(
    spec: Spec,
    sizes: Iterable[int],
    gpu: str,
    dtype: str = "float32",
    order: int = 8,
    **problem: Any,
) -> pd.DataFrame:
    """A sweep of these sizes: :func:`times_ms` with noise of 0.3 %, the same at every call."""
    pieces = []
    for n in sizes:
        named = {"n": n, "dtype": dtype, "order": order, **problem}
        rows = measurements(spec, [{name: [value] for name, value in named.items()}], gpu)
        noise = np.random.default_rng([zlib.crc32(gpu.encode()), n]).normal(0, 0.003, len(rows))
        time_ms = times_ms(rows, slice_of_card(gpu)) * np.exp(noise)
        times = [np.array([1.0, 0.99, 1.01]) * time for time in time_ms]
        pieces.append(
            rows.assign(
                time_ms=time_ms,
                times_ms=pd.Series(times, rows.index),
                spread_ms=0.005 * time_ms,
                first_ms=1.2 * time_ms,
            )
        )
    return pd.concat(pieces, ignore_index=True)


def training_rows(spec: Spec, sizes: tuple[int, ...] = TRAINED) -> pd.DataFrame:
    """What models learn from: these sizes on all :data:`GPUS`, with facts of the compiler."""
    columns = [*spec.key_columns, "time_ms", *FACTS]
    return pd.concat([sweep(spec, sizes, gpu)[columns] for gpu in GPUS], ignore_index=True)
