"""Sweeps of the tridiagonal workload made up from known laws."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd
from samples import profile

from kernels.tridiagonal.recommenders.stream_law.choice import OVERLAPPED
from kernels.tridiagonal.recommenders.stream_law.laws import STREAMS, Law, SmoothOverheadLaw, SumLaw
from launchwise.learning.recommender import Recommender
from launchwise.workloads import space
from launchwise.workloads.spec import Spec

PROBLEM = {"n": 1000, "dtype": "float64", "memory": "pinned", "batch": 1}
PROFILES = {
    "large": profile("large"),
    "small": profile("small", sms=16, l2_bytes=10_000_000, memory_bytes=18_000_000_000),
    "unseen": profile("unseen", sms=20, l2_bytes=12_000_000, memory_bytes=20_000_000_000),
}
CANDIDATES: dict[str, list[Any]] = {
    "variant": ["strided"],
    **{f"m{level}": [0] for level in range(1, 5)},
    "m": [4, 10, 20, 32, 64],
    "threads": [128, 256],
    "stage2": ["host"],
}
"""What models may recommend: the whole space is too large to be listed."""
SUM = SumLaw(slope=2e-6, constant=0.15)
OVERHEAD = SmoothOverheadLaw(constant=0.1, scale=0.1, exponent=0.6)
"""Little N want 1 stream, 10^8 wants 32, and those between something between."""
SIZES = [int(digit * 10**power) for power in range(3, 8) for digit in (1, 4, 8)]
SHARES = dict(zip(OVERLAPPED, (0.3, 0.4, 0.1, 0.2), strict=True))


def row(spec: Spec, gpu: str, problem: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A training row: the baseline's configuration but for what ``values`` say."""
    stages = dict.fromkeys(spec.stage_columns, float("nan"))
    build = {"status": "ok", "registers": 32, "spill_bytes": 0}
    return {"gpu": gpu, **PROBLEM, **problem, **space.baseline(spec), **build, **stages, **values}


def first(recommender: Recommender, gpu: str, sizes: Iterable[int], **problem: Any) -> pd.DataFrame:
    """What is recommended first for each size."""
    table = recommender.recommend(gpu, [{**PROBLEM, **problem, "n": n} for n in sizes])
    return table[table["rank"] == 1].reset_index(drop=True)


def stream_sweep(
    spec: Spec,
    gpu: str,
    sizes: Iterable[int] = SIZES,
    overhead: Law = OVERHEAD,
    problem: dict[str, Any] | None = None,
    slower: float = 1.0,
    **values: Any,
) -> pd.DataFrame:
    """Training rows of every feasible number of streams for each size, with the stages' times.

    ``slower``: factor of all times.
    ``values``: tunables that differ from the baseline.
    """
    rows = []
    for n in sizes:
        asked = {**(problem or {}), "n": n}
        total = float(SUM.predict(n)) * slower
        for streams in STREAMS:
            made = row(spec, gpu, asked, **values, streams=streams)
            named = {name: made[name] for name in spec.problem_columns}
            chosen = {name: made[name] for name in spec.tunable_columns}
            if not space.feasible(spec, named, chosen):
                continue
            # What is left alone by streams: 1 us for 1000 unknowns.
            alone = 1e-6 * n * slower
            made["time_ms"] = alone + total / streams + slower * float(overhead.predict(n, streams))
            if streams == 1:
                made |= {f"{name}_ms": share * total for name, share in SHARES.items()}
                made |= {"t1_h2d_ms": 0.5 * alone, "t2_h_ms": 0.3 * alone, "t3_d2h_ms": 0.2 * alone}
            rows.append(made)
    return pd.DataFrame(rows)
