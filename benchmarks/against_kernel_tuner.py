"""Configurations a second against Kernel Tuner, on one GPU, in one run.

Both tune the same kernel text over the same block shapes at 256^3, with the same number of repeats:
once one problem (order 8, float32), once six (orders 2, 8, 16 in both types), since what is paid
once (nvcc, a process, a context) weighs less in a sweep of many problems. Kernel Tuner's clock runs
over ``tune_kernel`` alone; ours over everything from sources to a complete journal: nvcc, the start
of the measuring process, inputs, a float64 verification of every configuration (Kernel Tuner
verifies nothing here), timing, writing.

    python benchmarks/against_kernel_tuner.py benchmarks/results/kernel_tuner.json
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from launchwise.bundle import Bundle
from launchwise.cards import cards, free_card
from launchwise.compile import compile_bundle
from launchwise.journal import Journal, read_journal
from launchwise.provenance import commit, now, versions
from launchwise.settings import Method, Repeats
from launchwise.space import configurations
from launchwise.spec import Spec, load_spec
from launchwise.storage import write_json
from launchwise.sweep import Shard, measure_shard
from launchwise.workload import builds_of, load_workload

ROOT = Path(__file__).resolve().parents[1]
ONE: list[dict[str, Any]] = [{"n": 256, "dtype": "float32", "order": 8}]
SIX: list[dict[str, Any]] = [
    {"n": 256, "dtype": dtype, "order": order}
    for dtype in ("float32", "float64")
    for order in (2, 8, 16)
]
REPEATS = 7
BACKENDS = ("CUPY", "NVCUDA", "PYCUDA")
"""Kernel Tuner's; the last compiles with nvcc, so it tunes one problem only."""
SHAPE = ("bx", "by", "bz")
Side = dict[str, Any]


def block_shapes_only(scratch: Path) -> Path:
    """A copy of the acoustic workload whose only variant is ``block3d`` with unpadded rows."""
    folder = scratch / "acoustic"
    shutil.copytree(ROOT / "kernels" / "acoustic", folder)
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    spec["variants"] = {"block3d": spec["variants"]["block3d"]}
    spec["baseline"] = {"variant": "block3d", "bx": 128, "by": 1, "bz": 1}
    spec["features"] = {}
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder


