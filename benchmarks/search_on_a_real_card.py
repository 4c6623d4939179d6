"""Evaluations until the best of a real card that is new: strategy ``transfer``, measured live.

    python benchmarks/search_on_a_real_card.py benchmarks/results/search_on_a_real_card.json

An H100 measured problems of the acoustic stencil whole (``data/recorded/h100``). In another run it
measured 25 configurations of each of ten of them by ``strategy: {kind: transfer}`` from the
recorded rows of the H200 and its slices (``results/search_h100``). The times of the whole sweep
judge the order of the other one. Beside it, on the same times: Optuna's TPE as ``strategy: {kind:
tpe}`` runs it (median of seeds), the expected number of random draws, and ``transfer`` again with
``stop_below_percent: 1``: after how many evaluations it ends, with what. No GPU is needed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from harness.command_line import arguments, provenance
from harness.projects import ROOT
from harness.searches import NEAR, evaluations, needle, share

from launchwise.base.parallel import in_parallel
from launchwise.base.storage import write_json
from launchwise.experiment.method import STATED_PERCENT
from launchwise.gpus.profile import read_profile
from launchwise.measuring.explore import RandomDraws, TreeParzen
from launchwise.measuring.explore_transfer import TransferExplorer
from launchwise.measuring.priors import Prior, read_prior, write_prior
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import Problem, gpu_facts
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.statuses import MEASURED

GPU, WORKLOAD = "h100", "acoustic"
VARIANTS = ["linear", "block3d", "omp_tile"]
WHOLE = ROOT / "data" / "recorded" / GPU / f"{WORKLOAD}.parquet"
SEARCHED = ROOT / "benchmarks" / "results" / "search_h100" / f"{WORKLOAD}.parquet"


def _ladder(path: Path) -> pd.DataFrame:
    """Rows of the kernels that the card was searched for, of a sweep that may have more."""
    rows = read_table(path, measurement_schema(load_spec(ROOT / "kernels" / WORKLOAD)))
    return rows[rows["variant"].isin(VARIANTS)].reset_index(drop=True)


def times_of(spec: Spec, path: Path) -> dict[tuple[Any, ...], pd.Series]:
    """Problem to its times in ms, by configuration in the order of measuring; NaN for failures."""
    rows = _ladder(path).sort_values("measured_at", kind="stable")
    rows["time_ms"] = rows["time_ms"].where(rows["status"].isin(MEASURED))
    groups: Any = rows.groupby(spec.problem_columns, observed=True, sort=True)
    return {problem: part.set_index(spec.tunable_columns)["time_ms"] for problem, part in groups}


def proposed(explorer: RandomDraws, times: pd.Series, until_ms: float = 0.0) -> list[float | None]:
    """Times in the order in which an explorer evaluates them, until one is ``until_ms``."""
    found: list[float | None] = []
    while (asked := explorer.propose()) is not None:
        time_ms = float(times[tuple(asked.values())])
        explorer.tell(asked, time_ms)
        found.append(time_ms)
        if time_ms <= until_ms:
            break
    return found


def priors(spec: Spec, problems: list[Problem]) -> Callable[[Problem], Prior]:
    """Prior of the search on the H100: the rows of the H200 and of its slices."""
    recorded = {
        path.parent.name: _ladder(path)
        for path in sorted(WHOLE.parents[1].glob(f"h200*/{WORKLOAD}.parquet"))
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{WORKLOAD}.parquet"
        write_prior(path, spec, recorded, problems)
        return read_prior(path, spec)


def of_problem(
    spec: Spec,
    problem: Problem,
    times: pd.Series,
    searched: pd.Series,
    prior: Prior,
    facts: Mapping[str, Any],
    seeds: int,
) -> dict[str, Any]:
    """All figures of one problem."""
    best_ms, most = float(times.min()), len(times)
    near_ms = NEAR["within_1_percent"] * best_ms
    # A search that ran at another hour is judged by the times of the whole sweep.
    own: list[float | None] = [float(times[key]) for key in searched.index]
    explorers = (TreeParzen(spec, problem, facts, most, seed) for seed in range(seeds))
    runs = [evaluations(proposed(each, times, near_ms), best_ms) for each in explorers]
    elsewhere = [
        [(dict(zip(spec.tunable_columns, key, strict=True)), time_ms) for key, time_ms in measured]
        for measured in prior
    ]
    limited = TransferExplorer(
        spec, problem, facts, most, 1, prior=elsewhere, stop_below_percent=STATED_PERCENT
    )
    ended = proposed(limited, times)
    near = {name: needle(times, 100 * (factor - 1)) for name, factor in NEAR.items()}
    return {
        **problem,
        "configurations": most,
        "configurations_near": near,
        "transfer": {**evaluations(own, best_ms), "best_of_all": share(own, best_ms)},
        "ended": {"evaluations": len(ended), "best_of_all": share(ended, best_ms)},
        "tpe": {name: statistics.median(run[name] or most for run in runs) for name in NEAR},
        # The expected place of the first of k marked ones among n in random order.
        "random": {name: (most + 1) / (near[name] + 1) for name in NEAR},
    }


def main() -> None:
    """Judge the search of every problem and write the file."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of TPE")
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    # The kernels that the card was searched for.
    spec = load_spec(ROOT / "kernels" / WORKLOAD).narrowed({"variant": VARIANTS})
    whole, searched = times_of(spec, WHOLE), times_of(spec, SEARCHED)
    facts = gpu_facts(read_profile(WHOLE.parent / "profile.json", GPU).model_dump())
    problems = list(searched)[: 1 if asked.smallest else None]
    prior = priors(spec, [dict(zip(spec.problem_columns, each, strict=True)) for each in problems])

    def judged(values: tuple[Any, ...]) -> dict[str, Any]:
        problem = dict(zip(spec.problem_columns, values, strict=True))
        seeds = 1 if asked.smallest else asked.seeds
        return of_problem(
            spec, problem, whole[values], searched[values], prior(problem), facts, seeds
        )

    found = in_parallel(judged, problems, asked.processes)
    medians = {
        strategy: {name: statistics.median(each[strategy][name] for each in found) for name in NEAR}
        for strategy in ("transfer", "tpe", "random")
    }
    ended = [each["ended"] for each in found]
    content = {
        "gpu": GPU,
        "seeds": asked.seeds,
        "medians": medians,
        "ended": {
            "evaluations": statistics.median(each["evaluations"] for each in ended),
            "most_evaluations": max(each["evaluations"] for each in ended),
            "least_share": min(each["best_of_all"] for each in ended),
        },
        "problems": found,
    }
    write_json(asked.output, {**provenance(), **content})


if __name__ == "__main__":
    main()
