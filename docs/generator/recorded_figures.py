"""Figures of the documents that are computed from recorded data and results, by name."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet

from launchwise.base.storage import read_json
from launchwise.base.typed import read_yaml
from launchwise.experiment.method import Method
from launchwise.gpus.datasheets import CARDS_FILE, read_cards, reference_efficiency
from launchwise.gpus.profile import read_profile
from launchwise.learning.blind.answering import read_frozen
from launchwise.learning.blind.scoring import check_measured_after, score, summarise
from launchwise.learning.features import Domain
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.pairs import pairs_schema
from launchwise.tables.times import PAIRS, judged_times
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.usual import usual_configuration

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "data" / "recorded"
RESULTS = ROOT / "benchmarks" / "results"
KERNELS = ROOT / "kernels"


def _sweep(workload: str, gpu: str = "h200") -> pd.DataFrame:
    return pd.read_parquet(RECORDED / gpu / f"{workload}.parquet")


def _stencil_rates(rows: pd.DataFrame, n: int, by: str | None = None) -> dict[str, Any]:
    """Points per second, 1e9/s, by type, order and, if asked, another column."""
    found: dict[str, Any] = {}
    measured = rows[(rows["n"] == n) & rows["time_ms"].notna()]
    for (dtype, order), part in measured.groupby(["dtype", "order"]):
        # Points at the border, as wide as the stencil's arm, are not updated.
        points = (n - int(str(order))) ** 3
        least = part["time_ms"].min() if by is None else part.groupby(by)["time_ms"].min()
        rate = points / least / 1e6
        found.setdefault(str(dtype), {})[str(order)] = rate if by is None else rate.to_dict()
    return found


def _of_one_pass(rates: dict[str, Any]) -> dict[str, Any]:
    """Rates by variant as % of four words per point at 4.22e12 B/s."""
    return {
        dtype: {
            order: {
                variant: 100 * rate * 1e9 * 4 * np.dtype(dtype).itemsize / 4.22e12
                for variant, rate in each.items()
            }
            for order, each in orders.items()
        }
        for dtype, orders in rates.items()
    }


@cache
def simulation() -> dict[str, Any]:
    """Times of ``propagate`` beside its kernel alone, and its errors, %."""
    content = read_json(RESULTS / "simulation.json")
    return {
        "cost_percent": {
            f"{each['dtype']} {each['order']}": 100 * (each["ratio"] - 1)
            for each in content["grids"]
        },
        "errors": {
            f"{each['order']} {each['spacing_m']:.0f}": 100 * each["error"]
            for each in content["errors"]
        },
        "spacing": {f"{each['spacing_m']:.0f}": each["spacing_m"] for each in content["errors"]},
        "order": {str(each["order"]): each["order"] for each in content["errors"]},
    }


@cache
def stencil() -> dict[str, Any]:
    """Recorded acoustic sweep of the H200: rates, clocks, durations, sizes.

    ``gpts`` holds updated points per second at 512^3, 1e9/s, by type and order: of the baseline,
    of the fastest tile of the published ladder (``best``), and of the fastest configuration of each
    variant; ``gpts_1024`` the last ones at 1024^3. ``percent`` and ``percent_1024``: of what a
    pass at 4.22e12 B/s allows.
    """
    rows = _sweep("acoustic")
    ladder = rows[rows["variant"].isin(["linear", "block3d", "omp_tile"])]
    untiled = _stencil_rates(rows[rows["variant"] == "linear"], 512)
    best = _stencil_rates(ladder, 512)
    by_variant = {n: _stencil_rates(rows, n, by="variant") for n in (512, 1024)}
    rates = {
        dtype: {
            order: {"untiled": untiled[dtype][order], "best": best[dtype][order], **each}
            for order, each in orders.items()
        }
        for dtype, orders in by_variant[512].items()
    }
    known = read_json(RECORDED / "h200" / "acoustic.provenance.json")
    seconds = [shard["seconds"] for shard in known["shards"]]
    total, pauses = (sum(each[key] for each in seconds) for key in ("total", "rest"))
    path = RECORDED / "h200" / "acoustic.parquet"
    clocks = rows["sm_clock_mhz"]
    return {
        "pass_tbs": 4.22,
        "pass_gpts": {name: 4.22e3 / (4 * np.dtype(name).itemsize) for name in rates},
        "gpts": rates,
        "gpts_1024": by_variant[1024],
        "percent": _of_one_pass(by_variant[512]),
        "percent_1024": _of_one_pass(by_variant[1024]),
        "minutes": total / 60,
        "pauses_percent": 100 * pauses / total,
        "clock_mhz": {
            "least": clocks.min(),
            "quarter": clocks.quantile(0.25),
            "median": clocks.median(),
        },
        "rows": len(rows),
        "file_mb": path.stat().st_size / 1e6,
        "memory_mb": pyarrow.parquet.read_table(path).nbytes / 1e6,
    }


@cache
def stencil_slices() -> dict[str, Any]:
    """Recorded acoustic sweeps of the H100 and its slices: updated points at 512^3, 1e9/s.

    By GPU, type, order and variant; ``tile`` is the fastest of the published ladder.
    """
    found: dict[str, Any] = {}
    for gpu in ("h100", "h100.sm72", "h100.sm32", "h100.sm16"):
        rows = _sweep("acoustic", gpu)
        ladder = rows["variant"].isin(["linear", "block3d", "omp_tile"])
        named = rows.assign(variant=rows["variant"].where(~ladder, "tile"))
        found[gpu.replace(".", "_")] = _stencil_rates(named, 512, by="variant")
    return found


@cache
def granger() -> dict[str, Any]:
    """Recorded sweeps of the Granger regressions: rows, fits of 100 x 10 in float32, the race."""
    gpus = sorted(path.parent.name for path in RECORDED.glob("*/granger.parquet"))
    sweeps = [_sweep("granger", gpu) for gpu in gpus]
    rows = sweeps[gpus.index("h200")]
    fits = rows[(rows["rows"] == 100) & (rows["cols"] == 10) & (rows["dtype"] == "float32")]
    times: dict[str, Any] = {}
    for name, threads in (("smem", None), ("no_duplicates", 128), ("published", None)):
        one = fits[(fits["variant"] == name) & (fits["threads"].eq(threads) if threads else True)]
        times[name] = {
            str(count): each for count, each in one.groupby("county")["time_ms"].min().items()
        }
    launches = pd.concat([each[each["variant"] == "published"] for each in sweeps])
    whole = launches["reason"].str.extract(r"launch: (\d+) regressions have no coefficients")[0]
    return {
        "rows": sum(map(len, sweeps)),
        "wrong": sum(int((each["status"] == "wrong").sum()) for each in sweeps),
        "ms": times,
        "published": len(launches),
        "without_coefficients": int((whole.astype(float) == launches["county"]).sum()),
        "counters": _counters(),
    }


def _counters() -> dict[str, Any]:
    """float32 divided by float64 of the published launch, by number of regressions."""
    from kernels.granger.studies.granger_time.counted import read_counted

    found = read_counted(KERNELS / "granger" / "studies" / "granger_time")
    assert found is not None
    ours = found[found["variant"] == "published"].set_index(["county", "dtype"])
    return {
        str(count): {
            name: ours.loc[(count, "float32"), name] / ours.loc[(count, "float64"), name]
            for name in ("missed", "time_ns")
        }
        for count in sorted(set(found["county"]))
    }


@cache
def sentiment() -> dict[str, Any]:
    """20 000 reviews of 256 words: a launch less, and the work of the float32 kernel.

    ``last_answers_ms``: best time with ``last_answers`` less the one without, on tensor cores, by
    what comes in, least and most over the variants. ``mflop``: work of one review, by the spec.
    ``max_error``: of word numbers, relative to the largest logit, by variant.
    """
    rows = _sweep("sentiment")
    rows = rows[(rows["batch"] == 20000) & (rows["tokens"] == 256) & (rows["memory"] == "device")]
    rows = rows[rows["variant"].str.startswith("tensor_")]
    best = rows.groupby(["given", "variant", "last_answers"])["time_ms"].min().unstack()
    cost = (best[1] - best[0]).groupby("given")
    errors = rows[rows["given"] == "tokens"].groupby("variant")["max_error"].max()
    spec = load_spec(KERNELS / "sentiment")
    problem = {"batch": 1, "tokens": 256, "given": "tokens", "memory": "device"}
    mflop = spec.value(spec.work.flop, problem) / 1e6
    results = read_json(RESULTS / "pytorch.json")
    time_ms = results["launchwise"]["20000 tokens"]["fused_case"]["time_ms"]
    gflop = mflop * results["cases"] / 1e3
    limit = read_json(RECORDED / "h200" / "profile.json")["ceilings"]["float32_gflops"] / 1e3
    return {
        "mflop": mflop,
        "gflop": gflop,
        "float32_tflops": gflop / time_ms,
        "float32_limit_tflops": limit,
        "float32_percent": 100 * gflop / time_ms / limit,
        "float32_least_ms": gflop / limit,
        "max_error": errors.to_dict(),
        "last_answers_ms": {
            str(given): {"least": each.min(), "most": each.max()} for given, each in cost
        },
    }


@cache
def kernel_tuner() -> dict[str, Any]:
    """Best times of both tools on the same problems (``benchmarks/results/kernel_tuner.json``).

    Kernel Tuner's less the first run's of launchwise, us; largest time of launchwise's three runs
    divided by the smallest, less 1, in percent; losses by looking one tool's best up in the other's
    times, the largest over the problems of a space, in percent.
    """
    results = read_json(RESULTS / "kernel_tuner.json")["results"]
    longer, spread, losses = [], [], {}
    for name, space in results.items():
        sides = space["sides"]
        own = [side["best"] for key, side in sides.items() if key.startswith("launchwise")]
        for problem, first in own[0].items():
            theirs = sides["kernel_tuner NVCUDA"]["best"][problem]["time_ms"]
            longer.append(1e3 * (theirs - first["time_ms"]))
            times = [each[problem]["time_ms"] for each in own]
            spread.append(100 * (max(times) / min(times) - 1))
        regrets = space["regret"]["kernel_tuner NVCUDA"].values()
        losses[name.split(", fine")[0]] = {
            key: 100 * max(each[key] for each in regrets)
            for key in ("of_ours_in_theirs", "of_theirs_in_ours")
        }
    return {
        "longer_us": {"least": min(longer), "most": max(longer)},
        "spread_percent": {"most": max(spread), "median": statistics.median(spread)},
        "loss_percent": losses,
    }


@cache
def cusparse() -> dict[str, Any]:
    """The solver at 10^8 rows and the limit of two passes at the recorded speed of a copy."""
    results = read_json(RESULTS / "cusparse.json")["results"]
    copy = read_json(RECORDED / "h200" / "profile.json")["ceilings"]["copy_bandwidth_gbs"]
    found: dict[str, Any] = {}
    for dtype, bytes_per_word in (("float64", 8), ("float32", 4)):
        mine = [each for each in results if each["dtype"] == dtype]
        # Two passes read a, b, c, d twice and write x.
        limit = copy / (9 * bytes_per_word)
        rate = next(each["rows_per_ns"] for each in mine if each["n"] == 10**8)
        fastest = [min(each["best"], key=lambda one: one["time_ms"]) for each in mine]
        found[dtype] = {
            "limit": limit,
            "percent": 100 * rate / limit,
            "error": max(each["backward_error"] for each in fastest),
        }
    return found


@cache
def efficiency() -> dict[str, Any]:
    """Measured ceilings of the H200 divided by its datasheet's figures."""
    of = reference_efficiency(read_cards(ROOT / CARDS_FILE), RECORDED / "h200" / "profile.json")
    return {"copy": of.copy_bandwidth, **of.flop, **of.tensor}


