"""Usual configurations: rules of ``usual.yaml``, and what a recommendation has to beat."""

import shutil

import numpy as np
import pandas as pd
import pytest
from samples import STENCIL, profile
from spaces import made

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.base.typed import read_yaml
from launchwise.experiment.loading import load_experiment
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.learning.truth import Truth
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import load_spec
from launchwise.workloads.usual import Usual, usual_configuration

FILES = read_yaml(ROOT / "tests" / "workloads" / "data" / "files.yaml")

SPEC = made(
    {"width": [1, 2, 4, 8], "height": [1, 2, 4]},
    {"plain": ([], []), "tiled": (["width", "height"], [])},
)
RULES = [
    {"when": "m >= 100", "reason": "large", "configuration": {"variant": "tiled", "width": 8}},
    {
        "when": "m >= 10",
        "reason": "by the one before",
        "configuration": {"variant": "tiled", "width": "m // 10", "height": "width // 2"},
    },
]


def rules():
    return [Usual.model_validate(each) for each in RULES]


@pytest.mark.parametrize(("m", "found"), [(100, ("tiled", 8, 1)), (40, ("tiled", 4, 2)), (9, None)])
def test_the_first_rule_that_holds_is_taken(m, found):
    usual = usual_configuration(rules(), {"m": m}, SPEC)
    assert (usual and tuple(usual.values())) == found


def test_a_value_that_the_tunable_lacks_is_an_error():
    with pytest.raises(ValueError, match=r"usual: width = 3 is not a value of this tunable"):
        usual_configuration(rules(), {"m": 30}, SPEC)


def test_what_is_usual_is_the_default_and_the_baseline_where_no_rule_holds():
    domain = Domain(SPEC, {"gpu": profile("gpu")}, usual=RULES)
    cases = [Case("gpu", {"m": m}) for m in (9, 40)]
    first = BASELINES["usual"](domain).fit(pd.DataFrame()).rank(domain.choices(cases))
    first = first[first["rank"] == 1]
    assert first["variant"].tolist() == ["plain", "tiled"]
    assert first[["width", "height"]].to_numpy().tolist() == [[1, 1], [4, 2]]


@pytest.mark.parametrize(("usual_ms", "default_ms"), [(2.0, 2.0), (None, 3.0)])
def test_gains_are_over_what_is_usual_and_over_the_baseline_where_that_failed(usual_ms, default_ms):
    domain = Domain(SPEC, {"gpu": profile("gpu")}, usual=RULES)
    rows = domain.choices([Case("gpu", {"m": 100})]).assign(time_ms=1.0, status="ok")
    rows["times_ms"] = [[1.0]] * len(rows)
    usual = domain.is_usual(rows)
    rows.loc[domain.is_baseline(rows), "time_ms"] = 3.0
    rows.loc[usual, "time_ms"] = np.nan if usual_ms is None else usual_ms
    rows.loc[usual, "status"] = "failed" if usual_ms is None else "ok"
    assert usual.sum() == 1
    beside = Truth({"gpu": rows}, domain).beside(rows.head(1)[["gpu", "m", *SPEC.tunable_columns]])
    assert beside["usual_ms"].tolist() == [default_ms]


@pytest.mark.parametrize(("text", "said"), FILES["usual"])
def test_a_broken_file_is_one_line_with_the_key(tmp_path, text, said):
    folder = tmp_path / "stencil"
    shutil.copytree(STENCIL, folder)
    path = folder / "usual.yaml"
    path.write_text(f"choices: {text}\n")
    with pytest.raises(UserError) as caught:
        load_spec(folder)
    assert str(caught.value).startswith(f"{path}: choices")
    assert said in str(caught.value)


STUDIES = sorted(
    path.parent.name
    for path in ROOT.glob("kernels/*/studies/*/study.yaml")
    if (path.parents[2] / "usual.yaml").is_file()
)


@pytest.fixture(scope="module")
def experiment():
    """The project's own settings."""
    return load_experiment(read_yaml(ROOT / "config.yaml"), [ROOT / "config.yaml"], ROOT)


def test_every_workload_with_kernels_says_what_is_usual():
    assert [
        path
        for path in ROOT.glob("kernels/*/spec.yaml")
        if not path.with_name("usual.yaml").is_file()
    ] == []


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_usual_was_measured_for_every_problem_of_a_study(experiment, name):
    study = experiment.studies[name]
    spec = experiment.specs[study.workload]
    own = [each.model_dump() for each in study.usual or []]
    asked = {}
    for gpu in experiment.gpus_of(name):
        path = ROOT / "data/recorded" / gpu / f"{study.workload}.parquet"
        asked[gpu] = read_table(path, measurement_schema(spec), [*spec.key_columns, "status"])
    rows = pd.concat(asked.values(), ignore_index=True)
    domain = Domain(
        spec, {gpu: profile(gpu) for gpu in asked}, study.candidates, study.constraints, usual=own
    )
    from launchwise.learning.splits import asked_about, case_numbers

    rows = rows[asked_about(study, rows) & rows["status"].isin(MEASURED)].reset_index(drop=True)
    usual = rows[domain.is_usual(rows)]
    assert domain.is_candidate(usual).all()
    whole, found = (case_numbers(each, spec).max() + 1 for each in (rows, usual))
    assert found == whole
