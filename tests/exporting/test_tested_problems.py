"""Problems of a recorded blind test are answered by what was measured of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from samples import ROOT

from launchwise.cli.predict.answering import read_experiment
from launchwise.experiment.study import ModelEntry
from launchwise.exporting.lookup import lookup_entries
from launchwise.exporting.problems import asked_cases
from launchwise.exporting.table import answer_table
from launchwise.gpus.profile import read_profile
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, fastest_measured, fit_final, read_final
from launchwise.learning.splits import cases_in
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.pairs import pairs_schema
from launchwise.tables.times import judged_times

STUDY, GPU, OTHER = "granger_time", "h200", "h100"


@pytest.fixture(scope="module")
def times() -> dict[str, pd.DataFrame]:
    """Judged times of both cards; those of one of them with its blind test."""
    spec = read_experiment([ROOT / "config.yaml"], ROOT, STUDY).specs["granger"]
    measured = measurement_schema(spec)
    found = {}
    for gpu in (GPU, OTHER):
        folder = ROOT / "data" / "recorded" / gpu
        found[gpu] = judged_times(read_table(folder / "granger.parquet", measured), None, spec)
    blind = ROOT / "data" / "recorded" / GPU / "blind"
    sweep = read_table(blind / f"{STUDY}.sweep.parquet", measured)
    pairs = read_table(blind / f"{STUDY}.pairs.parquet", pairs_schema(spec))
    tested = judged_times(sweep, pairs, spec, blind=True)
    return {**found, GPU: pd.concat([found[GPU], tested], ignore_index=True)}


@pytest.fixture(scope="module")
def final(times: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Final:
    experiment = read_experiment([ROOT / "config.yaml"], ROOT, STUDY)
    study, spec = experiment.studies[STUDY], experiment.specs["granger"]
    recorded = ROOT / "data" / "recorded"
    profiles = {gpu: read_profile(recorded / gpu / "profile.json", gpu) for gpu in times}
    usual = [one.model_dump() for one in study.usual or ()]
    domain = Domain(
        spec, profiles, study.candidates, study.constraints, study.near_best_percent, None, usual
    )
    schema = measurement_schema(spec)
    sweeps = {gpu: read_table(recorded / gpu / "granger.parquet", schema) for gpu in times}
    folder: Path = tmp_path_factory.mktemp("final") / STUDY
    entry = ModelEntry(kind="knn", title="knn")
    fit_final(study, "knn", entry, domain, sweeps, times, [], 1, folder)
    return read_final(folder, domain)


def test_they_are_answered_by_their_fastest_configuration(
    final: Final, times: dict[str, pd.DataFrame]
) -> None:
    blind = times[GPU][times[GPU]["blind"]]
    cases = cases_in(blind, final.spec)
    assert len(cases) == 40
    assert len(final.tested) == 40
    assert not final.measured["blind"].any()
    for case, found in zip(cases, answers(final, cases), strict=True):
        assert final.has_measured(case)
        assert found.basis == MEASURED
        own = blind.merge(pd.DataFrame([case.problem]), on=final.spec.problem_columns)
        own = own[final.domain.is_candidate(own) & own["status"].isin(["ok", "slow"])]
        best = own["time_ms"].min()
        first = found.suggestions[0]
        assert first.expected_ms == best or (
            first.is_usual and first.expected_ms < 1.02 * best + 1e-9
        )
        assert found.why.endswith("in a blind test of answers to this problem")


def test_they_are_listed_for_their_gpu_alone(final: Final) -> None:
    tested = {tuple(each) for each in final.tested[final.spec.problem_columns].to_numpy().tolist()}
    by_gpu: dict[str, set[tuple[object, ...]]] = {GPU: set(), OTHER: set()}
    for entry in lookup_entries(final):
        by_gpu[entry.gpu].add((*entry.problem.values(),))
    assert tested <= by_gpu[GPU]
    assert not tested & by_gpu[OTHER]
    table = answer_table(final, STUDY)
    assert [(one.device, one.problem) for one in table.entries] == sorted(
        (one.device, one.problem) for one in table.entries
    )


def test_a_tested_problem_that_is_asked_anyway_is_listed_once(final: Final) -> None:
    asked = asked_cases(final, [GPU])
    between = next(case.problem for case in asked if not final.has_measured(case))
    blind = final.tested.iloc[:1].assign(**between)
    both = replace(final, fastest=pd.concat([final.fastest, blind], ignore_index=True))
    assert len(both.tested) == len(final.tested) + 1
    assert [case.key for case in asked_cases(both, [GPU])] == [case.key for case in asked]
    # Of no other GPU.
    assert {case.gpu for case in asked_cases(both, [OTHER])} == {OTHER}


def test_what_was_swept_since_needs_no_blind_test(
    final: Final, times: dict[str, pd.DataFrame]
) -> None:
    blind = times[GPU][times[GPU]["blind"]]
    swept = blind.assign(blind=False, time_ms=2 * blind["time_ms"])
    both = pd.concat([blind, swept], ignore_index=True)
    found = fastest_measured({GPU: both}, final.domain)
    assert not found["blind"].any()
    assert (
        found["time_ms"].tolist()
        == fastest_measured({GPU: swept}, final.domain)["time_ms"].tolist()
    )
