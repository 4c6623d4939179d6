"""Cases of the acoustic workload that models learn from and are asked."""

from __future__ import annotations

from launchwise.learning.splits import Case

GPUS = ("h200.sm16", "h200.sm72")
TRAINED, ASKED = (256, 300, 512), (500, 550)


def cases(sizes: tuple[int, ...], gpus: tuple[str, ...] = GPUS) -> list[Case]:
    return [Case(gpu, {"n": n, "dtype": "float32", "order": 8}) for gpu in gpus for n in sizes]