@cache
def ablations() -> dict[str, Any]:
    """Least and most of what the ablations compare (``benchmarks/results/ablations.json``).

    ``filter``: quality relative to that with the filter per problem. ``rows``: quality of the cost
    model with trees relative to that of all rows, by share of the rows in percent.
    """
    results = read_json(RESULTS / "ablations.json")
    sizes = pd.DataFrame(results["training_size"])
    sizes = sizes[(sizes["sampled"] == "rows") & (sizes["model"] == "learnt")]
    tables = {
        "filter": pd.DataFrame(results["filter"]).groupby("filter"),
        "rows": sizes.groupby("percent"),
    }
    return {
        table: {
            str(name): {"least": each.min(), "most": each.max()}
            for name, each in groups["over_reference"]
        }
        for table, groups in tables.items()
    }


STUDIES = {
    "acoustic_tile": "acoustic",
    "granger_time": "granger",
    "sentiment_host": "sentiment",
    "sentiment_inference": "sentiment",
    "tridiagonal_device": "tridiagonal",
    "tridiagonal_streams": "tridiagonal",
    "tridiagonal_subsystem": "tridiagonal",
}
"""Studies with a recorded blind test on the H200, and their workloads."""

STUDIES_OF_H100 = {
    **STUDIES,
    "acoustic_kernels": "acoustic",
    "tridiagonal_recursion": "tridiagonal",
}
"""The same for the H100."""


