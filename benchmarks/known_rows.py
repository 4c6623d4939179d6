"""What a search on a card gains from rows of other cards, and of other problems on the same card.

    python benchmarks/known_rows.py benchmarks/results/known_rows.json

In simulation on the recorded sweeps, the H100 and the H200 by turns: a search of a problem knows
nothing (``alone``), the other card's rows of the problem (``other_gpus``), the same card's rows of
its nearest problems (``other_problems``, as :mod:`launchwise.workloads.near_problems` chooses
them), or both. Evaluations until a configuration is within 5 % and within 1 % of the best are
geometric means over problems; one that does not get there counts as the longest search. ``best_of``
is the mean share of the best speed after so many. No GPU is needed.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from statistics import geometric_mean
from typing import Any

import numpy as np
import pandas as pd
from harness import searches
from harness.command_line import arguments, write_result

from launchwise.base.work import in_parallel, usable_cores
from launchwise.workloads.near_problems import nearest_others

PROBLEMS = {"acoustic": 60, "sentiment": 30, "tridiagonal": 40, "granger": 20}
LONGEST = 150
KNOWN = {
    "alone": (False, False),
    "other_gpus": (True, False),
    "other_problems": (False, True),
    "both": (True, True),
}
"""Name to whether other GPUs and other problems are known."""

Tables = dict[tuple[Any, ...], pd.DataFrame]


def searched(tables: Tables, job: tuple[tuple[Any, ...], str, bool, bool]) -> dict[str, Any]:
    """One search: evaluations by the keys of ``NEAR``, and shares of the best speed."""
    problem, gpu, gpus, problems = job
    table = tables[problem]
    columns = [table[other] for other in searches.others_of(gpu, table)] if gpus else []
    if problems:
        columns += [tables[near][gpu] for near in nearest_others(problem, tables)]
    own = table[gpu].to_numpy(dtype=float)
    best_ms, near_ms = own.min(), searches.NEAR["within_1_percent"] * own.min()
    times: list[float | None] = []
    search = searches.search_of(table.index, columns, gpu)
    for time_ms in islice(searches.measured(search, own), LONGEST):
        times.append(time_ms)
        if len(times) >= max(searches.AFTER) and time_ms is not None and time_ms <= near_ms:
            break
    return {**searches.evaluations(times, best_ms), **searches.shares(times, best_ms)}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures over the problems of one workload."""
    found = {name: geometric_mean(each[name] or LONGEST for each in runs) for name in searches.NEAR}
    return found | searches.mean_shares(runs)


def main() -> None:
    """Search, sum up, write."""
    asked = arguments(__doc__).parse_args()
    found = []
    for workload, count in ({"granger": 2} if asked.smallest else PROBLEMS).items():
        tables = searches.recorded(workload)
        order = np.random.default_rng(2).permutation(len(tables))[:count]
        listed = list(tables)
        cases = [(listed[at], searches.CARDS[place % 2]) for place, at in enumerate(order)]
        jobs = [(*case, *how) for how in KNOWN.values() for case in cases]
        runs = in_parallel(partial(searched, tables), jobs, usable_cores())
        for place, name in enumerate(KNOWN):
            own = runs[place * len(cases) : (place + 1) * len(cases)]
            row = {"workload": workload, "known": name, "problems": len(cases)}
            found.append({**row, **summary(own)})
    write_result(asked.output, {"longest": LONGEST, "searches": found})


if __name__ == "__main__":
    main()
