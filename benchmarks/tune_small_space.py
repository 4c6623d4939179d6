"""``launchwise tune`` over a small space beside Kernel Tuner: whole processes, one GPU.

The kernel is a mean of five points of an image (``harness/five_points``) in 21 block shapes, each a
build. Both sides begin in an empty folder and end with the fastest shape; the clock runs from the
start of the process to its end. Kernel Tuner repeats each shape seven times, its default, and
verifies nothing; launchwise verifies each. Its second run, in the same folder, has nothing to do.
Rounds of both in turn; the medians are compared.

    python benchmarks/tune_small_space.py benchmarks/results/tune_small_space.json
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages
from harness.projects import ROOT, copied_workload, timed_json

from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    import kernel_tuner

ROUNDS = 3
WIDTH = 4096
FOLDER = ROOT / "benchmarks" / "harness" / "five_points"
SMALLEST: dict[str, list[int | str]] = {"block_size_x": [32, 64], "block_size_y": [1]}


def one_round(shapes: Mapping[str, Sequence[int | str]], width: int) -> dict[str, Any]:
    """Both sides in empty folders, then our second run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = copied_workload(FOLDER, Path(temporary), shapes)
        ours = [sys.executable, "-m", "launchwise", "tune", folder.name, f"n={width}", "--json"]
        first_s, found = timed_json(ours, folder.parent)
        again_s, _ = timed_json(ours, folder.parent)
        theirs = [sys.executable, "tune_by_kernel_tuner.py", str(width), json.dumps(shapes)]
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
    known = {name: one.values for name, one in load_spec(FOLDER).tunables.items()}
    shapes, width, count = (SMALLEST, 256, 1) if given.smallest else (known, WIDTH, ROUNDS)
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