def ours(folder: Path, spec: Spec, problems: list[dict[str, Any]], scratch: Path) -> Side:
    """Seconds and best times of a sweep from sources to journal."""
    method = Method(
        repeats=Repeats(minimum=REPEATS, maximum=REPEATS, budget_ms=1e6, precision=0.005),
        slow_factor=1e9,
    )
    path = scratch / "journal.jsonl"
    with free_card("benchmark", lambda card: True, "any card") as card:
        begin = time.perf_counter()
        bundle = scratch / "bundle.cubins"
        builds = builds_of(load_workload(folder, spec), problems)
        compile_bundle(folder, spec, builds, card.arch, bundle, os.cpu_count() or 1)
        compiled = time.perf_counter()
        shard = Shard(
            spec=spec,
            folder=folder,
            problems=problems,
            method=method,
            seed=1,
            gpu_facts={"gpu_memory_bytes": 1 << 40, "gpu_max_threads_per_block": 1024},
            labels={
                "gpu": "benchmark",
                "workload": "acoustic",
                "card": card.mark,
                "driver": card.driver,
                "toolkit": Bundle(bundle).toolkit,
                "backend": "pycuda",
                "commit": "",
            },
            command=[sys.executable, "-m", "launchwise.cuda.child"],
            environment={**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
            job={"bundle": str(bundle), "slice_sms": None},
        )
        with Journal(path, "benchmark", spec.key_columns) as journal:
            measure_shard(shard, journal)
        seconds = time.perf_counter() - begin
    rows = read_journal(path)[1]
    return {
        "configurations": len(rows),
        "statuses": sorted({row["status"] for row in rows}),
        "repeats": sorted({row["repeats"] for row in rows}),
        "seconds": seconds,
        "seconds_compiling": compiled - begin,
        "ms_a_configuration": 1e3 * seconds / len(rows),
        "best": {
            f"{problem['dtype']} order {problem['order']}": min(
                (row["time_ms"], [row[name] for name in SHAPE])
                for row in rows
                if row["status"] == "ok" and problem.items() <= row.items()
            )
            for problem in problems
        },
    }


def kernel_text(folder: Path, spec: Spec, problem: dict[str, Any]) -> str:
    """The kernel's source as Kernel Tuner wants it: one text, macros set, no includes."""
    workload = load_workload(folder, spec)
    build = workload.build(problem, configurations(spec, problem)[0])
    defines = "".join(f"#define {name} {value}\n" for name, value in build.defines)
    header = (folder / "stencil.cuh").read_text().replace("#pragma once", "")
    return f"{defines}#define KERNEL(name) name\n{header}{(folder / build.source).read_text()}"


def kernel_tuner(folder: Path, spec: Spec, problems: list[dict[str, Any]], backend: str) -> Side:
    """Seconds and best times of Kernel Tuner's brute force over the same shapes."""
    from kernel_tuner import tune_kernel

    side: Side = {"configurations": 0, "timed": 0, "seconds": 0.0, "best": {}}
    for problem in problems:
        n, order, dtype = int(problem["n"]), int(problem["order"]), np.dtype(problem["dtype"])
        random = np.random.default_rng(1)
        u, u_old = (random.uniform(-1, 1, n**3).astype(dtype) for _ in range(2))
        velocity = random.uniform(1500, 4500, n**3).astype(dtype)
        scale = dtype.type(7.9e-9)
        arguments = [np.zeros_like(u), u, u_old, velocity, np.int32(n), scale]
        text = kernel_text(folder, spec, problem)
        begin = time.perf_counter()
        results, _ = tune_kernel(
            "block3d",
            text,
            (n - order,) * 3,
            arguments,
            {name: list(spec.tunables[name].values) for name in SHAPE},
            block_size_names=list(SHAPE),
            grid_div_x=["bx"],
            grid_div_y=["by"],
            grid_div_z=["bz"],
            restrictions=["bx * by * bz >= 64", "bx * by * bz <= 1024"],
            compiler_options=["-std=c++17"],
            lang=backend,
            iterations=REPEATS,
            quiet=True,
        )
        side["seconds"] += time.perf_counter() - begin
        timed = [entry for entry in results if isinstance(entry["time"], float)]
        best = min(timed, key=lambda entry: statistics.median(entry["times"]))
        side["configurations"] += len(results)
        side["timed"] += len(timed)
        side["best"][f"{problem['dtype']} order {order}"] = (
            statistics.median(best["times"]),
            [int(best[name]) for name in SHAPE],
        )
    side["ms_a_configuration"] = 1e3 * side["seconds"] / side["configurations"]
    return side


def main() -> None:
    """Run all sides and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    output = parser.parse_args().output
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        folder = block_shapes_only(scratch)
        spec = load_spec(folder)
        results: dict[str, Any] = {}
        for name, problems, peers in (("one", ONE, BACKENDS), ("six", SIX, BACKENDS[:2])):
            sides: dict[str, Side] = {}
            # Ours runs before and after the others, so that a drift of the card shows.
            for run in ("launchwise", *peers, "launchwise again"):
                place = scratch / f"{name} {run}"
                place.mkdir()
                if run.startswith("launchwise"):
                    sides[run] = ours(folder, spec, problems, place)
                else:
                    sides[f"kernel_tuner {run}"] = kernel_tuner(folder, spec, problems, run)
                print(name, run, list(sides.values())[-1], flush=True)
            times = {key: side["ms_a_configuration"] for key, side in sides.items()}
            fastest_peer = min(time for key, time in times.items() if "tuner" in key)
            slowest_own = max(time for key, time in times.items() if "tuner" not in key)
            results[name] = {"sides": sides, "times_faster": fastest_peer / slowest_own}
    card = cards()[0]
    result = {
        "problems": {"one": ONE, "six": SIX},
        "repeats": REPEATS,
        "results": results,
        "device": card.device_name,
        "driver": card.driver,
        "commit": commit(ROOT),
        "measured_at": now(),
        "versions": {**versions(), "kernel_tuner": _version("kernel-tuner"), **_cupy()},
        "host": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }
    write_json(output, result)
    for name, entry in results.items():
        print(f"{name}: {entry['times_faster']:.1f} times as fast as the faster peer")


def _version(name: str) -> str:
    return metadata.version(name)


def _cupy() -> dict[str, str]:
    import cupy

    return {"cupy": cupy.__version__}


if __name__ == "__main__":
    main()
