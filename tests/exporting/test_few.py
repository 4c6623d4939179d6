"""Few builds for a load: the best sets, tables of them alone, and what is measured stays exact."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from agreeing import changed
from answer_forms import Answering
from drawn_questions import drawn
from triton_examples import scaled_spec, scaled_table

from launchwise.experiment.load import Load
from launchwise.exporting.between import calibrated
from launchwise.exporting.building import answer_table
from launchwise.exporting.few import Weighed, chosen, limited
from launchwise.exporting.few_times import LOST, Times, measured_ms, measured_rows, times_of
from launchwise.exporting.formulas import UsualRule
from launchwise.exporting.worth import measuring_s, worth
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED
from launchwise.learning.merit import FEWEST
from launchwise.learning.splits import Case
from launchwise.report.wording import worth_of_load
from launchwise.tables.rows import fastest_rows
from launchwise.tables.times import judged_times
from launchwise.workloads.space import used


def least(costs, most):
    """The least sum of costs with so many columns, of all there are."""
    sets = itertools.combinations(range(costs.shape[1]), most)
    return min(costs[:, each].min(axis=1).sum() for each in sets)


@pytest.mark.parametrize("seed", range(20))
def test_sets_cost_what_the_best_sets_cost(seed):
    dice = np.random.default_rng(seed)
    costs = np.exp(dice.gamma(1, 0.5, (30, 12))) * np.minimum(dice.zipf(1.5, 30), 1000)[:, None]
    costs[dice.random(costs.shape) < 0.05] = LOST
    (found,) = chosen(costs, [4])
    assert costs[:, found].min(axis=1).sum() == pytest.approx(least(costs, 4))
    # Columns that lower nothing are none of a larger set.
    assert chosen(np.hstack([costs[:, :3], costs[:, :3] + 1]), [6]) == [(0, 1, 2)]
    # A set that misses the best by a column is told from it.
    assert costs[:, found[1:]].min(axis=1).sum() > least(costs, 4) * 1.001


@pytest.fixture(scope="module")
def judged(sweeps, stencil_spec):
    return {gpu: judged_times(rows, (), stencil_spec) for gpu, rows in sweeps.items()}


@pytest.fixture(scope="module")
def weighed(table, judged):
    devices = {table.number(gpu): rows for gpu, rows in judged.items()}
    counts = {one.problem: 1 + place for place, one in enumerate(table.entries[::3])}
    return Weighed.of(table, [*devices], counts, devices)


def test_expected_times_are_those_of_recommend(table):
    device = table.number("card")
    shapes = [(n, dtype, 2) for n in (211, 333, 478) for dtype in ("float32", "float64")]
    times = times_of(table, device, [tuple(table.problem(one).values()) for one in shapes])
    for row, shape in enumerate(shapes):
        first = table.answer("card", table.problem(shape)).suggestions[0]
        assert times.best_ms[row] == first.expected_ms
    # Candidates that are slower than the usual choice take longer, though it is none itself.
    asked = [(331, "float32", 2)]
    order = np.argsort(table.expected(device, asked).losses[0])
    best, *slower = (table.stored.candidates[at] for at in order)
    choice = table.configuration(best).items()
    rule = UsualRule("1 == 1", tuple((name, repr(value)) for name, value in choice), ())
    own = replace(table, formulas=replace(table.formulas, usual=(rule,)))
    plain = tuple(replace(one, losses=()) for one in table.entries)
    own = changed(own, candidates=tuple(slower), entries=plain)
    first = own.answer("card", own.problem(asked[0])).suggestions[0]
    assert first.is_usual
    assert first.expected_ms < times_of(own, device, asked).ms.min() < np.inf
    # A table of few builds does not launch it, and says what it gains.
    few = changed(own, fallback=slower[0]).answer("card", own.problem(asked[0])).suggestions[0]
    assert few.configuration == used(own.configuration(slower[0]), own.spec)
    assert few.gain < 1


def test_one_build_more_is_never_worse_and_all_of_them_are_the_best(weighed):
    steps = weighed.steps([1, 2, 4, 999])
    reached = [one.reached for one in steps]
    assert reached == sorted(reached)
    assert [steps[at].count for at in (0, 1, -1)] == [1, 2, len(weighed.builds())]
    assert reached[0] < reached[-1] == pytest.approx(1, abs=0.02)


def test_a_build_that_is_slow_where_blind_tests_choose_it_is_left_out(weighed):
    one, two = (each.places for each in weighed.steps([1, 2]))
    expected, taken = np.ones((2, FEWEST, len(weighed.table.configurations)))
    expected[:, [*{*two} - {*one}]], taken[:, [*{*two} - {*one}]] = 0.5, 10
    tested = Times([()] * FEWEST, taken, taken.min(axis=1), *[taken[:, 0] > 0] * 2)
    own = replace(weighed, blind=dict.fromkeys(weighed.times, (expected, tested)))
    assert own.steps([2]) == own.steps([1])
    assert own.steps([2])[0].places == one


def test_problems_without_a_time_weigh_nothing(table, judged):
    at, counts = table.number("card"), {table.entries[0].problem: 3, (331, "float32", 2): 2}
    more = {**counts, (331, "no such type", 2): 9}
    alone, both = (Weighed.of(table, [at], each, {at: judged["card"]}) for each in (counts, more))
    assert both.weights[at].tolist() == [*alone.weights[at].tolist(), 0.0]
    assert both.steps([2])[0].reached == alone.steps([2])[0].reached


def test_problems_whose_answers_have_no_time_choose_builds_by_what_the_model_says(table):
    at, places = table.number("card"), table.stored.candidates
    told = {one.problem: one for one in table.entries if one.losses and one.device == at}
    untimed = [replace(one, time_ms=None, interval_ms=None) for one in told.values()]
    own = changed(table, entries=(*untimed, *set(table.entries) - {*told.values()}))
    weighed = Weighed.of(own, [at], dict.fromkeys(told, 1), {})
    assert (weighed.weights[at] > 0).all()
    assert weighed.untimed(at) == (len(told), 1, pytest.approx(1))
    assert Weighed.of(table, [at], dict.fromkeys(told, 1), {}).untimed(at) == (0, 0, 0)
    (step,) = weighed.steps([3])
    # Of an answer that is no candidate, as the usual choice may be, nothing says what it takes.
    odd = replace(untimed[0], choice=len(own.configurations), gain=1.1, losses=())
    more = (*own.stored.configurations, {"variant": "column", "tz": 16})
    other = changed(own, configurations=more, entries=(odd, *own.entries[1:]))
    one = Weighed.of(other, [at], {odd.problem: 1}, {})
    assert limited(one, step).entries[0].gain is None
    found = {one.problem: one for one in limited(weighed, step).entries}
    for shape, one in told.items():
        assert found[shape].time_ms is None
        if one.choice in step.places:  # What the product answers stays the answer.
            assert step.places[found[shape].choice] == one.choice
            continue
        losses = np.array([one.losses[places.index(place)] for place in step.places], dtype=float)
        assert losses[found[shape].choice] == np.nanmin(losses)


def test_the_first_of_few_configurations_is_the_best_alone(weighed):
    def alone(place):
        ms = {at: one.capped(one.ms[:, [place]])[:, 0] for at, one in weighed.times.items()}
        return sum(weighed.weights[at] @ np.nan_to_num(each) for at, each in ms.items())

    usual = Counter(one.usual for one in weighed.table.entries)
    for step in weighed.steps([2, 3, 4]):
        costs = {place: alone(place) for place in step.places}
        near = [place for place, cost in costs.items() if cost <= 1.02 * min(costs.values())]
        assert step.places[0] == min(near, key=lambda place: (-usual[place], costs[place]))
        assert limited(weighed, step).default == weighed.table.configurations[step.places[0]]


def test_a_configuration_that_a_measured_problem_lacks_has_no_time_there(table):
    entry = next(one for one in table.entries if one.basis == MEASURED)
    for known in ({}, {entry.problem: {entry.choice: entry.time_ms}}):
        ms = times_of(table, entry.device, [entry.problem], known).ms[0]
        assert ([entry.choice] == np.flatnonzero(np.isfinite(ms)).tolist()) is bool(known)
        assert ms[entry.choice] == entry.time_ms
    # Whatever the model said of it before.
    told = next(one for one in table.entries if one.losses)
    known = {told.problem: {told.choice: told.time_ms}}
    ms = times_of(table, told.device, [told.problem], known).ms[0]
    assert np.flatnonzero(np.isfinite(ms)).tolist() == [told.choice]


def test_what_few_builds_reach_is_the_mean_of_devices(table, weighed):
    dice, drawn_weights, best = np.random.default_rng(1), {}, {}
    for at, one in weighed.times.items():
        best[at] = np.nan_to_num(one.best_ms)
        assert weighed.weights[at] @ best[at] == pytest.approx(1)
        assert (one.best_ms <= one.ms.min(axis=1)).all()
        drawn_weights[at] = weighed.weights[at] * dice.random(len(best[at])) ** 9
    # No configuration may run the first problem: it counts as far from the best, not as endless.
    barred = {at: replace(one, ms=one.ms.copy()) for at, one in weighed.times.items()}
    for one in barred.values():
        one.ms[0] = np.inf
    weighed = replace(weighed, times=barred, weights=drawn_weights)
    (step,) = weighed.steps([1])
    reached = [
        drawn_weights[at] @ best[at] / (drawn_weights[at] @ np.minimum(least, LOST * best[at]))
        for at, least in ((at, one.of(step.places)) for at, one in weighed.times.items())
    ]
    assert step.tested is None
    assert step.reached == pytest.approx(np.mean(reached))
    assert np.ptp(reached) > 1e-4


def test_what_a_load_gains_is_as_sure_as_its_parts(tmp_path):
    table = scaled_table(scaled_spec(tmp_path / "scaled"))
    names = ("time_ms", "gain", "gain_interval", "improvement", "basis")
    parts = [
        # Launches, then the names.
        (4, 1.0, 1.5, None, 0.9, MEASURED),
        (3, 2.0, 1.2, (1.1, 1.3), 2.0, MEASURED),
        (2, 3.0, 1.4, (1.2, 1.6), None, "within"),
        (1, 4.0, 1.1, None, None, "within"),
        (9, None, None, None, None, "within"),
    ]
    entries = [
        replace(table.entries[0], problem=(1, n, "float32"), **dict(zip(names, part, strict=True)))
        for n, (_, *part) in enumerate(parts, 1)
    ]
    counts = {one.problem: part[0] for one, part in zip(entries, parts, strict=True)}
    found = worth(changed(table, entries=tuple(entries)), "big", counts, 0.0125)
    usual_ms = 4 * 1.5 + 3 * 2 * 1.2 + 2 * 3 * 1.4 + 4 * 1.1
    assert (1e3 * found.tuned_s, 1e3 * found.usual_s) == pytest.approx((20, usual_ms))
    # The last, of 9 in 19 launches, is in neither time.
    assert (found.unanswered, found.covered) == ([entries[-1].problem], pytest.approx(10 / 19))
    said = "The load less 1 problem without a time, 47.4 % of the launches, is"
    assert worth_of_load(found)[0].startswith(said)
    by_gain = {one.gain: one for one in found.lines}
    assert [gain for gain, one in by_gain.items() if one.is_slower] == [1.5]
    # Of two rows, each with the error of one.
    assert by_gain[1.5].limits[1] == pytest.approx(1.5 * np.exp(1.96 * np.hypot(0.005, 0.005)))
    # What is expected errs all at once, what was measured each for itself; by as much as the least
    # sure where limits are unknown.
    low = np.hypot(4 * (1.5 - by_gain[1.5].limits[0]), 6 * 0.1) + 6 * 0.2 + 4 * 1.1 * (1 - 6 / 7)
    assert found.interval[0] == pytest.approx((usual_ms - low) / 20)
    # 6 ms a run
    assert found.runs == 3
    night = ["2020-01-01T00:00:00Z", "2020-01-01T00:00:09Z", "2020-01-02T00:00:00Z", "", "x"]
    assert measuring_s([*night, "2020-01-02T00:00:05Z"]) == 14


def test_measured_problems_have_the_fastest_of_few_and_gains_over_the_usual_choice(table, weighed):
    (step,) = weighed.steps([1])
    made, others = limited(weighed, step), 0
    kept = map(made.spec.build_choice, map(made.configuration, made.stored.candidates))
    assert len({*kept}) == 1
    for entry in made.entries:
        at = [*weighed.times][entry.device]
        told = table.known[(at, entry.problem)]
        assert made.configurations[entry.usual] == table.configurations[told.usual]
        assert entry.choice < len(step.places)
        if told.choice in step.places:
            assert (entry.gain, entry.interval_ms) == (told.gain, told.interval_ms)
            continue
        assert entry.gain == pytest.approx(told.gain * told.time_ms / entry.time_ms)
        if entry.basis == MEASURED:
            rows = weighed.rows[at]
            problem = pd.Series(entry.problem, index=[*table.parameters])
            rows = rows[(rows[problem.index] == problem).all(axis=1)]
            usual_ms = rows.loc[rows["is_usual"], "time_ms"].item()
            few = fastest_rows(rows[rows["place"].isin(step.places)], ["n"], table.spec).iloc[0]
            assert (entry.time_ms, step.places[entry.choice]) == (few["time_ms"], few["place"])
            assert entry.interval_ms == (few["time_low_ms"], few["time_high_ms"])
            assert entry.gain == pytest.approx(usual_ms / entry.time_ms)
            others += 1
    assert others > 5
    # What is usual is launched where it is one of them alone.
    every = [made.configuration(place) for place in made.stored.candidates]
    for gpu, n in itertools.product(("card", "nothing"), (211, 479, 10_000)):
        first = made.answer(gpu, table.problem((n, "float32", 2))).suggestions[0]
        assert {**table.spec.neutral, **first.configuration} in every


def test_configurations_of_other_studies_are_none_of_few_builds(table, judged):
    at, rows = table.number("card"), judged["card"]
    entry = next(one for one in table.entries if one.basis == MEASURED and one.device == at)
    # It ran back to back in another study's pairs: the table names it, and no answer does.
    other = {"variant": "column", "tz": 16}
    assert other not in table.stored.configurations
    own = changed(table, configurations=(*table.stored.configurations, other))
    key = {**table.problem(entry.problem), **table.spec.neutral, **other, "time_ms": 1e-6}
    both = pd.concat([rows, rows[:1].assign(**key)], ignore_index=True)
    alone, beside = (Weighed.of(own, [at], {entry.problem: 1}, {at: each}) for each in (rows, both))
    assert alone.times[at].best_ms == beside.times[at].best_ms
    assert alone.steps([1])[0].reached == beside.steps([1])[0].reached


def test_what_follows_from_the_problem_is_part_of_no_build(table, judged):
    """``bz`` follows from the size: two configurations that differ in it alone are one."""
    formulas = replace(table.formulas, follows=(("bz", "2 if n > 300 else 1"),))
    own, at, rows = replace(table, formulas=formulas), table.number("card"), judged["card"]
    blocks = [place for place, one in enumerate(own.configurations) if one[0] == "block3d"]
    first, *more = [
        {**own.stored.configurations[blocks[0]], "bx": 16, "by": 4, "bz": bz} for bz in (4, 1, 2)
    ]
    count = len(own.configurations)
    own = changed(
        own,
        configurations=(*own.stored.configurations, first, *more),
        candidates=(count,),
        entries=tuple(
            replace(one, choice=count + 1 + (one.problem[0] > 300), usual=0, others=(), losses=())
            for one in own.entries
        ),
    )
    alike = [rows[name] == value for name, value in first.items() if name != "bz"]
    named = rows[np.logical_and.reduce([*alike, rows["time_ms"].notna()])]
    known = named[named["bz"] == np.where(named["n"] > 300, 2, 1)]
    assert 0 < len(known) < len(named)
    found = measured_rows(own, at, rows)
    found = found[found["place"] == count]
    assert found[table.spec.key_columns].equals(known[table.spec.key_columns])
    weighed = Weighed.of(own, [at], dict.fromkeys(measured_ms(own, found), 1), {at: rows})
    (step,) = weighed.steps([1])
    assert step.places == (count,)
    for entry in limited(weighed, step).entries:
        assert entry.time_ms == own.known[(at, entry.problem)].time_ms


def test_every_form_of_a_table_of_few_builds_gives_one_answer(weighed, tmp_path):
    (step,) = weighed.steps([3])
    made = limited(weighed, step)
    first = made.configuration(0)
    barred = f"n <= 300 or bx != {first['bx']} or by != {first['by']} or bz != {first['bz']}"
    fits = {**made.formulas.fits, first["variant"]: (barred,)}
    made = replace(made, formulas=replace(made.formulas, fits=fits))
    questions = drawn(made, 200, np.random.default_rng(5))
    answering = Answering(made, tmp_path / "export")
    assert answering.disagreements(questions) == []
    # Where nothing is known the first that may run stands.
    said = [answering.recommended(one) for one in questions]
    kept = {
        one.problem["n"] <= 300: {**first, **found["configuration"]} == first
        for one, found in zip(questions, said, strict=True)
        if found and found["basis"] == "default"
    }
    assert kept == {True: True, False: False}


def test_problems_of_a_load_are_answered_beforehand(final):
    shapes = [(n, dtype, 2) for n in (211, 333) for dtype in ("float32", "float64")]
    known = answer_table(final, "tiles")
    named = [tuple(known.problem(each).values()) for each in shapes]
    load = Load(known.spec.workload, known.parameters, dict.fromkeys(named, 3), {})
    table = answer_table(final, "tiles", load=load)
    new = {one.problem: one for one in table.entries if one.device == table.number("card")}
    assert {*named} <= {*new}
    assert not {*named} <= {one.problem for one in known.entries}
    # What the model says of every candidate decides among few builds, not what the judge does.
    answers(final, [Case("card", table.problem(one)) for one in named], judged=(said := []))
    of_model = said[0].set_index([*table.parameters, *table.tunables])["loss"]
    places, times = list(table.stored.candidates), times_of(table, table.number("card"), named)
    for shape, ms in zip(named, times.ms[:, places], strict=True):
        losses = [of_model.get((*shape, *table.configurations[at])) for at in places]
        told = np.array(new[shape].losses) / 1000
        assert told - told[0] == pytest.approx(np.array(losses) - losses[0], abs=1.1e-3)
        others = np.array(places) != new[shape].choice
        assert ms[others] == pytest.approx(np.exp(told[others]) * new[shape].time_ms)
    # Of two rows that differ in what follows from the problem, the better one is the candidate.
    twice = pd.concat([said[0].assign(loss=said[0]["loss"] + 1), said[0]])
    once, both = (calibrated(table, [rows], final).entries for rows in (said[0], twice))
    assert [one.losses for one in both] == [one.losses for one in once]
    assert any(one.losses for one in once)
