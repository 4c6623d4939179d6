"""Answers of a product: from measurements, from its model, and in the lookup of the report."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from agreeing import changed
from exported import GPUS, SIZES, UNKNOWN, problem

from launchwise.cli import measured_answers
from launchwise.exporting.building import SUGGESTIONS, answer_table
from launchwise.exporting.entries import named_answers
from launchwise.exporting.table import answer_of
from launchwise.learning import answering
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED, UNORDERED, Offsets
from launchwise.learning.conformal import SHARE
from launchwise.learning.contests import drawn_answers
from launchwise.learning.final import read_final
from launchwise.learning.product import fastest_measured
from launchwise.learning.splits import Case
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import judged_times

# Answers


KEYS = ("n", "dtype", "order")


@pytest.mark.parametrize(
    ("gpu", "n", "basis"),
    [("card", 300, "within"), ("card", 900, "beyond"), (UNKNOWN, 256, "new_gpu")],
)
def test_an_unmeasured_problem_says_what_its_answer_rests_on(final, gpu, n, basis):
    found = answers(final, [Case(gpu, problem(n))], top=3)[0]
    assert found.basis == basis
    assert [each.rank for each in found.suggestions] == [1, 2, 3]
    assert (found.suggestions[0].expected_ms is None) == (basis == "beyond")
    assert found.percent == 100 * SHARE
    assert found.usual["variant"] == "block3d"
    assert not found.blind


def test_no_expected_time_is_shorter_than_a_run_can_be(final):
    card = final.domain.profiles["card"]
    second_us = 1e6
    slow = card.ceilings.model_copy(
        update={"launch_overhead_us": second_us, "graph_launch_us": second_us}
    )
    profiles = {**final.domain.profiles, "card": card.model_copy(update={"ceilings": slow})}
    asked = read_final(Path(final.folder), replace(final.domain, profiles=profiles))
    wide = {"within": asdict(Offsets(40, (-1.0, 1.0), (-0.05, 0.05)))}
    asked = replace(asked, facts={**asked.facts, "intervals": wide})
    for gpu in ("card", UNKNOWN):
        found = answers(asked, [Case(gpu, problem(300))], top=3)[0].suggestions
        times = [each.expected_ms or 0.0 for each in found]
        assert all((time >= second_us / 1e3) == (gpu == "card") for time in times)
        least = [each.interval_ms[0] for each in found if each.interval_ms is not None]
        assert min(least) >= second_us / 1e3 if gpu == "card" else not least


def test_a_problem_that_is_asked_twice_has_the_same_answer_twice(final):
    case = Case("card", problem(300))
    first, second = answers(final, [case, case], 5)
    assert first == second == answers(final, [case], 5)[0]
    named = [tuple(each.configuration.items()) for each in first.suggestions]
    assert len(set(named)) == 5


def test_what_cannot_be_told_apart_is_answered_by_what_is_usual(final, sweeps):
    """Planted: all others take .5 % less than the usual choice, which is the error of a row."""
    domain = final.domain

    def flat(rows):
        usual = domain.is_usual(rows)
        usual_ms = rows["time_ms"].where(usual).groupby([rows[name] for name in KEYS])
        near = (usual_ms.transform("max") / 1.005).where(~usual, rows["time_ms"])
        return rows.assign(time_ms=near.where(rows["time_ms"].notna()))

    times = {gpu: judged_times(flat(rows), (), final.spec) for gpu, rows in sweeps.items()}
    equal = replace(final, fastest=fastest_measured(times, domain))
    narrow = replace(domain, candidates={"bx": [32]})
    assert narrow.is_candidate(fastest_measured(times, narrow)).all()
    for found in answers(equal, [Case("card", problem(n)) for n in SIZES]):
        assert found.suggestions[0].configuration == found.usual
        assert found.why.startswith(f"the usual choice: {(found.alike or 0) - 1} measured ones")
        assert (found.alike or 0) > 10


def test_times_that_do_not_ascend_with_their_ranks_are_explained(final, table):
    """Whoever answers: the model, or the table, which was asked about some for one alone."""
    cases = [Case(gpu, problem(n)) for gpu in final.domain.profiles for n in range(201, 512, 7)]
    drawn = [one for one in named_answers(table.stored) if one["basis"] == "within"][::5]
    told = [answer_of(table, final, Case(one["gpu"], one["problem"]), 5, None) for one in drawn]
    said = {True: 0, False: 0}
    for found in [*answers(final, cases, 5), *told]:
        times = [each.expected_ms for each in found.suggestions if each.expected_ms is not None]
        ascend = times == sorted(times)
        said[ascend] += 1
        assert (UNORDERED in found.why) is not ascend
    assert said[True]
    assert said[False]


@pytest.mark.parametrize("least_gain", [0.95, 1.1])
def test_a_gain_that_is_not_sure_is_left_to_what_is_usual(final, least_gain):
    sizes = [*SIZES, 222, 300, 450, 900]
    gpus = ("card", UNKNOWN)
    cases = [
        Case(gpu, problem(n, t)) for gpu in gpus for n in sizes for t in ("float32", "float64")
    ]
    kept = 0
    for plain, careful in zip(
        answers(final, cases, top=3), answers(final, cases, 3, least_gain), strict=True
    ):
        first = plain.suggestions[0]
        if plain.basis == MEASURED:
            sure = first.gain
        else:
            sure = first.gain_interval and first.gain_interval[0]
        if first.is_usual or (sure is not None and sure >= least_gain):
            assert careful == plain
            continue
        kept += 1
        only, *others = careful.suggestions
        assert bool(others) is (plain.basis == MEASURED)
        assert only.rank == 1
        assert only.is_usual
        assert only.configuration == careful.usual == plain.usual
        assert only.gain == pytest.approx(1)
        assert (only.expected_ms is None) == (plain.basis == "beyond")
        assert f"{least_gain:g}" in careful.why
    assert 0 < kept < len(cases)


def test_what_leaves_the_project_or_is_rechecked_is_as_careful_as_asked(final, table):
    careful = answer_table(final, "tiles", [UNKNOWN], least_gain=100.0)
    assert {round(entry.gain or 1, 6) for entry in careful.entries} == {1.0}
    assert all(each["is_usual"] for each in named_answers(careful.stored))
    assert all(
        each.suggestions[0].is_usual
        for each in drawn_answers(final, "card", 20, "a seed", least_gain=100.0)
    )
    assert not drawn_answers(final, "card", 20, "a seed")[0].suggestions[0].is_usual
    # Asked of what a GPU measured itself; where it measured nothing, of what others did.
    rows = final.fastest[(final.fastest["gpu"] != "card") | (final.fastest["n"] == SIZES[0])]
    for gpu, own in (("card", SIZES[:1]), (UNKNOWN, SIZES)):
        found = drawn_answers(replace(final, fastest=rows), gpu, 99, "a seed")
        assert {each.problem["n"] for each in found} == {*own}
    kept = tuple(one for one in careful.entries if one.device < len(GPUS))
    without = changed(careful, devices=careful.devices[: len(GPUS)], entries=kept)
    (first,) = answer_of(without, final, Case(UNKNOWN, problem(256)), 1, None).suggestions
    assert first.is_usual
    assert [(one.device, one.problem) for one in table.entries] == [
        (one.device, one.problem) for one in careful.entries
    ]


# The table of answers


def test_every_entry_is_the_answer_to_its_problem(final, table):
    entries = named_answers(table.stored)
    assert {entry["gpu"] for entry in entries} == {*GPUS, UNKNOWN}
    cases = [Case(entry["gpu"], entry["problem"]) for entry in entries]
    for entry, answer in zip(entries, answers(final, cases, SUGGESTIONS), strict=True):
        first, *rest = answer.suggestions
        for name in ("gpu", "problem", "basis", "blind", "usual", "alike"):
            assert entry[name] == getattr(answer, name)
        # Of drawn problems, which are many, the page shows no others.
        drawn = entry["basis"] == "within" and entry["gpu"] in GPUS
        assert bool(entry["others"]) is not drawn
        several = [entry, *entry["others"]]
        for shown, one in zip(several, answer.suggestions[: len(several)], strict=True):
            assert shown["configuration"] == one.configuration
            ends = one.interval_ms or (None, None)
            assert [shown["time_ms"], shown["time_low_ms"], shown["time_high_ms"]] == (
                pytest.approx([one.expected_ms, *ends])
            )
        assert entry["gain"] == pytest.approx(first.gain)
        assert len(rest) == SUGGESTIONS - 1
        assert first.configuration not in [one.configuration for one in rest]


def test_a_measured_problem_is_answered_by_its_fastest_rows(final, sweeps):
    case = Case("card", problem(400))
    rows = sweeps["card"]
    of_case = (rows["n"] == 400) & (rows["dtype"] == "float32") & (rows["order"] == 2)
    rows = rows[of_case & final.domain.is_candidate(rows) & rows["time_ms"].notna()]
    (found,) = answers(final, [case], 6)
    assert (found.basis, found.percent) == (MEASURED, 95)
    near = rows[rows["time_ms"] <= rows["time_ms"].min() * 1.03]
    # By the errors of rows that were measured once, and it says so.
    assert 0 < (found.alike or 0) <= len(near)
    assert "rests on one row of the sweep" in found.why
    times = [each.expected_ms for each in found.suggestions]
    assert times[0] in set(near["time_ms"])
    # What comes after it was measured, too.
    others = sorted(time for time in rows["time_ms"] if time != times[0])
    assert times[1:] == others[:5]
    assert [each.rank for each in found.suggestions] == [1, 2, 3, 4, 5, 6]
    assert (found.suggestions[0].gain or 0) > 1.02
    usual_ms = times[0] * (found.suggestions[0].gain or 0)
    for each in found.suggestions:
        assert (each.expected_ms or 0) * (each.gain or 0) == pytest.approx(usual_ms)
        assert not each.paired


def test_what_was_measured_of_a_question_answers_it_alone(final, sweeps, tmp_path):
    path = tmp_path / "sweep.parquet"
    write_table(path, sweeps["card"], measurement_schema(final.spec))
    found = measured_answers.with_measured(final, path, Case("card", problem(400)))
    assert {*found.fastest["n"]} == {400}


def test_the_improvement_is_over_the_baseline_and_the_gain_over_the_usual_choice(final, table):
    rows = final.fastest
    usual_ms, baseline_ms = (
        rows[rows[name]].set_index(["gpu", "n", "dtype"])["time_ms"]
        for name in ("is_usual", "is_baseline")
    )
    for entry in named_answers(table.stored):
        if entry["basis"] != "measured" or entry["is_usual"]:
            continue
        key = (entry["gpu"], entry["problem"]["n"], entry["problem"]["dtype"])
        assert entry["improvement"] == baseline_ms[key] / entry["time_ms"]
        assert entry["gain"] == usual_ms[key] / entry["time_ms"]
    # A model's answer that is the baseline gains nothing over it.
    (asked,) = answers(final, [Case("card", problem(300))], 400)
    ratios = {
        str(one.configuration["variant"]): one.improvement
        for one in asked.suggestions
        if one.configuration["variant"] == "linear"
    }
    assert ratios == {"linear": 1.0}


def test_answers_do_not_depend_on_the_number_of_processes(final, monkeypatch):
    monkeypatch.setattr(answering, "CASES_AT_ONCE", 3)
    cases = [Case(gpu, problem(n)) for gpu in GPUS for n in (*SIZES, 210, 300, 333, 450, 500)]
    alone = answers(final, cases, 2)
    assert answers(final, cases, 2, processes=3) == alone
    assert [(each.gpu, each.problem) for each in alone] == [
        (case.gpu, case.problem) for case in cases
    ]
