"""``launchwise predict``: choices by name, ties, JSON, mistakes."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml
from command_line import launchwise, line_of, with_every_gpu
from samples import ROOT, STENCIL

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.cli.recommending import predicted_text, prediction
from launchwise.cli.words import find_profile
from launchwise.experiment.loading import load_experiment
from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.gpus.profile import read_profile

ASKED = ["stencil_block", "a100", "n=512", "dtype=float32", "order=8"]
WITHOUT_COST = ["--configfile", "docs/tutorial/example/config.yaml"]
"""Overlay with a workload that has no ``cost.yaml``."""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Options for settings with the project's GPUs and the tests' own workload."""
    path = tmp_path_factory.mktemp("settings") / "config.yaml"
    path.write_text(yaml.safe_dump(with_every_gpu(str(STENCIL.parent))))
    return ["--configfile", str(path)]


@pytest.fixture
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_a_card_that_is_in_no_settings_is_predicted(own):
    done = launchwise("predict", ASKED[0], "titan_v", *ASKED[2:], *own, "--top", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("n=512, float32, order=8 on titan_v: least bytes")
    assert "; no run takes less than" in lines[0]
    assert lines[2:4] == ["cost model", "   ms  x baseline  bound by  configuration"]
    first, second = (float(line.split()[0]) for line in lines[4:6])
    assert 0 < first <= second


def test_json_holds_what_the_text_prints_and_more(own):
    found = json.loads(launchwise("predict", *ASKED, *own, "--top", "3", "--json").stdout)
    text = launchwise("predict", *ASKED, *own, "--top", "3").stdout
    assert (found["study"], found["gpu"]) == tuple(ASKED[:2])
    assert found["problem"] == {"n": 512, "dtype": "float32", "order": 8}
    assert set(found["limits_ms"]) == {"bytes", "flop", "shortest"}
    (one,) = found["predictions"]
    assert one["predictor"] == "analytical"
    assert one["no_basis"] is None
    assert len(one["choices"]) == 3 < one["candidates"]
    times = [choice["predicted_ms"] for choice in one["choices"]]
    assert times == sorted(times)
    for choice in one["choices"]:
        variant, *values = (f"{name}={value}" for name, value in choice["configuration"].items())
        # Every value with its name.
        said = f"{variant.removeprefix('variant=')}: {', '.join(values)}"
        assert f"{said.removesuffix(': ')}\n" in text


@pytest.mark.usefixtures("at_root")
def test_a_tie_without_a_cost_model_is_no_answer(own, capsys):
    asked = ["predict", "saxpy_block", "a100", "n=1000000", "dtype=float32", *own, *WITHOUT_COST]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "no basis for an answer: it predicts the same time for 24 of 24" in text
    assert "cost.yaml" in text
    assert "threads=" not in text
    assert main([*asked, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["predictions"]
    assert one["choices"] == []
    assert "same time" in one["no_basis"]
    assert one["tied_with_the_fastest"] == one["candidates"] == 24


def ranked(spec, *times):
    """Candidates with predicted times."""
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    row = {"variant": "block3d", **neutral, "baseline_ms": 2.0, "bound_by": "dram"}
    return pd.DataFrame([{**row, "predicted_ms": time} for time in times])


def test_only_a_tie_of_all_is_no_answer_of_a_cost_model(stencil_spec):
    assert stencil_spec.cost is not None
    some = prediction("analytical", ranked(stencil_spec, 1.0, 1.005, 1.5), stencil_spec, 1)
    assert (some["tied_with_the_fastest"], len(some["choices"]), some["no_basis"]) == (2, 1, None)
    assert some["choices"][0]["speedup_over_baseline"] == 2.0
    limits = {"bytes": 1, "flop": 1, "shortest": 1}
    shown = predicted_text(
        {"gpu": "g", "problem": {"n": 1}, "limits_ms": limits, "predictions": [some]}
    )
    assert shown.endswith("2 configurations are within 1 % of the fastest")
    all_equal = prediction("analytical", ranked(stencil_spec, 1.0, 1.0), stencil_spec, 1)
    assert (all_equal["choices"], all_equal["tied_with_the_fastest"]) == ([], 2)
    alone = prediction("analytical", ranked(stencil_spec, 1.0), stencil_spec, 1)
    assert len(alone["choices"]) == 1


def test_without_a_cost_model_a_tie_for_the_first_place_is_no_answer(stencil_spec):
    spec = stencil_spec.model_copy(update={"cost": None})
    rows = ranked(spec, 1.0, 1.005, 1.5)
    assert prediction("analytical", rows, spec, 1)["choices"] == []
    # Trees know measured rows.
    assert len(prediction("learnt", rows, spec, 1)["choices"]) == 1


@pytest.mark.usefixtures("at_root")
def test_settings_are_laid_over_each_other(own, tmp_path, capsys):
    # The GPUs that the studies name stay beside the one that is added.
    overlay = tmp_path / "o.yaml"
    overlay.write_text("gpus: {old: {source: described, card: titan_black}}\n")
    asked = [ASKED[0], "old", *ASKED[2:], *own]
    assert main(["predict", *asked, "--configfile", str(overlay)]) == 0
    assert " on old: " in capsys.readouterr().out


@pytest.mark.usefixtures("at_root")
def test_the_command_and_the_rule_describe_a_card_alike(own, tmp_path):
    from scripts.profiles import main as describe

    made, cards = tmp_path / "p.json", {"titan_v": "titan_v"}
    describe([], [], cards, {"titan_v": None}, Path(CARDS_FILE), Path(REFERENCE_PROFILE), [made])
    config = [Path(own[-1])]
    experiment = load_experiment(read_yaml(config[0]), config, ROOT)
    assert find_profile("titan_v", experiment, "predict") == read_profile(made)


@pytest.mark.workloads
@pytest.mark.usefixtures("at_root")
def test_trees_are_fitted_to_the_sweeps_of_the_study(capsys):
    asked = ["sentiment_host", "h200", "batch=512", "tokens=256", "given=tokens", "memory=pinned"]
    assert main(["predict", *asked, "--learnt"]) == 0
    assert "cost model + trees" in capsys.readouterr().out


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize(("words", "gpu"), read_yaml(ROOT / "tests/cli/data/device_names.yaml"))
def test_gpus_have_the_names_of_their_devices(words, gpu, own, capsys):
    assert main(["predict", ASKED[0], words, *ASKED[2:], *own, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gpu"] == gpu


HOST_BOUND = [
    "tridiagonal_streams", "a100", "n=10000", "dtype=float64", "memory=pinned", "batch=1",
]  # fmt: skip


@pytest.mark.workloads
@pytest.mark.usefixtures("at_root")
def test_an_unknown_host_link_is_asked_for(tmp_path, capsys):
    said = "a rate that no datasheet states: set gpus.a100.host_gbs"
    assert said in line_of(capsys, "predict", *HOST_BOUND)
    times = []
    for rate in (12, 25):
        overlay = tmp_path / f"{rate}.yaml"
        overlay.write_text(f"gpus: {{a100: {{source: described, host_gbs: {rate}}}}}\n")
        files = ["--configfile", "config.yaml", "--configfile", str(overlay)]
        assert main(["predict", *HOST_BOUND, *files, "--json"]) == 0
        (one,) = json.loads(capsys.readouterr().out)["predictions"]
        times.append(one["choices"][0]["predicted_ms"])
    assert times[1] < times[0]
