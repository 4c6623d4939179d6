"""The function of Triton of the workload ``expert_product``: swept by launchwise, and launched.

A shape has the numbers ``rows``, ``experts``, ``n`` and ``k``, and the text ``dtype``. A
configuration has a value for each tunable of the function.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from harness.projects import ROOT, snakemake, write_settings
from kernels.expert_product.inputs import routing
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import selected
from launchwise.workloads.spec import load_spec

WORKLOAD = ROOT / "kernels" / "expert_product"
TUNABLES = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "num_warps", "num_stages")
OPTIONS = ("num_warps", "num_stages")  # tunables that Triton takes beside the function's own

MOST_EXPERTS = 128
ROUNDS = 5
SEED = 2026
EVEN_ROUTING = '''"""Which rows an expert has: as many as each other."""

import numpy as np


def routing(rows: int, experts: int) -> dict[str, np.ndarray]:
    """First row of each expert, int32 of (experts + 1), the last one the number of rows."""
    return {"first": (np.arange(experts + 1) * rows // experts).astype(np.int32)}
'''
Shape = Mapping[str, Any]


def swept(
    shapes: Sequence[Shape], scratch: Path, values: Mapping[str, Sequence[int]] | None = None
) -> pd.DataFrame:
    """Rows of a sweep of shapes by Snakemake (:mod:`launchwise.tables.measurements`).

    ``values``: values of the function's tunables, each combination of which is a configuration;
    those of the workload, and its constraints, when left out.
    """
    folder, project = scratch / "expert_product", scratch / "project"
    _workload(folder, values)
    project.mkdir()
    problems = [{name: [value] for name, value in each.items()} for each in shapes]
    settings = {
        "seed": SEED,
        "workloads": [str(folder)],
        "gpus": {"local": {"source": "live", "workloads": ["expert_product"], "shards": 1}},
        "sweeps": {"expert_product": {"energy_ms": 0, "problems": problems}},
    }
    write_settings(project, settings)
    target = "results/sweeps/local/expert_product.parquet"
    options = ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(project)]
    options += ["--cores", "all", "--quiet", "rules", "progress", "--", target]
    snakemake(ROOT, *options, TRITON_CACHE_DIR=str(scratch / "ours"))
    return read_table(project / target, measurement_schema(load_spec(folder)))


def _workload(folder: Path, values: Mapping[str, Sequence[int]] | None) -> None:
    """Write a workload that has the function of Triton alone."""
    # Rows divided as in a launch of the benchmark: the best tile depends on it.
    left_out = shutil.ignore_patterns(
        *("studies", "tests", "sweep.yaml", "features.yaml", "cost.yaml", "usual.yaml"),
        *("predecessors.yaml", "inputs.py"),
    )
    shutil.copytree(WORKLOAD, folder, ignore=left_out)
    (folder / "inputs.py").write_text(EVEN_ROUTING)
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    triton = spec["variants"]["triton"]
    baseline = {**spec["baseline"], "GROUP_M": 1, "variant": "triton"}
    if values is not None:
        triton["constraints"] = []
        spec["tunables"] = {
            name: {"kind": "build", "values": [*values[name]], "neutral": values[name][0]}
            for name in TUNABLES
        }
        baseline |= {name: values[name][0] for name in TUNABLES}
    spec |= {"variants": {"triton": triton}, "baseline": baseline}
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))


def fastest(rows: pd.DataFrame, shape: Shape) -> dict[str, int]:
    """The fastest configuration of a shape in a sweep."""
    of_shape = rows[selected(rows, {name: [value] for name, value in shape.items()})]
    timed = of_shape[of_shape["status"] == "ok"]
    best = timed.sort_values("time_ms", kind="stable").iloc[0]
    return {name: int(best[name]) for name in TUNABLES}


def function() -> Any:
    """The workload's function of Triton."""
    from kernels.expert_product.product import expert_product

    return expert_product


def autotuned(fitted: Any, listed: Sequence[Mapping[str, int]]) -> Any:
    """The function under ``triton.autotune``, with configurations to choose from.

    ``fitted``: :func:`function`, possibly with heuristics.
    """
    import triton

    configs = [
        triton.Config(
            {name: value for name, value in each.items() if name not in OPTIONS},
            **{name: each[name] for name in OPTIONS},
        )
        for each in listed
    ]
    return triton.autotune(configs, key=["experts", "n", "k"])(fitted)


def choice(kernel: Any) -> dict[str, int]:
    """Configuration that ``triton.autotune`` chose at the last launch."""
    best = kernel.best_config
    chosen = {**best.kwargs, **{name: getattr(best, name) for name in OPTIONS}}
    return {name: chosen[name] for name in TUNABLES}


def routed(shape: Shape) -> np.ndarray:
    """First row of each expert as the workload draws it, int32 of (experts + 1,)."""
    generator = np.random.default_rng(SEED)
    return routing(generator, shape["rows"], shape["experts"])["first"]


def given(shape: Shape, first_rows: np.ndarray | None = None) -> tuple[Any, ...]:
    """Arguments of a launch: random rows, divided evenly among the experts, or as given.

    ``first_rows``: (experts + 1,): the first row of each expert, the last one the number of rows.
    """
    import torch

    rows, experts, n, k = (shape[name] for name in ("rows", "experts", "n", "k"))
    kind = getattr(torch, shape["dtype"])
    here = {"device": "cuda", "dtype": kind}
    if first_rows is None:
        first = torch.arange(experts + 1, device="cuda") * rows // experts
    else:
        first = torch.from_numpy(first_rows).cuda()
    return (
        *(torch.empty(rows, n, **here), torch.rand(rows, k, **here) - 0.5),
        *(torch.rand(experts, n, k, **here) - 0.5, torch.rand(experts, n, **here)),
        *(torch.rand(rows, device="cuda"), first.to(torch.int32), experts, n, k),
    )


def launch(kernel: Any, shape: Shape, arrays: tuple[Any, ...], **chosen: Any) -> None:
    """Launch the function, whatever chooses its configuration."""

    def grid(meta: Mapping[str, Any]) -> tuple[int]:
        down = min(shape["rows"], -(-shape["rows"] // meta["BLOCK_M"]) + shape["experts"] - 1)
        return (down * -(-shape["n"] // meta["BLOCK_N"]),)

    kernel[grid](*arrays, EVEN_K=1, MOST_EXPERTS=MOST_EXPERTS, **chosen)


def times_ms(shape: Shape, choices: Sequence[Mapping[str, int]]) -> list[float]:
    """Times of configurations of a shape in turns: medians of rounds, ms. Every k that is timed is
    a multiple of ``BLOCK_K``: ``EVEN_K`` holds."""
    from triton.testing import do_bench_cudagraph

    kernel, arrays = function(), given(shape)

    def run(choice: Mapping[str, int]) -> float:
        assert shape["k"] % choice["BLOCK_K"] == 0
        chosen = {name: choice[name] for name in TUNABLES}
        return float(do_bench_cudagraph(lambda: launch(kernel, shape, arrays, **chosen)))

    rounds = [[run(each) for each in choices] for _ in range(ROUNDS)]
    return [statistics.median(one) for one in zip(*rounds, strict=True)]