@cache
def blind() -> dict[str, Any]:
    """Recorded blind tests of the H200, scored anew: study to its figures, and ``all``."""
    return _blind("h200", STUDIES)


@cache
def blind_new_gpu() -> dict[str, Any]:
    """Recorded blind tests of the H100, when no study had a row of it; as :func:`blind`.

    ``range`` holds least and most over the studies of what is a fraction of the best.
    """
    found = _blind("h100", STUDIES_OF_H100)
    names = ("fraction_geometric_mean", "best_of_5", "best_of_20")
    of_studies = [each for name, each in found.items() if name != "all"]
    spans = {name: [each[name] for each in of_studies] for name in names}
    return {
        **found,
        "studies": len(of_studies),
        "range": {name: {"least": min(each), "most": max(each)} for name, each in spans.items()},
    }


def _blind(gpu: str, studies: Mapping[str, str]) -> dict[str, Any]:
    """Recorded blind tests of a GPU, scored anew."""
    folder = RECORDED / gpu / "blind"
    profile = read_profile(RECORDED / gpu / "profile.json", gpu)
    found: dict[str, Any] = {}
    for name, workload in studies.items():
        spec = load_spec(KERNELS / workload)
        study = read_yaml(KERNELS / workload / "studies" / name / "study.yaml")
        keys = ("candidates", "constraints", "usual")
        domain = Domain(spec, {gpu: profile}, **{key: study[key] for key in keys if key in study})
        frozen = read_frozen(folder / f"{name}.frozen.json")
        sweep = read_table(folder / f"{name}.sweep.parquet", measurement_schema(spec))
        pairs = read_table(folder / f"{name}.pairs.parquet", pairs_schema(spec))
        check_measured_after(frozen, {"sweep": sweep, "pairs": pairs})
        found[name] = summarise(frozen, score(frozen, domain, sweep, pairs))
    every = found.values()
    counts = ("problems", "slower", "harmed", "kept_usual", "missed", "worthwhile")
    return {**found, "all": {key: sum(each[key] for each in every) for key in counts}}


