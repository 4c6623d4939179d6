"""How sure an answer between entries is, and what is asked of its gain."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from agreeing import changed
from exported import GPUS, UNKNOWN, problem

from launchwise.base import work
from launchwise.exporting.between import calibrated
from launchwise.exporting.few_times import times_of
from launchwise.exporting.table import UNLISTED_GPU, answer_of
from launchwise.exporting.worth import worth
from launchwise.learning.answers import MEASURED, NEW_GPU
from launchwise.learning.splits import Case
from launchwise.workloads.space import used

BETWEEN_MS, BETWEEN_GAIN = (0.9, 1.2), (0.95, 1.1)
UNLISTED = [n for n in range(100, 1500, 23) if n not in (200, 256, 400, 512)]


@pytest.fixture(scope="module")
def limited(table):
    """The table with limits of what is stated between entries."""
    devices = [
        replace(one, between_ms=BETWEEN_MS, between_gain=BETWEEN_GAIN) for one in table.devices
    ]
    return changed(table, devices=tuple(devices))


def test_many_problems_have_the_answers_that_each_has(limited):
    known = {limited.problem(one.problem)["n"] for one in limited.entries}
    asked = [problem(n) for n in UNLISTED if n not in known]
    asked.append({**problem(300), "dtype": "no such type"})
    shapes = [tuple(one[name] for name in limited.parameters) for one in asked]
    every = {device: limited.answers(device, shapes) for device in (*GPUS, "no such card")}
    for device, found in every.items():
        assert found == [limited.answer(device, one) for one in asked]
        assert found[-1].basis == "usual"
    assert limited.answers(GPUS[0], []) == []


def test_what_is_worth_and_few_builds_ask_the_judge_once(limited):
    device, counts = limited.devices[0], {tuple(problem(n).values()): n for n in UNLISTED}
    table, trees = replace(limited), len(device.judge.starts)
    before = work.counted()[work.ASKED]
    worth(table, device.name, counts, None)
    times_of(table, 0, list(counts))
    asked = work.counted()[work.ASKED] - before
    unlisted = counts.keys() - {one.problem for one in table.entries if one.device == 0}
    assert 0 < len(unlisted) < len(counts)
    assert asked == len(unlisted) * (1 + len(table.stored.candidates)) * trees


def test_a_device_that_nothing_measured_has_times_between_its_entries_alone(limited):
    place, device = next((n, one.name) for n, one in enumerate(limited.devices) if not one.days)
    sizes = [one.problem[0] for one in limited.entries if one.device == place]
    inside = limited.answer(device, problem(min(sizes) + 1))
    assert inside.basis == NEW_GPU
    assert inside.suggestions[0].expected_ms > 0
    # Nothing is said of a time that is not there.
    untimed = [replace(one, time_ms=None, interval_ms=None) for one in limited.entries]
    found = changed(limited, entries=tuple(untimed)).answer(device, problem(min(sizes) + 1))
    assert found.suggestions[0].expected_ms is None
    assert found.why.startswith("the nearest with an answer is n=")
    assert inside.why.startswith("its time is scaled from n=")


def test_the_command_has_no_other_answer_than_files_where_no_entry_answers(final, table):
    entries = [one for one in table.entries if one.device or one.problem[1] == "float32"]
    bare, asked = changed(table, entries=tuple(entries)), problem(256, "float64")
    found = answer_of(bare, final, Case("card", asked), 1, None)
    assert found == bare.answer("card", asked)
    assert (found.basis, found.suggestions[0].expected_ms) == ("usual", None)
    assert found.suggestions[0].configuration == found.usual
    listed = tuple(one for one in table.entries if one.device < len(GPUS))
    bare = changed(table, devices=table.devices[: len(GPUS)], entries=listed)
    for one, is_listed in ((table, True), (bare, False)):
        told = answer_of(one, final, Case(UNKNOWN, problem(256)), 1, None).why
        assert told.endswith(UNLISTED_GPU) is not is_listed
    near, far = (answer_of(bare, final, Case(UNKNOWN, problem(n)), 2, None) for n in (256, 9000))
    assert (near.outside, [one.expected_ms is None for one in near.suggestions]) == (1, [False] * 2)
    told = {(one.expected_ms, one.interval_ms, one.gain_interval) for one in far.suggestions}
    assert (told, far.outside > 4) == ({(None, None, None)}, True)


def test_further_suggestions_rest_on_what_the_first_rests_on(final, limited):
    """All times of a list are scaled by what one judge expects, or there are none."""
    listed = {one.problem[0] for one in limited.entries}
    for n in [n for n in range(201, 400) if n not in listed][::40]:
        first, *others = answer_of(limited, final, Case("card", problem(n)), 4, None).suggestions
        assert [one.rank for one in others] == [2, 3, 4]
        times = [one.expected_ms for one in (first, *others)]
        assert times == sorted(times)
        for one in others:
            slower = one.expected_ms / first.expected_ms
            assert one.gain == pytest.approx(first.gain / slower)
            assert one.interval_ms == pytest.approx([slower * end for end in first.interval_ms])
    for gpu, n in (("card", 900), (UNKNOWN, 301)):
        _, *others = answer_of(limited, final, Case(gpu, problem(n)), 3, None).suggestions
        assert {(one.expected_ms, one.gain_interval) for one in others} == {(None, None)}


def test_more_gain_may_be_asked_for_than_the_table_does(limited):
    """The lower limit of the gain must reach it; without limits none is sure."""
    known = [limited.answer("card", problem(n)) for n in UNLISTED]
    known = [one for one in known if not one.suggestions[0].is_usual]
    assert {one.suggestions[0].gain_interval is None for one in known} == {True, False}
    for one in known:
        low, _ = one.suggestions[0].gain_interval or (0.0, 0.0)
        for least in (0.999 * low, 1.001 * low, 9.0):
            found = limited.answer("card", one.problem, least)
            (first,) = found.suggestions
            assert first.is_usual is (low < least)
            assert (first.configuration == found.usual) is first.is_usual


def test_limits_between_entries_hold_the_times_of_problems_that_were_left_out(table, final):
    """The model's own errors are none here: what is stated errs by what it differs from it."""
    exact = [
        replace(one, interval_ms=one.time_ms and (one.time_ms, one.time_ms))
        for one in table.entries
    ]
    drawn = [one for one in exact if one.basis != MEASURED and one.device < len(GPUS)]
    random.Random(1).shuffle(drawn)
    held = []
    for fold in range(4):
        left_out = drawn[fold::4]
        kept = [one for one in exact if one not in left_out]
        made = calibrated(changed(table, entries=tuple(kept)), [], final)
        for one in left_out:
            found = made.answer(made.devices[one.device].name, made.problem(one.problem))
            limits = found.suggestions[0].interval_ms
            held.append(limits[0] <= one.time_ms <= limits[1])
    assert len(held) == len(drawn) > 100
    assert 0.8 <= sum(held) / len(held) <= 0.98


