"""Problems that no configuration may run: what answers and exports say of them."""

import json
import shutil
from dataclasses import replace

import pytest
import yaml
from named_tables import write_lookup
from samples import STENCIL
from stencil import slice_of_card, sweep
from studies import by_size, entry, fit_product

from launchwise.cli.app import main
from launchwise.exporting.building import answer_table
from launchwise.exporting.files import write_answers
from launchwise.gpus.profile import write_profile
from launchwise.learning.answering import why_none
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final
from launchwise.learning.splits import Case
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

STUDY = "kernels/stencil/studies/stencil_block"
RULE = "n >= 8 * order"
INFEASIBLE = {"n": 60, "dtype": "float32", "order": 8}
FEASIBLE = {**INFEASIBLE, "n": 100}


@pytest.fixture(scope="module")
def fits_folder(tmp_path_factory):
    """A project with the product of a workload that rules problems out: :data:`RULE`."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(STENCIL, root / "kernels" / "stencil")
    path = root / "kernels" / "stencil" / "spec.yaml"
    path.write_text(f'{path.read_text()}\nconstraints: ["{RULE}"]\n')
    settings = {"workloads": ["kernels"], "gpus": {"card": {"source": "recorded"}}}
    settings["models"] = {"knn": {"kind": "knn", "title": "knn"}}
    (root / "config.yaml").write_text(yaml.safe_dump({"seed": 1, **settings}))
    splits = by_size([64], [128])
    asked = {"title": "t", "question": "q", "models": ["knn"], "splits": splits}
    (root / STUDY / "study.yaml").write_text(yaml.safe_dump(asked))
    domain = fits_domain(root)
    rows = sweep(domain.spec, (64, 100, 128), "card")
    recorded = root / "data" / "recorded" / "card"
    write_table(recorded / "stencil.parquet", rows, measurement_schema(domain.spec))
    write_profile(recorded / "profile.json", domain.profiles["card"])
    found = root / "results" / "final" / "stencil_block"
    sources = [recorded / "stencil.parquet"]
    fit_product(found, domain, {"card": rows}, entry("knn"), sources=sources, splits=splits)
    write_lookup(found, domain)
    return root


def fits_domain(root):
    """What may be asked of the product."""
    spec = load_spec(root / "kernels" / "stencil")
    return Domain(spec, {"card": slice_of_card("card")})


@pytest.fixture(scope="module")
def fits(fits_folder):
    return read_final(fits_folder / "results" / "final" / "stencil_block", fits_domain(fits_folder))


def test_a_problem_that_nothing_may_run_says_why(fits):
    domain = fits.recommender.domain
    assert why_none(domain, Case("card", FEASIBLE)) is None
    said = why_none(domain, Case("card", INFEASIBLE))
    assert said == "no configuration may run it: n >= 8 * order does not hold"


def test_recommend_refuses_such_a_problem_in_one_line(fits_folder, monkeypatch, capsys):
    monkeypatch.chdir(fits_folder)
    words = {name: f"{name}={value}" for name, value in FEASIBLE.items()}
    assert main(["recommend", "stencil_block", *words.values()]) == 0
    assert "on card" in capsys.readouterr().out
    for changed, said in (
        ({"n": "n=60"}, "n >= 8 * order does not hold"),
        ({"n": "n=0"}, "n=0: 0 is below the minimum"),
        ({"dtype": "dtype=float16"}, "dtype=float16: 'float16' is not among"),
    ):
        for options in ([], ["--json"], ["--macros"]):
            asked = ["recommend", "stencil_block", *{**words, **changed}.values(), *options]
            assert main(asked) == 2
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err.count("\n") == 1
            assert said in told.err


def test_exports_hold_no_answer_to_such_problems(fits, tmp_path):
    bare = replace(fits, fastest=fits.fastest.assign(n=8 * fits.fastest["order"] - 1))
    everything = answer_table(fits, "fits")
    assert everything.entries
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
    for result in json.loads((tmp_path / "t4" / "card.json").read_text())["results"]:
        assert result["configuration"]["n"] >= 8 * result["configuration"]["order"]
