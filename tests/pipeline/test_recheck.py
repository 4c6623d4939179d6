"""``launchwise recheck`` on made-up cards whose kernels run on the CPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from fake_cluster import ClusterProject
from forks import forked, run_launchwise

STUDY = "stencil_block"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> ClusterProject:
    """A project with the product of a study and pairs of the GPU h200."""
    folder = tmp_path_factory.mktemp("recheck")
    project = ClusterProject.make(folder, kernel_cache, haste=True)
    project.keep_gpu("h200")
    config = project.project.config()
    config["confirm"] = {"answers": False}
    space = config["sweeps"]["stencil"]["problems"][0]["only"]
    project.project.ask({**project.project.study(), "candidates": space})
    project.project.configure(config)
    set_card(project)
    with project.start("--cores", "2", f"final_{STUDY}") as run:
        assert run.wait(300) == 0, run.said()[-3000:]
    return project


def set_card(project: ClusterProject, **changed: Any) -> None:
    """One h200 of its own in the machine: tests beside this one hold cards."""
    cards = json.loads(project.cards.read_text())
    cards["h200"] = [{**cards["h200"][0], "uuid": "GPU-h200-recheck", "slowed": {}, **changed}]
    project.cards.write_text(json.dumps(cards))


def recheck(
    project: ClusterProject, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command in the project's folder."""
    return forked(
        run_launchwise,
        ["recheck", *arguments],
        project.project.folder,
        {**project.environment, **variables},
        seconds=200,
    )


def verdicts(done: subprocess.CompletedProcess[str]) -> pd.DataFrame:
    (study,) = json.loads(done.stdout)
    return pd.DataFrame(study["problems"])


def results(project: ClusterProject) -> dict[str, bytes]:
    """Everything that a recheck must leave alone."""
    folders = ("pairs", "sweeps", "final", "contests", "gpus")
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in (project.results / folder).rglob("*")
        if path.is_file()
    }


def written(project: ClusterProject) -> pd.DataFrame:
    """The verdicts in their file."""
    return pd.read_parquet(project.results / "recheck" / "h200" / f"{STUDY}.parquet")


ASKED = ("--gpu", "h200", "--cores", "2")


@pytest.fixture(scope="module")
def unchanged(project: ClusterProject) -> pd.DataFrame:
    """Verdicts on the card that was measured; nothing else is changed by asking."""
    before = results(project)
    done = recheck(project, STUDY, *ASKED, "--json")
    assert done.returncode == 0, done.stderr
    assert results(project) == before
    table = verdicts(done)
    assert list(written(project)["verdict"]) == list(table["verdict"])
    return table


def test_on_the_same_card_every_answer_holds(unchanged: pd.DataFrame) -> None:
    table = unchanged
    assert set(table["verdict"]) == {"holds"}
    assert set(table["n"]) == {20, 21, 24, 28}
    # On a card whose times are always the same, a gain is what it was.
    compared = table[table["gain"].notna()]
    assert len(compared)
    assert (abs(compared["gain"] / compared["known_gain"] - 1) < 1e-9).all()
    assert (table["driver"] == table["known_driver"]).all()


def test_a_recommendation_that_became_slow_is_stale(
    project: ClusterProject, unchanged: pd.DataFrame
) -> None:
    """The planted regression: another driver, on which the block of one answer is slow."""
    table = unchanged
    gaining = table[(table["default"] == "usual") & (table["gain"] > 1.02)]
    assert len(gaining), "no answer gains anything: nothing can become stale"
    # Blocks cover tiles: threads of a block are those of the tile.
    one = gaining.iloc[0]
    set_card(project, slowed={f"{one['bx']}x{one['by']}x{one['bz']}": 10})
    try:
        junit = ("--junit", "report/verdicts.xml")
        done = recheck(project, STUDY, *ASKED, *junit, FAKE_DRIVER="590.1")
    finally:
        set_card(project)
    assert done.returncode == 1, done.stderr
    found = written(project).set_index("n").loc[one["n"]]
    assert (found["verdict"], found["reason"]) == ("stale", "slower than the default")
    assert found["gain_high"] < 1 < found["known_gain"]
    assert (found["known_driver"], found["driver"]) == ("580.0", "590.1")
    assert "  driver: 580.0 before, 590.1 now" in done.stdout.splitlines()
    assert done.stdout.splitlines()[1].startswith("  stale ")
    (suite,) = ElementTree.parse(project.project.folder / "report" / "verdicts.xml").getroot()
    stale = int((written(project)["verdict"] == "stale").sum())
    assert (suite.get("tests"), suite.get("failures")) == ("4", str(stale))
    failed = {test.get("name", ""): test.find("failure") for test in suite.iter("testcase")}
    (failure,) = [each for name, each in failed.items() if name.startswith(f"n={one['n']}")]
    assert failure is not None
    assert failure.get("message") == "slower than the default"