@cache
def judged() -> dict[str, Any]:
    """How far times that pairs judged differ from the sweep's, %: recorded pairs of both cards.

    ``rows`` that pairs judge, median and largest difference, and share of those above 1 %.
    """
    found = []
    for gpu in ("h100", "h200"):
        for name, workload in STUDIES_OF_H100.items():
            path = RECORDED / gpu / f"{name}.pairs.parquet"
            if path.is_file():
                spec = load_spec(KERNELS / workload)
                sweep = read_table(RECORDED / gpu / f"{workload}.parquet", measurement_schema(spec))
                times = judged_times(sweep, read_table(path, pairs_schema(spec)), spec)
                own = times[times["basis"] == PAIRS]
                found.append((own["time_ms"] / own["sweep_ms"] - 1).abs())
    away = 100 * pd.concat(found, ignore_index=True)
    return {
        "rows": len(away),
        "median_percent": float(away.median()),
        "largest_percent": float(away.max()),
        "above_1_percent": 100 * float((away > 1).mean()),
    }


@cache
def paired() -> dict[str, Any]:
    """Recorded pairs of the H200; see :func:`_paired`."""
    return _paired("h200")


@cache
def paired_h100() -> dict[str, Any]:
    """Recorded pairs of the H100; see :func:`_paired`."""
    return _paired("h100")


