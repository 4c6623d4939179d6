"""Times that no kernel beats, from a problem's definition and a GPU's ceilings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from launchwise.gpu import GpuProfile
from launchwise.learning.features import arrays
from launchwise.learning.vectors import Columns
from launchwise.spec import Spec


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
    codes, gpus = pd.factorize(rows["gpu"])
    ceilings = [profiles[gpu].ceilings for gpu in gpus]
    gbs = np.array([each.copy_bandwidth_gbs for each in ceilings])[codes]
    gflops = np.full(len(rows), np.inf)
    for name in dict.fromkeys(precision.tolist()):
        rates = np.array([each.flop_gflops(str(name)) for each in ceilings])[codes]
        gflops = np.where((precision == name) & np.isfinite(rates), rates, gflops)
    found = {
        "bytes": columns.value(spec.work.bytes).astype(float) / gbs / 1e6,
        "flop": columns.value(spec.work.flop).astype(float) / gflops / 1e6,
    }
    overhead_ms = np.array([each.launch_overhead_us for each in ceilings])[codes] / 1e3
    return {**found, "roofline": np.maximum(found["bytes"], found["flop"]) + overhead_ms}
