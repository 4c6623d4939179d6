"""Configurations that vLLM ships for a GPU beside the fastest that a sweep finds, in one kernel.

The layers are those of two of vLLM's files for the H100 (``data/public/README.md``): the first
product of a layer of Mixtral 8x7B and of Qwen3 30B on four cards. For each number of tokens, also
some between the keys of a file, launchwise measures every configuration of the workload's Triton
function. Then these are timed in turns by Triton's ``do_bench_cudagraph``:

- ``launchwise``: the fastest of the sweep,
- ``shipped``: the file's configuration, of the nearest key as vLLM looks it up,
- ``default``: what vLLM launches where no file names the device.

Rows are divided evenly among the experts. What is judged is a configuration in this function, which
has another epilogue and another order of rows than vLLM's.

    python benchmarks/shipped_configurations.py benchmarks/results/shipped_configurations.json
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from harness.command_line import arguments, card_facts, write_result
from harness.expert_products import TUNABLES, fastest, swept, times_ms
from harness.needs import gpu_and_packages
from harness.projects import ROOT

SHIPPED = ROOT / "data" / "public" / "shipped" / "vllm_fused_moe_h100.csv"
TOKENS = (1, 16, 40, 256, 700, 4096)


@dataclass(frozen=True)
class Layer:
    """The first product of a mixture of experts, and how many experts each token goes to."""

    model: str
    experts: int
    n: int
    k: int
    experts_per_token: int

    def shape(self, tokens: int) -> dict[str, Any]:
        """The shape of a number of tokens."""
        rows = tokens * self.experts_per_token
        layer = {"experts": self.experts, "n": self.n, "k": self.k}
        return {"rows": rows, **layer, "dtype": "bfloat16"}


LAYERS = (Layer("Mixtral 8x7B", 8, 3584, 4096, 2), Layer("Qwen3 30B", 128, 384, 2048, 8))


def shipped(table: pd.DataFrame, layer: Layer, tokens: int) -> tuple[int, dict[str, int]]:
    """The key of a file that is nearest to a number of tokens, and its configuration."""
    mine = table[(table["experts"] == layer.experts) & (table["n"] == layer.n)]
    row = mine.iloc[int((mine["tokens"] - tokens).abs().argmin())]
    return int(row["tokens"]), {name: int(row[name]) for name in TUNABLES}


def default(layer: Layer, tokens: int) -> dict[str, int]:
    """vLLM's configuration where it has no file, for elements of 16 bits."""
    few = tokens <= layer.experts
    values = (16, 32, 64, 1, 4, 3) if few else (64, 64, 32, 8, 4, 3)
    return dict(zip(TUNABLES, values, strict=True))


def figures(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Time over the fastest of all sides: mean and worst of each side."""
    sides = [*results[0]["times_ms"]]
    over = {
        side: [each["times_ms"][side] / min(each["times_ms"].values()) for each in results]
        for side in sides
    }
    return {
        side: {
            "mean_time_over_fastest": statistics.geometric_mean(values),
            "worst_time_over_fastest": max(values),
        }
        for side, values in over.items()
    }


def main() -> None:
    """Sweep the shapes, time the sides and write the result."""
    wanted = arguments(__doc__).parse_args()
    with gpu_and_packages():
        import torch
        import triton
    table = pd.read_csv(SHIPPED)
    layers, numbers = (LAYERS[1:], TOKENS[:1]) if wanted.smallest else (LAYERS, TOKENS)
    cases = [(layer, tokens) for layer in layers for tokens in numbers]
    values = {name: [int(table[name].min())] for name in TUNABLES}
    with tempfile.TemporaryDirectory() as name:
        shapes = [layer.shape(tokens) for layer, tokens in cases]
        rows = swept(shapes, Path(name), values if wanted.smallest else None)
    results = []
    for layer, tokens in cases:
        shape = layer.shape(tokens)
        key, known = shipped(table, layer, tokens)
        sides = {
            "launchwise": fastest(rows, shape),
            "shipped": known,
            "default": default(layer, tokens),
        }
        times = dict(zip(sides, times_ms(shape, [*sides.values()]), strict=True))
        results.append(
            {
                **{"model": layer.model, "tokens": tokens, "key": key, "shape": shape},
                **{"configurations": sides, "times_ms": times},
            }
        )
        print(layer.model, tokens, times, flush=True)
    result = {**card_facts(), "rows": len(rows), "figures": figures(results), "results": results}
    write_result(wanted.output, result, torch=torch.__version__, triton=triton.__version__)


if __name__ == "__main__":
    main()
