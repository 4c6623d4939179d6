"""How large a report of the recorded sweeps is: all rows and pairs, answers between all sizes."""

import dataclasses
import functools
from pathlib import Path

import pytest

from launchwise.cli.studies import read_experiment
from launchwise.exporting.building import SUGGESTIONS
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.report.numbers import records, winners
from launchwise.tables import files as tables
from launchwise.tables.learning import (
    candidates_schema,
    evaluation_schema,
    removed_schema,
    training_schema,
)
from launchwise.tables.measurements import measurement_schema, pairs_schema
from launchwise.workloads.space import baseline, used
from launchwise.workloads.spec import load_spec
from tests.support.named_tables import named_table
from tests.support.report_pages import files_of
from tests.support.report_study import study

pytestmark = pytest.mark.workloads

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ("acoustic_kernels", "granger_time", "convolution_transfer")
"""Those whose pages and data are largest, one per kind of workload."""


def recorded():
    """Studies of the main job on their recorded sweeps, before any model."""
    experiment = read_experiment([ROOT / "config.yaml"], ROOT)
    toy = study()
    for name in STUDIES:
        asked = experiment.studies[name]
        folder = experiment.study_folders[name]
        spec = load_spec(folder.parents[1])
        recorded_in = {gpu: ROOT / experiment.recorded_in(gpu) for gpu in experiment.gpus_of(name)}
        schema = measurement_schema(spec)
        wanted = [column for column in schema.columns if column != "times_ms"]
        pairs = {
            gpu: tables.read_table(path, pairs_schema(spec))
            for gpu, at in recorded_in.items()
            if (path := at / f"{name}.pairs.parquet").is_file()
        }
        yield dataclasses.replace(
            toy,
            name=name,
            settings=asked.model_copy(update={"models": []}),
            entries={},
            models={},
            facts={"splits": {}, "models": {}},
            training=training_schema(spec).empty(),
            removed=removed_schema(spec).empty(),
            evaluation=evaluation_schema(spec).empty(),
            predictions=candidates_schema(spec).empty(),
            spec=spec,
            profiles={
                gpu: read_profile(at / "profile.json", gpu) for gpu, at in recorded_in.items()
            },
            sweeps={
                gpu: tables.read_table(at / f"{spec.workload}.parquet", schema, wanted)
                for gpu, at in recorded_in.items()
            },
            pairs=pairs,
            table=None,
            _known={},
        )


def answered(made):
    """The study with as many answers as its product gives."""
    found = []
    key = ["gpu", *made.problem_columns]
    fastest = made.measured.sort_values("time_ms").groupby(key).head(SUGGESTIONS)
    ranked = {case: records(rows)[1:] for case, rows in fastest.groupby(key)}
    for row in records(winners(made)):
        others = ranked[tuple(row[name] for name in key)]
        problem = {name: row[name] for name in made.problem_columns}
        numbers = {"time_ms": row["best_ms"], "gain": row["gain"], "improvement": row["gain"]}
        limits = [
            f"{name}_{end}{unit}"
            for name, unit in (("time", "_ms"), ("gain", ""), ("improvement", ""))
            for end in ("low", "high")
        ]
        of_time = dict.fromkeys(limits[:2], row["best_ms"])
        entry = {
            "gpu": row["gpu"],
            "problem": problem,
            "basis": "measured",
            "configuration": used(
                {name: row[name] for name in made.spec.tunable_columns}, made.spec
            ),
            "usual": used(baseline(made.spec), made.spec),
            "others": [
                {
                    "configuration": used(
                        {name: other[name] for name in made.spec.tunable_columns}, made.spec
                    ),
                    "time_ms": row["best_ms"],
                    **of_time,
                }
                for other in others
            ],
            **numbers,
            **dict.fromkeys(limits, row["best_ms"]),
        }
        found.append(entry)
        if isinstance(row[made.size], int):
            between = {**problem, made.size: row[made.size] + 1}
            found.append({**entry, "problem": between, "basis": "within"})
    table = named_table(found, Domain(made.spec, made.profiles), made.name)
    return dataclasses.replace(made, table=table, _known={})


@functools.cache
def sizes():
    """Bytes of every file of the folder."""
    studies = [answered(made) for made in recorded()]
    return {path: len(text.encode()) for path, text in files_of(*studies).items()}


@pytest.mark.slow
def test_the_folder_is_below_5_mb():
    # That of all studies is below 9 MB, and some 5 MB more with models and publications.
    assert sum(sizes().values()) < 4.9e6


@pytest.mark.slow
def test_the_front_page_is_below_100_kb():
    assert sizes()["index.html"] < 100e3


@pytest.mark.slow
def test_no_page_is_large():
    pages = {path: size for path, size in sizes().items() if path.endswith(".html")}
    assert len(pages) > 8
    assert {path: size for path, size in pages.items() if size > 700e3} == {}
