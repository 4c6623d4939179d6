"""What few builds reach of the best speed: at recorded problems, and for a load of served models.

    python benchmarks/few_builds.py benchmarks/results/few_builds.json

The pipeline learns the study in a copy of the project, without the load and with it. 40 of the
load's 200 problems were measured on an H200 after the study learnt: every configuration.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness.ablated import answers_by, material_of
from harness.command_line import arguments, provenance
from harness.projects import (
    ROOT,
    copied_project,
    keep_studies,
    read_settings,
    snakemake,
    write_settings,
)

from launchwise.base.storage import write_json
from launchwise.cli.loads import Loaded
from launchwise.cli.words import read_experiment
from launchwise.comparing.matching import Rule, matched
from launchwise.comparing.sweep_comparison import VERDICTS, best_answers
from launchwise.exporting.few import Weighed, chosen
from launchwise.exporting.few_times import LOST, measured_ms, measured_rows
from launchwise.learning.merit import geometric_mean
from launchwise.learning.product import learnt_from
from launchwise.learning.splits import cases_in
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import fastest_rows, row_numbers
from launchwise.workloads.spec import Spec

STUDY, SMALLEST = "expert_product_tile", "tridiagonal_streams"
LOAD = ROOT / "benchmarks" / "loads" / "served_models.csv"
MEASURED = LOAD.with_name("served_models.h200.parquet")  # 40 of its problems
TUTORIAL = ROOT / "data" / "public" / "shipped" / "triton_tutorial_products.csv"
SIZES = (1, 2, 4, 8, 16, 32)
SLOWER, EVERY = {1.0: 100, 1.5: 10, 3.0: 10}, 10  # Factors to runs, and of which problems' answers


def reached(weighed: Weighed, device: int) -> list[dict[str, float]]:
    """Geometric mean over measured problems, each counted alike, of what sets of builds reach."""
    times = weighed.times[device]
    alike = replace(weighed, weights={device: 1 / times.best_ms / len(times.shapes)})
    steps = alike.steps(SIZES)
    return [
        {"builds": one.count, "fraction": geometric_mean(times.best_ms / times.of(one.places))}
        for one in steps
    ]


def loaded(study: str, load: str | None, gpu: str) -> Loaded:
    """A load on a GPU of the project in this folder."""
    experiment = read_experiment([Path("config.yaml")], Path.cwd(), study)
    return Loaded(study, load, [gpu], experiment, "export")


def of_load(study: str) -> tuple[Loaded, list[dict[str, Any]]]:
    """What sets for the load reach at those of its problems that were measured since, beside what
    was expected of the whole: ``decided`` as the judge chooses among the builds, ``by_set`` with
    the fastest of them, ``timed`` with 8 of them, chosen once all were timed there; ``known``: the
    best set of so many, by what all configurations take there."""
    asked = loaded(study, str(LOAD), "h200")
    weighed = asked.weighed()
    rows, names = pd.read_parquet(MEASURED), list(asked.table.parameters)
    ((device, expected),) = weighed.times.items()
    known = measured_ms(asked.table, measured_rows(asked.table, device, rows))
    best = rows.groupby(names)["time_ms"].min()
    own = [place for place, shape in enumerate(expected.shapes) if shape in known]
    shapes = [expected.shapes[place] for place in own]
    counts = np.array([asked.counts()[shape] for shape in shapes], dtype=float)
    ms = np.full((len(own), len(asked.table.configurations)), np.inf)
    for row, shape in enumerate(shapes):
        ms[row, list(known[shape])] = list(known[shape].values())
    # The best of all that were measured, of configurations that the table lacks, too.
    best_ms, found = best[shapes].to_numpy(), list[dict[str, Any]]()
    costs = counts[:, None] * np.minimum(ms, LOST * best_ms[:, None])
    for one, best_set in zip(weighed.steps(SIZES), chosen(costs, SIZES), strict=True):
        places = np.array(one.places)
        (few,) = chosen(costs[:, places], [min(8, len(places))])
        decided = places[expected.ms[own][:, places].argmin(axis=1)]
        spent = {
            "decided": counts @ ms[np.arange(len(own)), decided],
            "by_set": counts @ ms[:, places].min(axis=1),
            "timed": costs[:, places[list(few)]].min(axis=1).sum(),
            "known": counts @ ms[:, best_set].min(axis=1),
        }
        said = {"problems": len(own), "expected": one.reached, "interval": one.interval}
        fractions = {name: float(counts @ best_ms / each) for name, each in spent.items()}
        found.append({**said, "builds": one.count, **fractions})
    return asked, found


def beside(study: str, names: Sequence[str], counts: Mapping[Any, int]) -> dict[str, Any]:
    """What others reach at the load's measured problems, weighed by launches: ``tree``, that of the
    fastest measured configuration of each problem, learnt from the study's rows, and its builds;
    ``library``, what vLLM launches where no file of its names the layer; ``list``, the fastest of
    the configurations of Triton's tutorial, timed at each problem, and how many were measured."""
    material, rows = material_of(study), pd.read_parquet(MEASURED)
    domain, spec = material.domain(), material.spec
    rows = rows[rows["status"] == "ok"].assign(gpu="h200")
    choices = domain.keeping_features(domain.choices(cases_in(rows, spec)))
    learnt = learnt_from(material.study, domain, material.sweeps)
    chosen_rows = answers_by("best_tree", domain, learnt.training, choices, 0)
    builds = [name for name, one in spec.tunables.items() if one.kind == "build"]
    tutorial = pd.read_csv(TUTORIAL).assign(variant="triton")
    best_ms = rows.groupby(list(names))["time_ms"].min()

    def reached(some: pd.DataFrame, on: Sequence[Any]) -> dict[str, float]:
        own_ms = rows.merge(some, on=list(on)).groupby(list(names))["time_ms"].min()
        launches = np.array([counts[key] for key in own_ms.index])
        fraction = (launches @ best_ms[own_ms.index]) / (launches @ own_ms)
        return {"problems": len(own_ms), "fraction": float(fraction)}

    usual = choices.loc[domain.is_usual(choices), spec.key_columns]
    shared = [name for name in tutorial if name in rows]
    return {
        "tree": {
            **reached(chosen_rows, spec.key_columns),
            "builds": len(chosen_rows[["variant", *builds]].drop_duplicates()),
        },
        "library": reached(usual, spec.key_columns),
        "list": {
            **reached(tutorial, shared),
            "listed": len(tutorial),
            "measured": len(rows[shared].merge(tutorial).drop_duplicates()),
        },
    }