@pytest.mark.slow
def test_problems_are_drawn_the_same_way_and_as_many_as_asked(project: ClusterProject) -> None:
    """Also: the next driver has the block of the test above repaired, and nothing is kept of it."""
    done = recheck(project, STUDY, *ASKED, "--problems", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert len(verdicts(done)) == 3
    drawn = project.results / "recheck" / "h200" / f"{STUDY}.contests.json"
    first = drawn.read_text()
    drawn.unlink()
    configured = ("--configfile", "config.yaml", "results/recheck/settings.yaml")
    name = str(drawn.relative_to(project.project.folder))
    with project.start("--cores", "1", *configured, "--", name) as run:
        assert run.wait(200) == 0, run.said()[-3000:]
    assert drawn.read_text() == first


def test_every_study_has_a_target_for_its_live_gpus(project: ClusterProject) -> None:
    more = project.project.folder / "t4.yaml"
    more.write_text("gpus: {t4: {source: live, arch: sm_75}}\n")
    configured = ("--configfile", "config.yaml", more.name)
    with project.start("-n", "--quiet", "host", *configured, "--", f"recheck_{STUDY}") as run:
        assert run.wait(200) == 0, run.said()[-3000:]
    for gpu in ("h200", "t4"):
        assert f"results/recheck/{gpu}/{STUDY}.parquet" in run.said()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stencil_blocks"], "unknown study 'stencil_blocks', did you mean 'stencil_block'?"),
        ([STUDY, "--gpu", "h20"], "--gpu: unknown GPU or card 'h20', did you mean 'h200'?"),
        ([STUDY, "--problems", "0"], "Invalid value for '--problems'"),
    ],
)
def test_bad_input_is_one_line(project: ClusterProject, arguments: list[str], said: str) -> None:
    done = recheck(project, *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr


def test_a_machine_without_the_gpu_says_so(project: ClusterProject) -> None:
    before = project.cards.read_text()
    cards = json.loads(before)
    try:
        project.cards.write_text(json.dumps({"cpu": []}))
        done = recheck(project, STUDY)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "this machine has no GPU" in done.stderr
        project.cards.write_text(json.dumps({"t4": cards["t4"]}))
        done = recheck(project, STUDY, "--gpu", "h200")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert "h200 is Made-up h200 (sm_90), but this machine has Made-up t4" in done.stderr
    finally:
        project.cards.write_text(before)


def test_without_a_product_the_command_that_makes_it_is_named(project: ClusterProject) -> None:
    product = project.results / "final" / STUDY
    away = product.with_name("away")
    product.rename(away)
    try:
        named, unnamed = recheck(project, STUDY), recheck(project)
    finally:
        away.rename(product)
    assert named.returncode == unnamed.returncode == 2
    assert f"make it with snakemake --cores all -- final_{STUDY}" in named.stderr
    assert "no study has recommendations yet" in unnamed.stderr


def test_a_failed_stage_is_not_taken_for_a_stale_answer(project: ClusterProject) -> None:
    sweep = project.results / "sweeps" / "h200" / "stencil.parquet"
    away = sweep.with_name("away.parquet")
    sweep.rename(away)
    try:
        done = recheck(project, STUDY, *ASKED, "--json")
    finally:
        away.rename(sweep)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sweeps/h200/stencil.parquet" in done.stderr
