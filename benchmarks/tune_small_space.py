"""``launchwise tune`` over a small space beside Kernel Tuner: whole processes, one GPU.

The kernel is a mean of five points of an image in 21 block shapes, each a build. Both sides begin
in an empty folder and end with the fastest shape; the clock runs from the start of the process to
its end. Kernel Tuner repeats each shape seven times, its default, and verifies nothing; launchwise
verifies each. Its second run, in the same folder, has nothing to do. Rounds of both in turn; the
medians are compared.

    python benchmarks/tune_small_space.py benchmarks/results/tune_small_space.json
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages
from harness.projects import timed_json

with gpu_and_packages():
    import kernel_tuner

ROUNDS = 3
WIDTH = 4096
SHAPES = {"block_size_x": [16, 32, 48, 64, 96, 128, 256], "block_size_y": [1, 2, 4]}
SMALLEST = {"block_size_x": [32, 64], "block_size_y": [1]}

KERNEL = """\
__global__ void mean(float *out, const float *in, int n)
{
    int x = blockIdx.x * block_size_x + threadIdx.x;
    int y = blockIdx.y * block_size_y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    const float *here = in + (long long)y * n + x;
    out[(long long)y * n + x] = 0.2f * (here[0] + here[-1] + here[1] + here[-n] + here[n]);
}
"""

REFERENCE = """\
def expected(n, **given):
    image = given["in"].reshape(n, n)
    found = image * 0
    found[1:-1, 1:-1] = 0.2 * (
        image[1:-1, 1:-1] + image[1:-1, :-2] + image[1:-1, 2:] + image[:-2, 1:-1] + image[2:, 1:-1]
    )
    return found
"""

SPEC: dict[str, Any] = {
    "workload": "mean",
    "title": "mean of five points",
    "problem": {"n": {"type": "integer", "minimum": 3, "maximum": 16384}},
    "arguments": {
        "out": {
            "type": "float32",
            "shape": ["n", "n"],
            "role": "inout",
            "fill": "zeros",
            # The border stays, and all else is written anew.
            "restore": False,
        },
        "in": {"type": "float32", "shape": ["n", "n"]},
        "n": {"type": "int32", "value": "n"},
    },
    "reference": {"file": "reference.py:expected"},
    "variants": {
        "mean": {
            "source": "mean.cu",
            "kernel": "mean",
            "tunables": list(SHAPES),
            "block": list(SHAPES),
            "grid": ["ceil_div(n, block_size_x)", "ceil_div(n, block_size_y)"],
        }
    },
    "baseline": {"variant": "mean", "block_size_x": 32, "block_size_y": 1},
}

PEER = """\
import json, sys, time
import numpy as np
from kernel_tuner import tune_kernel
n, shapes = int(sys.argv[1]), json.loads(sys.argv[2])
image = np.random.default_rng(1).standard_normal((n, n)).astype(np.float32)
results, _ = tune_kernel(
    "mean", open("mean.cu").read(), (n, n), [np.zeros_like(image), image, np.int32(n)], shapes,
    lang="NVCUDA", quiet=True,
)
best = min((each for each in results if isinstance(each["time"], float)), key=lambda e: e["time"])
print(json.dumps({"count": len(results), "best": {k: best[k] for k in shapes}, "ms": best["time"]}))
"""


def workload(scratch: Path, shapes: dict[str, list[int]]) -> Path:
    """Folder of the kernel with its spec and reference."""
    folder = scratch / "mean"
    folder.mkdir()
    tunables = {name: {"kind": "build", "values": values} for name, values in shapes.items()}
    (folder / "spec.yaml").write_text(
        yaml.safe_dump({**SPEC, "tunables": tunables}, sort_keys=False)
    )
    (folder / "mean.cu").write_text(KERNEL)
    (folder / "reference.py").write_text(REFERENCE)
    return folder


def one_round(shapes: dict[str, list[int]], width: int) -> dict[str, Any]:
    """Both sides in empty folders, then our second run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = workload(Path(temporary), shapes)
        ours = [sys.executable, "-m", "launchwise", "tune", "mean", f"n={width}", "--json"]
        first_s, found = timed_json(ours, folder.parent)
        again_s, _ = timed_json(ours, folder.parent)
        theirs = [sys.executable, "-c", PEER, str(width), json.dumps(shapes)]
        theirs_s, peer = timed_json(theirs, folder)
    (answer,) = found["answers"]
    return {
        "launchwise_s": first_s,
        "nothing_to_do_s": again_s,
        "kernel_tuner_s": theirs_s,
        "configurations": sum(answer["statuses"].values()),
        "kernel_tuner_configurations": peer["count"],
        "statuses": answer["statuses"],
        "best": {name: answer["configuration"][name] for name in shapes},
        "best_ms": answer["time_ms"],
        "kernel_tuner_best": peer["best"],
        "kernel_tuner_best_ms": peer["ms"],
    }


def main() -> None:
    """Run both sides and write the result."""
    given = arguments(__doc__).parse_args()
    shapes, width, count = (SMALLEST, 256, 1) if given.smallest else (SHAPES, WIDTH, ROUNDS)
    # The first import after an installation compiles every module.
    assert kernel_tuner
    rounds = [one_round(shapes, width) for _ in range(count)]
    sides = ("launchwise_s", "nothing_to_do_s", "kernel_tuner_s")
    medians = {name: statistics.median(each[name] for each in rounds) for name in sides}
    result = {**card_facts(), "width": width, "rounds": rounds, "medians": medians}
    write_result(given.output, result, kernel_tuner=metadata.version("kernel-tuner"))
    print(", ".join(f"{name.removesuffix('_s')} {value:.2f} s" for name, value in medians.items()))


if __name__ == "__main__":
    main()
