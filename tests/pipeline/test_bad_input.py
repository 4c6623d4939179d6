"""Bad input through the real command line: one line with file and key, and nothing written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import yaml
from overlays import nested
from samples import Project

from launchwise.tables import files as tables

SWEEP = "data/recorded/test/stencil.parquet"
TARGET = ("--cores", "1", "--quiet", "all", "--", "sweep_test")


NOTES = {".snakemake", "__pycache__", "logs", "launchwise.json"}


def files_of(folder: Path) -> set[str]:
    """Everything in the project except logs, compiled Python and notes on the run."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = {*folders} - NOTES
        found |= {os.path.relpath(os.path.join(place, name), folder) for name in {*names} - NOTES}
    return found


def line_of(project: Project, *arguments: str, **variables: str) -> str:
    """The one line that a command that must fail says; nothing may be written by it."""
    before = files_of(project.folder)
    done = project.snakemake(*arguments, **variables)
    assert done.returncode != 0, done.stdout + done.stderr
    assert files_of(project.folder) == before
    said = (done.stdout + done.stderr).splitlines()
    ours = [line for line in said if "launchwise: " in line]
    assert len(ours) == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return ours[0]


OVERLAYS: dict[str, tuple[str | dict[str, Any], str]] = {
    "unknown key below a name with dots": (
        nested("gpus/h200.sm72", {"source": "live", "sms": 72}),
        "o.yaml: gpus.h200.sm72.sms: unknown key 'sms'",
    ),
    "live GPU where there is none": (
        nested("gpus/local", {"source": "live"}),
        "o.yaml: gpus.local: source is live, but this machine has no NVIDIA GPU; give its arch",
    ),
    "recorded GPU that was not recorded": (
        nested("gpus/a100", {"source": "recorded"}),
        "o.yaml: gpus.a100: no folder 'data/recorded/a100'",
    ),
}


@pytest.mark.parametrize("what", OVERLAYS)
def test_a_bad_overlay_stops_before_any_rule(project: Project, what: str) -> None:
    overlay, said = OVERLAYS[what]
    text = overlay if isinstance(overlay, str) else yaml.safe_dump(overlay)
    (project.folder / "o.yaml").write_text(text)
    # No driver, whatever this machine has.
    line = line_of(
        project,
        "--configfile",
        "o.yaml",
        "--cores",
        "1",
        "--",
        "sweep_test",
        CUDA_VISIBLE_DEVICES="",
    )
    assert line.startswith(f"launchwise: {said}")


FOREST = {"kind": "forest", "title": "f"}
PARAMETERS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "an unknown name in config.yaml": (
        "config.yaml",
        "models/forest",
        {**FOREST, "parameters": {"max_deph": 3}},
        "models.forest.parameters.max_deph: unknown parameter 'max_deph', did you mean 'max_depth'",
    ),
    "out of range in a study": (
        "kernels/stencil/studies/stencil_block/study.yaml",
        "own_models/mine",
        {"kind": "mine", "title": "m", "parameters": {"depth": 0}},
        "own_models.mine.parameters.depth: must be an integer of at least 1, not 0",
    ),
}

OWN_KIND = """
from typing import Any, ClassVar

import a_library_that_no_dry_run_needs
from launchwise.learning.regression import TimeRegressor


class Mine(TimeRegressor):
    defaults: ClassVar[dict[str, Any]] = {**TimeRegressor.defaults, "depth": 3}
    allowed: ClassVar[dict[str, Any]] = {**TimeRegressor.allowed, "depth": [(1, None)]}
"""


@pytest.mark.parametrize("what", PARAMETERS)
def test_the_dry_run_tells_hyper_parameters_that_do_not_fit(project: Project, what: str) -> None:
    file, key, entry, said = PARAMETERS[what]
    kinds = project.folder / "kernels" / "stencil" / "recommenders"
    kinds.mkdir(exist_ok=True)
    (kinds / "mine.py").write_text(OWN_KIND)
    path = project.folder / file
    content = yaml.safe_load(path.read_text()) if path.is_file() else {}
    part, name = key.split("/")
    content.setdefault(part, {})[name] = entry
    path.write_text(yaml.safe_dump(content))
    overlays = ["--configfile", "o.yaml"] if file == "o.yaml" else []
    assert line_of(project, *overlays, "-n").startswith(f"launchwise: {file}: {said}")


