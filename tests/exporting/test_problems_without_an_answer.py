"""Problems that no configuration may run: what answers and exports say of them."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from products import STUDY, stencil_project
from stencil import GPUS, stencil_domain

from launchwise.cli import recommending
from launchwise.cli.app import main
from launchwise.exporting.building import answer_table
from launchwise.exporting.exports import write_answers
from launchwise.learning.answering import why_none
from launchwise.learning.final import read_final
from launchwise.learning.splits import Case
from launchwise.workloads.spec import load_spec

GPU = GPUS[0]
RULE = "n >= 8 * order"
INFEASIBLE = {"n": 60, "dtype": "float32", "order": 8}
FEASIBLE = {**INFEASIBLE, "n": 100}


@pytest.fixture(scope="module")
def fits_folder(tmp_path_factory):
    """A project with the product of a workload that rules problems out: :data:`RULE`."""
    root = tmp_path_factory.mktemp("project")
    rules = f'"{RULE}", "100 * order <= gpu_max_threads_per_block"'
    stencil_project(root, "knn, nearest_size", f"\nconstraints: [{rules}]\n")
    return root


@pytest.fixture(scope="module")
def fits(fits_folder):
    spec = load_spec(fits_folder / "kernels" / "stencil")
    return read_final(fits_folder / "results" / "final" / STUDY, stencil_domain(spec))


def test_a_problem_that_nothing_may_run_says_why(fits):
    domain = fits.recommender.domain
    assert why_none(domain, Case(GPU, FEASIBLE)) is None
    said = why_none(domain, Case(GPU, INFEASIBLE))
    assert said == "no configuration may run it: n >= 8 * order does not hold"


def test_a_library_that_is_faster_is_named(fits_folder, monkeypatch, capsys):
    monkeypatch.chdir(fits_folder)
    path = fits_folder / "results" / "peers" / GPU / f"{STUDY}.parquet"
    path.parent.mkdir(parents=True)
    path.touch()
    listed = {**FEASIBLE, "n": 256}
    library = {"gpu": GPU, "peer": "cublas", "version": "13", "speedup": 0.5}
    rows = pd.DataFrame([{**listed, **library}])
    asked = ["recommend", STUDY, "--gpu", GPU, *(f"{key}={one}" for key, one in listed.items())]
    said = "cublas (13) is 2.00 times as fast"
    for high, n, named in ((0.6, 256, True), (1.1, 256, False), (0.6, 255, False)):
        told = rows.assign(speedup_high=high, n=n)
        monkeypatch.setattr(recommending, "read_table", lambda path, schema, told=told: told)
        assert main(asked) == 0
        assert (f"; but {said}" in capsys.readouterr().out) is named
    # The nearest with an answer speaks for its own kind of problems alone.
    between = [one.replace("n=256", "n=250") for one in asked]
    monkeypatch.setattr(recommending, "read_table", lambda *_: rows.assign(speedup_high=0.6))
    for kind, named in (("n > 1", True), ("n == 256", False)):
        (settings,) = fits_folder.rglob("study.yaml")
        text = settings.read_text(encoding="utf-8").partition("peer_kinds:")[0]
        settings.write_text(f"{text}peer_kinds: {{kind: {kind}}}\n", encoding="utf-8")
        assert main(between) == 0
        assert (f"; there {said} in pairs" in capsys.readouterr().out) is named
    path.unlink()


def test_recommend_refuses_such_a_problem_in_one_line(fits_folder, monkeypatch, capsys):
    monkeypatch.chdir(fits_folder)
    words = {name: f"{name}={value}" for name, value in FEASIBLE.items()}
    assert main(["recommend", STUDY, "--gpu", GPU, *words.values()]) == 0
    assert f"on {GPU}" in capsys.readouterr().out
    for changed, said in (
        ({"n": "n=60"}, "n >= 8 * order does not hold"),
        ({"n": "n=256", "order": "order=16"}, "no configuration may run it: 100 * order <= gpu"),
        ({"n": "n=0"}, "n=0: 0 is below the minimum"),
        ({"dtype": "dtype=float16"}, "dtype=float16: 'float16' is not among"),
    ):
        for options in ([], ["--json"], ["--macros"]):
            asked = ["recommend", STUDY, "--gpu", GPU, *{**words, **changed}.values(), *options]
            assert main(asked) == 2
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err.count("\n") == 1
            assert said in told.err


def test_exports_hold_no_answer_to_such_problems(fits, tmp_path):
    everything = answer_table(fits, "fits")
    assert everything.entries
    # Constraints of the problem, and of it on a GPU.
    for nothing in ({"n": 8 * fits.fastest["order"] - 1}, {"order": 16}):
        bare = replace(fits, fastest=fits.fastest.assign(**nothing))
        assert answer_table(bare, "fits").entries == ()
    write_answers(tmp_path, everything)
    plain = json.loads((tmp_path / "fits.json").read_text())
    assert plain["limits"]["conditions"] == [RULE]
    ranges = {one["parameter"]: one for one in plain["limits"]["ranges"]}
    assert set(ranges) == set(FEASIBLE)
    # Wisdom and T4 are looked up by problem: one that is not listed has no answer there.
    for line in (tmp_path / "fits.wisdom").read_text().splitlines()[1:]:
        n, order = json.loads(line)["problem_size"]
        assert n >= 8 * order
    for result in json.loads((tmp_path / "t4" / f"{GPU}.json").read_text())["results"]:
        assert result["configuration"]["n"] >= 8 * result["configuration"]["order"]
