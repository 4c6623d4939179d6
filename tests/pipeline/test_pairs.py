"""Pairs and ``launchwise recheck``, on made-up cards whose kernels run on the CPU."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from command_line import complaint
from fake_cluster import SPACE, ClusterProject
from forks import forked, run_launchwise

STUDY = "stencil_block"


@pytest.fixture(scope="module")
def project(tmp_path_factory, kernel_cache):
    """A project whose GPU h200 was measured and compared in pairs, with its product."""
    folder = tmp_path_factory.mktemp("pairs")
    project = ClusterProject.make(folder, kernel_cache, haste=True)
    project.keep_gpu("h200")
    parts = {"train": {"n": [20]}, "test": {"n": [21, 24, 28]}}
    sizes = {"kind": "problems", "title": "sizes", **parts}
    # What is answered is measured.
    study = {**project.project.study(), "candidates": SPACE, "splits": {"sizes": sizes}}
    project.project.ask(study)
    set_card(project)
    project.run(f"final_{STUDY}")
    return project


def set_card(project, **changed):
    """One h200 of its own in the machine.

    Pairs of another card do not count, and tests beside this one hold cards.
    """
    cards = json.loads(project.cards.read_text())
    cards["h200"] = [{**cards["h200"][0], "uuid": "GPU-h200-pairs", "slowed": {}, **changed}]
    project.cards.write_text(json.dumps(cards))


def pairs_of(project, folder="results/pairs/h200"):
    """Table of pairs."""
    suffix = ".parquet" if folder.startswith("results") else ".pairs.parquet"
    return pd.read_parquet(project.project.folder / folder / f"{STUDY}{suffix}")


def visits_in(journal):
    """How often a problem was visited, by the journal."""
    return sum('"note":"visit"' in line for line in journal.read_text().splitlines())


def test_every_problem_has_its_baseline_and_its_best(project):
    table = pairs_of(project)
    sweep = pd.read_parquet(project.results / "sweeps" / "h200" / "stencil.parquet")
    assert set(table["n"]) == {20, 21, 24, 28}
    assert set(table["status"]) == {"ok"}
    best = sweep.groupby("n")["time_ms"].min()
    for size, rows in table.groupby("n"):
        roles = [role for each in rows["roles"] for role in each.split("+")]
        assert roles.count("baseline") == roles.count("best") == 1
        fastest = rows[rows["roles"].str.contains("best")].iloc[0]
        assert fastest["sweep_ms"] == best[size]
        assert (rows["sweep_ms"] <= 1.02 * best[size]).sum() <= 8


def test_what_is_answered_takes_part(project):
    learnt = project.results / "learnt" / STUDY
    # A study without a committee is answered by its first model.
    candidates = pd.read_parquet(learnt / "candidates.parquet")
    answering = project.project.study()["models"][0]
    said = pd.read_parquet(learnt / f"{answering}.parquet")
    first = candidates[(said["rank"] == 1) & (candidates["gpu"] == "h200")]
    sweep = pd.read_parquet(project.results / "sweeps" / "h200" / "stencil.parquet")
    measured = sweep[sweep["time_ms"].notna()]
    columns = ["n", "variant", "row_padding", "bx", "by", "bz", "tz"]
    asked = first.merge(measured[columns], on=columns)
    pairs = pairs_of(project)
    marked = pairs[pairs["roles"].str.contains("recommended")]
    found = set(marked[columns].itertuples(index=False, name=None))
    assert found == set(asked[columns].itertuples(index=False, name=None))
    assert len(found) > 2


def test_answers_are_compared_between_learning_and_evaluation(project):
    said = project.run("-n", "--forceall", f"final_{STUDY}")
    blocks = re.split(r"^(?:local)?rule (\w+):\n", said, flags=re.MULTILINE)
    inputs = {
        rule: block.split("output:")[0]
        for rule, block in zip(blocks[1::2], blocks[2::2], strict=True)
    }
    assert f"results/learnt/{STUDY}/candidates.parquet" in inputs["contests"]
    assert f"results/contests/h200/{STUDY}.json" in inputs["confirm"]
    assert f"results/pairs/h200/{STUDY}.parquet" in inputs["times_stencil_0"]
    assert f"results/times/h200/{STUDY}.parquet" in inputs[f"evaluate_{STUDY}"]
    assert "results/times" not in inputs[f"learn_{STUDY}"]


def test_ratios_are_those_of_the_card(project):
    """Where times are always the same, a pair says what the sweep said, to every digit."""
    table = pairs_of(project)
    for _, rows in table.groupby("n"):
        baseline = rows[rows["roles"].str.contains("baseline")]["sweep_ms"].iloc[0]
        expected = baseline / rows["sweep_ms"]
        assert (abs(rows["improvement"] / expected - 1) < 1e-9).all()
        assert (rows["improvement_low"] <= rows["improvement"]).all()
        assert (rows["improvement_high"] - rows["improvement_low"] < 1e-9).all()
    # A problem whose baseline is the best, with nothing near it, has nothing to compare.
    alone = table.groupby("n")["n"].transform("size") == 1
    assert set(table.loc[~alone, "rounds"]) == {6}
    assert set(table.loc[alone, "rounds"]) <= {0}
    assert set(table["thrown"]) == {0}


# Rechecks


def recheck(project, *arguments, **variables):
    """The command in the project's folder."""
    return forked(
        run_launchwise,
        ["recheck", *arguments],
        project.project.folder,
        {**project.environment, **variables},
        seconds=200,
    )


