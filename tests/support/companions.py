"""A made-up workload one of whose tunables follows from the problem, and times of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
from samples import profile
from spaces import made

from launchwise.learning.features import Domain

PROFILE = profile("gpu")
WIDTHS = [1, 2, 4, 8]
PARTS = [1, 2, 4, 8, 16]
SPEC = made(
    {"width": WIDTHS, "parts": PARTS}, {"plain": (["width", "parts"], [])}, width=1, parts=1
)
SIZES = [2, 4, 8]  # Training problems; the number of parts is the size


def domain(*constraints: str) -> Domain:
    """The workload with conditions of a study."""
    return Domain(SPEC, {"gpu": PROFILE}, constraints=constraints)


def measured(every: bool = True) -> pd.DataFrame:
    """Times of all widths, best at 4 for the size's own parts; others are slower and misleading."""
    rows = [
        {
            **{"gpu": "gpu", "m": m, "variant": "plain", "width": width, "parts": parts},
            "status": "ok",
            "time_ms": m * (1 + abs(np.log2(width) - 2) if parts == m else 3 + 1 / width),
        }
        for m in SIZES
        for width in WIDTHS
        for parts in (PARTS if every else [m])
    ]
    return pd.DataFrame(rows)
