"""Bad input through the real command line: one line with file and key, and nothing written."""

import os

import pyarrow.parquet
import pytest
import yaml
from overlays import nested

from launchwise.base.errors import UserError
from launchwise.experiment.loading import load_experiment
from launchwise.tables import files as tables
from launchwise.workflow.checks import check_models

SWEEP = "data/recorded/test/stencil.parquet"
TARGET = ("--cores", "1", "--quiet", "all", "--", "sweep_test")


NOTES = {".snakemake", "__pycache__", "logs", "launchwise.json"}


def files_of(folder):
    """Everything in the project except logs, compiled Python and notes on the run."""
    found = set()
    for place, folders, names in os.walk(folder):
        folders[:] = {*folders} - NOTES
        found |= {os.path.relpath(os.path.join(place, name), folder) for name in {*names} - NOTES}
    return found


def line_of(project, *arguments, **variables):
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


def test_a_bad_overlay_stops_before_any_rule(project):
    wrong = nested("gpus/h200.sm72", {"source": "live", "sms": 72})
    (project.folder / "o.yaml").write_text(yaml.safe_dump(wrong))
    line = line_of(project, "--configfile", "o.yaml", "--cores", "1", "--", "sweep_test")
    assert line.startswith("launchwise: o.yaml: gpus.h200.sm72.sms: unknown key 'sms'")


FILE = "kernels/stencil/studies/stencil_block/study.yaml"

OWN_KIND = """
from pydantic import Field
from launchwise.learning.regression import TimeRegressor


class Mine(TimeRegressor):
    class Parameters(TimeRegressor.Parameters):
        depth: int = Field(3, ge=1)
"""


def test_the_dry_run_tells_hyper_parameters_that_do_not_fit(project):
    kinds = project.folder / "kernels" / "stencil" / "recommenders"
    kinds.mkdir(exist_ok=True)
    (kinds / "mine.py").write_text(OWN_KIND)
    entry = {"kind": "mine", "title": "m", "parameters": {"depth": 0}}
    project.ask({**project.study(), "own_models": {"mine": entry}})
    said = "own_models.mine.parameters.depth: must be greater than or equal to 1 (got 0)"
    assert line_of(project, "-n").startswith(f"launchwise: {FILE}: {said}")


def test_the_command_line_itself_is_blamed(project):
    line = line_of(project, "-n", "--config", "seed=-4")
    assert line == "launchwise: --config: seed: must be greater than or equal to 0 (got -4)"


def test_a_study_that_does_not_exist_has_no_targets(project):
    done = project.snakemake("-n", "--", "learn_nosuch")
    assert done.returncode != 0
    assert "learn_nosuch" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def rewrite(path, change):
    """Change the rows of a sweep and keep its metadata: as another program would."""
    arrow = pyarrow.parquet.read_table(path)
    metadata = arrow.schema.metadata[tables.METADATA_KEY]
    changed = pyarrow.Table.from_pandas(change(arrow.to_pandas()), preserve_index=False)
    changed = changed.replace_schema_metadata(
        {**changed.schema.metadata, tables.METADATA_KEY: metadata}
    )
    pyarrow.parquet.write_table(changed, path)


def test_a_bad_recorded_sweep_is_refused(project):
    rewrite(project.folder / SWEEP, lambda rows: rows.assign(gpu="other"))
    line = line_of(project, *TARGET[:-1], "results/sweeps/test/stencil.parquet")
    assert line.startswith(f"E launchwise: {SWEEP}: gpu: is 'other', not 'test'")


def test_a_bad_recorded_profile_is_refused(project):
    path = project.folder / "data" / "recorded" / "test" / "profile.json"
    path.write_text(path.read_text().replace('"name": "test"', '"name": "h100"'))
    line = line_of(project, *TARGET[:-1], "results/gpus/test.json")
    assert line == ("E launchwise: data/recorded/test/profile.json: name: is 'h100', not 'test'")


COMMITTEES = {
    "no model of the study": ("knn, forest", "unknown model of stencil_block 'forest'"),
    "itself": ("mine", "'mine' is a committee itself"),
    "another committee": ("chosen, knn", "'chosen' is a committee itself"),
}


def models_of(project, **settings):
    """Models that take part in the only study; all its models are checked."""
    path = project.folder / "config.yaml"
    found = load_experiment({**project.config(), **settings}, [path], project.folder)
    check_models(found)
    return found.studies["stencil_block"].models


@pytest.mark.parametrize("what", COMMITTEES)
def test_a_committee_has_models_of_its_study_alone(project, what, monkeypatch):
    monkeypatch.chdir(project.folder)
    members, said = COMMITTEES[what]
    mine = {"kind": "committee", "title": "m", "parameters": {"members": members}}
    study = project.study()
    project.ask({**study, "models": [*study["models"], "mine"], "own_models": {"mine": mine}})
    with pytest.raises(UserError) as caught:
        models_of(project)
    key = "own_models.mine.parameters.members"
    assert f"{FILE}: {key}: {said}" in str(caught.value)


def test_further_models_take_part_when_settings_say_so(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    project.ask({**project.study(), "further_models": ["forest"]})
    assert "forest" not in models_of(project)
    assert "forest" in models_of(project, further_models=True)
    planned = project.snakemake("-n", "--config", "further_models=true")
    assert "results/learnt/stencil_block/forest.parquet" in planned.stdout, planned.stderr
    project.ask({**project.study(), "further_models": ["forrest"]})
    with pytest.raises(UserError, match=f"{FILE}: further_models: unknown model 'forrest'"):
        models_of(project)


def test_published_tables_are_checked_before_anything_runs(project):
    path = project.folder / "kernels/stencil/studies/stencil_block/published/times.csv"
    path.parent.mkdir()
    path.write_text('size,improved_percent,source\n256,86.67 %,"a paper, table 1"\n')
    said = f"{path.relative_to(project.folder)}: row 2.improved_percent: must be a number in perc"
    assert said in line_of(project, *TARGET)
