"""Figures computed from result files, datasheets and profiles."""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from docs.generator.recorded_data import RECORDED, RESULTS, ROOT, as_rows
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
def efficiency() -> dict[str, Any]:
    """Measured ceilings of the H200 divided by its datasheet's figures."""
    of = reference_efficiency(read_cards(ROOT / CARDS_FILE), RECORDED / "h200" / "profile.json")
    return {"copy": of.copy_bandwidth, **of.rates}


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
