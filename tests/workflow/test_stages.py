"""What rules ask by their wildcards: files and parameters of sweeps, studies, tests of answers."""

import json
from pathlib import Path

import pytest
import yaml

from launchwise.experiment.experiment import DOUBTS
from launchwise.experiment.loading import load_experiment, unknown_study
from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.gpus.profile import LIKENESS_FACTS, write_profile
from launchwise.workflow.answer_checks import Contests, recorded_workloads
from launchwise.workflow.plan import Code, architectures, in_order, problems_for
from launchwise.workflow.studies import Studies, Values
from launchwise.workflow.sweeps import Cluster, Sweeps, prior_facts, prior_sweeps
from launchwise.workflow.targets import Reported, targets
from launchwise.workflow.telling import tell_plan
from tests.support.samples import ROOT, profile

LIVE = {"source": "live", "arch": "sm_90"}
RECORDED = {"source": "recorded"}
STUDY = "stencil_block"
CORES = 16


class Stages:
    """What the Snakefile makes of settings with these GPUs and these changes of the study."""

    def __init__(self, study=None, **settings):
        path = ROOT / "config.yaml"
        config = {**yaml.safe_load(path.read_text()), **settings}
        own = settings.get("workloads", [])
        config["workloads"] = [str(ROOT / "tests" / "support" / "kernels"), *own]
        config["studies"] = {STUDY: study or {}}
        self.experiment = load_experiment(config, [path], Path.cwd())
        self.values = Values(self.experiment)
        self.cluster = cluster = Cluster(self.experiment, self.values.archs)
        self.sweeps = Sweeps(self.values, cluster, CORES)
        self.studies = Studies(self.values, CORES)
        self.contests = Contests(self.values, cluster)
        self.reported = Reported(self.values, self.studies, self.contests)


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Recorded rows of ``h200`` in a folder to work in."""
    folder = tmp_path / "data" / "recorded" / "h200"
    folder.mkdir(parents=True)
    (folder / "stencil.parquet").write_bytes(b"rows")
    monkeypatch.chdir(tmp_path)
    return folder


def test_several_shards_begin_with_the_heaviest_problems(recorded):
    swept = {"n": [256, 512, 1024, *range(200, 1150, 50)], "order": [2, 8, 16]}
    swept["dtype"] = ["float32", "float64"]
    one = Stages(gpus={"a": LIVE}, sweeps={"stencil": {"problems": [swept]}}).experiment
    as_written = in_order(one, "a", "stencil", 1)
    heaviest_first = in_order(one, "a", "stencil", 5)
    assert as_written == one.problems_of("a", "stencil") != heaviest_first
    assert sorted(map(str, as_written)) == sorted(map(str, heaviest_first))
    assert heaviest_first[0] == {"n": 1100, "dtype": "float64", "order": 16}
    bytes_of = [one.specs["stencil"].value("n**3", problem) for problem in heaviest_first]
    assert sum(bytes_of[:20]) > 3 * sum(bytes_of[-20:])


def test_a_bundle_holds_what_every_gpu_of_its_architecture_measures(recorded):
    own = {"stencil": [{"n": [64, 66], "dtype": ["float32"], "order": [2]}]}
    other = {"stencil": [{"n": [64, 65], "dtype": ["float32"], "order": [2]}]}
    gpus = {
        "a": {**LIVE, "problems": own},
        "b": {**LIVE, "problems": other},
        "c": {**LIVE, "arch": "sm_80", "problems": own},
    }
    found = Stages(gpus={**gpus, "h200": RECORDED}).experiment
    archs = architectures(found)
    assert archs == {"a": "sm_90", "b": "sm_90", "c": "sm_80"}
    sizes = [p["n"] for p in problems_for(found, archs, "stencil", "sm_90")]
    assert sizes == [64, 66, 65]
    assert len(problems_for(found, archs, "stencil", "sm_80")) == 2
    assert problems_for(found, archs, "stencil", "sm_75") == []


def test_a_described_gpu_is_its_own_card_unless_it_names_one(recorded):
    old = {"source": "described", "card": "titan_black"}
    values = Stages(gpus={"a100": {"source": "described"}, "old": old, "h200": RECORDED}).values
    assert values.cards == {"a100": "a100", "old": "titan_black"}
    assert (values.recorded_in, values.archs) == ({"h200": "data/recorded/h200"}, {})


def test_a_job_that_compiles_its_own_kernels_takes_every_core(recorded):
    gpus = {"before": LIVE, "meanwhile": {**LIVE, "compile": "alongside"}}
    sweeps = Stages(gpus=gpus).sweeps
    assert sweeps.bundle("before", "stencil") == ["results/build/stencil/sm_90.cubins"]
    assert (sweeps.threads("before"), sweeps.threads("meanwhile")) == (1, CORES)
    assert sweeps.bundle("meanwhile", "stencil") == []


def test_gpus_of_amd_are_a_prior_only_where_there_are_no_others(recorded, tmp_path):
    arch = {"arch": "gfx90a"}
    write_profile(recorded / "profile.json", profile("h200").model_copy(update=arch))
    named = tmp_path / "named" / "stencil.parquet"
    named.parent.mkdir()
    named.write_bytes(b"more rows")
    gpus = {"a": LIVE, "h200": RECORDED}
    strategy = {"kind": "transfer", "budget": 5}

    def asked(**more):
        sweeps = {"stencil": {"strategy": strategy | more}}
        experiment = Stages(gpus=gpus, sweeps=sweeps).experiment
        return [each["gpu"] for each in prior_sweeps(experiment, "a", "stencil")]

    assert asked() == ["h200"]
    doubted = recorded / "stencil.provenance.json"
    doubted.write_text(json.dumps({DOUBTS: ["too fast"]}))
    assert asked() == []
    doubted.unlink()
    assert asked(known={"mine": str(named)}) == ["mine"]
    write_profile(named.with_name("profile.json"), profile("mine").model_copy(update=arch))
    assert asked(known={"mine": str(named)}) == ["h200", "mine"]
    experiment = Stages(gpus=gpus, sweeps={"stencil": {"strategy": strategy}}).experiment
    (facts,) = prior_facts(experiment, "a", "stencil").values()
    assert facts["arch"] == "gfx90a"
    assert set(facts) == set(LIKENESS_FACTS)
    # Of live GPUs what they extend: not of the one that asks, nor of one that is held out.
    for name, more in (("a", {}), ("b", {"held_out": True}), ("c", {})):
        gpus[name] = {**LIVE, "extend": True, "path": f"data/recorded/{name}", **more}
        (recorded.parent / name).mkdir()
        (recorded.parent / name / "stencil.parquet").write_bytes(name.encode())
    assert asked() == ["c"]
    anew = [{"variant": ["linear"]}]
    found = Stages(gpus=gpus, sweeps={"stencil": {"anew": anew}}).sweeps.extends("a", "stencil")
    assert (found["path"], found["anew"]) == ("data/recorded/a/stencil.parquet", anew)


def test_files_of_a_study_are_in_the_order_of_its_gpus(recorded):
    studies = Stages(gpus={"b": LIVE, "h200": RECORDED, "a": LIVE, "t4": {"source": "described"}})
    of = studies.studies
    assert [Path(path).parent.name for path in of.sweeps(STUDY)] == ["b", "h200", "a"]
    assert of.answered_profiles(STUDY) == [*of.profiles(STUDY), "results/gpus/t4.json"]
    assert of.answering(STUDY) == "chosen"
    assert of.final(STUDY) == f"results/final/{STUDY}/final.json"
    named = [Path(path).stem for path in of.learnt(STUDY)]
    assert named[:2] == ["candidates", "untuned"]
    assert {"chosen", "knn"} <= set(named)
    assert Path(of.spec(STUDY)).is_file()


def test_models_are_retrained_by_what_they_read_alone(recorded):
    study = {"models": ["knn", "analytical"]}
    stages = Stages(study, gpus={"h200": RECORDED})
    trained = stages.studies.job_settings(STUDY, Code())["models"]
    read = {model: [Path(path).name for path in each["inputs"]] for model, each in trained.items()}
    assert read == {
        "knn": ["features.yaml", "usual.yaml"],
        "analytical": ["features.yaml", "usual.yaml", "cost.yaml"],
    }
    assert [each["entry"]["title"] for each in trained.values()] == ["knn", "analytical"]
    assert trained["knn"]["code"] != trained["analytical"]["code"]
    assert stages.studies.works[STUDY] == 2 * len(b"rows")


def test_a_study_of_many_folds_takes_every_core(recorded):
    by_gpu = {"gpus": {"kind": "leave_one_gpu_out", "title": "x"}}
    many = Stages({"splits": by_gpu}, gpus={f"g{each}": LIVE for each in range(20)})
    few = Stages({"splits": by_gpu}, gpus={f"g{each}": LIVE for each in range(3)})
    assert (many.studies.processes(STUDY), few.studies.processes(STUDY)) == (CORES, 4)


FEW = {"dtype": ["float32"], "order": [2]}


def test_pairs_are_of_live_gpus_and_of_those_with_a_record(recorded):
    gpus = {"a": LIVE, "h200": RECORDED}
    assert [*Stages(gpus=gpus).contests.pairs(STUDY)] == ["a"]
    (recorded / f"{STUDY}.pairs.parquet").touch()
    assert [*Stages(gpus=gpus).contests.pairs(STUDY)] == ["a", "h200"]
    unpaired = Stages(gpus=gpus, confirm=None)
    assert [*unpaired.contests.pairs(STUDY)] == ["h200"]
    assert (unpaired.contests.compared, unpaired.contests.answers) == ([], {})
    few, many = (
        Stages(gpus=gpus, sweeps={"stencil": {"problems": [{**FEW, "n": sizes}]}})
        for sizes in ([64], [*range(64, 464)])
    )
    assert many.contests.minutes("a", STUDY, 1) > 2 * few.contests.minutes("a", STUDY, 1)


def test_a_recorded_blind_test_is_read_where_it_lies(recorded):
    (recorded / "blind").mkdir()
    blind = {"problems": 3, "parameters": {"n": [100, 1000], "dtype": ["float32"], "order": [2]}}
    stages = Stages({"blind": blind}, gpus={"a": LIVE, "h200": RECORDED})
    contests = stages.contests
    assert contests.scores(STUDY, "csv") == {}
    assert contests.frozen(STUDY) == []
    (recorded / "blind" / f"{STUDY}.frozen.json").touch()
    # Answered, and measured by nobody yet.
    assert contests.frozen(STUDY) == ["h200"]
    (recorded / "blind" / f"{STUDY}.pairs.parquet").touch()
    assert contests.frozen(STUDY) == []
    found = recorded_workloads(stages.values, stages.studies, contests)["stencil"]
    assert f"data/recorded/h200/blind/{STUDY}.sweep.parquet" in found.sources()
    assert f"results/blind/h200/{STUDY}.score.csv" in found.targets()
    assert found.tested() == ["h200"]
    assert contests.scores(STUDY, "csv") == {"h200": f"results/blind/h200/{STUDY}.score.csv"}
    # A later one is scored beside it, and in its place where it is the only one.
    (recorded / "blind" / "drawn").mkdir()
    (recorded / "blind" / "drawn" / f"{STUDY}.pairs.parquet").touch()
    found = recorded_workloads(stages.values, stages.studies, contests)["stencil"]
    assert f"data/recorded/h200/blind/drawn/{STUDY}.frozen.json" in found.sources()
    assert f"results/blind/h200/drawn/{STUDY}.score.json" in found.targets()
    (recorded / "blind" / f"{STUDY}.pairs.parquet").unlink()
    assert contests.frozen(STUDY) == []
    swept, alone = stages.values.methods["stencil"], {"energy_ms": 0, "control_s": 0}
    assert swept["control_s"] > 0
    exhaustive = {"strategy": {"kind": "exhaustive"}}
    assert contests.blind_method(STUDY) == {**swept, **exhaustive, **alone}


def test_the_report_reads_what_is_there_of_a_study(recorded):
    gpus = {"a": LIVE, "h200": RECORDED}
    stages = Stages(gpus=gpus)
    files, reads = stages.reported.files[STUDY], stages.reported.reads()
    assert [*files["sweeps"]] == ["a", "h200"]
    assert (files["counters"], files["published"]) == ({}, None)
    assert set(files["sweeps"].values()) <= set(reads["tables"])
    assert files["folder"] not in reads["tables"]
    # For published predictions.
    assert {reads["cards"], reads["reference"]} == {
        str(ROOT / CARDS_FILE),
        str(ROOT / REFERENCE_PROFILE),
    }
    (recorded / f"{STUDY}.counters.parquet").touch()
    assert [*Stages(gpus=gpus).reported.files[STUDY]["counters"]] == ["h200"]
    assert Stages(gpus=gpus, incomplete_report=True).reported.reads()["tables"] == []


def test_targets_are_of_what_a_gpu_and_a_study_have(recorded):
    gpus = {"a": LIVE, "b": LIVE, "h200": RECORDED, "t4": {"source": "described"}}
    stages = Stages(gpus=gpus)
    found = targets(stages.values, stages.contests, stages.sweeps)
    assert found["sweep_h200"] == ["results/gpus/h200.json", "results/sweeps/h200/stencil.parquet"]
    assert "results/sweeps/a/stencil/1.parquet" in found["sweep_a"]
    assert found[f"predict_{STUDY}"] == [f"results/predictions/{STUDY}.parquet"]
    assert found[f"recheck_{STUDY}"] == [f"results/recheck/{gpu}/{STUDY}.parquet" for gpu in "ab"]
    assert found["compile_stencil"] == ["results/build/stencil/sm_90.cubins"]
    assert not {"sweep_t4", "confirm_h200", "record_t4", "counters_a"} & found.keys()
    alone = Stages(gpus={"h200": RECORDED})
    found = targets(alone.values, alone.contests, alone.sweeps)
    assert f"predict_{STUDY}" not in found
    assert found[f"recheck_{STUDY}"] == [f"results/recheck/h200/{STUDY}.parquet"]


def test_a_plan_has_hours_jobs_and_memory_of_what_is_unmeasured(recorded, monkeypatch, capsys):
    gpus = {"a": {**LIVE, "shards": 2}, "b": LIVE, "h200": RECORDED}
    stages = Stages(gpus=gpus)
    tell_plan(stages.experiment, stages.cluster)
    hours = stages.cluster.seconds("a", "stencil") / 3600
    each = f"(a: {hours:.2g}, b: {hours:.2g}), jobs: 3, 40"
    assert f"about {2 * hours:.2g} GPU-hours {each}" in capsys.readouterr().err
    monkeypatch.setattr(type(stages.cluster), "seconds", lambda *_: 3.5)
    tell_plan(stages.experiment, stages.cluster)
    assert "about 7 GPU-seconds (a: 3.5, b: 3.5), jobs: 3, 40" in capsys.readouterr().err
    for gpu in "ab":
        (table := Path("results", "sweeps", gpu, "stencil.parquet")).parent.mkdir(parents=True)
        table.touch()
    tell_plan(stages.experiment, stages.cluster)
    assert capsys.readouterr().err == ""


def test_a_workload_with_too_few_sizes_for_a_study_has_a_target_and_a_line(recorded):
    folder = ROOT / "docs" / "tutorial" / "example" / "convolution"
    few = {"convolution": {"problems": [{"w": [64, 128], "h": [64, 128]}]}}
    gpus = {"a": {**LIVE, "studies": [STUDY], "workloads": ["convolution"]}, "b": LIVE}
    for own in (gpus, {"b": LIVE}):
        stages = Stages(gpus=own, workloads=[str(folder)], sweeps=few)
        found = targets(stages.values, stages.contests, stages.sweeps)
        assert found["compile_convolution"] == ["results/build/convolution/sm_90.cubins"]
        assert "final_convolution" not in found
        said = unknown_study("convolution", stages.experiment)
        assert said.startswith(
            "convolution has no study: fewer than three sizes of one problem parameter"
        )
