"""Evaluations until the best of a GPU that is new: guided by other GPUs, and Kernel Tuner.

    python benchmarks/search_on_a_new_gpu.py benchmarks/results/search.json

In simulation, on the public sweeps (``data/public``), each card in turn: launchwise's search
(:mod:`launchwise.search.transfer_search`) knows the other cards of the workload that are of the
same vendor; ``alone`` is the same search without them, median of several orders of the candidates.
Kernel Tuner's strategies know nothing, as it is made, and run in its own simulation mode
with many seeds. All count distinct evaluated configurations, failed ones included, until one is
within 5 % and within 1 % of the best of the sweep. ``ended`` says after how many
``stop_below_percent: 2`` ends launchwise's search, and what it has found by then. Needs
kernel_tuner, and no GPU. ``--rivals`` takes Kernel Tuner's side, which does not depend on this
project, from an earlier result.

``known`` has the share of the best speed after some evaluations by what the search knows: nothing
(``alone``, candidates in the order of the sweep), the fastest configuration of each other card
without its time (``winners``), their whole sweeps (``sweeps``), or these with all cards counting
the same (``unweighed``). ``gain_of_sweeps`` is what is gained over ``alone`` by what sweeps gain.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import statistics
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib import metadata
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import searches
from harness.command_line import arguments, write_result
from harness.needs import end

from launchwise.base.storage import read_json
from launchwise.base.work import in_parallel, usable_cores
from launchwise.experiment.method import STATED_PERCENT
from launchwise.importing.command import export_sweep
from launchwise.search.transfer_search import SURE

STRATEGIES = (
    *("adaptive_tabu_greywolf", "basinhopping", "bayes_opt", "diff_evo", "dual_annealing"),
    *("firefly_algorithm", "genetic_algorithm", "greedy_ils", "greedy_mls", "hybrid_vndx"),
    *("minimize", "mls", "ordered_greedy_mls", "pso", "random_sample", "simulated_annealing"),
)
"""All of Kernel Tuner's, with its own settings, but for five. ``brute_force`` searches nothing;
``nsga2`` and ``nsga3`` are for several objectives; ``skopt`` and ``pyatf_strategies`` end with an
error of the current versions of scikit-optimize and pyATF."""

BUDGET = 600  # evaluations after which a search has failed

ORDERS = 15
"""Orders of the candidates in which launchwise's search without other cards runs, at most."""

PART = 20  # seeds that one process runs

KNOWN = ("alone", "winners", "sweeps", "unweighed")


def guided(
    table: pd.DataFrame, gpu: str, others: Sequence[str], budget: int
) -> tuple[list[float | None], int | None]:
    """Times in the order in which launchwise's search evaluates configurations of ``gpu``. Until
    one is within 1 % of the best and the search would have ended; after how many that was."""
    search = searches.search_of(table.index, [table[each] for each in others], gpu)
    target = searches.NEAR["within_1_percent"] * table[gpu].min()
    found: list[float | None] = []
    ended, reached = None, False
    for time_ms in islice(searches.measured(search, table[gpu].to_numpy(dtype=float)), budget):
        found.append(time_ms)
        reached = reached or (time_ms is not None and time_ms <= target)
        if ended is None and search.has_looked_around():
            sure = search.chance_left(STATED_PERCENT / 100) <= SURE
            ended = len(found) if sure else None
        if reached and ended:
            break
    return found, ended


def simulated(cache: Path, strategy: str, seed: int, budget: int) -> list[float | None]:
    """Times of the distinct configurations that a strategy of Kernel Tuner evaluates, in order."""
    from kernel_tuner import tune_kernel

    warnings.filterwarnings("ignore")
    content = json.loads(cache.read_text())
    keys = content["tune_params_keys"]
    listed = set(content["cache"])
    random.seed(seed)
    np.random.seed(seed)
    size = content["problem_size"]

    # Kernel Tuner reads the source of a lambda, and fails on this one.
    def is_listed(one: dict[str, Any]) -> bool:
        return ",".join(str(one[key]) for key in keys) in listed

    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = tune_kernel(
            content["kernel_name"],
            "__global__ void k() {}",
            tuple(size) if isinstance(size, list) else size,
            [],
            {key: content["tune_params"][key] for key in keys},
            restrictions=is_listed,
            strategy=strategy,
            strategy_options={"max_fevals": budget},
            simulation_mode=True,
            cache=str(cache),
            lang="CUDA",
            device=0,
            quiet=True,
        )
    distinct = {tuple(one[key] for key in keys): one["time"] for one in reversed(results)}
    order = dict.fromkeys(tuple(one[key] for key in keys) for one in results)
    times = [distinct[key] for key in order]
    return [float(time) if isinstance(time, int | float) else None for time in times]


def median(counts: Sequence[int | None]) -> float | None:
    """Median, a search that failed counting as endless; None where that is endless."""
    found = statistics.median(float("inf") if each is None else each for each in counts)
    return None if found == float("inf") else float(found)


def of_launchwise(workload: str, gpu: str, seeds: int, budget: int) -> dict[str, Any]:
    """The card, and how its searches by launchwise went."""
    _, table, best_ms = _card(workload, gpu)
    own, ended = guided(table, gpu, searches.others_of(gpu, table), budget)

    def alone(seed: int) -> dict[str, int | None]:
        times, _ = guided(table.sample(frac=1.0, random_state=seed), gpu, [], budget)
        return searches.evaluations(times, best_ms)

    runs = in_parallel(alone, range(min(seeds, ORDERS)), usable_cores())
    return {
        "workload": workload,
        "gpu": gpu,
        "configurations": int(np.isfinite(table[gpu]).sum()),
        # The fewer, the harder the search.
        "within_5_percent_of_the_best": int((table[gpu] <= 1.05 * best_ms).sum()),
        "launchwise": searches.evaluations(own, best_ms),
        "ended": {"evaluations": ended, "best_of_all": searches.share(own[:ended], best_ms)},
        "alone": {name: median([run[name] for run in runs]) for name in searches.NEAR},
        "known": {name: shares(table, gpu, name) for name in KNOWN},
    }


