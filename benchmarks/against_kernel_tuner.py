"""Configurations a second against Kernel Tuner, on one GPU, in one run.

Both tune the same kernel text over the same block shapes in three kinds of space:

``launch``
    Block shapes are launch arguments: what launchwise compiles once, Kernel Tuner compiles anew
    for every shape, because it hands block shapes to the compiler.
``build``
    Block shapes are macros: each is a build for both.
``mixed``
    The block size along x is a macro, the others are launch arguments.

Kernel Tuner measures every shape seven times, its default. Of launchwise there are two sides: one
with its default method, which repeats where it decides something and stops slow configurations
early, and one with seven repeats of everything. Each side's best shape is looked up among the
other's times (``regret``): a tool is not faster that finds something worse.

Kernel Tuner's clock runs over ``tune_kernel`` alone; ours over everything from sources to a
complete journal: nvcc, the start of the measuring process, inputs, a float64 verification of every
configuration (Kernel Tuner verifies nothing here), timing, writing.

    python benchmarks/against_kernel_tuner.py benchmarks/results/kernel_tuner.json
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from harness.command_line import arguments, provenance
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from launchwise.base.parallel import usable_cores
from launchwise.base.storage import write_json
from launchwise.experiment.method import Method, Repeats
from launchwise.measuring.cards import cards, free_card
from launchwise.measuring.journal import Journal, read_journal
from launchwise.measuring.kernel_bundles import Alongside
from launchwise.measuring.shard import Shard
from launchwise.measuring.sweep import measure_shard, seconds_of
from launchwise.workloads.loading import load_workload
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.statuses import MEASURED
from launchwise.workloads.workload import builds_in_order

with gpu_and_packages():
    from kernel_tuner import tune_kernel

REPEATS = 7
SEVEN = "launchwise, seven repeats"
METHODS = {
    "launchwise": Method(),
    SEVEN: Method(
        repeats=Repeats(minimum=REPEATS, maximum=REPEATS, few=REPEATS, budget_ms=1e6),
        slow_factor=1e9,
        graph_below_us=0,
    ),
}
# What Kernel Tuner does not do either.
APART = {"energy_ms": 0.0, "control_s": 0.0, "rest": False}

NVRTC = ("NVCUDA", "CUPY")
"""Kernel Tuner's back-ends with NVRTC. CuPy's took three to four times as long as the other in
every space, so it runs on the small one alone. PyCUDA's runs nvcc for every configuration, which
takes about 200 ms: it is no rival here."""

SHAPE = ("bx", "by", "bz")
COARSE: dict[str, Any] = {}
FINE = {
    "bx": [16, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256],
    "by": [1, 2, 3, 4, 5, 6, 8, 10, 12, 16],
    "bz": [1, 2, 3, 4, 6, 8],
}
Side = dict[str, Any]


@dataclass(frozen=True)
class Space:
    """The tuned space: block sizes that are macros, problems, values of the sizes.

    ``sizes`` left empty are those of the workload's own spec.
    """

    macros: tuple[str, ...]
    problems: list[dict[str, Any]]
    sizes: dict[str, Any]
    backends: tuple[str, ...] = NVRTC[:1]


def _six(n: int) -> list[dict[str, Any]]:
    return [
        {"n": n, "dtype": dtype, "order": order}
        for dtype in ("float32", "float64")
        for order in (2, 8, 16)
    ]


SPACES = {
    "launch, one problem, 256^3": Space((), _six(256)[1:2], COARSE, NVRTC),
    "launch, six problems, 256^3": Space((), _six(256), COARSE),
    "launch, twelve problems, 160^3 and 192^3, fine": Space((), [*_six(160), *_six(192)], FINE),
    "build, six problems, 160^3": Space(SHAPE, _six(160), COARSE),
    "mixed, six problems, 160^3, fine": Space(("bx",), _six(160), FINE),
}

SMALLEST = {
    "launch, one problem, 64^3": Space((), _six(64)[:1], {"bx": [64, 128], "by": [1, 2], "bz": [1]})
}


def block_shapes_only(scratch: Path, space: Space) -> Path:
    """A copy of the acoustic workload whose only variant is ``block3d`` with unpadded rows.

    Block sizes named in the space's macros are build tunables there: the kernel reads them as
    macros.
    """
    folder = scratch / "acoustic"
    shutil.copytree(ROOT / "kernels" / "acoustic", folder)
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    spec["variants"] = {"block3d": spec["variants"]["block3d"]}
    spec["baseline"] = {"variant": "block3d", "bx": 128, "by": 1, "bz": 1}
    spec["features"] = {}
    kernel = (folder / "block3d.cu").read_text()
    for name, sizes in space.sizes.items():
        spec["tunables"][name]["values"] = sizes
    for name in space.macros:
        spec["tunables"][name]["kind"] = "build"
        kernel = kernel.replace(f"blockDim.{name[1]}", name)
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    (folder / "block3d.cu").write_text(kernel)
    for about_all_variants in ("features.yaml", "cost.yaml", "usual.yaml"):
        (folder / about_all_variants).unlink(missing_ok=True)
    python = (folder / "host" / "workload.py").read_text()
    last = "\n        return Build.of(self.spec.variants"
    assert python.count(last) == 1
    more = f"\n        defines |= {{name: configuration[name] for name in {space.macros!r}}}"
    (folder / "host" / "workload.py").write_text(python.replace(last, more + last))
    return folder


def ours(
    folder: Path, spec: Spec, problems: list[dict[str, Any]], scratch: Path, method: Method
) -> Side:
    """Seconds and times of a sweep from sources to journal."""
    path = scratch / "journal.jsonl"
    with ExitStack() as stack:
        card = stack.enter_context(free_card("benchmark", lambda card: True, "any card"))
        begin = time.perf_counter()
        builds = builds_in_order(load_workload(folder, spec), problems)
        threads = usable_cores()
        parts = stack.enter_context(Alongside(folder, spec, builds, card.arch, threads))
        shard = Shard(
            spec=spec,
            folder=folder,
            problems=problems,
            method=method.model_copy(update=APART),
            seed=1,
            gpu_facts={"gpu_memory_bytes": 1 << 40, "gpu_max_threads_per_block": 1024},
            labels={
                "gpu": "benchmark",
                "workload": "acoustic",
                "card": card.mark,
                "driver": card.driver,
                "toolkit": parts.compiler.toolkit,
                "backend": "pycuda",
                "commit": "",
            },
            command=[sys.executable, "-m", "launchwise.cuda.child"],
            environment={**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
            parts=parts,
            job={"slice_sms": None},
        )
        with Journal(path, "benchmark", spec.key_columns) as journal:
            measure_shard(shard, journal)
            spent = seconds_of(journal.notes)
        seconds = time.perf_counter() - begin
    rows = read_journal(path)[1]
    bad = [row for row in rows if row["status"] not in MEASURED]
    if bad:
        sys.exit(f"{len(bad)} rows are {bad[0]['status']}: {bad[0]['reason']}")
    return {
        "configurations": len(rows),
        "given_up": sum(row["status"] == "slow" for row in rows),
        "launches": sum(1 + len(row["times_ms"]) for row in rows),
        "seconds": seconds,
        "builds": len(builds),
        "seconds_by_task": spent,
        "ms_a_configuration": 1e3 * seconds / len(rows),
        "times": {
            _name(problem): {
                tuple(int(row[name]) for name in SHAPE): row["time_ms"]
                for row in rows
                if problem.items() <= row.items()
            }
            for problem in problems
        },
    }


def _name(problem: dict[str, Any]) -> str:
    return f"{problem['n']}^3 {problem['dtype']} order {problem['order']}"


def kernel_text(folder: Path, spec: Spec, problem: dict[str, Any]) -> str:
    """The kernel's source as Kernel Tuner wants it: one text, macros set, no includes."""
    workload = load_workload(folder, spec)
    build = workload.build(problem, configurations(spec, problem)[0])
    # Block sizes are left out: Kernel Tuner defines them itself.
    fixed = [(name, value) for name, value in build.defines if name not in SHAPE]
    defines = "".join(f"#define {name} {value}\n" for name, value in fixed)
    header = (folder / "stencil.cuh").read_text().replace("#pragma once", "")
    return f"{defines}#define KERNEL(name) name\n{header}{(folder / build.source).read_text()}"


