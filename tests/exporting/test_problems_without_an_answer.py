"""Problems that no configuration may run: what answers and exports say of them."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from samples import ROOT

from launchwise.cli.app import main
from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.files import write_answers
from launchwise.exporting.lookup import lookup_entries
from launchwise.exporting.table import answer_table
from launchwise.gpus.profile import read_profile
from launchwise.learning.answering import why_none
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, fit_final, read_final
from launchwise.learning.splits import Case
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.spec import load_spec

INFEASIBLE = {"county": 20, "countx": 8, "rows": 40, "cols": 20, "dtype": "float32"}

FEASIBLE = {**INFEASIBLE, "rows": 100, "cols": 10}


@pytest.fixture(scope="module")
def fits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the product of a workload that rules problems out: rows >= 2 * cols + 8."""
    root = tmp_path_factory.mktemp("project")
    recorded = ROOT / "data" / "recorded" / "h200"
    domain = fits_domain()
    rows = read_table(recorded / "granger.parquet", measurement_schema(domain.spec))
    rows = rows[rows["county"].isin(sorted(rows["county"].unique())[:2])]
    study = Study(
        title="t",
        question="q",
        workload="granger",
        models=["knn"],
        splits={"s": {"kind": "leave_one_gpu_out", "title": "t"}},
    )
    entry = ModelEntry(kind="knn", title="knn", parameters={})
    found = root / "results" / "final" / "granger_time"
    path = recorded / "granger.parquet"
    times = {"h200": judged_times(rows, None, domain.spec)}
    fit_final(study, "knn", entry, domain, {"h200": rows}, times, [path], 1, found)
    shutil.copy(ROOT / "config.yaml", root)
    for name in ("data", "kernels"):
        (root / name).symlink_to(ROOT / name)
    return root


def fits_domain() -> Domain:
    """What may be asked of the product."""
    recorded = ROOT / "data" / "recorded" / "h200"
    spec = load_spec(ROOT / "kernels" / "granger")
    return Domain(spec, {"h200": read_profile(recorded / "profile.json", "h200")})


@pytest.fixture(scope="module")
def fits(fits_folder: Path) -> Final:
    return read_final(fits_folder / "results" / "final" / "granger_time", fits_domain())


def test_a_problem_that_nothing_may_run_says_why(fits: Final) -> None:
    domain = fits.recommender.domain
    assert why_none(domain, Case("h200", FEASIBLE)) is None
    said = why_none(domain, Case("h200", INFEASIBLE))
    assert said == "no configuration may run it: rows >= 2 * cols + 8 does not hold"


def test_recommend_refuses_such_a_problem_in_one_line(
    fits_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(fits_folder)
    words = {name: f"{name}={value}" for name, value in FEASIBLE.items()}
    assert main(["recommend", "granger_time", *words.values()]) == 0
    assert "on h200" in capsys.readouterr().out
    for changed, said in (
        ({"rows": "rows=40", "cols": "cols=20"}, "rows >= 2 * cols + 8 does not hold"),
        ({"rows": "rows=0"}, "rows: 0 is below the minimum"),
        ({"dtype": "dtype=float16"}, "dtype: 'float16' is not among"),
    ):
        for options in ([], ["--json"], ["--macros"]):
            asked = ["recommend", "granger_time", *{**words, **changed}.values(), *options]
            assert main(asked) == 2
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err.count("\n") == 1
            assert said in told.err


def test_exports_hold_no_answer_to_such_problems(fits: Final, tmp_path: Path) -> None:
    bare = replace(fits, fastest=fits.fastest.assign(rows=2 * fits.fastest["cols"] + 7))
    everything = answer_table(fits, "fits")
    assert everything.entries
    assert answer_table(bare, "fits").entries == ()
    assert lookup_entries(bare) == []
    write_answers(tmp_path, everything)
    plain = json.loads((tmp_path / "fits.json").read_text())
    assert plain["limits"]["conditions"] == ["rows >= 2 * cols + 8"]
    ranges = {one["parameter"]: one for one in plain["limits"]["ranges"]}
    assert set(ranges) == set(FEASIBLE)
    # Wisdom and T4 are looked up by problem: one that is not listed has no answer there.
    for line in (tmp_path / "fits.wisdom").read_text().splitlines()[1:]:
        _, _, rows, cols = json.loads(line)["problem_size"]
        assert rows >= 2 * cols + 8
    for result in json.loads((tmp_path / "t4" / "h200.json").read_text())["results"]:
        assert result["configuration"]["rows"] >= 2 * result["configuration"]["cols"] + 8


def test_the_python_module_answers_such_problems_by_none(fits: Final, tmp_path: Path) -> None:
    write_answers(tmp_path, answer_table(fits, "fits"))
    module = runpy.run_path(str(tmp_path / "fits.py"))
    assert module["recommend"]("h200", **FEASIBLE)["variant"]
    for device in ("h200", "no such card"):
        assert module["recommend"](device, **INFEASIBLE) is None
        assert module["recommend"](device, **{**FEASIBLE, "dtype": "float16"}) is None
        assert module["recommend"](device, **{**FEASIBLE, "rows": 0}) is None


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_header_answers_such_problems_by_an_empty_optional(fits: Final, tmp_path: Path) -> None:
    write_answers(tmp_path, answer_table(fits, "fits"))
    (tmp_path / "main.cpp").write_text("""\
#include "fits.hpp"
namespace fits = launchwise::fits;
static_assert(fits::recommend("h200", {20, 8, 100, 10, "float32"}));
static_assert(!fits::recommend("h200", {20, 8, 40, 20, "float32"}));
static_assert(fits::can_run({20, 8, 48, 20, "float32"}));
static_assert(!fits::can_run({20, 8, 47, 20, "float32"}));
static_assert(!fits::recommend("no such card", {20, 8, 0, 10, "float32"}));
static_assert(!fits::recommend("no such card", {20, 8, 100, 10, "float16"}));
int main() {}
""")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = ["g++", *flags, "main.cpp", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