def _paired(gpu: str) -> dict[str, Any]:
    """Recorded pairs of a GPU: the fastest of a sweep, its gain by the sweep over that in pairs.

    Over the baseline, by study: ``median``, ``most``; ``problems``. ``narrow``: of ``contests``
    problems the share where the interval of the fastest's gain over the usual choice is at most 1 %
    to either side.
    """
    found: dict[str, Any] = {}
    for path in sorted((RECORDED / gpu).glob("*.pairs.parquet")):
        name = path.name.partition(".")[0]
        (folder,) = KERNELS.glob(f"*/studies/{name}")
        spec = load_spec(folder.parents[1])
        pairs = read_table(path, pairs_schema(spec))
        roles = pairs["roles"].str.split("+")
        baseline = pairs[roles.map(lambda each: "baseline" in each)]
        best = pairs[roles.map(lambda each: "best" in each and "baseline" not in each)]
        both = best.merge(
            baseline[[*spec.problem_columns, "sweep_ms"]],
            on=spec.problem_columns,
            suffixes=("", "_baseline"),
        )
        ratio = (both["sweep_ms_baseline"] / both["sweep_ms"] / both["improvement"]).dropna()
        found[name] = {
            "median": ratio.median(),
            "most": ratio.max(),
            "problems": len(ratio),
            "percent_median": 100 * (ratio.median() - 1),
            "percent_most": 100 * (ratio.max() - 1),
            **_narrow(pairs, spec),
        }
    return found


@cache
def device_choices() -> dict[str, Any]:
    """Speed of what is usual for a tridiagonal system on the device, over that of the fastest.

    By GPU, from recorded pairs: ``mean`` (geometric), ``least``; ``problems``; ``largest``: by
    type, how much faster than what is usual the fastest is at 10^8 rows, %.
    """
    spec = load_spec(KERNELS / "tridiagonal")
    columns = spec.tunable_columns
    found = {}
    for gpu in ("h200", "h100"):
        path = RECORDED / gpu / "tridiagonal_device.pairs.parquet"
        fractions, largest = [], {}
        for values, rows in read_table(path, pairs_schema(spec)).groupby(spec.problem_columns):
            problem = dict(zip(spec.problem_columns, values, strict=True))
            usual = usual_configuration(spec.usual, problem, spec)
            is_usual = (rows[columns] == pd.Series(usual)[columns]).all(axis=1)
            (own,) = rows.loc[is_usual, "gain"]
            fractions.append(own / rows["gain"].max())
            if problem["n"] == 10**8:
                largest[problem["dtype"]] = 100 * (1 / fractions[-1] - 1)
        found[gpu] = {
            "mean": statistics.geometric_mean(fractions),
            "least": min(fractions),
            "problems": len(fractions),
            "largest": largest,
        }
    return found


