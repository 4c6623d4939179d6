"""How much of what answers to products of experts lose comes from one draw of the routing.

    python benchmarks/routings.py benchmarks/results/routings.json

How many rows an expert gets is drawn, once a problem, by the seed of the settings: a sweep times
its configurations on one draw, an answer serves them all. The rule ``blind_pairs`` ran contests of
blind problems (``any_size.py --contests``, eight suggestions each) under several seeds
(``data/recorded/<gpu>/blind/routings``). The answer is compared with the fastest of one draw, and
with the fastest in the mean of all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from harness.command_line import arguments, write_result
from harness.projects import ROOT, own_experiment

from launchwise.learning.merit import geometric_mean
from launchwise.tables.files import read_table
from launchwise.tables.measurements import pairs_schema
from launchwise.workloads.spec import Spec, load_spec

MEASURED = "data/recorded/*/blind/routings/*.pairs.parquet"


def compared(spec: Spec) -> list[dict[str, Any]]:
    """A row per problem: the answer's share of the fastest in each draw, and over all draws."""
    tables = [read_table(each, pairs_schema(spec)) for each in sorted(ROOT.glob(MEASURED))]
    rows = pd.concat([each.assign(draw=draw) for draw, each in enumerate(tables)])
    found = []
    for problem, own in rows.groupby(spec.problem_columns, sort=False):
        times = own.pivot_table(index=spec.tunable_columns, columns="draw", values="time_ms")
        logs = times.dropna().apply(np.log)
        answer = own[own["roles"].str.contains("recommended")].iloc[0]
        own_logs = logs.loc[tuple(answer[name] for name in spec.tunable_columns)]
        mean = logs.mean(axis=1).min() - own_logs.mean()
        each = np.exp(logs.min() - own_logs).tolist()
        found.append({"problem": list(problem), "each": each, "all": float(np.exp(mean))})
    return found


def main() -> None:
    """Write what they showed."""
    given = arguments(__doc__).parse_args()
    rows = compared(load_spec(own_experiment().folders["expert_product"]))
    each = np.array([row["each"] for row in rows])
    figures = {
        "problems": len(rows),
        "draws": each.shape[1],
        "one_draw": geometric_mean(each.ravel()),
        "all_draws": geometric_mean(np.array([row["all"] for row in rows])),
    }
    print(figures)
    write_result(given.output, {**figures, "rows": rows})


if __name__ == "__main__":
    main()
