"""Predictions for GPUs that nobody measured: the table, the command, the report's section."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from launchwise.base.typed import read_yaml
from launchwise.cli.predict import find_profile, main
from launchwise.experiment.experiment import load_experiment
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.predicting import fitted_predictors, learnable_rows, predict_times
from launchwise.learning.splits import Case
from launchwise.report.blocks import Table
from launchwise.report.predictions import unmeasured
from launchwise.tables.schemas import unmeasured_schema
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec
from tests.support.report_study import study, sweep
from tests.support.samples import ROOT, profile

PROBLEMS: list[Problem] = [{"n": n, "dtype": "float32", "order": 2} for n in (102, 202)]


@pytest.fixture(scope="module")
def domain(acoustic_spec: Spec) -> Domain:
    cards = read_cards(ROOT / CARDS_FILE)
    efficiency = reference_efficiency(cards, ROOT / REFERENCE_PROFILE)
    known = {gpu: described_profile(gpu, cards, efficiency) for gpu in ("a100", "t4")}
    return Domain(acoustic_spec, {**known, "big": profile("big")})


@pytest.fixture(scope="module")
def table(domain: Domain) -> pd.DataFrame:
    rows = learnable_rows(domain, [sweep(domain.spec, "big").assign(registers=32, spill_bytes=0)])
    predictors = fitted_predictors(domain, rows)
    return predict_times(domain, ["a100", "t4"], PROBLEMS, predictors, top=3)


def test_every_predictor_names_its_best_for_every_problem_and_gpu(
    table: pd.DataFrame, domain: Domain
) -> None:
    unmeasured_schema(domain.spec).validate(table)
    counts = table.groupby(["predictor", "gpu", "n"]).size()
    assert len(counts) == 2 * 2 * 2
    assert set(counts) == {3}
    ordered = table.sort_values(["predictor", "gpu", "n", "rank"])
    steps = ordered.groupby(["predictor", "gpu", "n"])["predicted_ms"].diff().dropna()
    assert (steps >= 0).all()


def test_what_is_named_is_the_best_of_all_candidates(table: pd.DataFrame, domain: Domain) -> None:
    from launchwise.learning.recommenders import recommender_class

    model = recommender_class("analytical")(domain)
    every = model.rank(domain.choices([Case("t4", PROBLEMS[0])]))
    own = table.query("predictor == 'analytical' and gpu == 't4' and n == 102 and rank == 1")
    assert own["predicted_ms"].iloc[0] == every["predicted_ms"].min()
    start = every.loc[domain.is_baseline(every), "predicted_ms"].iloc[0]
    assert own["baseline_ms"].iloc[0] == start


def test_limits_are_those_of_the_card(table: pd.DataFrame, domain: Domain) -> None:
    least = 16 * 200**3 / domain.profiles["t4"].ceilings.copy_bandwidth_gbs / 1e6
    own = table.query("gpu == 't4' and n == 202")
    assert own["bytes_ms"].tolist() == pytest.approx([least] * len(own))
    assert (own["roofline_ms"] > own["bytes_ms"]).all()


# The command


ASKED = ["acoustic_tile", "a100", "n=512", "dtype=float32", "order=8"]


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.usefixtures("at_root")
def test_a_card_that_is_in_no_settings_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([ASKED[0], "titan_v", *ASKED[2:], "--top", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("n=512, float32, order=8 on titan_v: least bytes")
    assert lines[2] == "cost model"
    assert len(lines) == 6
    first, second = (float(line.split()[0]) for line in lines[4:])
    assert 0 < first <= second


@pytest.mark.usefixtures("at_root")
def test_settings_are_laid_over_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The GPUs that the studies name stay beside the one that is added.
    overlay = tmp_path / "o.yaml"
    overlay.write_text("gpus: {old: {source: described, card: titan_black}}\n")
    asked = [ASKED[0], "old", *ASKED[2:], "--configfile", "config.yaml", str(overlay)]
    assert main(asked) == 0
    assert " on old: " in capsys.readouterr().out


@pytest.mark.usefixtures("at_root")
def test_the_command_and_the_rule_describe_a_card_alike(tmp_path: Path) -> None:
    from scripts.described_profile import main as describe

    describe("titan_v", "titan_v", CARDS_FILE, REFERENCE_PROFILE, str(tmp_path / "p.json"))
    config = [Path("config.yaml")]
    experiment = load_experiment(read_yaml(config[0]), config, ROOT)
    assert find_profile("titan_v", experiment) == read_profile(tmp_path / "p.json")


@pytest.mark.usefixtures("at_root")
def test_trees_are_fitted_to_the_sweeps_of_the_study(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sentiment_host", "h200", "batch=512", "tokens=256", "given=tokens", "memory=pinned"]
    assert main([*asked, "--learnt"]) == 0
    assert "cost model + trees" in capsys.readouterr().out


@pytest.mark.usefixtures("at_root")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["acoustic_til", *ASKED[1:]], "unknown study 'acoustic_til', did you mean"),
        ([ASKED[0], "a10", *ASKED[2:]], "unknown GPU or card 'a10', did you mean 'a100'?"),
        ([*ASKED[:2], "n=5", *ASKED[3:]], "n: 5 is below the minimum 20"),
        ([*ASKED[:2], "n=many", *ASKED[3:]], "n: must be of type integer, not 'many'"),
        (ASKED[:4], "order is missing"),
        ([*ASKED, "m=3"], "unknown problem parameter 'm'"),
        ([*ASKED, "n=3"], "n=3: is given twice"),
        ([*ASKED, "fast"], "fast: must be NAME=VALUE"),
        ([*ASKED, "--top", "0"], "--top: must be at least 1"),
        ([*ASKED, "--configfile", "nothing.yaml"], "nothing.yaml"),
    ],
)
def test_bad_questions_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("launchwise: ")
    assert said in captured.err


# The report


def test_the_report_shows_the_trees_choice_beside_the_cost_model(table: pd.DataFrame) -> None:
    made = dataclasses.replace(study(), unmeasured=table)
    section = unmeasured(made)
    assert section is not None
    shown = next(block for block in section.blocks if isinstance(block, Table))
    # The larger of two sizes is the middle one; both GPUs, the faster first.
    assert [row.cells[1].text for row in shown.rows] == ["a100", "t4"]
    assert all("n=202" in row.cells[0].text for row in shown.rows)
    own = table.query("predictor == 'learnt' and gpu == 'a100' and n == 202 and rank == 1")
    assert float(shown.rows[0].cells[3].text) == pytest.approx(
        own["predicted_ms"].iloc[0], rel=0.01
    )


def test_without_described_gpus_there_is_no_section() -> None:
    made = study()
    assert unmeasured(made) is None
    assert unmeasured(dataclasses.replace(made, unmeasured=pd.DataFrame())) is None