def shares(table: pd.DataFrame, gpu: str, known: str) -> dict[str, float]:
    """Shares of the best speed of a search that knows something, one of :data:`KNOWN`."""
    others = [] if known == "alone" else searches.others_of(gpu, table)
    weighed_by = None if known == "unweighed" else gpu
    columns = [table[each] for each in others]
    search = searches.search_of(table.index, columns, weighed_by, known == "winners")
    own = table[gpu].to_numpy(dtype=float)
    times = list(islice(searches.measured(search, own), max(searches.AFTER)))
    return searches.shares(times, float(own.min()))


def gained(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means of :func:`shares` over cards, and what winners gain by what sweeps gain."""
    means = {known: searches.mean_shares([row["known"][known] for row in rows]) for known in KNOWN}
    gains = {
        name: (means["winners"][name] - alone) / (means["sweeps"][name] - alone)
        for name, alone in means["alone"].items()
    }
    return {"means": means, "gain_of_sweeps": gains}


def of_kernel_tuner(
    workload: str, gpu: str, strategy: str, seeds: range, budget: int
) -> list[dict[str, int | None]]:
    """Evaluations of a strategy on a card, for each seed."""
    path, _, best_ms = _card(workload, gpu)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / f"{gpu}.json"
        export_sweep(path, searches.PUBLIC / "workloads" / workload, cache, "kernel-tuner")
        return [
            searches.evaluations(simulated(cache, strategy, seed, budget), best_ms)
            for seed in seeds
        ]


def medians_of(
    strategy: str, cards: Sequence[tuple[str, str]], seeds: int, budget: int
) -> dict[str, dict[str, float | None]]:
    """Card to the median number of evaluations of a strategy, by the keys of :data:`NEAR`."""
    parts = [range(first, min(first + PART, seeds)) for first in range(0, seeds, PART)]
    jobs = [(*card, strategy, part) for card in cards for part in parts]
    runs = in_parallel(lambda job: of_kernel_tuner(*job, budget), jobs, usable_cores())
    found: dict[str, list[dict[str, int | None]]] = {}
    for (_, gpu, _, _), part in zip(jobs, runs, strict=True):
        found.setdefault(gpu, []).extend(part)
    return {
        gpu: {name: median([run[name] for run in every]) for name in searches.NEAR}
        for gpu, every in found.items()
    }


def _card(workload: str, gpu: str) -> tuple[Path, pd.DataFrame, float]:
    """Sweep of a card, times of all cards of the workload, and the card's best time in ms."""
    paths, table = searches.public(workload)
    return paths[gpu], table, float(table[gpu].min())


def best_of(rivals: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, Any] | None]:
    """Strategy with the smallest median, and that median; None where none got there."""
    found: dict[str, dict[str, Any] | None] = {}
    for name in searches.NEAR:
        reached = {
            strategy: count for strategy, one in rivals.items() if (count := one[name]) is not None
        }
        best = min(reached, key=reached.__getitem__, default=None)
        found[name] = {"strategy": best, "evaluations": reached[best]} if best else None
    return found


def main() -> None:
    """Run both sides on every card and write the file."""
    parser = arguments(__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="seeds of each strategy")
    parser.add_argument("--rivals", type=Path, help="earlier result that has Kernel Tuner's side")
    asked = parser.parse_args()
    seeds, budget = (1, 20) if asked.smallest else (asked.seeds, BUDGET)
    known = {workload: [*searches.public(workload)[0]] for workload in searches.WORKLOADS}
    shown = {workload: gpus[:1] if asked.smallest else gpus for workload, gpus in known.items()}
    cards = [(workload, gpu) for workload, gpus in shown.items() for gpu in gpus]
    rivals: dict[str, dict[str, Any]] = {gpu: {} for _, gpu in cards}
    if asked.rivals:
        earlier = read_json(asked.rivals)
        seeds, budget = earlier["seeds"], earlier["budget"]
        peer, at = earlier["versions"]["kernel_tuner"], earlier.get("kernel_tuner_at")
        about = {"kernel_tuner_at": at or earlier["commit"]}
        rivals |= {card["gpu"]: card["kernel_tuner"] for card in earlier["cards"]}
    else:
        strategies, peer, about = STRATEGIES[: 1 if asked.smallest else None], "not run", {}
        if find_spec("kernel_tuner"):
            peer = metadata.version("kernel_tuner")
        elif not asked.smallest:
            end("the package kernel_tuner, or --rivals")
        for strategy in strategies if peer != "not run" else ():
            for gpu, found in medians_of(strategy, cards, seeds, budget).items():
                rivals[gpu][strategy] = found
    rows = []
    for workload, gpu in cards:
        own = of_launchwise(workload, gpu, seeds, budget)
        theirs = {"kernel_tuner": rivals[gpu], "best_of_kernel_tuner": best_of(rivals[gpu])}
        rows.append({**own, **theirs})
    result = {**about, "seeds": seeds, "budget": budget, "cards": rows, **gained(rows)}
    write_result(asked.output, result, kernel_tuner=peer)


if __name__ == "__main__":
    main()
