"""What tests of exports ask: GPUs and problems of a product, conditions."""

from __future__ import annotations

from typing import Any

GPUS = ("card", "card.sm16")
UNKNOWN = "card.sm32"
SIZES = (200, 256, 400, 512)


def problem(n: int, dtype: str = "float32") -> dict[str, Any]:
    return {"n": n, "dtype": dtype, "order": 2}


CONDITIONS = [
    "a >= 2 * b + 8 or c == 'x'",
    "a // -3 < b - 2 and a % 4 != 1",
    "not c in ('x', 'y') and (a if b else -a) <= 3",
    "1 < a <= b",
    "a or b",
]