def kernel_tuner(folder: Path, spec: Spec, space: Space, backend: str) -> Side:
    """Seconds and best times of Kernel Tuner's brute force over the same shapes."""
    side: Side = {"configurations": 0, "timed": 0, "seconds": 0.0, "times": {}}
    for problem in space.problems:
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
        side["configurations"] += len(results)
        side["timed"] += len(timed)
        side["times"][_name(problem)] = {
            tuple(int(entry[name]) for name in SHAPE): statistics.median(entry["times"])
            for entry in timed
        }
    side["ms_a_configuration"] = 1e3 * side["seconds"] / side["configurations"]
    return side


def compare(space: Space, name: str, scratch: Path) -> dict[str, Any]:
    """All sides of one space; ours before and after, so that a drift of the card shows."""
    scratch.mkdir()
    folder = block_shapes_only(scratch, space)
    spec = load_spec(folder)
    sides: dict[str, Side] = {}
    for run in ("launchwise", *space.backends, SEVEN, "launchwise again"):
        place = scratch / run
        place.mkdir()
        if run.startswith("launchwise"):
            method = METHODS[run.removesuffix(" again")]
            sides[run] = ours(folder, spec, space.problems, place, method)
        else:
            try:
                sides[f"kernel_tuner {run}"] = kernel_tuner(folder, spec, space, run)
            except ValueError as error:
                # Its CuPy back-end cannot read a card's UUID that has a zero byte in it.
                print(name, run, error, flush=True)
                continue
        side = {**sides[list(sides)[-1]], "times": None}
        print(name, run, side, flush=True)
    each = {key: side["ms_a_configuration"] for key, side in sides.items()}
    # The slower of the two runs before and after.
    own = {"launchwise": max(each["launchwise"], each["launchwise again"]), SEVEN: each[SEVEN]}
    peers = [key for key in sides if key.startswith("kernel_tuner")]
    return {
        "problems": space.problems,
        "macros": list(space.macros),
        "times_faster": {
            mine: {peer: each[peer] / time for peer in peers} for mine, time in own.items()
        },
        "regret": {peer: regret(sides["launchwise"], sides[peer]) for peer in peers},
        "sides": {key: _with_bests(side) for key, side in sides.items()},
    }