def judges_of(table, final, noise):
    """The table with judges of what a model says: a padded candidate is faster than what is usual,
    which is no candidate, below a size, on the slice above it. All others are far slower, by
    chance; ``noise`` is that of the two."""
    padded, usual, *others = table.stored.candidates
    dice, frames = np.random.default_rng(1), []
    named = pd.DataFrame([table.configuration(each) for each in (padded, usual, *others)])
    for gpu, n in itertools.product(GPUS, WIDE):
        loss = dice.uniform(0.5, 3.0, len(named))
        loss[0] = dice.normal(-0.05 if (n < 1049) == (gpu == GPUS[0]) else 0.05, noise)
        loss[1] = 0.0
        frames.append(named.assign(gpu=gpu, **problem(n), loss=loss))
    exact = [
        replace(one, gain=1.1, gain_interval=(0.5, 2.0) if one.basis == MEASURED else (1.1, 1.1))
        for one in table.entries
    ]
    asked = changed(table, entries=tuple(exact), candidates=(padded, *others))
    return calibrated(asked, [pd.concat(frames)], final)


WIDE = [n for n in range(1001, 1101) if n % 32]  # Others need no padding


def test_each_device_has_its_judge_which_knows_the_best_candidates_best(table, final):
    made = judges_of(table, final, 0.0)
    padded = used(table.configuration(table.stored.candidates[0]), final.spec)
    for gpu, below in zip(GPUS, (True, False), strict=True):
        for n in WIDE:
            found = made.answer(gpu, problem(n))
            expected = padded if (n < 1049) == below else found.usual
            assert found.suggestions[0].configuration == expected
    for one in made.devices[: len(GPUS)]:
        low, high = one.between_gain
        assert 0.98 < low <= 1 <= high < 1.03


def test_limits_of_gains_hold_what_a_judge_has_not_learnt(table, final):
    card, piece, _ = judges_of(table, final, 0.3).devices
    # A slice errs as cards do.
    assert card.between_gain == piece.between_gain
    assert card.between_gain[0] < 0.65


def test_no_time_is_scaled_by_work_that_is_none(table, final):
    """Planted: times that follow such work, of which the smallest size has none."""
    entries = [replace(one, time_ms=max(one.problem[0] - 200.0, 1.0)) for one in table.entries]
    planted = replace(table, formulas=replace(table.formulas, work=("n - 200",)))
    made = calibrated(changed(planted, entries=tuple(entries)), [], final)
    none, scaled = ({one.problem[0] for one in made.entries if one.scale == n} for n in (0, 1))
    assert 200 in none - scaled
    assert scaled >= {256, 400, 512}
