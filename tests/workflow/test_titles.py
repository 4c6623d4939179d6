"""Titles and descriptions are no reason to rerun a stage; everything else of a spec is."""

import pytest
import yaml

from launchwise.experiment.study import Study
from launchwise.workflow.plan import spec_digest
from launchwise.workflow.studies import untitled_study
from tests.support.samples import ROOT

CASES = yaml.safe_load((ROOT / "tests/workflow/data/titles.yaml").read_text())
SPEC = CASES["spec"]


@pytest.mark.parametrize(("old", "new", "counts"), CASES["changes"])
def test_texts_of_a_spec_do_not_count_and_everything_else_does(tmp_path, old, new, counts):
    assert old in SPEC
    path, digests = tmp_path / "spec.yaml", set()
    for text in (SPEC, SPEC.replace(old, new)):
        path.write_text(text)
        digests.add(spec_digest(path))
    assert len(digests) == 1 + counts


def test_a_hyper_parameter_with_the_name_of_a_text_counts():
    mine = {"kind": "tree", "title": "Mine", "parameters": {"title": 3}}
    asked = {"workload": "w", "title": "One", "question": "Which?", "models": ["mine"]}
    splits = {"s": {"kind": "leave_one_gpu_out", "title": "GPUs"}}
    study = Study.model_validate({**asked, "own_models": {"mine": mine}, "splits": splits})
    assert untitled_study(study)["own_models"]["mine"]["parameters"] == {"title": 3}
