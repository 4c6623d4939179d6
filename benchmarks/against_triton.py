"""A sweep of a kernel in Triton beside ``triton.autotune``: the same configurations, one GPU.

Both begin without anything compiled. ``triton.autotune`` compiles and times one configuration after
the other when a shape is first launched, and keeps what is compiled for the next shape. Its clock
runs from the first launch of a shape to the end of it, in a process that has PyTorch and CUDA
already. launchwise is the whole process of Snakemake: from sources to the table of all shapes, with
every configuration verified and the GPU described. Then both choices of a shape are timed in turns
by Triton's ``do_bench_cudagraph``.

    python benchmarks/against_triton.py benchmarks/results/against_triton.json
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.command_line import arguments, provenance
from harness.expert_products import (
    autotuned,
    choice,
    fastest,
    function,
    given,
    launch,
    swept,
    times_ms,
)
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from launchwise.base.storage import write_json
from launchwise.measuring.cards import cards

VALUES: Mapping[str, list[int]] = {
    "BLOCK_M": [16, 32, 64, 128],
    "BLOCK_N": [32, 64, 128],
    "BLOCK_K": [32, 64],
    "GROUP_M": [1, 8],
    "num_warps": [4, 8],
    "num_stages": [3, 4],
}
SMALLEST: Mapping[str, list[int]] = {
    **{name: values[:1] for name, values in VALUES.items()},
    "num_warps": [4, 8],
}
SHAPES = [
    {"rows": rows, "experts": experts, "n": n, "k": k, "dtype": "float16"}
    for experts, n, k in [(1, 1536, 1024), (8, 1792, 4096), (32, 1024, 2048)]
    for rows in (64, 256, 1024, 4096)
]
ASKED = "launchwise-against-triton"
"""Variable with the work of the process that runs ``triton.autotune``."""


def configurations(values: Mapping[str, list[int]]) -> list[dict[str, int]]:
    """All configurations: every one is feasible for every shape."""
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def triton_side(
    shapes: list[dict[str, Any]], values: Mapping[str, list[int]], scratch: Path
) -> dict[str, Any]:
    """The same by ``triton.autotune`` in a process of its own, without anything compiled."""
    asked = {"shapes": shapes, "values": values}
    done = subprocess.run(
        [sys.executable, __file__],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")]),
            "TRITON_CACHE_DIR": str(scratch / "theirs"),
            ASKED: json.dumps(asked),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def autotune(shapes: list[dict[str, Any]], values: Mapping[str, list[int]]) -> dict[str, Any]:
    """Seconds of each shape's first launch, and what it chose."""
    import torch

    kernel = autotuned(function(), configurations(values))
    seconds, choices = [], []
    torch.zeros(1, device="cuda").sum().item()
    for shape in shapes:
        arrays = given(shape)
        torch.cuda.synchronize()
        # The number of rows is no argument: without this, a shape of the same layer was timed.
        kernel.cache.clear()
        begin = time.perf_counter()
        launch(kernel, shape, arrays)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        choices.append(choice(kernel))
    return {"seconds_of_shapes": seconds, "choices": choices}


def main() -> None:
    """Run both sides and write the result."""
    if asked := os.environ.get(ASKED):
        work = json.loads(asked)
        print(json.dumps(autotune(work["shapes"], work["values"])))
        return
    wanted = arguments(__doc__).parse_args()
    with gpu_and_packages():
        import torch
        import triton
    shapes, values = (SHAPES[:1], SMALLEST) if wanted.smallest else (SHAPES, VALUES)
    number = len(configurations(values))
    with tempfile.TemporaryDirectory() as name:
        theirs = triton_side(shapes, values, Path(name))
        print("triton.autotune", theirs, flush=True)
        seconds, rows = swept(shapes, Path(name), values)
        print(f"launchwise: {len(rows)} rows, {seconds['ended']:.1f} s", flush=True)
    assert len(rows) == number * len(shapes)
    total = sum(theirs["seconds_of_shapes"])
    chosen = [
        {"shape": shape, "launchwise": fastest(rows, shape), "triton": choice}
        for shape, choice in zip(shapes, theirs.pop("choices"), strict=True)
    ]
    for one in chosen:
        times = times_ms(one["shape"], [one["launchwise"], one["triton"]])
        one["times_ms"] = dict(zip(("launchwise", "triton"), times, strict=True))
    card = cards()[0]
    result = {
        **{"device": card.device_name, "driver": card.driver, "configurations": number},
        "launchwise": {
            **{"rows": len(rows), "seconds": seconds["ended"], "seconds_until": seconds},
            "ms_a_configuration": 1e3 * seconds["ended"] / len(rows),
        },
        "triton": {
            **theirs,
            "seconds": total,
            "ms_a_configuration": 1e3 * total / len(rows),
            "first_ms_a_configuration": 1e3 * theirs["seconds_of_shapes"][0] / number,
        },
        "rate": total / seconds["ended"],
        "choices": chosen,
    }
    peers = {"torch": torch.__version__, "triton": triton.__version__}
    write_json(wanted.output, {**provenance(**peers), **result})


if __name__ == "__main__":
    main()
