"""Settings of GPUs: what each takes part in, what it measures, what must be there."""

import shutil

import pytest
import yaml
from overlays import ASKED, BASE, S, experiment, line_of, nested

from launchwise.base.places import ROOT
from launchwise.base.typed import read_yaml
from launchwise.workflow import plan as workflow


def test_a_live_gpu_needs_a_sweep_of_what_the_studies_want(home):
    config = {**BASE, "gpus": {"h200": {"source": "live"}}}
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    path = home / "kernels" / "stencil" / "sweep.yaml"
    path.unlink()
    assert (
        f"{path}: is missing, but gpus.h200 measures stencil live: a workload with s" in line_of()
    )


def test_a_constraint_is_also_held_against_the_problems_of_one_gpu(home):
    path = home / "kernels" / "stencil" / "spec.yaml"
    path.write_text(f'{path.read_text()}\nconstraints: ["n < 200"]\n')
    own = {"stencil": [{"n": [256], "dtype": ["float32"], "order": [2]}]}
    line = line_of(nested("gpus/h200.sm72/problems", own))
    assert "gpus.h200.sm72.problems.stencil: n=256: n < 200 does not hold" in line
    assert line.endswith("the nearest size that fits is n=199")


def test_a_study_asks_about_every_gpu_with_rows_of_its_workload(home):
    recorded = home / "data" / "recorded"
    assert experiment().gpus_of("stencil_block") == ["h200", "h200.sm72"]
    (recorded / "h200.sm72" / "stencil.parquet").unlink()
    assert experiment().gpus_of("stencil_block") == ["h200"]
    live = {"gpus": {"mine": {"source": "live", "arch": "sm_90"}}}
    assert experiment(live).gpus_of("stencil_block") == ["h200", "mine"]
    live["gpus"]["mine"]["studies"] = ["stencil_block"]
    assert experiment(live).workloads_of("mine") == ["stencil"]
    named = nested(f"{S}/gpus", ["mine"])
    assert experiment(live, named).gpus_of("stencil_block") == ["mine"]
    (recorded / "h200" / "stencil.parquet").unlink()
    path = home / "kernels" / "stencil" / "studies" / "stencil_block" / "study.yaml"
    assert line_of().startswith(f"{path}: no GPU in the settings has rows of its workload stencil")


def test_a_study_that_no_gpu_has_rows_of_leaves_the_others(home):
    dropped = ROOT / "docs" / "tutorial" / "example" / "saxpy" / "studies"
    shutil.copytree(dropped, home / "kernels" / "saxpy" / "studies")
    found = experiment()
    assert (found.without_rows, [*found.studies]) == (["saxpy_block"], ["stencil_block"])
    assert "saxpy_block/study.yaml: no GPU in" in line_of(nested("studies/saxpy_block", {}))


def test_an_overlay_takes_a_gpu_out(home):
    gone = nested("gpus/h200.sm72", None)
    assert list(experiment(gone).settings.gpus) == ["h200"]
    assert experiment(gone).gpus_of("stencil_block") == ["h200"]
    named = nested(f"{S}/gpus", ["h200", "h200.sm72"])
    assert line_of(named, gone) == (
        "overlay0.yaml: studies.stencil_block.gpus: h200.sm72 is left out (null in overlay1.yaml)"
        ": remove it here, or leave the study out"
    )


def test_a_gpu_measures_workloads_beside_those_of_its_studies(home):
    mine = {"source": "live", "arch": "sm_90", "workloads": ["stencil", "saxpy"]}
    swept = {"problems": [{"n": [4096], "dtype": ["float32"]}]}
    (home / "kernels" / "saxpy" / "sweep.yaml").write_text(yaml.safe_dump(swept))
    found = experiment({"gpus": {"mine": mine}})
    assert found.workloads_of("mine") == ["stencil", "saxpy"]
    assert found.alone_on("mine") == ["saxpy"]
    assert found.alone_on("h200") == []
    # Without any study there is something to measure still.
    alone = experiment({"gpus": {"mine": mine}, "studies": {"stencil_block": None}})
    assert alone.workloads_of("mine") == alone.alone_on("mine") == ["stencil", "saxpy"]


