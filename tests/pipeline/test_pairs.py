"""Pairs through the command line, on made-up cards whose kernels run on the CPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from fake_cluster import SPACE, ClusterProject


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, kernel_cache: Path) -> ClusterProject:
    """A project whose GPU h200 has been measured and compared in pairs."""
    folder = tmp_path_factory.mktemp("pairs")
    project = ClusterProject.make(folder, kernel_cache, haste=True)
    project.keep_gpu("h200")
    parts = {"train": {"n": [20]}, "test": {"n": [21, 24, 28]}}
    sizes = {"kind": "problems", "title": "sizes", **parts}
    # What is answered is measured.
    study = {**project.project.study(), "candidates": SPACE, "splits": {"sizes": sizes}}
    project.project.ask(study)
    # One card of its own: pairs of another card do not count, and tests beside this one hold cards.
    cards = json.loads(project.cards.read_text())
    cards["h200"] = [{**cards["h200"][0], "uuid": "GPU-h200-pairs"}]
    project.cards.write_text(json.dumps(cards))
    with project.start("--cores", "2", "confirm_h200") as run:
        assert run.wait(200) == 0, run.said()[-3000:]
    return project


def study_of(project: ClusterProject) -> str:
    """Name of the project's only study."""
    (path,) = (project.results / "contests" / "h200").glob("*.json")
    return path.stem


def pairs_of(project: ClusterProject, folder: str = "results/pairs/h200") -> pd.DataFrame:
    """Table of pairs."""
    suffix = ".parquet" if folder.startswith("results") else ".pairs.parquet"
    return pd.read_parquet(project.project.folder / folder / f"{study_of(project)}{suffix}")


def visits_in(journal: Path) -> int:
    """How often a problem was visited, by the journal."""
    return sum('"note":"visit"' in line for line in journal.read_text().splitlines())


def test_every_problem_has_its_baseline_and_its_best(project: ClusterProject) -> None:
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


def test_what_is_answered_takes_part(project: ClusterProject) -> None:
    study = study_of(project)
    learnt = project.results / "learnt" / study
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


def test_answers_are_compared_between_learning_and_evaluation(project: ClusterProject) -> None:
    study = study_of(project)
    with project.start("-n", "--forceall", f"final_{study}") as run:
        assert run.wait(60) == 0, run.said()[-3000:]
        said = run.said()
    blocks = re.split(r"^(?:local)?rule (\w+):\n", said, flags=re.MULTILINE)
    inputs = {
        rule: block.split("output:")[0]
        for rule, block in zip(blocks[1::2], blocks[2::2], strict=True)
    }
    assert f"results/learnt/{study}/candidates.parquet" in inputs["contests"]
    assert f"results/contests/h200/{study}.json" in inputs["confirm"]
    assert f"results/pairs/h200/{study}.parquet" in inputs["times"]
    assert f"results/times/h200/{study}.parquet" in inputs[f"evaluate_{study}"]
    assert "results/times" not in inputs[f"learn_{study}"]


def test_ratios_are_those_of_the_card(project: ClusterProject) -> None:
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


def test_pairs_are_recorded_and_read_back(project: ClusterProject) -> None:
    study = study_of(project)
    with project.start("--cores", "2", "record_pairs_h200", "record_h200") as run:
        assert run.wait(100) == 0, run.said()[-3000:]
    config = project.project.config()
    asked = json.loads(json.dumps(config))
    asked["gpus"]["h200"] = {"source": "recorded"}
    project.project.configure(asked)
    before = pairs_of(project)
    (project.results / "pairs" / "h200" / f"{study}.parquet").unlink()
    try:
        with project.start("--cores", "2", f"results/pairs/h200/{study}.parquet") as run:
            assert run.wait(60) == 0, run.said()[-3000:]
    finally:
        project.project.configure(config)
    assert pairs_of(project).equals(before)
    assert pairs_of(project, "data/recorded/h200").equals(before)


def test_a_changed_contest_is_measured_and_others_are_kept(project: ClusterProject) -> None:
    journal = project.results / "journal" / "h200" / f"{study_of(project)}.pairs.jsonl"
    before = visits_in(journal)
    sizes = pairs_of(project).groupby("n").size()
    assert before == (sizes > 1).sum()
    contests = project.results / "contests" / "h200" / f"{study_of(project)}.json"
    content = json.loads(contests.read_text())
    changed = next(each for each in content["contests"] if len(each["entrants"]) > 1)
    (baseline,) = (each for each in changed["entrants"] if "baseline" in each["roles"])
    other = {**baseline["configuration"], "bx": 16, "by": 1, "bz": 1}
    assert other not in [each["configuration"] for each in changed["entrants"]]
    changed["entrants"].append({"configuration": other, "roles": ["near"]})
    Path(contests).write_text(json.dumps(content))
    target = f"results/pairs/h200/{study_of(project)}.parquet"
    with project.start("--cores", "2", "--rerun-triggers", "mtime", "--", target) as run:
        assert run.wait(100) == 0, run.said()[-3000:]
    assert visits_in(journal) == before + 1
    assert len(pairs_of(project)) == sizes.sum() + 1
