"""What few builds reach of the best speed: recorded problems, blind ones, a load of served models.

    python benchmarks/few_builds.py benchmarks/results/few_builds.json

The pipeline learns the study in a copy of the project. Blind problems are weighed by Zipf's law in
random orders; their measurements are withheld from the choice of builds and from the decision.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness.command_line import arguments, provenance
from harness.projects import ROOT, copy_project, keep_studies, snakemake

from launchwise.base.storage import write_json
from launchwise.cli.loads import Loaded
from launchwise.exporting.few import Weighed, times_of
from launchwise.learning.merit import geometric_mean
from launchwise.tables.rows import DEFAULT_ERROR, fastest_rows, indistinct, row_numbers

STUDY, SMALLEST = "expert_product_tile", "tridiagonal_streams"
LOAD = ROOT / "benchmarks" / "loads" / "served_models.csv"
SIZES, ORDERS, NOISY = (1, 2, 4, 8, 16), 20, 100


def reached(weighed: Weighed, device: int) -> list[dict[str, float]]:
    """Geometric mean over measured problems, each counted alike, of what sets of builds reach."""
    times = weighed.times[device]
    alike = replace(weighed, weights={device: 1 / times.best_ms / len(times.shapes)})
    steps = alike.steps(SIZES)
    return [
        {"builds": one.count, "fraction": geometric_mean(times.best_ms / times.of(one.places))}
        for one in steps
    ]


def blind(asked: Loaded, device: int, judged: pd.DataFrame) -> list[Any]:
    """Time with the best over that with sets of builds, of blind problems with Zipf's launches:
    ``decided`` as the judge chooses among them, ``by_set`` with the fastest of them."""
    table = asked.table
    kept = tuple(one for one in table.entries if not one.blind)
    hidden = replace(table, stored=table.stored.model_copy(update={"entries": kept}))
    shapes = [one.problem for one in table.entries if one.device == device and one.blind]
    truth = times_of(table, device, shapes, judged)
    dice, found = np.random.default_rng(0), []
    for _ in range(ORDERS):
        counts = 1 / (1 + dice.permutation(len(shapes)))
        launches = dict(zip(shapes, counts.tolist(), strict=True))
        known = {device: judged[~judged["blind"]]}
        weighed = Weighed.of(hidden, [device], launches, known)
        best = counts @ truth.best_ms
        for one in weighed.steps(SIZES):
            places = np.array(one.places)
            own = places[weighed.times[device].ms[:, places].argmin(axis=1)]
            decided = best / (counts @ truth.ms[np.arange(len(shapes)), own])
            by_set = best / (counts @ truth.of(one.places))
            found.append({"builds": one.count, "decided": decided, "by_set": by_set})
    means = pd.DataFrame(found).groupby("builds", as_index=False).mean()
    return means.assign(problems=len(shapes)).to_dict("records")


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
    with tempfile.TemporaryDirectory(prefix="launchwise-few-") as scratch:
        folder = Path(scratch) / "project"
        copy_project(folder)
        keep_studies(folder, [study])
        target = f"results/lookup/{study}.json"
        snakemake(folder, "--cores", "all", "--quiet", "all", "--", target)
        found: dict[str, Any] = {"study": study, "gpus": {}}
        with contextlib.chdir(folder):
            for gpu in ("h200", "h100"):
                asked = Loaded(study, None, [gpu], [Path("config.yaml")], "export")
                weighed, every = asked.weighed()
                ((device, judged),) = every.items()
                judged = judged[judged["time_ms"].notna()]
                found["gpus"][gpu] = {
                    "problems": len(weighed.times[device].shapes),
                    "measured": reached(weighed, device),
                    "blind": blind(asked, device, judged),
                    "noise": flips(judged, asked),
                }
            if not given.smallest:
                found["load"] = worth_of(study)
    write_json(given.output, {**made_by, **found})


def worth_of(study: str) -> dict[str, float]:
    """Core-seconds of the command from the load to the table of builds."""
    line = [sys.executable, "-m", "launchwise", "worth", study, "--load", str(LOAD)]
    before = os.times()
    subprocess.run([*line, "--gpu", "h200"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return {"core_s": sum(after[2:4]) - sum(before[2:4])}


if __name__ == "__main__":
    main()
