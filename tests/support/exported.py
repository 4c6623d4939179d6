"""What tests of exports ask: GPUs and problems of a product, conditions."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

GPUS = ("card", "card.sm16")
UNKNOWN = "card.sm32"
SIZES = (200, 256, 400, 512)


def problem(n: int, dtype: str = "float32") -> dict[str, Any]:
    return {"n": n, "dtype": dtype, "order": 2}


needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def said_by_cpp(folder: Path, text: str, *flags: str) -> str:
    """What a program in C++17 prints that is compiled and run in ``folder``."""
    (folder / "main.cpp").write_text(text)
    for command in (["g++", "-std=c++17", *flags, "main.cpp", "-o", "main"], ["./main"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return done.stdout


CONDITIONS = [
    "a >= 2 * b + 8 or c == 'x'",
    "a // -3 < b - 2 and a % 4 != 1",
    "not c in ('x', 'y') and (a if b else -a) <= 3",
    "1 < a <= b",
    "a or b",
]