def verdicts(done):
    (study,) = json.loads(done.stdout)
    return pd.DataFrame(study["problems"])


def results(project):
    """Everything that a recheck must leave alone."""
    folders = ("pairs", "sweeps", "final", "contests", "gpus")
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in (project.results / folder).rglob("*")
        if path.is_file()
    }


def written(project):
    """The verdicts in their file."""
    return pd.read_parquet(project.results / "recheck" / "h200" / f"{STUDY}.parquet")


ASKED = ("--gpu", "h200", "--cores", "2")


@pytest.fixture(scope="module")
def unchanged(project):
    """Verdicts on the card that was measured; nothing else is changed by asking."""
    before = results(project)
    done = recheck(project, STUDY, *ASKED, "--json")
    assert done.returncode == 0, done.stderr
    assert results(project) == before
    table = verdicts(done)
    assert list(written(project)["verdict"]) == list(table["verdict"])
    return table


def test_on_the_same_card_every_answer_holds(unchanged):
    table = unchanged
    assert set(table["verdict"]) == {"holds"}
    assert set(table["n"]) == {20, 21, 24, 28}
    # On a card whose times are always the same, a gain is what it was.
    compared = table[table["gain"].notna()]
    assert len(compared)
    assert (abs(compared["gain"] / compared["known_gain"] - 1) < 1e-9).all()
    assert (table["driver"] == table["known_driver"]).all()


def test_a_recommendation_that_became_slow_is_stale(project, unchanged):
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
    assert failure.get("message") == "slower than the default"


@pytest.mark.slow
def test_problems_are_drawn_the_same_way_and_as_many_as_asked(project):
    """Also: the next driver has the block of the test above repaired, and nothing is kept of it."""
    done = recheck(project, STUDY, *ASKED, "--problems", "3", "--json")
    assert done.returncode == 0, done.stderr
    assert len(verdicts(done)) == 3
    drawn = project.results / "recheck" / "h200" / f"{STUDY}.contests.json"
    first = drawn.read_text()
    drawn.unlink()
    configured = ("--configfile", "config.yaml", "results/recheck/settings.yaml")
    name = str(drawn.relative_to(project.project.folder))
    project.run(*configured, "--", name)
    assert drawn.read_text() == first


def test_a_machine_without_the_gpu_says_so(project):
    done = recheck(project, STUDY, "--gpu", "h20")
    assert "--gpu: unknown GPU or card 'h20', did you mean 'h200'?" in complaint(done)
    before = project.cards.read_text()
    cards = json.loads(before)
    try:
        project.cards.write_text(json.dumps({"cpu": []}))
        done = recheck(project, STUDY)
        assert "this machine has no GPU" in complaint(done)
        project.cards.write_text(json.dumps({"t4": cards["t4"]}))
        done = recheck(project, STUDY, "--gpu", "h200")
        said = "h200 is Made-up h200 (sm_90), but this machine has Made-up t4"
        assert said in complaint(done)
    finally:
        project.cards.write_text(before)


def test_a_failed_stage_is_not_taken_for_a_stale_answer(project):
    sweep = project.results / "sweeps" / "h200" / "stencil.parquet"
    away = sweep.with_name("away.parquet")
    sweep.rename(away)
    try:
        done = recheck(project, STUDY, *ASKED, "--json")
    finally:
        away.rename(sweep)
    assert (done.returncode, done.stdout) == (2, "")
    assert "sweeps/h200/stencil.parquet" in done.stderr


# The last ones: they leave the project changed.


def test_pairs_are_recorded_and_read_back(project):
    project.run("record_pairs_h200", "record_h200")
    config = project.project.config()
    asked = json.loads(json.dumps(config))
    asked["gpus"]["h200"] = {"source": "recorded"}
    project.project.configure(asked)
    before = pairs_of(project)
    (project.results / "pairs" / "h200" / f"{STUDY}.parquet").unlink()
    try:
        project.run(f"results/pairs/h200/{STUDY}.parquet")
    finally:
        project.project.configure(config)
    assert pairs_of(project).equals(before)
    assert pairs_of(project, "data/recorded/h200").equals(before)


def test_a_changed_contest_is_measured_and_others_are_kept(project):
    journal = project.results / "journal" / "h200" / f"{STUDY}.pairs.jsonl"
    before = visits_in(journal)
    sizes = pairs_of(project).groupby("n").size()
    assert before == (sizes > 1).sum()
    contests = project.results / "contests" / "h200" / f"{STUDY}.json"
    content = json.loads(contests.read_text())
    changed = next(each for each in content["contests"] if len(each["entrants"]) > 1)
    (baseline,) = (each for each in changed["entrants"] if "baseline" in each["roles"])
    other = {**baseline["configuration"], "bx": 16, "by": 1, "bz": 1}
    assert other not in [each["configuration"] for each in changed["entrants"]]
    changed["entrants"].append({"configuration": other, "roles": ["near"]})
    Path(contests).write_text(json.dumps(content))
    target = f"results/pairs/h200/{STUDY}.parquet"
    project.run("--rerun-triggers", "mtime", "--", target)
    assert visits_in(journal) == before + 1
    assert len(pairs_of(project)) == sizes.sum() + 1