def _narrow(pairs: pd.DataFrame, spec: Spec) -> dict[str, Any]:
    """How many problems have the gain of their fastest known within 1 %."""
    known = pairs[pairs["gain"].notna()]
    fastest = known.loc[known.groupby(spec.problem_columns)["gain"].idxmax()]
    above = fastest["gain_high"] / fastest["gain"] - 1
    below = 1 - fastest["gain_low"] / fastest["gain"]
    return {"contests": len(fastest), "narrow": ((above <= 0.01) & (below <= 0.01)).mean()}


@cache
def bounds() -> dict[str, Any]:
    """What the stencil's kernels use of an H100 at 1024^3 in float32, %, by variant and order."""
    rows = pd.read_parquet(RECORDED / "h100" / "acoustic_kernels.counters.parquet")
    rows = rows[(rows["n"] == 1024) & (rows["dtype"] == "float32")]
    shares: dict[str, Any] = {}
    for row in rows.to_dict("records"):
        of_variant = shares.setdefault(row["variant"], {})
        of_variant[str(row["order"])] = {
            name: 100 * row[f"{name}_throughput"] for name in ("dram", "l2", "l1", "sm")
        }
    profile = read_profile(RECORDED / "h100" / "profile.json", "h100")
    copy = profile.ceilings.copy_bandwidth_gbs / profile.memory_bandwidth_gbs
    streaming = [name for name in shares if name.startswith("stream")]
    spans = {}
    for unit in ("dram", "l2"):
        found = [each[unit] for name in streaming for each in shares[name].values()]
        spans[unit] = {"least": min(found), "most": max(found)}
    most = max(max(each.values()) for each in shares["shared_tile"].values())
    known = {"copy_percent": 100 * copy, "shared_tile_most": most}
    return {**shares, **known, "streaming": spans}


@cache
def repeats() -> dict[str, Any]:
    """How many rows of the H200 and its slices the device timed, and how many were disturbed."""
    timed = disturbed = 0
    for path in sorted(RECORDED.glob("h200*/*.provenance.json")):
        columns = ["status", "time_ms", "times_ms", "timer"]
        workload = path.name.split(".")[0]
        rows = pd.read_parquet(path.with_name(f"{workload}.parquet"), columns=columns)
        rows = rows[rows["timer"].isin(["events", "graph"]) & (rows["status"] == "ok")]
        timed += len(rows)
        apart = rows["time_ms"] / rows["times_ms"].map(np.min)
        disturbed += int((apart > 1 + Method().disturbed).sum())
    return {"timed": timed, "disturbed": disturbed}


@cache
def beside_pytorch() -> dict[str, Any]:
    """Recorded pairs with PyTorch, sentiment of reviews: GPU to library to geometric means.

    ``fastest`` and ``usual``: how many times as fast as the library our fastest configuration and
    the usual choice are.
    """
    found: dict[str, Any] = {}
    for gpu in ("h100", "h200"):
        rows = pd.read_parquet(RECORDED / gpu / "sentiment_inference.peers.parquet")
        found[gpu] = {
            str(peer): {
                "fastest": statistics.geometric_mean(own["speedup"]),
                "usual": statistics.geometric_mean(own["usual_speedup"]),
            }
            for peer, own in rows.groupby("peer")
        }
    return found


COMPUTED: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            ablations,
            beside_pytorch,
            blind,
            blind_new_gpu,
            bounds,
            cusparse,
            device_choices,
            efficiency,
            granger,
            judged,
            kernel_tuner,
            paired,
            paired_h100,
            repeats,
            sentiment,
            simulation,
            stencil,
            stencil_slices,
        )
    }
)
"""Name in ``docs/figures`` to what computes it."""