def flips(sweep: pd.DataFrame, judged: pd.DataFrame, spec: Spec) -> dict[str, Any]:
    """Verdicts of ``launchwise compare`` on a sweep and the same with every time moved by its own
    error: by chance alone, and where the answers of a tenth of the problems are slower, too."""
    swept = judged[~judged["blind"] & judged["time_ms"].notna()]
    rows = sweep.loc[swept["sweep_row"]].reset_index(drop=True)
    problems, errors = row_numbers(rows, spec.problem_columns), swept["error"].to_numpy()
    dice, said = np.random.default_rng(0), dict[str, Any]()
    fastest = fastest_rows(rows[["time_ms", *spec.key_columns]], spec.problem_columns, spec).index
    moved = fastest[problems[fastest] % EVERY == 0]
    marked = rows.loc[moved, spec.problem_columns]
    for slower, runs in SLOWER.items():
        counts = Counter[str]()
        for _ in range(runs):
            factors = np.exp(dice.normal(size=len(rows)) * errors)
            factors[moved] *= slower
            times = [own * factor for own, factor in zip(rows["times_ms"], factors, strict=True)]
            new = rows.assign(time_ms=rows["time_ms"] * factors, times_ms=times, measured_at="now")
            both = matched(rows, new, spec, Rule())
            answers = best_answers(both, spec, Rule())
            if slower > 1:
                answers = answers.merge(marked)
            counts.update(answers["verdict"].tolist())
        said[f"{slower:g}"] = {"answers": counts.total(), **dict.fromkeys(VERDICTS, 0), **counts}
    return said


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
                asked = loaded(study, None, gpu)
                weighed, judged = asked.weighed(), asked.judged(gpu)
                assert judged is not None
                ((device, _),) = weighed.times.items()
                path = Path("results", "sweeps", gpu, f"{asked.spec.workload}.parquet")
                sweep = read_table(path, measurement_schema(asked.spec))
                found["gpus"][gpu] = {
                    "problems": len(weighed.times[device].shapes),
                    "measured": reached(weighed, device),
                    "noise": flips(sweep, judged, asked.spec),
                }
            if not given.smallest:
                _, unnamed = of_load(study)
                settings = read_settings(folder)
                settings["studies"][study] = {"load": str(LOAD)}
                write_settings(folder, settings)
                snakemake(folder, "--cores", "all", "--quiet", "all", "--", target)
                load, sets = of_load(study)
                for own, before in zip(sets, unnamed, strict=True):
                    own["unnamed"] = before["decided"]
                others = beside(study, load.table.parameters, load.counts())
                core_s = {"core_s": core_seconds(study, load.spec.workload)}
                found["load"] = {**core_s, "sets": sets, "beside": others}
    write_json(given.output, {**made_by, **found})


def core_seconds(study: str, workload: str) -> dict[str, float]:
    """Least core-seconds of three runs of the commands from the log to the table of builds."""
    load = ["load", str(LOAD), "--as", "served", "--workload", workload]
    export = ["export", study, "--at-most", "8", "--load", "served", "--gpu", "h200"]
    found = dict.fromkeys(("load", "export"), np.inf)
    for line in (load, export) * 3:
        before = os.times()
        command = [sys.executable, "-m", "launchwise", *line]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = os.times()
        found[line[0]] = min(found[line[0]], sum(after[2:4]) - sum(before[2:4]))
    return found


if __name__ == "__main__":
    main()
