"""Rows a second of one sweep on one GPU and on several, each a real run of the workflow.

The same problems are swept by one job on one card, then by as many shards as there are cards, which
share them. Two rates of each: rows by the wall time of the whole command, and rows by the busiest
card's time in the sweep itself.

    python benchmarks/scaling.py benchmarks/results/scaling.json --cards 1 2 4
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from launchwise.base.provenance import commit, now, versions
from launchwise.base.storage import write_json
from launchwise.measuring.cards import cards
from launchwise.tables.files import read_facts
from launchwise.workloads.spec import load_spec

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = [
    {"n": [256, 320, 384, 448, 512, 576, 640], "dtype": ["float32", "float64"], "order": [2, 8, 16]}
]


def name_of(count: int) -> str:
    """Name of the GPU entry for so many cards."""
    return f"scaling.{count}"


def overlay(counts: list[int]) -> dict[str, Any]:
    """Settings: one entry for every number of cards."""
    card = cards()[0]
    common = {"source": "live", "arch": card.arch, "device": card.device_name}
    return {
        "gpus": {name_of(count): {**common, "shards": count} for count in counts},
        "sweeps": {"acoustic": {"problems": PROBLEMS}},
    }


def snakemake(config: Path, count: int, *targets: str) -> float:
    """Run the workflow with so many cards; seconds of the whole command."""
    command = [sys.executable, "-m", "snakemake", "--cores", str(os.cpu_count() or 1), "--nolock"]
    command += ["--quiet", "rules", "--resources", f"gpu={count}"]
    command += ["--configfile", "config.yaml", str(config), "--", *targets]
    began = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True)
    return time.perf_counter() - began


def measured(count: int, wall_s: float) -> dict[str, Any]:
    """What the shards' tables say of a run."""
    busy: dict[str, float] = defaultdict(float)
    spent: dict[str, float] = defaultdict(float)
    rows, keys = 0, set()
    names = load_spec(ROOT / "kernels" / "acoustic").key_columns
    folder = ROOT / "results" / "sweeps" / name_of(count) / "acoustic"
    for path in sorted(folder.glob("*.parquet")):
        table = pd.read_parquet(path)
        seconds = read_facts(path)["seconds"]
        rows += len(table)
        keys |= set(table[names].itertuples(index=False, name=None))
        busy[str(table["card"].iloc[0])] += seconds["total"]
        for name, value in seconds.items():
            spent[name] += value
    if len(keys) != rows:
        raise SystemExit(f"{rows} rows of {len(keys)} configurations: something was done twice")
    return {
        **{"cards": count, "shards": len(list(folder.glob("*.parquet"))), "rows": rows},
        **{"wall_s": wall_s, "busiest_card_s": max(busy.values()), "cards_seen": len(busy)},
        "rows_a_second_of_the_command": rows / wall_s,
        "rows_a_second_of_the_sweep": rows / max(busy.values()),
        "seconds": {name: round(value, 2) for name, value in spent.items()},
    }


def main() -> None:
    """Run every number of cards, the largest first, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--cards", type=int, nargs="+", default=[1, len(cards())])
    given = parser.parse_args()
    counts = sorted(set(given.cards), reverse=True)
    with tempfile.TemporaryDirectory() as scratch:
        config = Path(scratch) / "scaling.yaml"
        config.write_text(yaml.safe_dump(overlay(counts)))
        # What is the same for all: what a card is, and the kernels.
        profiles = [f"results/gpus/{name_of(count)}.json" for count in counts]
        bundle = f"results/build/acoustic/{cards()[0].arch}.cubins"
        snakemake(config, max(counts), *profiles, bundle)
        runs = []
        for count in counts:
            wall_s = snakemake(config, count, f"sweep_{name_of(count)}")
            runs.append(measured(count, wall_s))
            print(json.dumps(runs[-1]), flush=True)
    one = next((run for run in runs if run["cards"] == 1), None)
    for run in runs:
        for rate in ("rows_a_second_of_the_command", "rows_a_second_of_the_sweep"):
            if one:
                run[f"times_{rate}_of_one"] = run[rate] / one[rate]
                print(f"{run['cards']} cards, {rate}: {run[rate] / one[rate]:.2f} times one")
    card = cards()[0]
    write_json(
        given.output,
        {
            **{"problems": PROBLEMS, "runs": runs, "device": card.device_name},
            **{"driver": card.driver, "commit": commit(ROOT), "measured_at": now()},
            **{"host": f"{os.cpu_count()} cores", "versions": versions()},
        },
    )


if __name__ == "__main__":
    main()