def test_a_split_of_a_live_sweep_needs_problems_of_it(home):
    path = home / "kernels" / "stencil" / "studies" / "stencil_block" / "study.yaml"
    live = {"gpus": {"mine": {"source": "live", "arch": "sm_90"}}}
    only = nested(f"{S}/gpus", ["mine"])
    asked = {**ASKED, "gpus": ["mine"]}
    asked["splits"] = {
        "sizes": {"kind": "problems", "title": "x", "train": {"n": [64]}, "test": {"n": [999]}}
    }
    path.write_text(yaml.safe_dump(asked))
    said = line_of(live)
    assert said.startswith(f"{path}: splits.sizes.test: the sweep measures none of them (n: ")
    # An overlay that holds the split is to blame, not the file beneath.
    more = nested(f"{S}/splits/sizes/test", {"n": [998]})
    assert line_of(live, only, more).startswith(
        "overlay2.yaml: studies.stencil_block.splits.sizes.test: the sweep measures none of them"
    )
    # What a recorded sweep holds is known when it is read.
    found = experiment(nested(f"{S}/gpus", ["h200"]))
    assert found.holders_of_splits("stencil_block") == {
        "sizes": [str(path.relative_to(home)), "splits.sizes"]
    }


def test_what_the_studies_want_of_a_gpu_is_in_the_order_of_the_settings(home):
    found = experiment(nested(f"{S}/gpus", ["h200.sm72"]))
    assert found.gpus_of("stencil_block") == ["h200.sm72"]
    assert found.workloads_of("h200.sm72") == ["stencil"]
    assert found.workloads_of("h200") == []
    own = {"stencil": [{"n": [256], "dtype": ["float32"], "order": [2]}]}
    found = experiment(nested("gpus/h200.sm72/problems", own))
    assert [each["n"] for each in found.problems_of("h200.sm72", "stencil")] == [256]
    assert [each["n"] for each in found.problems_of("h200", "stencil")] == [64, 64, 100, 100]


def test_recorded_folders_and_files_must_be_there(project, line_at_start):
    assert line_at_start({}) == ""
    (project.folder / "data" / "recorded" / "test" / "stencil.parquet").unlink()
    no_file = "no file 'stencil.parquet' in 'data/recorded/test'"
    asked = {"studies": {"stencil_block": {"gpus": ["test"]}}}
    other = {"gpus": {"b.1": {"source": "recorded"}, "test": None}}
    for overlay, said in [
        ({}, "kernels/stencil/studies/stencil_block/study.yaml: no GPU in the settings has rows"),
        (asked, f"config.yaml: gpus.test: {no_file}"),
        ({"gpus": {"test": {"path": "old"}}}, "o.yaml: gpus.test: no folder 'old'"),
        (other, "o.yaml: gpus.b.1: no folder 'data/recorded/b"),
    ]:
        assert line_at_start(overlay).startswith(said)


def test_guesses_come_from_other_gpus(project, line_at_start):
    strategy = {"kind": "random", "budget": 5, "guesses": {"model": "results/final/stencil_block"}}
    asked = {"gpus": ["test"]}
    live = {"source": "live", "arch": "sm_90"}
    overlay = {"gpus": {"a": live}, "sweeps": {"stencil": {"strategy": strategy}}}
    assert line_at_start({**overlay, "studies": {"stencil_block": asked}}) == ""
    assert line_at_start(overlay).startswith(
        "o.yaml: sweeps.stencil.strategy.guesses.model: stencil_block learns from the sweep of a, "
    )


def test_a_described_gpu_is_part_of_no_study_and_has_nothing_to_measure(home):
    found = experiment(nested("gpus/a100", {"source": "described"}))
    assert found.gpus_of("stencil_block") == ["h200", "h200.sm72"]
    assert found.workloads_of("a100") == []
    assert workflow.architectures(found) == {}


