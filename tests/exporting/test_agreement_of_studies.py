"""Every form gives the same answer to any question, for products of every recorded study."""

import shutil

import numpy as np
import pytest
from agreeing import asked_about
from answer_forms import Answering
from drawn_questions import KINDS, drawn
from harness.ablated import material_of
from harness.projects import ROOT
from studies import fit_final

from launchwise.experiment.study import ModelEntry
from launchwise.tables.times import judged_times

SEED = 7
NAMES = sorted(
    each.parent.name
    for folder in ("kernels", "data/public/workloads")
    for each in ROOT.glob(f"{folder}/*/studies/*/study.yaml")
)


@pytest.mark.slow
@pytest.mark.workloads
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("name", NAMES)
def test_every_form_gives_the_same_answer(name, tmp_path):
    material = material_of(name)
    domain, sweeps, folder = material.domain(), material.sweeps, tmp_path / name
    times = {gpu: judged_times(rows, (), material.spec) for gpu, rows in sweeps.items()}
    entry = ModelEntry(kind="knn", title="kNN")
    fit_final(material.study, "knn", entry, domain, sweeps, times, [], SEED, folder)
    table = asked_about(folder, domain)
    questions = drawn(table, 120, np.random.default_rng([SEED, *name.encode()]))
    assert {one.kind for one in questions} == {*KINDS}
    assert Answering(table, tmp_path / "export").disagreements(questions) == []
