"""Rows a second of one sweep on one GPU and on several, each a real run of the workflow.

The same problems are swept by one job on one card, then by as many shards as there are cards, which
share them. Two rates of each: rows by the wall time of the whole command, and rows by the busiest
card's time in the sweep itself.

    python benchmarks/scaling.py benchmarks/results/scaling.json --cards 1 2 4
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages
from harness.projects import copied_project, read_settings, snakemake, write_settings

from launchwise.base.work import usable_cores
from launchwise.measuring.cards import cards
from launchwise.tables.files import read_facts
from launchwise.workloads.spec import load_spec

with gpu_and_packages():
    import pycuda  # noqa: F401  (the sweep's own process needs it)

STUDY = "acoustic_tile"
PROBLEMS = [
    {"n": [256, 320, 384, 448, 512, 576, 640], "dtype": ["float32", "float64"], "order": [2, 8, 16]}
]
SMALLEST_PROBLEMS = [{"n": [256], "dtype": ["float32"], "order": [2]}]


def name_of(count: int) -> str:
    """Name of the GPU entry for so many cards."""
    return f"scaling.{count}"


def prepare(folder: Path, counts: list[int], problems: list[dict[str, Any]]) -> None:
    """Give the settings of a copy of the project one entry for every number of cards."""
    settings, card = read_settings(folder), cards()[0]
    common = {"source": "live", "arch": card.arch, "device": card.device_name, "studies": [STUDY]}
    settings["gpus"] |= {name_of(count): {**common, "shards": count} for count in counts}
    settings["sweeps"] = {"acoustic": {"problems": problems}}
    write_settings(folder, settings)


def run_workflow(folder: Path, count: int, *targets: str) -> float:
    """Run the workflow with so many cards; seconds of the whole command."""
    options = ["--cores", str(usable_cores()), "--quiet", "rules", "--resources", f"gpu={count}"]
    return snakemake(folder, *options, "--", *targets).seconds


def measured(project: Path, count: int, wall_s: float) -> dict[str, Any]:
    """Figures of a run from the shards' tables."""
    busy: dict[str, float] = defaultdict(float)
    rows, keys = 0, set()
    names = load_spec(project / "kernels" / "acoustic").key_columns
    folder = project / "results" / "sweeps" / name_of(count) / "acoustic"
    for path in sorted(folder.glob("*.parquet")):
        table = pd.read_parquet(path)
        rows += len(table)
        keys |= set(table[names].itertuples(index=False, name=None))
        busy[str(table["card"].iloc[0])] += read_facts(path)["seconds"]["total"]
    if len(keys) != rows:
        raise SystemExit(f"{rows} rows of {len(keys)} configurations: something was done twice")
    return {
        **{"cards": count, "shards": len(list(folder.glob("*.parquet"))), "rows": rows},
        **{"wall_s": wall_s, "busiest_card_s": max(busy.values()), "cards_seen": len(busy)},
        "rows_a_second_of_the_command": rows / wall_s,
        "rows_a_second_of_the_sweep": rows / max(busy.values()),
    }


def main() -> None:
    """Run every number of cards, the largest first, and write the result."""
    parser = arguments(__doc__)
    parser.add_argument("--cards", type=int, nargs="+", default=[1, len(cards())])
    given = parser.parse_args()
    counts = [1] if given.smallest else sorted(set(given.cards), reverse=True)
    problems = SMALLEST_PROBLEMS if given.smallest else PROBLEMS
    with copied_project() as folder:
        prepare(folder, counts, problems)
        # What is the same for all: what a card is, and the kernels.
        profiles = [f"results/gpus/{name_of(count)}.json" for count in counts]
        bundle = f"results/build/acoustic/{cards()[0].arch}.cubins"
        run_workflow(folder, max(counts), *profiles, bundle)
        runs = []
        for count in counts:
            wall_s = run_workflow(folder, count, f"sweep_{name_of(count)}")
            runs.append(measured(folder, count, wall_s))
            print(json.dumps(runs[-1]), flush=True)
    one = next((run for run in runs if run["cards"] == 1), None)
    rate = "rows_a_second_of_the_sweep"
    for run in runs:
        if one:
            run[f"times_{rate}_of_one"] = run[rate] / one[rate]
    write_result(given.output, {**card_facts(), "problems": problems, "runs": runs})


if __name__ == "__main__":
    main()