def test_no_study_learns_from_a_held_out_gpu(home):
    found = experiment(nested("gpus/h200.sm72/held_out", True))
    assert found.gpus_of("stencil_block") == ["h200"]
    assert found.tested_blindly("stencil_block") == ["h200", "h200.sm72"]
    assert found.workloads_of("h200.sm72") == []
    live = {"source": "live", "arch": "sm_80", "held_out": True}
    found = experiment(nested("gpus/a100", {**live, "studies": ["stencil_block"]}))
    assert found.gpus_of("stencil_block") == ["h200", "h200.sm72"]
    assert found.tested_blindly("stencil_block") == ["h200", "h200.sm72", "a100"]
    assert found.workloads_of("a100") == []


@pytest.mark.parametrize(
    "entry", [{"source": "described"}, {"source": "recorded", "held_out": True}]
)
def test_a_study_needs_a_gpu_that_takes_part(home, entry):
    (home / "config.yaml").write_text(yaml.safe_dump({**BASE, "gpus": {"h200": entry}}))
    assert line_of() == (
        "config.yaml: gpus: all are datasheet-only or held out; studies need a recorded or live GPU"
    )


def test_a_recorded_blind_test_stays_where_its_gpu_takes_no_part(home):
    folder = home / "data" / "recorded" / "h200.sm72"
    (folder / "stencil.parquet").unlink()
    assert experiment().tested_blindly("stencil_block") == ["h200"]
    (folder / "blind").mkdir()
    (folder / "blind" / "stencil_block.pairs.parquet").touch()
    found = experiment()
    assert found.gpus_of("stencil_block") == ["h200"]
    assert found.tested_blindly("stencil_block") == ["h200", "h200.sm72"]


@pytest.mark.parametrize(
    ("entries", "rows", "said"), read_yaml(ROOT / "tests/experiment/data/described.yaml")
)
def test_a_described_gpu_needs_a_card_with_all_of_its_figures(
    project, line_at_start, entries, rows, said
):
    table = project.folder / "data" / "cards.csv"
    # A card that lacks something is well as long as nobody asks for it.
    table.write_text("\n".join([table.read_text().rstrip(), "rare,sms,8,1,its box", *rows, ""]))
    known = {"a100": {"source": "described"}}
    if not rows:
        assert line_at_start({"gpus": known}) == ""
    assert line_at_start({"gpus": entries}).startswith(said)


def test_a_live_gpu_without_an_architecture_needs_a_card_here(home, capsys, monkeypatch):
    from launchwise.measuring.cards import Card

    mixed = [Card(0, "GPU-1", "NVIDIA A", "sm_80", "1"), Card(1, "GPU-2", "NVIDIA B", "sm_90", "1")]
    found = experiment({"gpus": {"local": {"source": "live"}}})
    monkeypatch.setattr(workflow, "cards", lambda: mixed[1:])
    assert workflow.architectures(found) == {"local": "sm_90"}
    for cards, said in [
        ([], "this machine has no NVIDIA GPU; give its arch"),
        (mixed, "several kinds of GPU, select one by device: NVIDIA A (sm_80), NVIDIA B (sm_90)"),
    ]:
        monkeypatch.setattr(workflow, "cards", lambda cards=cards: cards)
        with pytest.raises(SystemExit):
            workflow.architectures(found)
        line = capsys.readouterr().err
        assert line.startswith("launchwise: overlay0.yaml: gpus.local: ")
        assert said in line
        assert line.count("\n") == 1
    named = experiment({"gpus": {"local": {"source": "live", "device": "B"}}})
    assert workflow.architectures(named) == {"local": "sm_90"}
    given = experiment({"gpus": {"local": {"source": "live", "arch": "sm_75"}}})
    assert workflow.architectures(given) == {"local": "sm_75"}


def test_a_mistake_in_the_prices_stops_the_workflow_before_it_begins(project, line_at_start):
    path = project.folder / "prices.csv"
    path.write_text("gpu,euro,euro_per_hour,date,source\ntest,,-3,2026-11-01,a cloud\n")
    line = line_at_start({"prices": "prices.csv"})
    assert line.endswith("prices.csv: line 2: euro_per_hour: must be greater than 0 (got '-3')")
