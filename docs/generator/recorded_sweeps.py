"""Figures computed from recorded sweeps and counters."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet

from docs.generator.recorded_data import KERNELS, RECORDED, RESULTS, as_rows
from launchwise.base.storage import read_json
from launchwise.experiment.method import Method
from launchwise.experiment.published import read_tables
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.workloads.spec import load_spec

DTYPES = ("float32", "float64")


def _sweep(workload: str, gpu: str = "h200") -> pd.DataFrame:
    return pd.read_parquet(RECORDED / gpu / f"{workload}.parquet")


def _stencil_rates(gpu: str, n: int) -> pd.DataFrame:
    """Updated points per second of the fastest of each kind of kernel, 1e9/s. Index: dtype and
    order; columns: ``untiled``, ``best tile`` of the published ladder, and the streaming
    kernels."""
    rows = _sweep("acoustic", gpu)
    rows = rows[(rows["n"] == n) & rows["time_ms"].notna()]
    # Points at the border, as wide as the stencil's arm, are not updated.
    rows = rows.assign(rate=(rows["n"] - rows["order"]) ** 3 / rows["time_ms"] / 1e6)
    ladder = rows["variant"].isin(["linear", "block3d", "omp_tile"])
    untiled = rows[rows["variant"] == "linear"].assign(variant="untiled")
    kinds = pd.concat([untiled, rows.assign(variant=rows["variant"].mask(ladder, "best tile"))])
    rates = kinds.pivot_table("rate", ["dtype", "order"], "variant", aggfunc="max")
    return rates[["untiled", "best tile", "stream", "stream_tensor", "stream_twice"]]


def _by_order(rates: pd.DataFrame) -> pd.DataFrame:
    """Rates by dtype and kind of kernel; a column per order."""
    wide = pd.DataFrame(rates.rename_axis(columns="kernel").stack().unstack("order"))
    return wide.rename(columns="order {}".format)


@cache
def stencil() -> dict[str, Any]:
    """Recorded acoustic sweep of the H200: rates, clocks, durations, sizes.

    ``gpts``: rows of updated points per second at 512^3, 1e9/s, by dtype and kernel, a column per
    order. ``percent``: the faster of both streaming kernels by dtype and n, in percent of what one
    pass of four arrays at ``pass_tbs`` allows (``pass_gpts``).
    """
    pass_tbs = 4.22
    pass_gpts = {name: 1e3 * pass_tbs / (4 * np.dtype(name).itemsize) for name in DTYPES}
    percent = []
    for n in (512, 1024):
        streams = _stencil_rates("h200", n)[["stream", "stream_tensor"]].max(axis="columns")
        shares = 100 * streams / streams.index.get_level_values("dtype").map(pass_gpts)
        percent += [{"n": n, **row} for row in as_rows(_by_order(shares.to_frame("fastest")))]
    known = read_json(RECORDED / "h200" / "acoustic.provenance.json")
    seconds = [shard["seconds"] for shard in known["shards"]]
    total, pauses = (sum(each[key] for each in seconds) for key in ("total", "rest"))
    path = RECORDED / "h200" / "acoustic.parquet"
    rows = _sweep("acoustic")
    clocks = rows["sm_clock_mhz"]
    return {
        "pass_tbs": pass_tbs,
        "pass_gpts": pass_gpts,
        "gpts": as_rows(_by_order(_stencil_rates("h200", 512))),
        "percent": percent,
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
def stencil_slices() -> list[dict[str, Any]]:
    """Recorded acoustic sweeps of the H100 and its slices: updated points at 512^3, 1e9/s. Rows by
    dtype, order (2 and 16) and kernel; a column per GPU."""
    gpus = ("h100", "h100.sm72", "h100.sm32", "h100.sm16")
    rates = {gpu: _stencil_rates(gpu, 512).rename_axis(columns="kernel").stack() for gpu in gpus}
    return as_rows(pd.DataFrame(rates).query("order in [2, 16] and kernel != 'untiled'"))


@cache
def granger() -> dict[str, Any]:
    """Recorded sweeps of the Granger regressions: rows, fits of 100 x 10 in float32, the race."""
    gpus = sorted(path.parent.name for path in RECORDED.glob("*/granger.parquet"))
    sweeps = [_sweep("granger", gpu) for gpu in gpus]
    rows = sweeps[gpus.index("h200")]
    fits = rows[(rows["rows"] == 100) & (rows["cols"] == 10) & (rows["dtype"] == "float32")]
    times: dict[str, Any] = {}
    for (name, threads), one in fits.groupby(["variant", "threads"]):
        own = times.setdefault(str(name), {}).setdefault(str(threads), {})
        own |= {str(count): each for count, each in one.set_index("county")["time_ms"].items()}
    return {"rows": sum(map(len, sweeps)), "ms": times, "counters": _counters()}


def _counters() -> dict[str, Any]:
    """float32 divided by float64 of the published launch, by number of regressions."""
    from kernels.granger.studies.granger_time.launches import read_counted

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
def experts() -> dict[str, Any]:
    """Recorded sweep of the products of experts on an H100: fastest of each variant, usual choice.

    ``us``: microseconds of two layers in float16, a row each by experts and rows. ``first``:
    problems in which a variant has the fastest configuration. ``gain``: time of the usual choice
    over that of the fastest, geometric mean and limits over all problems. ``ms_a_row``: from
    compiled kernels to the table.
    """
    rows = _sweep("expert_product", "h100")
    spec = load_spec(KERNELS / "expert_product")
    problem = spec.problem_columns
    best = rows.pivot_table("time_ms", problem, "variant", aggfunc="min")
    best["usual choice"] = rows[Domain(spec, {}).is_usual(rows)].set_index(problem)["time_ms"]
    kinds = [each for each in spec.variants if each in best]
    gain = best["usual choice"] / best[kinds].min(axis="columns")
    layers = "dtype == 'float16' and (n == 4096 or n == 1792) and rows not in (32, 512, 2048)"
    some = (1e3 * best.query(layers)).reset_index().sort_values(["experts", "rows"])
    # Few rows have few configurations of a kernel for them.
    some["few_rows"] = [f"{each:.1f}" if each == each else "–" for each in some["few_rows"]]
    known = read_json(RECORDED / "h100" / "expert_product.provenance.json")
    return {
        "rows": len(rows),
        "problems": len(best),
        "us": as_rows(some.set_index(problem)),
        "first": best[kinds].idxmin(axis="columns").value_counts().to_dict(),
        "gain": {
            "mean": float(np.exp(np.log(gain).mean())),
            "least": float(gain.min()),
            "most": float(gain.max()),
        },
        "ms_a_row": 1e3 * sum(each["seconds"]["total"] for each in known["shards"]) / len(rows),
    }


@cache
def sentiment() -> dict[str, Any]:
    """20 000 reviews of 256 words: a launch less, and the work of the float32 kernel.

    ``last_answers_ms``: best time with ``last_answers`` less the one without, on tensor cores, by
    what comes in, least and most over the variants; ``last_answers_one_us``: the largest such
    difference, either way, of one review. ``mflop``: work of one review, by the spec.
    ``held_out``: variants, how many were compared on held-out reviews, and how many flip none.
    ``max_error``: of word numbers, relative to the largest logit, by variant. ``float32_*``: what
    the float32 kernel reaches, and that relative to the recorded multiply-adds.
    """
    rows = _sweep("sentiment")
    rows = rows[(rows["tokens"] == 256) & (rows["memory"] == "device")]
    one_us = 1e3 * _last_answers_ms(rows[rows["batch"] == 1])
    rows = rows[rows["batch"] == 20000]
    errors = rows[rows["given"] == "tokens"].groupby("variant")["max_error"].max()
    cost = _last_answers_ms(rows).groupby("given")
    spec = load_spec(KERNELS / "sentiment")
    problem = {"batch": 1, "tokens": 256, "given": "tokens", "memory": "device"}
    mflop = spec.value(spec.work.flop, problem) / 1e6
    results = read_json(RESULTS / "pytorch.json")
    time_ms = results["launchwise"]["20000 tokens"]["fused_case"]["time_ms"]
    gflop = mflop * results["cases"] / 1e3
    limit = read_json(RECORDED / "h200" / "profile.json")["ceilings"]["float32_gflops"] / 1e3
    return {
        "mflop": mflop,
        "float32_tflops": gflop / time_ms,
        "float32_percent": 100 * gflop / time_ms / limit,
        "max_error": errors.to_dict(),
        "held_out": _held_out(list(spec.variants)),
        "last_answers_ms": {
            str(given): {"least": each.min(), "most": each.max()} for given, each in cost
        },
        "last_answers_one_us": one_us.abs().max(),
    }


def _last_answers_ms(rows: pd.DataFrame) -> pd.Series:
    """Best repeated time with ``last_answers`` less the one without, by inputs and variant."""
    rows = rows[rows["variant"].str.startswith("tensor_") & (rows["status"] == "ok")]
    best = rows.groupby(["given", "variant", "last_answers"])["time_ms"].min().unstack()
    return best[1] - best[0]


def _held_out(variants: list[str]) -> dict[str, int]:
    """Of an H200; rows of other tools do not count."""
    folder = KERNELS / "sentiment" / "studies" / "sentiment_inference"
    rows = read_tables(folder)["held_out"]
    own = [row for row in rows if row["gpu"] == "h200" and row["name"] in variants]
    equal = sum(row["class_flips"] == "0" for row in own)
    return {"variants": len(variants), "compared": len(own), "equal": equal}


@cache
def bounds() -> dict[str, Any]:
    """What the stencil's kernels use of an H100 at 1024^3 in float32, % of the peak. ``rows`` by
    variant and order; least and most over the streaming kernels of ``dram`` and ``l2``."""
    rows = pd.read_parquet(RECORDED / "h100" / "acoustic_kernels.counters.parquet")
    rows = rows[(rows["n"] == 1024) & (rows["dtype"] == "float32")].sort_values(
        ["variant", "order"]
    )
    units = ("dram", "l2", "l1", "sm")
    shares = rows[["variant", "order"]].assign(
        **{unit: 100 * rows[f"{unit}_throughput"] for unit in units}
    )
    streaming = shares[shares["variant"].str.startswith("stream")]
    spans = {
        unit: {"least": streaming[unit].min(), "most": streaming[unit].max()} for unit in units
    }
    profile = read_profile(RECORDED / "h100" / "profile.json", "h100")
    copy = profile.ceilings.copy_bandwidth_gbs / profile.memory_bandwidth_gbs
    return {"rows": shares.to_dict("records"), "copy_percent": 100 * copy, "streaming": spans}


@cache
def openmp() -> dict[str, Any]:
    """The published program in C with OpenMP, by GPU and order; both element types, every grid. As
    the study's page has it, without rows that were stopped early: ``gain`` of the best tile over
    untiled loops (mean and most), and the untiled time over that of untiled CUDA (mean)."""
    found: dict[str, Any] = {}
    keys = ["n", "dtype", "order"]
    for gpu in ("h100", "h200"):
        rows = pd.read_parquet(RECORDED / gpu / "acoustic.parquet")
        rows = rows[rows["status"] == "ok"]
        program, linear = (rows[rows["variant"] == name] for name in ("openmp", "linear"))
        tiled = program["tile_i"] > 0
        untiled = program[~tiled].set_index(keys)["time_ms"]
        gain = untiled / program[tiled].groupby(keys)["time_ms"].min().reindex(untiled.index)
        beside = untiled / linear.set_index(keys)["time_ms"].reindex(untiled.index)
        found[gpu] = {"problems": len(untiled)}
        for order, own in gain.groupby("order"):
            found[gpu][f"order {order}"] = {
                "gain": float(own.to_numpy().mean()),
                "most": float(own.to_numpy().max()),
                "beside_cuda": float(beside.xs(order, level="order").to_numpy().mean()),
            }
    return found


@cache
def power_caps() -> dict[str, Any]:
    """Rows of the acoustic sweeps of the H200 and a slice that ran under a power cap, in percent of
    the timed ones; ``least`` and ``most`` of an order and type of numbers."""
    found = {}
    for gpu in ("h200", "h200.sm72"):
        rows = _sweep("acoustic", gpu)
        rows = rows[rows["status"] == "ok"].astype({"dtype": str})
        capped = 100.0 * rows["throttle"].str.split("+").map(lambda own: "sw_power_cap" in own)
        parts = capped.groupby([rows["order"], rows["dtype"]]).mean().sort_values()
        ends = as_rows(parts.rename("percent").reset_index())
        found[gpu] = {"percent": capped.mean(), "least": ends[0], "most": ends[-1]}
    return found


@cache
def repeats() -> dict[str, Any]:
    """How many rows of the H200 and its slices the device timed, and how many were disturbed. Of
    visits that measured no disturbed row once more."""
    timed = disturbed = 0
    for path in sorted(RECORDED.glob("h200*/*.provenance.json")):
        facts = read_json(path)
        visits = facts.get("joined", [facts])
        again = [each for each in visits if "disturbed" in each["method"]]
        columns = ["status", "time_ms", "times_ms", "timer", "measured_at"]
        workload = path.name.split(".")[0]
        rows = pd.read_parquet(path.with_name(f"{workload}.parquet"), columns=columns)
        if again:
            first = min(each["first_measured_at"] for each in again)
            rows = rows[rows["measured_at"] < first]
        rows = rows[rows["timer"].isin(["events", "graph"]) & (rows["status"] == "ok")]
        timed += len(rows)
        apart = rows["time_ms"] / rows["times_ms"].map(np.min)
        disturbed += int((apart > 1 + Method().disturbed).sum())
    return {"timed": timed, "disturbed": disturbed}