def regret(mine: Side, theirs: Side) -> dict[str, dict[str, float]]:
    """By problem: what each side's best shape loses against the best in the other's times."""
    lost = {}
    for problem, times in mine["times"].items():
        others = theirs["times"][problem]
        my_best, their_best = (min(found, key=found.get) for found in (times, others))
        lost[problem] = {
            "of_ours_in_theirs": others[my_best] / others[their_best] - 1,
            "of_theirs_in_ours": times[their_best] / times[my_best] - 1,
        }
    return lost


def _with_bests(side: Side) -> Side:
    bests = {
        problem: {"time_ms": min(times.values()), "shape": min(times, key=times.get)}
        for problem, times in side["times"].items()
    }
    return {**{key: value for key, value in side.items() if key != "times"}, "best": bests}


def main() -> None:
    """Run all sides and write the result."""
    given = arguments(__doc__).parse_args()
    spaces = SMALLEST if given.smallest else SPACES
    with tempfile.TemporaryDirectory() as temporary:
        results = {
            name: compare(space, name, Path(temporary) / str(number))
            for number, (name, space) in enumerate(spaces.items())
        }
    card = cards()[0]
    facts = provenance(kernel_tuner=metadata.version("kernel-tuner"), **_cupy())
    device = {"device": card.device_name, "driver": card.driver}
    write_json(given.output, {**facts, **device, "repeats": REPEATS, "results": results})
    for name, entry in results.items():
        for mine, peers in entry["times_faster"].items():
            faster = ", ".join(f"{peer} {times:.1f}" for peer, times in peers.items())
            print(f"{name}: {mine} is times as fast as {faster}")


def _cupy() -> dict[str, str]:
    try:
        import cupy
    except ImportError:
        return {}
    return {"cupy": cupy.__version__}


if __name__ == "__main__":
    main()
