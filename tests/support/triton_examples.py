"""A workload in Triton and a table of answers to it, both made up for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from launchwise.exporting.entries import Device, Entry, Stored
from launchwise.exporting.formulas import EXPORTED_FACTS, ExportedFormulas
from launchwise.exporting.languages import python_module
from launchwise.exporting.table import AnswerTable
from launchwise.exporting.triton import write_triton
from launchwise.workloads.launch_shapes import Limits
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec, load_spec

SPEC = Path(__file__).with_name("specs").joinpath("scaled.yaml").read_text()
KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def scaled(y, x, rows, n, factor, BLOCK: tl.constexpr, HALF: tl.constexpr):
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = tl.program_id(0) * n + i
    tl.store(y + place, factor * tl.load(x + place, mask=i < n), mask=i < n)
"""
TUNED = KERNEL.replace(
    "@triton.jit",
    """@triton.autotune(
    [
        triton.Config({"BLOCK": block, "HALF": block // 2}, num_warps=warps)
        for block in (64, 128, 256)
        for warps in (1, 4)
    ],
    key=["rows", "n"],
)
@triton.jit""",
)
"""The kernel with an autotuner of its own."""
REFERENCE = "def expected(x, **others):\n    return 2 * x\n"

FACTS = (0,) * len(EXPORTED_FACTS)
DEVICES = (
    Device(
        "big",
        ("Made-up Big 80GB",),
        FACTS,
        drivers=("999.1",),
        toolkits=("99.0",),
        days=("2020-01-01", "2020-01-02"),
    ),
    Device("small", ("Made-up Small",), FACTS),
)
ANSWERS: tuple[tuple[int, int, int, str, int, int], ...] = (
    (0, 1, 100, "float32", 64, 4),
    (0, 16, 1000, "float32", 128, 1),
    (0, 16, 1000, "float16", 256, 4),
    (0, 500, 1000, "float32", 256, 1),
    (1, 16, 1000, "float32", 64, 1),
)
"""Number of the device, rows, n, dtype, BLOCK, num_warps."""


def ran(
    program: str, folder: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A Python process in ``folder``, where exported files lie in ``out``."""
    path = os.pathsep.join([str(folder), str(folder / "out"), *sys.path])
    kept = {"PYTHONPATH": path, "TRITON_CACHE_DIR": str(folder / "kept")}
    # A test of the CPU device may have left it on in this process.
    kept["TRITON_INTERPRET"] = "0"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, **kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def scaled_spec(folder: Path, spec: str = SPEC, kernel: str = KERNEL) -> Spec:
    """The workload, written to ``folder``."""
    folder.mkdir()
    for name, text in (("spec.yaml", spec), ("scaled.py", kernel), ("reference.py", REFERENCE)):
        (folder / name).write_text(text)
    return load_spec(folder)


def scaled_table(spec: Spec) -> AnswerTable:
    """Answers to :data:`ANSWERS`, the first of them without a time."""
    chosen = [(64, 1), *(each[-2:] for each in ANSWERS)]
    configurations: list[dict[str, Value]] = [
        {"variant": "triton", "BLOCK": block, "num_warps": warps} for block, warps in chosen
    ]
    stored = Stored(
        workload=spec.workload,
        parameters=tuple(spec.problem_columns),
        commits=("c0ffee",),
        least_gain=None,
        devices=DEVICES,
        configurations=tuple(configurations),
        candidates=(),
        features=(),
        entries=tuple(_entry(place, *each) for place, each in enumerate(ANSWERS)),
    )
    formulas = ExportedFormulas(macros=tuple(spec.macros.items()))
    return AnswerTable("scaled_sizes", spec, stored, Limits.of(spec), formulas)


def _entry(place: int, device: int, rows: int, n: int, dtype: str, *_: int) -> Entry:
    time = place / 4 or None
    return Entry(
        device=device,
        problem=(rows, n, dtype),
        choice=1 + place,
        usual=0,
        time_ms=time,
        gain=None if time is None else 1 + place / 10,
        basis="measured" if time else "within",
        interval_ms=None if time is None else (time * 0.9, time * 1.1),
    )


def plain(table: AnswerTable) -> dict[str, Any]:
    """The table as its JSON file says it."""
    found: dict[str, Any] = json.loads(json.dumps(table.plain()))
    return found


def scaled_answers(
    folder: Path, spec: str = SPEC, kernel: str = KERNEL
) -> tuple[AnswerTable, Path]:
    """The table, and the exported file of answers to its kernel."""
    read = scaled_spec(folder / "scaled", spec, kernel)
    table = scaled_table(read)
    write_triton(folder / "out", plain(table), read, python_module(table))
    return table, folder / "out" / "scaled_sizes.json"
