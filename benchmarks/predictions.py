"""Time of the predictors for 1 000 configurations of each workload's recorded sweep.

Configurations and problems are drawn at random from what was measured, all variants mixed; the
trees are fitted to as many others. Median of several calls in one process, on one core.

    python benchmarks/predictions.py benchmarks/results/predictions.json
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import pandas as pd
from harness.command_line import arguments, provenance
from harness.projects import ROOT

from launchwise.base.storage import write_json
from launchwise.gpus.profile import read_profile
from launchwise.learning.build_facts import FACTS
from launchwise.learning.features import Domain
from launchwise.learning.recommenders import recommender_class
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

RECORDED = ROOT / "data" / "recorded" / "h200"
KINDS = ("roofline", "analytical", "learnt")
ROWS = 1000
CALLS = 21
SEED = 2026


def drawn(workload: str) -> tuple[Domain, pd.DataFrame, pd.DataFrame]:
    """Domain, rows to learn from and :data:`ROWS` rows to predict."""
    spec = load_spec(ROOT / "kernels" / workload)
    domain = Domain(spec, {"h200": read_profile(RECORDED / "profile.json")})
    columns = [*spec.key_columns, "time_ms", *FACTS]
    path = RECORDED / f"{workload}.parquet"
    rows = read_table(path, measurement_schema(spec), [*columns, "status"])
    rows = rows.loc[rows["status"] == "ok", columns]
    rows = rows.sample(min(len(rows), 6 * ROWS), random_state=SEED).reset_index(drop=True)
    return domain, rows.iloc[ROWS:].reset_index(drop=True), rows.iloc[:ROWS]


def main() -> None:
    """Time every predictor on every workload that was recorded."""
    given = arguments(__doc__).parse_args()
    files = sorted(RECORDED.glob("*.provenance.json"))
    workloads = [path.name.removesuffix(".provenance.json") for path in files]
    calls = CALLS
    if given.smallest:
        workloads, calls = workloads[:1], 1
    found: list[dict[str, Any]] = []
    for workload in workloads:
        domain, train, rows = drawn(workload)
        for kind in KINDS:
            predictor = recommender_class(kind)(domain).fit(train)
            predictor.judge(rows)
            times = []
            for _ in range(calls):
                started = time.perf_counter()
                # predict() remembers its answer for the same table.
                predictor.judge(rows)
                times.append(1e3 * (time.perf_counter() - started))
            median = statistics.median(times)
            found.append({"workload": workload, "predictor": kind, "ms": round(median, 2)})
            print(f"{workload:12} {kind:12} {median:6.1f} ms for {len(rows)} configurations")
    write_json(given.output, {**provenance(), "rows": ROWS, "calls": calls, "times": found})


if __name__ == "__main__":
    main()
