"""Blind tests through the command line, on made-up cards whose kernels run on the CPU."""

import json
import re

import pandas as pd
import pytest
from fake_cluster import ClusterProject

from launchwise.base.storage import digest

STUDY = "stencil_block"
PROBLEMS = 6
BLIND_RULES = ("freeze", "blind_sweep", "blind_contests", "blind_pairs")


@pytest.fixture(scope="module")
def project(tmp_path_factory, kernel_cache):
    """A project with a blind test, answered but not measured."""
    folder = tmp_path_factory.mktemp("blind")
    project = ClusterProject.make(folder, kernel_cache, haste=True)
    card = project.project.config()["gpus"]["t4"]
    project.keep_gpu("h200")
    config, study = project.project.config(), project.project.study()
    config["gpus"]["t4"] = {**card, "held_out": True}
    project.project.configure(config)
    # What the sweeps of this project measure, so that what is best can be known.
    space = config["sweeps"]["stencil"]["problems"][0]["only"]
    parameters = {"n": {"minimum": 18, "maximum": 30}, "dtype": ["float32"], "order": [2]}
    parameters["n"]["minimum"] = 20
    project.project.ask(
        {**study, "candidates": space, "blind": {"problems": PROBLEMS, "parameters": parameters}}
    )
    project.run(f"freeze_{STUDY}")
    return project


def files(project, gpu="h200"):
    """Folder of a blind test."""
    return project.results / "blind" / gpu


def frozen_of(project):
    """Answers."""
    return json.loads((files(project) / f"{STUDY}.frozen.json").read_text())


def test_answers_come_before_measurements(project):
    frozen = frozen_of(project)
    drawn = [each["problem"]["n"] for each in frozen["answers"]]
    assert len(set(drawn)) == PROBLEMS
    # None of the sizes that the sweep measured.
    assert not {20, 21, 24, 28} & set(drawn)
    assert all(each["suggestions"] for each in frozen["answers"])
    assert not list(files(project).glob("*.parquet"))
    asked = json.loads((files(project) / f"{STUDY}.problems.json").read_text())
    assert [each["n"] for each in asked["problems"]] == drawn


def test_a_blind_test_is_measured_and_scored(project):
    before = (files(project) / f"{STUDY}.frozen.json").read_bytes()
    project.run(f"blind_{STUDY}")
    assert (files(project) / f"{STUDY}.frozen.json").read_bytes() == before
    frozen = frozen_of(project)
    score = json.loads((files(project) / f"{STUDY}.score.json").read_text())
    rows = pd.read_csv(files(project) / f"{STUDY}.score.csv")
    sweep = pd.read_parquet(files(project) / f"{STUDY}.sweep.parquet")
    assert (score["problems"], len(rows)) == (PROBLEMS, PROBLEMS)
    assert score["digest"] == frozen["digest"]
    assert (sweep["measured_at"] >= frozen["frozen_at"]).all()
    for answer, (_, row) in zip(frozen["answers"], rows.iterrows(), strict=True):
        mine = sweep[sweep["n"] == answer["problem"]["n"]]
        first = answer["suggestions"][0]["configuration"]
        own = mine
        for name, value in first.items():
            own = own[own[name] == value]
        # On a card whose times are always the same, pairs say what the sweep says.
        assert row["n"] == answer["problem"]["n"]
        fraction = mine["time_ms"].min() / own["time_ms"].iloc[0]
        assert row["fraction"] == pytest.approx(fraction)
        five = [each["configuration"] for each in answer["suggestions"][:5]]
        times = [
            mine[(mine[list(each)] == pd.Series(each)).all(axis=1)]["time_ms"] for each in five
        ]
        assert row["best_of_5"] == pytest.approx(
            mine["time_ms"].min() / min(float(each.iloc[0]) for each in times if len(each))
        )
    assert score["fraction_worst"] == pytest.approx(rows["fraction"].min())


