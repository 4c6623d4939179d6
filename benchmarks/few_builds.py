"""What few builds reach of the best speed: at recorded problems, and for a load of served models.

    python benchmarks/few_builds.py benchmarks/results/few_builds.json

The pipeline learns the study in a copy of the project. 40 of the load's 200 problems were measured
on an H200 after the study learnt: every configuration.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness.command_line import arguments, provenance
from harness.projects import ROOT, copied_project, keep_studies, snakemake

from launchwise.base.storage import write_json
from launchwise.cli.loads import Loaded
from launchwise.exporting.few import LOST, Step, Weighed, chosen, measured_ms
from launchwise.learning.merit import geometric_mean
from launchwise.tables.rows import DEFAULT_ERROR, fastest_rows, indistinct, row_numbers

STUDY, SMALLEST = "expert_product_tile", "tridiagonal_streams"
LOAD = ROOT / "benchmarks" / "loads" / "served_models.csv"
MEASURED = LOAD.with_name("served_models.h200.parquet")  # 40 of its problems
SIZES, NOISY = (1, 2, 4, 8, 16, 32), 100


def reached(weighed: Weighed, device: int) -> list[dict[str, float]]:
    """Geometric mean over measured problems, each counted alike, of what sets of builds reach."""
    times = weighed.times[device]
    alike = replace(weighed, weights={device: 1 / times.best_ms / len(times.shapes)})
    steps = alike.steps(SIZES)
    return [
        {"builds": one.count, "fraction": geometric_mean(times.best_ms / times.of(one.places))}
        for one in steps
    ]


def of_set(
    step: Step, expected: np.ndarray, ms: np.ndarray, best_ms: np.ndarray, counts: np.ndarray
) -> dict[str, float]:
    """Time with the best over that with a set of builds: ``decided`` as the judge chooses among
    them, ``by_set`` with the fastest of them. Shapes: (problems, configurations), (problems,)."""
    places, rows = np.array(step.places), np.arange(len(counts))
    decided = ms[rows, places[expected[:, places].argmin(axis=1)]]
    by_set, best = ms[:, places].min(axis=1), counts @ best_ms
    return {
        "builds": step.count,
        "decided": best / (counts @ decided),
        "by_set": best / (counts @ by_set),
    }


def of_load(study: str) -> list[dict[str, Any]]:
    """What sets for the load reach at those of its problems that were measured since, beside what
    was expected of the whole; ``timed``: 8 of these builds, chosen once all were timed there."""
    asked = Loaded(study, str(LOAD), ["h200"], [Path("config.yaml")], "export")
    weighed = asked.weighed()
    ((_, expected),) = weighed.times.items()
    rows, names = pd.read_parquet(MEASURED), asked.table.parameters
    best = rows.groupby(list(names))["time_ms"].min().to_dict()
    own = [place for place, shape in enumerate(expected.shapes) if shape in best]
    best_ms = np.array([best[expected.shapes[place]] for place in own])
    counts = np.array([asked.counts()[expected.shapes[place]] for place in own], dtype=float)
    known = measured_ms(asked.table, rows)
    ms = np.full((len(own), len(asked.table.configurations)), np.inf)
    for row, place in enumerate(own):
        of_problem = known[expected.shapes[place]]
        ms[row, list(of_problem)] = list(of_problem.values())
    found = []
    for one in weighed.steps(SIZES):
        costs = counts[:, None] * np.minimum(ms[:, list(one.places)], LOST * best_ms[:, None])
        (few,) = chosen(costs, [min(8, len(one.places))])
        said = {"problems": len(own), "expected": one.reached, "interval": one.interval}
        timed = float(counts @ best_ms / costs[:, few].min(axis=1).sum())
        reached = of_set(one, expected.ms[own], ms, best_ms, counts)
        found.append({**said, **reached, "timed": timed})
    return found


def flips(judged: pd.DataFrame, asked: Loaded) -> dict[str, int]:
    """Answers that change when every time moves by its own error, and those of them whose old
    configuration still cannot be told from the fastest."""
    rows, columns = judged[~judged["blind"]].reset_index(drop=True), asked.spec.problem_columns
    groups, dice = row_numbers(rows, columns), np.random.default_rng(0)
    before = set(fastest_rows(rows, columns, asked.spec).index)
    changed, within = 0, 0
    for _ in range(NOISY):
        moved = np.exp(dice.normal(size=len(rows)) * rows["error"].fillna(DEFAULT_ERROR))
        again = rows.assign(time_ms=rows["time_ms"] * moved)
        lost = before - set(fastest_rows(again, columns, asked.spec).index)
        near = indistinct(again, groups)
        changed, within = changed + len(lost), within + int(near[sorted(lost)].sum())
    return {"answers": NOISY * len(before), "changed": changed, "within_error": within}


def main() -> None:
    """Learn the study, then count."""
    given, made_by = arguments(__doc__).parse_args(), provenance()
    study = SMALLEST if given.smallest else STUDY
    with copied_project() as folder:
        keep_studies(folder, [study])
        target = f"results/lookup/{study}.json"
        snakemake(folder, "--cores", "all", "--quiet", "all", "--", target)
        found: dict[str, Any] = {"study": study, "gpus": {}}
        with contextlib.chdir(folder):
            for gpu in ("h200", "h100"):
                asked = Loaded(study, None, [gpu], [Path("config.yaml")], "export")
                weighed, judged = asked.weighed(), asked.judged(gpu)
                assert judged is not None
                ((device, _),) = weighed.times.items()
                judged = judged[judged["time_ms"].notna()]
                found["gpus"][gpu] = {
                    "problems": len(weighed.times[device].shapes),
                    "measured": reached(weighed, device),
                    "noise": flips(judged, asked),
                }
            if not given.smallest:
                found["load"] = {**core_seconds(study), "sets": of_load(study)}
    write_json(given.output, {**made_by, **found})


def core_seconds(study: str) -> dict[str, float]:
    """Core-seconds of the command from the load to the table of builds."""
    line = [sys.executable, "-m", "launchwise", "worth", study, "--load", str(LOAD)]
    before = os.times()
    subprocess.run([*line, "--gpu", "h200"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return {"core_s": sum(after[2:4]) - sum(before[2:4])}


if __name__ == "__main__":
    main()
