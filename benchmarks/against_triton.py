"""A sweep of a kernel in Triton beside ``triton.autotune``: the same configurations, one GPU.

Both begin without anything compiled. ``triton.autotune`` compiles and times one configuration after
the other when a shape is first launched, and keeps what is compiled for the next shape. Its clock
runs from the first launch of a shape to the end of it, in a process that has PyTorch and CUDA
already. launchwise is the whole process of ``launchwise tune --all``: from sources to the answers,
with every configuration verified. Then both choices of a shape are timed in turns by Triton's
``do_bench_cudagraph``.

    python benchmarks/against_triton.py benchmarks/results/against_triton.json
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from harness.command_line import arguments, provenance
from harness.needs import gpu_and_packages
from harness.projects import ROOT

from launchwise.base.storage import write_json
from launchwise.measuring.cards import cards

WORKLOAD = ROOT / "kernels" / "expert_product"
VALUES: Mapping[str, list[int]] = {
    "BLOCK_M": [16, 64, 128],
    "BLOCK_N": [64, 128],
    "BLOCK_K": [32, 64],
    "GROUP_M": [1, 8],
    "num_warps": [4, 8],
    "num_stages": [3, 4],
}
SMALLEST: Mapping[str, list[int]] = {
    **{name: values[:1] for name, values in VALUES.items()},
    "num_warps": [4, 8],
}
OPTIONS = ("num_warps", "num_stages")
SHAPES = [
    {"rows": rows, "experts": experts, "n": n, "k": k, "dtype": "float16"}
    for rows, experts, n, k in [(2048, 1, 1536, 1024), (256, 8, 1792, 4096), (4096, 32, 1024, 2048)]
]
ROUNDS = 5
MOST_EXPERTS = 128
ASKED = "launchwise-against-triton"
"""Variable with the work of the process that runs ``triton.autotune``."""


def configurations(values: Mapping[str, list[int]]) -> list[dict[str, int]]:
    """All configurations: every one is feasible for every shape."""
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def launchwise_side(
    shapes: list[dict[str, Any]], values: Mapping[str, list[int]], scratch: Path
) -> dict[str, Any]:
    """Seconds of the whole process, rows, and the fastest configuration of each shape."""
    folder = scratch / "expert_product"
    shutil.copytree(
        WORKLOAD, folder, ignore=shutil.ignore_patterns("studies", "tests", "sweep.yaml")
    )
    spec = yaml.safe_load((folder / "spec.yaml").read_text())
    triton = spec["variants"]["triton"]
    spec["variants"] = {"triton": {**triton, "constraints": []}}
    for name, listed in values.items():
        spec["tunables"][name] = {"kind": "build", "values": listed}
    spec["baseline"] = {"variant": "triton", **configurations(values)[0]}
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    for about_all_variants in ("features.yaml", "cost.yaml", "usual.yaml"):
        (folder / about_all_variants).unlink()
    answers, seconds, rows = [], 0.0, 0
    begin = time.perf_counter()
    for shape in shapes:
        problem = [f"{name}={value}" for name, value in shape.items()]
        done = subprocess.run(
            [sys.executable, "-m", "launchwise", "tune", str(folder), *problem, "--all", "--json"],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(scratch / "ours")},
            capture_output=True,
            text=True,
            check=True,
        )
        (answer,) = json.loads(done.stdout)["answers"]
        answers.append(answer["configuration"])
        rows += sum(answer["statuses"].values())
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "rows": rows, "choices": answers}


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


def function() -> Any:
    """The workload's function of Triton."""
    known = importlib.util.spec_from_file_location("product", WORKLOAD / "product.py")
    assert known is not None
    assert known.loader is not None
    module = importlib.util.module_from_spec(known)
    known.loader.exec_module(module)
    return module.expert_product