def test_a_blind_test_is_not_repeated_by_itself(project):
    def planned(*words, target=f"blind_{STUDY}"):
        said = project.run("--dry-run", *words, "--", target)
        return {*re.findall(r"^rule (\w+):", said, re.MULTILINE)}

    # Whatever changes: its settings, its code, even the time of every script.
    study = project.project.study()
    blind = {**study["blind"], "problems": PROBLEMS + 1}
    project.project.ask({**study, "blind": blind, "near_best_percent": 7})
    scripts = {path: path.read_bytes() for path in project.project.folder.glob("scripts/*.py")}
    for path, content in scripts.items():
        path.write_bytes(content + b"# edited\n")
    allowed = ("--allowed-rules", *BLIND_RULES, "score", f"blind_{STUDY}")
    try:
        assert planned(*allowed) == {"score", f"blind_{STUDY}"}
        for words in (("--rerun-triggers", "code", "params", "input"), ("--forceall",)):
            assert not {*BLIND_RULES} & planned(*words)
    finally:
        project.project.ask(study)
        for path, content in scripts.items():
            path.write_bytes(content)
    # A file that is gone is made again for whoever asks for it.
    pairs = files(project) / f"{STUDY}.pairs.parquet"
    aside = pairs.rename(pairs.with_suffix(".aside"))
    assert planned(target=f"results/blind/h200/{STUDY}.pairs.parquet") == {"blind_pairs"}
    aside.rename(pairs)


def test_a_held_out_gpu_is_answered_from_others(project):
    """After the blind tests of both GPUs."""
    frozen = json.loads((files(project, "t4") / f"{STUDY}.frozen.json").read_text())
    assert list(frozen["product"]["gpus"]) == ["h200"]
    assert {each["basis"] for each in frozen["answers"]} == {"new_gpu"}
    score = json.loads((files(project, "t4") / f"{STUDY}.score.json").read_text())
    assert (score["gpu"], score["new_gpu"], score["problems"]) == ("t4", True, PROBLEMS)
    assert json.loads((files(project) / f"{STUDY}.score.json").read_text())["new_gpu"] is False
    assert not (project.results / "sweeps" / "t4").exists()
    sweep = pd.read_parquet(files(project, "t4") / f"{STUDY}.sweep.parquet")
    assert set(sweep["gpu"]) == {"t4"}


def changed(content):
    content["answers"][0]["suggestions"][0]["configuration"]["bx"] = 128
    return content


def younger(content):
    found = {**content, "frozen_at": "2999-01-01T00:00:00+00:00"}
    del found["digest"]
    return {**found, "digest": digest(found)}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [(changed, "the answers were changed"), (younger, "before the answers were frozen")],
)
def test_changed_answers_and_rows_that_are_older_are_refused(project, change, complaint):
    path = files(project) / f"{STUDY}.frozen.json"
    before = path.read_text()
    path.write_text(json.dumps(change(json.loads(before))))
    try:
        target = f"results/blind/h200/{STUDY}.score.json"
        arguments = ("--rerun-triggers", "mtime", "--forcerun", "score", "--allowed-rules", "score")
        said = project.run(*arguments, "--", target, fails=True)
        assert complaint in said
    finally:
        path.write_text(before)


def test_a_blind_test_is_recorded(project):
    targets = f"data/recorded/h200/blind/{STUDY}.frozen.json", "record_t4"
    project.run("--rerun-triggers", "mtime", "--", *targets)
    for gpu in ("h200", "t4"):
        folder = project.project.folder / "data" / "recorded" / gpu
        for kind in ("frozen.json", "sweep.parquet", "pairs.parquet"):
            recorded, made = folder / "blind" / f"{STUDY}.{kind}", files(project, gpu)
            assert recorded.read_bytes() == (made / f"{STUDY}.{kind}").read_bytes()
    # Nothing else of the card is recorded.
    assert (folder / "profile.json").is_file()
    assert not (folder / "stencil.parquet").exists()


@pytest.mark.slow
def test_another_gpu_is_asked_for_problems_that_no_blind_test_measured(project):
    """After the blind test of the other GPU was recorded."""
    project.run("--rerun-triggers", "mtime", "--", "record_h200")
    config = project.project.config()
    live = {name: value for name, value in config["gpus"]["t4"].items() if name != "held_out"}
    config["gpus"].update({"h200": {"source": "recorded"}, "t4": live})
    project.project.configure(config)
    study = project.project.study()
    study["blind"]["parameters"]["n"]["maximum"] = 40  # enough for two GPUs
    project.project.ask(study)
    for path in files(project, "t4").glob("*"):
        path.unlink()
    target = f"results/blind/t4/{STUDY}.frozen.json"
    project.run("--", target)
    asked = [
        json.loads((files(project, gpu) / f"{STUDY}.frozen.json").read_text())["answers"]
        for gpu in ("h200", "t4")
    ]
    drawn, others = ({each["problem"]["n"] for each in answers} for answers in asked)
    assert len(others) == PROBLEMS
    assert not drawn & others