CONFIGS: dict[str, tuple[Callable[[str], str], str]] = {
    "duplicate key": (lambda text: f"{text}\nseed: 3\n", "'seed' is given twice"),
    "no YAML": (lambda text: f"{text}\nseed: [\n", "not valid YAML"),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_broken_config_yaml_stops_before_any_rule(project: Project, what: str) -> None:
    change, said = CONFIGS[what]
    path = project.folder / "config.yaml"
    path.write_text(change(path.read_text()))
    line = line_of(project, "-n")
    assert line.startswith("launchwise: config.yaml: ")
    assert said in line


def test_the_command_line_itself_is_blamed(project: Project) -> None:
    line = line_of(project, "-n", "--config", "seed=-4")
    assert line == "launchwise: --config: seed: must be greater than or equal to 0 (got -4)"


def test_a_constraint_that_leaves_nothing_is_blamed_on_the_spec(project: Project) -> None:
    path = project.folder / "kernels" / "stencil" / "spec.yaml"
    path.write_text(f'{path.read_text()}\nconstraints: ["n + 0 * bx < 20"]\n')
    line = line_of(project, "-n")
    assert line.startswith(
        "launchwise: kernels/stencil/spec.yaml: "
        "no configuration satisfies the constraints for n=256"
    )


def test_a_study_that_does_not_exist_has_no_targets(project: Project) -> None:
    done = project.snakemake("-n", "--", "learn_nosuch")
    assert done.returncode != 0
    assert "learn_nosuch" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def rewrite(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Change the rows of a sweep and keep its metadata: as another program would."""
    arrow = pyarrow.parquet.read_table(path)
    metadata = arrow.schema.metadata[tables.METADATA_KEY]
    changed = pyarrow.Table.from_pandas(change(arrow.to_pandas()), preserve_index=False)
    changed = changed.replace_schema_metadata(
        {**changed.schema.metadata, tables.METADATA_KEY: metadata}
    )
    pyarrow.parquet.write_table(changed, path)


def no_time(table: pd.DataFrame) -> pd.DataFrame:
    """An ok row without a time."""
    table.loc[5, "time_ms"] = np.nan
    return table


SWEEPS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing column": (
        lambda path: rewrite(path, lambda table: table.drop(columns="status")),
        "status: is missing",
    ),
    "wrong unit": (
        lambda path: rewrite(path, lambda table: table.rename(columns={"time_ms": "time_us"})),
        "time_ms: is missing; time_us is not in ms",
    ),
    "duplicated rows": (
        lambda path: rewrite(path, lambda table: pd.concat([table, table.iloc[:3]])),
        "3 duplicated rows (rows with the same gpu, n, dtype, order, variant, row_padding,",
    ),
    "another GPU's rows": (
        lambda path: rewrite(path, lambda table: table.assign(gpu="other")),
        "gpu: is 'other', not 'test'",
    ),
    "no time": (lambda path: rewrite(path, no_time), "time_ms: must be given exactly where"),
    "truncated file": (
        lambda path: path.write_bytes(path.read_bytes()[:-1000]),
        "is not a complete Parquet file (truncated?)",
    ),
}


@pytest.mark.parametrize("what", SWEEPS)
def test_a_bad_recorded_sweep_is_refused(project: Project, what: str) -> None:
    change, said = SWEEPS[what]
    change(project.folder / SWEEP)
    line = line_of(project, *TARGET[:-1], "results/sweeps/test/stencil.parquet")
    assert line.startswith(f"E launchwise: {SWEEP}: {said}")


def test_a_bad_recorded_profile_is_refused(project: Project) -> None:
    path = project.folder / "data" / "recorded" / "test" / "profile.json"
    path.write_text(path.read_text().replace('"name": "test"', '"name": "h100"'))
    line = line_of(project, *TARGET[:-1], "results/gpus/test.json")
    assert line == ("E launchwise: data/recorded/test/profile.json: name: is 'h100', not 'test'")


def test_a_good_recorded_sweep_is_taken_as_it_is(project: Project) -> None:
    done = project.snakemake(*TARGET)
    assert done.returncode == 0, done.stdout + done.stderr
    taken = project.folder / "results" / "sweeps" / "test" / "stencil.parquet"
    assert taken.read_bytes() == (project.folder / SWEEP).read_bytes()


COMMITTEES: dict[str, tuple[str, str]] = {
    "no model of the study": ("knn, forest", "unknown model of stencil_block 'forest'"),
    "itself": ("mine", "'mine' is a committee itself"),
    "another committee": ("chosen, knn", "'chosen' is a committee itself"),
}


@pytest.mark.parametrize("what", COMMITTEES)
def test_a_committee_has_models_of_its_study_alone(project: Project, what: str) -> None:
    members, said = COMMITTEES[what]
    mine = {"kind": "committee", "title": "m", "parameters": {"members": members}}
    study = project.study()
    project.ask({**study, "models": [*study["models"], "mine"], "own_models": {"mine": mine}})
    file = "kernels/stencil/studies/stencil_block/study.yaml"
    key = "own_models.mine.parameters.members"
    assert line_of(project, "-n").startswith(f"launchwise: {file}: {key}: {said}")


def test_further_models_take_part_when_settings_say_so(project: Project) -> None:
    learnt = "results/learnt/stencil_block/forest.parquet"
    project.ask({**project.study(), "further_models": ["forest"]})
    for words, taking_part in (((), False), (("--config", "further_models=true"), True)):
        done = project.snakemake("-n", *words)
        assert done.returncode == 0, done.stderr
        assert (learnt in done.stdout + done.stderr) == taking_part
    project.ask({**project.study(), "further_models": ["forrest"]})
    line = line_of(project, "-n")
    assert "studies/stencil_block/study.yaml: further_models: unknown model 'forrest'" in line


def test_a_missing_nvcc_is_one_line(project: Project, tmp_path: Path) -> None:
    config = project.config()
    config["gpus"]["live"] = {"source": "live", "arch": "sm_90"}
    project.configure(config)
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "git", "uname", "which"):
        if found := shutil.which(name):
            os.symlink(found, tools / name)
    target = "results/build/stencil/sm_90.cubins"
    line = line_of(project, "--cores", "1", "--quiet", "all", "--", target, PATH=str(tools))
    assert line == "E launchwise: compile: nvcc: is not on the PATH: install the CUDA toolkit"


def test_a_bare_snakemake_makes_the_report(project: Project) -> None:
    done = project.snakemake("-n", "--quiet", "host")
    assert "results/report/index.html" in done.stdout + done.stderr
    assert "Nothing to be done" not in done.stdout + done.stderr


PUBLISHED = "kernels/stencil/studies/stencil_block/published"
TABLE = """card,size,time_s,improved_percent,source
A100,256,0.5,86.67,"a paper, table 1"
"""
SERIES = {
    "title": "a paper's times",
    "table": "times",
    "time": "time_s",
    "unit": "s",
    "columns": {"gpu": "card", "n": "size"},
    "names": {"gpu": {"A100": "a100"}},
    "values": {"dtype": "float32", "order": 8},
}


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            *("run_times.yaml", "unit: s", "unit: ms"),
            "series.0.unit: time_s of times.csv is in s, not ms",
        ),
        (
            *("times.csv", "86.67", "86.67 %"),
            "row 2.improved_percent: must be a number in percent",
        ),
    ],
)
def test_published_tables_are_checked_before_anything_runs(
    project: Project, file: str, old: str, new: str, said: str
) -> None:
    published = project.folder / PUBLISHED
    published.mkdir()
    (published / "times.csv").write_text(TABLE)
    (published / "run_times.yaml").write_text(yaml.safe_dump({"series": [SERIES]}))
    plan = project.snakemake("-n", *TARGET)
    assert plan.returncode == 0, plan.stdout + plan.stderr
    path = published / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert f"{PUBLISHED}/{file}: {said}" in line_of(project, *TARGET)
