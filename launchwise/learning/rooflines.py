"""Lower bounds of run times from a problem's definition and a GPU's ceilings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.gpus.profile import GpuProfile
from launchwise.learning.features import arrays, least_bytes_ms, of_gpus
from launchwise.learning.vectors import Columns
from launchwise.workloads.spec import Spec


def limits_ms(
    rows: pd.DataFrame, spec: Spec, profiles: Mapping[str, GpuProfile]
) -> dict[str, np.ndarray]:
    """Time of the least bytes at the copy bandwidth, of the FLOP at their ceiling, and of both.

    Parameters
    ----------
    rows
        Columns ``gpu`` and the problem's.

    Returns
    -------
    dict
        ``bytes``, ``flop`` and ``roofline``, the longer of both and the overhead of one launch:
        float64, ms, shape (rows,); FLOP of a type whose ceiling was not measured take none.
    """
    columns = Columns(spec.derived, arrays(rows, spec, spec.problem_columns))
    precision = columns.value(spec.work.precision)
    types = list(dict.fromkeys(map(str, precision.tolist())))
    facts = {}
    for gpu, profile in profiles.items():
        known = profile.ceilings
        flops = {name: known.flop_gflops(name) for name in types}
        facts[gpu] = {"launch_us": known.launch_overhead_us, **flops}
    rates = of_gpus(rows, facts)
    gflops = np.full(len(rows), np.inf)
    for name in types:
        measured = (precision == name) & np.isfinite(rates[name])
        gflops = np.where(measured, rates[name], gflops)
    found = {
        "bytes": least_bytes_ms(rows, columns, spec, profiles),
        "flop": columns.value(spec.work.flop).astype(float) / gflops / 1e6,
    }
    overhead_ms = rates["launch_us"] / 1e3
    return {**found, "roofline": np.maximum(found["bytes"], found["flop"]) + overhead_ms}
