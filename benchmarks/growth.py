"""Core-seconds and memory of a run over many simulated GPUs, of one study.

    python benchmarks/growth.py benchmarks/results/growth.json --gpus 1 10 100

Each GPU has the recorded rows of every third configuration of the tile study on an H200, about ten
thousand, slower by a factor of its own; each value of each tunable costs it up to a tenth more or
less than the others. From nothing to the report; times are those that the jobs note of themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness.command_line import arguments, write_result
from harness.projects import (
    ROOT,
    copied_project,
    keep_studies,
    own_experiment,
    read_settings,
    snakemake,
    write_settings,
)

from launchwise.base.storage import read_json
from launchwise.gpus.profile import read_profile, write_profile
from launchwise.learning.features import Domain
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

STUDY, WORKLOAD, SOURCE = "acoustic_tile", "acoustic", "h200"
JOBS = (f"data/{WORKLOAD}", f"learn/{STUDY}", "report")
THIRD = 3
SLOWEST = 8.0
TASTE = 0.1
NOISE = 0.01  # spread of a single time, as a share of it


def rows_of_study(folder: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Recorded rows of every third candidate, its usual choice and baseline among them; facts."""
    recorded = ROOT / "data" / "recorded" / SOURCE
    spec = load_spec(folder / "kernels" / WORKLOAD)
    path = recorded / f"{WORKLOAD}.parquet"
    rows = read_table(path, measurement_schema(spec))
    candidates = own_experiment().studies[STUDY].candidates
    domain = Domain(spec, {SOURCE: read_profile(recorded / "profile.json")}, candidates)
    rows = rows[domain.is_candidate(rows)].reset_index(drop=True)
    number = rows.groupby(spec.tunable_columns, sort=True).ngroup()
    kept = (number % THIRD == 0) | domain.is_usual(rows) | domain.is_baseline(rows)
    return rows[kept].reset_index(drop=True), read_facts(path)


def slower(rows: pd.DataFrame, name: str, factor: float, seed: int) -> pd.DataFrame:
    """The rows on a GPU that is slower by a factor and has a taste of its own."""
    dice, spec = np.random.default_rng(seed), load_spec(ROOT / "kernels" / WORKLOAD)
    ratio = np.full(len(rows), factor)
    for column in spec.tunable_columns:
        codes, values = pd.factorize(rows[column])
        ratio *= np.exp(dice.uniform(-TASTE, TASTE, len(values)))[codes]
    ratio *= np.exp(NOISE * dice.standard_normal(len(rows)))
    times = pd.Series(
        [
            np.asarray(each) * one if each is not None else None
            for each, one in zip(rows["times_ms"], ratio, strict=True)
        ],
        dtype=object,
    )
    scaled = {column: rows[column] * ratio for column in ("time_ms", "spread_ms", "first_ms")}
    rates = {column: rows[column] / ratio for column in ("bandwidth_gbs", "flop_rate_gflops")}
    return rows.assign(gpu=name, times_ms=times, energy_j=np.nan, **scaled, **rates)


def prepare(folder: Path, gpus: int) -> int:
    """Leave a copy of the project the study, on so many GPUs; its rows."""
    keep_studies(folder, [STUDY])
    rows, facts = rows_of_study(folder)
    schema = measurement_schema(load_spec(folder / "kernels" / WORKLOAD))
    described = read_profile(ROOT / "data" / "recorded" / SOURCE / "profile.json")
    entries = {}
    for number, factor in enumerate(np.geomspace(1.0, SLOWEST, gpus)):
        name = f"gpu{number:03d}"
        own = folder / "data" / "recorded" / name
        own.mkdir(parents=True)
        write_table(own / f"{WORKLOAD}.parquet", slower(rows, name, factor, number), schema, facts)
        sms = max(1, round(described.sms / factor))
        own_card = {"device_name": f"Simulated {number}", "card": f"simulated{number}"}
        counts = {
            "sms": sms,
            "whole_card_sms": sms,
            "cores": sms * described.cores // described.sms,
        }
        profile = described.model_copy(update={"name": name, **own_card, **counts})
        write_profile(own / "profile.json", profile)
        entries[name] = {"source": "recorded"}
    settings = read_settings(folder)
    described_gpus = {
        name: entry for name, entry in settings["gpus"].items() if entry["source"] == "described"
    }
    settings["gpus"] = {**entries, **described_gpus}
    settings.pop("sweeps", None)
    if gpus == 1:
        # No other GPU to transfer from.
        settings["studies"][STUDY]["splits"] = {"transfer": None}
    write_settings(folder, settings)
    return len(rows) * gpus


def measured(gpus: int, cores: int) -> dict[str, Any]:
    """One row of the result."""
    with copied_project() as folder:
        rows = prepare(folder, gpus)
        ran = snakemake(folder, "--cores", str(cores), "--quiet", "all")
        work = {name: read_json(folder / "results" / "work" / f"{name}.json") for name in JOBS}
        return {
            "gpus": gpus,
            "rows": rows,
            "wall_s": round(ran.seconds, 1),
            "core_s": round(ran.core_s, 1),
            "memory_mb": round(ran.memory_mb),
            "jobs_core_s": {name.split("/")[0]: one["core_s"] for name, one in work.items()},
        }


def main() -> None:
    """Measure and write the results."""
    parser = arguments(__doc__)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--cores", type=int, default=2, help="cores of Snakemake")
    given = parser.parse_args()
    found = []
    for gpus in [1] if given.smallest else given.gpus:
        found.append(measured(gpus, given.cores))
        print(found[-1], flush=True)
    write_result(given.output, {"study": STUDY, "cores": given.cores, "rows": found})


if __name__ == "__main__":
    main()