def given(shape: Mapping[str, Any]) -> tuple[Any, ...]:
    """Arguments of a launch: random rows, divided evenly among the experts."""
    import torch

    rows, experts, n, k = (shape[name] for name in ("rows", "experts", "n", "k"))
    kind = getattr(torch, shape["dtype"])
    here = {"device": "cuda", "dtype": kind}
    first = torch.arange(experts + 1, device="cuda", dtype=torch.int32) * (rows // experts)
    return (
        *(torch.empty(rows, n, **here), torch.rand(rows, k, **here) - 0.5),
        *(torch.rand(experts, n, k, **here) - 0.5, torch.rand(experts, n, **here)),
        *(torch.rand(rows, device="cuda"), first, experts, n, k),
    )


def launch(kernel: Any, shape: Mapping[str, Any], arrays: tuple[Any, ...], **chosen: Any) -> None:
    """Launch the function, whatever chooses its configuration."""

    def grid(meta: Mapping[str, Any]) -> tuple[int]:
        down = min(shape["rows"], -(-shape["rows"] // meta["BLOCK_M"]) + shape["experts"] - 1)
        return (down * -(-shape["n"] // meta["BLOCK_N"]),)

    kernel[grid](*arrays, EVEN_K=1, MOST_EXPERTS=MOST_EXPERTS, **chosen)


def autotune(shapes: list[dict[str, Any]], values: Mapping[str, list[int]]) -> dict[str, Any]:
    """Seconds of each shape's first launch, and what it chose."""
    import torch
    import triton

    configs = [
        triton.Config(
            {name: value for name, value in each.items() if name not in OPTIONS},
            **{name: each[name] for name in OPTIONS},
        )
        for each in configurations(values)
    ]
    kernel = triton.autotune(configs, key=["experts", "n", "k"])(function())
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
        best = kernel.best_config
        choices.append({**best.kwargs, **{name: getattr(best, name) for name in OPTIONS}})
    return {"seconds_of_shapes": seconds, "choices": choices}


def times_ms(shape: Mapping[str, Any], choices: list[dict[str, int]]) -> list[float]:
    """Times of configurations of a shape in turns: medians of rounds, ms."""
    from triton.testing import do_bench_cudagraph

    kernel, arrays = function(), given(shape)

    def run(choice: dict[str, int]) -> float:
        chosen = {name: choice[name] for name in VALUES}
        return float(do_bench_cudagraph(lambda: launch(kernel, shape, arrays, **chosen)))

    rounds = [[run(each) for each in choices] for _ in range(ROUNDS)]
    return [statistics.median(one) for one in zip(*rounds, strict=True)]


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
        ours = launchwise_side(shapes, values, Path(name))
        print("launchwise", ours, flush=True)
    assert ours["rows"] == number * len(shapes)
    total = sum(theirs["seconds_of_shapes"])
    chosen = [
        {"shape": shape, "launchwise": ours["choices"][place], "triton": theirs["choices"][place]}
        for place, shape in enumerate(shapes)
    ]
    for one in chosen:
        times = times_ms(one["shape"], [one["launchwise"], one["triton"]])
        one["times_ms"] = dict(zip(("launchwise", "triton"), times, strict=True))
    card = cards()[0]
    result = {
        **{"device": card.device_name, "driver": card.driver, "configurations": number},
        "launchwise": {**ours, "ms_a_configuration": 1e3 * ours["seconds"] / ours["rows"]},
        "triton": {
            **theirs,
            "seconds": total,
            "ms_a_configuration": 1e3 * total / (number * len(shapes)),
            "first_ms_a_configuration": 1e3 * theirs["seconds_of_shapes"][0] / number,
        },
        "rate": (total / (number * len(shapes))) / (ours["seconds"] / ours["rows"]),
        "choices": chosen,
    }
    peers = {"torch": torch.__version__, "triton": triton.__version__}
    write_json(wanted.output, {**provenance(**peers), **result})


if __name__ == "__main__":
    main()
