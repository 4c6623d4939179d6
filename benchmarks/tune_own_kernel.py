"""``launchwise tune`` on one file beside Kernel Tuner: from nothing to the answer, on one GPU.

Both tune the convolution of the documents (``docs/tutorial/example/convolution``), 4096 x 4096,
over the same two larger spaces. Our clock runs over the whole command, in an empty folder: checks
of the machine and the files, the profile of the GPU, nvcc, inputs, a verification of every
configuration, timing, pages. Kernel Tuner's runs over ``tune_kernel`` alone, with its default of
seven repeats and without a verification; it measures a random part of the space, because all of it
takes longer than the machine is there. Then the best of each side are timed by Kernel Tuner, one
after the other and again, so that what differs is not the day.

    python benchmarks/tune_own_kernel.py benchmarks/results/tune.json
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages
from harness.projects import ROOT, copied_workload, timed_json

from launchwise.base.work import usable_cores
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    from kernel_tuner import tune_kernel

EXAMPLE = ROOT / "docs" / "tutorial" / "example" / "convolution"
SPACES: dict[str, dict[str, list[int]]] = {
    "some": {
        "block_size_x": [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256],
        "block_size_y": [1, 2, 3, 4, 6, 8, 12, 16],
        "tile_size_x": [1, 2, 3, 4, 6, 8],
        "tile_size_y": [1, 2, 3, 4, 6, 8],
    },
    "more": {
        "block_size_x": list(range(16, 257, 16)),
        "block_size_y": [1, 2, 3, 4, 6, 8, 12, 16],
        "tile_size_x": list(range(1, 9)),
        "tile_size_y": list(range(1, 9)),
    },
}
SMALLEST = {
    "smallest": {
        "block_size_x": [16, 32],
        "block_size_y": [8, 16],
        "tile_size_x": [1],
        "tile_size_y": [1, 2],
    }
}
WIDTH = 4096
BACKEND = "NVCUDA"  # Kernel Tuner's fastest back-end
OF_THEIRS = 1000  # configurations that Kernel Tuner measures
ROUNDS = 5  # number of pairs in which the two best configurations are timed
REPEATS = 50  # launches of each in a round


def ours(folder: Path, width: int) -> dict[str, Any]:
    """Seconds of the command, and its answer."""
    line = [sys.executable, "-m", "launchwise", "tune", str(folder), f"w={width}", f"h={width}"]
    seconds, said = timed_json([*line, "--json", "--cores", str(usable_cores())], folder.parent)
    (answer,) = said["answers"]
    count = sum(answer["statuses"].values())
    names = load_spec(folder).tunables
    return {
        "seconds": seconds,
        "configurations": count,
        "configurations_per_second": count / seconds,
        "statuses": answer["statuses"],
        "best": {name: answer["configuration"][name] for name in names},
        "best_ms": answer["time_ms"],
        "default_ms": answer["baseline_ms"],
    }


class KernelTuner:
    """Kernel Tuner's side: the same file, arguments and conditions."""

    def __init__(self, folder: Path, width: int) -> None:
        self.text = (folder / "convolution.cu").read_text().replace("#include", "// #include")
        random = np.random.default_rng(1)
        image = random.standard_normal((width + 4, width + 4)).astype(np.float32)
        weights = random.standard_normal((5, 5)).astype(np.float32)
        output = np.zeros((width, width), np.float32)
        self.arguments = [output, image, weights, np.int32(width), np.int32(width)]
        self.size = (width, width)

    def tune(self, sizes: dict[str, list[int]], **options: Any) -> list[dict[str, Any]]:
        """Entries of ``tune_kernel``."""
        results, _ = tune_kernel(
            "convolution_kernel",
            self.text,
            self.size,
            self.arguments,
            sizes,
            grid_div_x=["block_size_x", "tile_size_x"],
            grid_div_y=["block_size_y", "tile_size_y"],
            restrictions=[
                "block_size_x * block_size_y >= 64",
                "block_size_x * block_size_y <= 1024",
            ],
            lang=BACKEND,
            quiet=True,
            **options,
        )
        return [entry for entry in results if isinstance(entry["time"], float)]

    def sample(self, sizes: dict[str, list[int]], count: int) -> dict[str, Any]:
        """Seconds and the best of a random part of the space."""
        begin = time.perf_counter()
        found = self.tune(sizes, strategy="random_sample", strategy_options={"max_fevals": count})
        seconds = time.perf_counter() - begin
        best = min(found, key=lambda entry: statistics.median(entry["times"]))
        return {
            "seconds": seconds,
            "configurations": len(found),
            "configurations_per_second": len(found) / seconds,
            "best": {name: int(best[name]) for name in sizes},
            "best_ms": statistics.median(best["times"]),
        }

    def time_ms(self, configuration: dict[str, int]) -> float:
        """Median of :data:`REPEATS` launches of one configuration, ms."""
        one = {name: [value] for name, value in configuration.items()}
        (entry,) = self.tune(one, iterations=REPEATS)
        return float(statistics.median(entry["times"]))


def compared(sizes: dict[str, list[int]], width: int, count: int) -> dict[str, Any]:
    """Both sides over one space."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = copied_workload(EXAMPLE, Path(temporary), sizes)
        space = len(configurations(load_spec(folder), {"w": width, "h": width}))
        mine = ours(folder, width)
        peer = KernelTuner(folder, width)
        theirs = peer.sample(sizes, count)
        pairs = [
            {"ours_ms": peer.time_ms(mine["best"]), "theirs_ms": peer.time_ms(theirs["best"])}
            for _ in range(ROUNDS)
        ]
    return {
        "space": space,
        "ours": mine,
        "kernel_tuner": theirs,
        "pairs": pairs,
        "our_best_over_theirs": statistics.median(
            pair["ours_ms"] / pair["theirs_ms"] for pair in pairs
        ),
        "times_as_many_per_second": mine["configurations_per_second"]
        / theirs["configurations_per_second"],
    }


def main() -> None:
    """Run both sides and write the result."""
    given = arguments(__doc__).parse_args()
    spaces, width, count = (SMALLEST, 256, 4) if given.smallest else (SPACES, WIDTH, OF_THEIRS)
    result: dict[str, Any] = {**card_facts(), "width": width, "results": {}}
    for name, sizes in spaces.items():
        result["results"][name] = found = compared(sizes, width, count)
        write_result(given.output, result, kernel_tuner=metadata.version("kernel-tuner"))
        mine = found["ours"]
        print(f"{mine['configurations']} configurations in {mine['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
