"""Figures of the documents that are computed, by name; those of result files are here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import pandas as pd

from docs.generator.recorded_answers import (
    autotuned_of_triton,
    beside_pytorch,
    blind,
    blind_experts,
    blind_new_gpu,
    device_choices,
    experts_beside_pytorch,
    judged,
    paired,
    paired_h100,
)
from docs.generator.recorded_data import RECORDED, RESULTS, ROOT, as_rows
from docs.generator.recorded_sweeps import (
    bounds,
    experts,
    granger,
    openmp,
    repeats,
    sentiment,
    stencil,
    stencil_slices,
)
from launchwise.base.storage import read_json
from launchwise.gpus.datasheets import CARDS_FILE, read_cards, reference_efficiency


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
        losses[name] = {
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
    """The solver at 10^8 rows in % of two passes at the recorded speed of a copy; its errors."""
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
    """Tables of the ablations (``benchmarks/results/ablations.json``).

    ``filter`` and ``rows``: least and most, over studies, of the quality relative to that with the
    filter per problem, and of the cost model with trees relative to that of all rows, by share of
    the rows in percent. ``training`` and ``gpu_features``: rows of the quality by study and model,
    a column per share or per set of features. ``enough``: the smallest share, %, from which the
    quality stays near that of all rows, by study and model.
    """
    results = read_json(RESULTS / "ablations.json")
    sizes = pd.DataFrame(results["training_size"])
    sizes = sizes[sizes["sampled"] == "rows"]
    cost_model = sizes[sizes["model"] == "learnt"]
    tables = {
        "filter": pd.DataFrame(results["filter"]).groupby("filter"),
        "rows": cost_model.groupby("percent"),
    }
    features = pd.DataFrame(results["gpu_features"])
    enough = pd.DataFrame(results["enough"]["curves"])
    key = ["study", "model"]
    return {
        "training": as_rows(
            sizes.assign(percent=sizes["percent"].map("{} %".format)).pivot(
                index=[*key, "usual_choice"], columns="percent", values="quality"
            )
        ),
        "gpu_features": as_rows(features.pivot(index=key, columns="features", values="quality")),
        "enough": as_rows(enough.pivot(index=key, columns="sampled", values="percent")),
        **{
            table: {
                str(name): {"least": each.min(), "most": each.max()}
                for name, each in groups["over_reference"]
            }
            for table, groups in tables.items()
        },
    }


@cache
def predictors() -> list[dict[str, Any]]:
    """Milliseconds of the predictors (``benchmarks/results/predictions.json``), by workload."""
    times = pd.DataFrame(read_json(RESULTS / "predictions.json")["times"])
    return as_rows(times.pivot(index="workload", columns="predictor", values="ms"))


COMPUTED: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            ablations,
            autotuned_of_triton,
            beside_pytorch,
            blind,
            blind_experts,
            blind_new_gpu,
            bounds,
            cusparse,
            device_choices,
            efficiency,
            experts,
            experts_beside_pytorch,
            granger,
            judged,
            kernel_tuner,
            openmp,
            paired,
            paired_h100,
            predictors,
            repeats,
            sentiment,
            simulation,
            stencil,
            stencil_slices,
        )
    }
)
"""Name in ``docs/figures`` to what computes it."""
