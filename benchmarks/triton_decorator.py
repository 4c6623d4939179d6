"""What a launch through ``launchwise.autotuned`` costs on the host, beside other ways to launch.

    python benchmarks/triton_decorator.py benchmarks/results/triton_decorator.json

One kernel of Triton on little data is launched with the same configuration by

- ``fixed``: the kernel itself, the configuration written into the call,
- ``launchwise``: ``launchwise.autotuned`` with an export of 500 answers,
- ``triton``: ``triton.autotune``, which has chosen before.

Each launch has a function as its grid. The sides take turns call by call, and the host's clock runs
while a call queues its kernel; the device is waited for between the calls of a block, untimed.
``extra_us`` is the median of a call minus that of ``fixed``. Cases differ in where a launch states
the problem. ``new_size_us`` is the first call for a size that no call had before, without a
compilation.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages

import launchwise
from launchwise.base.names import SPEC_FILE
from launchwise.base.storage import write_text
from launchwise.exporting.entries import Device, Entry, Stored
from launchwise.exporting.formulas import EXPORTED_FACTS, ExportedFormulas
from launchwise.exporting.languages import python_module
from launchwise.exporting.table import AnswerTable
from launchwise.exporting.triton import write_triton
from launchwise.workloads.launch_shapes import Limits
from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    import torch
    import triton
    import triton.language as tl

CALLS, BLOCK_OF_CALLS = 1000, 50
ROWS, N = 4, 1024
CHOSEN = {"BLOCK": 256, "num_warps": 4}

CASES: Mapping[str, tuple[Mapping[str, str], bool]] = {
    "two numbers": ({"rows": "rows", "n": "n"}, False),
    "two numbers and a type": ({"rows": "rows", "n": "n", "dtype": "x.dtype"}, False),
    "two numbers by their names": ({"rows": "rows", "n": "n"}, True),
    "a shape": ({"rows": "x.shape[0]", "n": "n"}, False),
}
"""Case to where a launch states the problem, and whether it names the numbers."""


@triton.jit
def scaled(y, x, rows, n, factor, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Multiply each row by a factor."""
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = tl.program_id(0) * n + i
    tl.store(y + place, factor * tl.load(x + place, mask=i < n), mask=i < n)


SPEC = """\
workload: scaled
title: a multiple of each row
problem:
  rows: {type: integer, minimum: 1, maximum: 1000000}
  n: {type: integer, minimum: 1, maximum: 2000}
  dtype: {type: category, values: [float32]}
tunables: {BLOCK: {kind: build, values: [128, 256]}, num_warps: {kind: build, values: [4]}}
arguments:
  y: {type: dtype, shape: [rows, n], role: output}
  x: {type: dtype, shape: [rows, n]}
  rows: {type: int32, value: rows}
  n: {type: int32, value: n}
  factor: {type: float32, value: 2}
reference: {file: "scaled.py:scaled"}
variants: {triton: {source: scaled.py, kernel: scaled, tunables: [BLOCK, num_warps], grid: [n]}}
baseline: {variant: triton, BLOCK: 128, num_warps: 4}
"""
SIZES = tuple(itertools.product((2**power for power in range(20)), range(64, 1664, 64)))


def answers_file(folder: Path, has_dtype: bool, device: str) -> Path:
    """An export of an answer to each of :data:`SIZES`: what is timed is finding it."""
    workload = folder / "scaled"
    workload.mkdir(exist_ok=True)
    text = SPEC if has_dtype else re.sub("  dtype: .*\n", "", SPEC).replace("dtype", "float32")
    write_text(workload / SPEC_FILE, text)
    shutil.copy(__file__, workload / "scaled.py")
    spec = load_spec(workload)
    texts = ["float32"] * has_dtype
    entries = [Entry(0, (*size, *texts), 0, 0, 1.0, 1.0, "measured") for size in SIZES]
    stored = Stored(
        **{"workload": spec.workload, "parameters": (*spec.problem_columns,), "commits": ()},
        devices=(Device("here", (device,), (0,) * len(EXPORTED_FACTS)),),
        configurations=({"variant": "triton", **CHOSEN},),
        **{"least_gain": None, "candidates": (), "features": (), "entries": (*entries,)},
    )
    table = AnswerTable("answers", spec, stored, Limits.of(spec), ExportedFormulas())
    write_triton(folder, json.loads(json.dumps(table.plain())), spec, python_module(table))
    return folder / "answers.json"


def grid(meta: Mapping[str, Any]) -> tuple[int, int]:
    """Programs of a launch, from its arguments and tunables."""
    return meta["rows"], triton.cdiv(meta["n"], meta["BLOCK"])


def medians_us(sides: Mapping[str, Callable[[], Any]], calls: int) -> dict[str, float]:
    """Median of each side's calls by the host's clock, in turns, us."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(calls):
        for name, call in sides.items():
            begin = time.perf_counter_ns()
            call()
            times[name].append((time.perf_counter_ns() - begin) / 1e3)
        if number % BLOCK_OF_CALLS == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return {name: statistics.median(each) for name, each in times.items()}


def case(places: Mapping[str, str], named: bool, folder: Path, calls: int) -> dict[str, Any]:
    """All sides of one case."""
    name = torch.cuda.get_device_name(torch.cuda.current_device())
    x = torch.rand(ROWS, N, device="cuda")
    y = torch.zeros_like(x)
    path = answers_file(folder, "dtype" in places, name)
    ours = launchwise.autotuned(path, problem=places)(scaled)
    configs = [triton.Config({"BLOCK": block}, num_warps=4) for block in (128, 256)]
    theirs = triton.autotune(configs, key=["rows", "n"])(scaled)
    args = (y, x) if named else (y, x, ROWS, N, 2.0)
    kwargs = {"rows": ROWS, "n": N, "factor": 2.0} if named else {}
    sides = {
        "fixed": lambda: scaled[grid](*args, **kwargs, **CHOSEN),
        "launchwise": lambda: ours[grid](*args, **kwargs),
        "triton": lambda: theirs[grid](*args, **kwargs),
    }
    for call in sides.values():
        y.zero_()
        call()
        assert torch.equal(y, 2 * x)
    medians_us(sides, BLOCK_OF_CALLS)
    found = medians_us(sides, calls)
    extra = {name: found[name] - found["fixed"] for name in ("launchwise", "triton")}
    return {"median_us": found, "extra_us": extra, "new_size_us": new_size_us(ours, y, x)}


def new_size_us(ours: Any, y: torch.Tensor, x: torch.Tensor, calls: int = 20) -> float:
    """Median of first calls for sizes, all of which Triton compiles alike, us."""
    times = []
    for number in range(calls + 1):
        begin = time.perf_counter_ns()
        ours[grid](y, x, 3, 48 + 16 * number, 2.0)
        times.append((time.perf_counter_ns() - begin) / 1e3)
    torch.cuda.synchronize()
    return statistics.median(times[1:])


def main() -> None:
    """Time all cases and write the result."""
    given = arguments(__doc__).parse_args()
    calls = 20 if given.smallest else CALLS
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, (places, named) in CASES.items():
            found[name] = case(places, named, Path(scratch), calls)
            print(name, found[name], flush=True)
    result = {"calls": calls, "answers": len(SIZES), **card_facts(), "results": found}
    write_result(given.output, result, torch=torch.__version__, triton=triton.__version__)


if __name__ == "__main__":
    main()
