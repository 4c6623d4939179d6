"""Problems of a blind test are answered by what was measured of them."""

from dataclasses import replace

import pandas as pd
import pytest
from agreeing import changed
from stencil import slice_of_card, sweep
from studies import entry, fit_product

from launchwise.exporting.between import held
from launchwise.exporting.building import answer_table, drawn_problems, known_cases
from launchwise.exporting.entries import named_answers
from launchwise.exporting.few import Weighed
from launchwise.exporting.lookup import Judge
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED
from launchwise.learning.conformal import FEWEST
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final
from launchwise.learning.splits import cases_in
from launchwise.tables.times import judged_times

GPU, OTHER = "card", "card.sm16"
SWEPT, TESTED = (200, 256, 300, 400, 512), range(210, 410, 5)


@pytest.fixture(scope="module")
def sweeps(stencil_spec):
    return {gpu: sweep(stencil_spec, SWEPT, gpu) for gpu in (GPU, OTHER)}


@pytest.fixture(scope="module")
def times(stencil_spec, sweeps):
    """Judged times of both cards; those of one of them with its blind test."""
    found = {gpu: judged_times(rows, (), stencil_spec) for gpu, rows in sweeps.items()}
    blind = sweep(stencil_spec, [n for n in TESTED if n not in SWEPT], GPU)
    tested = judged_times(blind, (), stencil_spec, blind=True)
    return {**found, GPU: pd.concat([found[GPU], tested], ignore_index=True)}


@pytest.fixture(scope="module")
def final(stencil_spec, sweeps, times, tmp_path_factory):
    domain = Domain(stencil_spec, {gpu: slice_of_card(gpu) for gpu in times})
    folder = tmp_path_factory.mktemp("final") / "tiles"
    fit_product(folder, domain, sweeps, entry("knn"), times)
    return read_final(folder, domain)


def test_they_are_answered_by_their_fastest_configuration(final, times):
    blind = times[GPU][times[GPU]["blind"]]
    cases = cases_in(blind, final.spec)
    assert len(cases) == len(TESTED) - 2
    assert len(final.tested) == len(TESTED) - 2
    assert not final.measured["blind"].any()
    for case, found in zip(cases, answers(final, cases), strict=True):
        assert case.key in final.by_case
        assert found.basis == MEASURED
        own = blind.merge(pd.DataFrame([case.problem]), on=final.spec.problem_columns)
        own = own[final.domain.is_candidate(own) & own["status"].isin(["ok", "slow"])]
        best = own["time_ms"].min()
        first = found.suggestions[0]
        assert best <= first.expected_ms < 1.03 * best
        assert found.why.endswith("in a blind test of answers to this problem")


def test_they_are_listed_for_their_gpu_alone(final):
    tested = {tuple(each) for each in final.tested[final.spec.problem_columns].to_numpy().tolist()}
    by_gpu = {GPU: set(), OTHER: set()}
    table = answer_table(final, "tiles")
    for each in named_answers(table.stored):
        if each["basis"] == MEASURED:
            by_gpu[each["gpu"]].add((*each["problem"].values(),))
            assert each["blind"] == ((*each["problem"].values(),) in tested)
    assert tested <= by_gpu[GPU]
    assert not tested & by_gpu[OTHER]
    assert [(one.device, one.problem) for one in table.entries] == sorted(
        (one.device, one.problem) for one in table.entries
    )


def test_limits_between_entries_hold_what_was_measured_of_such_answers(final, times):
    wide = (0.5, 2.0)
    plain = answer_table(final, "tiles")
    reach = final.swept.reach(GPU)
    limited = [replace(one, between_ms=wide, reach=reach) for one in plain.devices]
    plain = changed(plain, devices=tuple(limited))
    blind = times[GPU][times[GPU]["blind"]]
    kept = tuple(one for one in plain.entries if not one.blind)

    def inside(table):
        """Share of the blind problems whose answer took what is stated without their entries."""
        found = []
        for case in cases_in(blind, final.spec):
            (first,) = changed(table, entries=kept).answer(GPU, case.problem).suggestions
            row = pd.DataFrame([{**final.spec.neutral, **first.configuration, **case.problem}])
            (time_ms,) = blind.merge(row)["time_ms"]
            found.append(first.interval_ms[0] <= time_ms <= first.interval_ms[1])
        return sum(found) / len(found)

    made = held(plain, blind, final)
    assert inside(plain) == 1
    assert 0.9 <= inside(made) <= 0.97
    own, other = made.devices
    assert wide[0] < own.between_ms[0] < own.between_ms[1] < wide[1]
    # A card without a blind test of its own errs as the others do.
    assert other.between_ms == own.between_ms
    assert (own.tested.problems, other.tested) == (blind["n"].nunique(), None)
    assert 0.5 < own.tested.fraction < 1
    known = {made.problem(one.problem)["n"] for one in made.entries}
    unlisted = min({*range(*SWEPT[::4])} - known)
    asked = {**cases_in(blind, final.spec)[0].problem, "n": unlisted}
    assert made.answer(GPU, asked).why.endswith(f"; {own.tested.words}")
    # The test asked within the measured sizes.
    beyond = made.answer(GPU, {**asked, "n": 4 * max(known)})
    assert beyond.outside > 1
    assert own.tested.words not in beyond.why
    # Another visit's level is what times of both may meet.
    second = [replace(one, device=1) for one in plain.entries if one.blind]
    visits = pd.concat([blind, blind.assign(gpu=OTHER, time_ms=1.5 * blind["time_ms"])])
    both = held(changed(plain, entries=(*plain.entries, *second)), visits, final).devices
    assert both[0].between_ms == both[1].between_ms
    assert both[0].between_ms[1] > 1.3 > own.between_ms[1]
    apart = [
        replace(one, problem=(one.problem[0] + 2000, *one.problem[1:]))
        for one in plain.entries
        if one.blind
    ]
    both = pd.concat([blind, blind.assign(n=blind["n"] + 2000, time_ms=9 * blind["time_ms"])])
    more = changed(plain, entries=(*plain.entries, *apart))
    assert held(more, both, final).devices == made.devices
    # What they measured says nothing of how near measured problems are.
    near = changed(plain, devices=tuple(replace(one, reach=1.001) for one in plain.devices))
    assert [one.tested for one in held(near, blind, final).devices] == [own.tested, None]
    few = blind[blind["n"].isin(blind["n"].unique()[: FEWEST - 1])]
    assert held(plain, few, final).devices == plain.devices


def test_what_a_blind_test_alone_named_is_no_candidate_of_its_problems(final, times):
    """Planted: a judge that prefers it to all others."""
    table = answer_table(final, "tiles")
    widest = max(one.get("bx", 0) for one in table.stored.configurations)
    place, features = len(table.stored.configurations), table.stored.features
    wider = {"variant": "block3d", "row_padding": 0, "bx": 2 * widest, "by": 1, "bz": 1}
    judge = Judge(
        starts=(0,),
        feature=(features.index(("bx", "1")), -1, -1),
        threshold=(float(widest), 0.0, 0.0),
        left=(1, 0, 0),
        right=(2, 0, 0),
        value=(0.0, 0.0, -1.0),
    )
    judged = changed(table, devices=tuple(replace(one, judge=judge) for one in table.devices))
    named = changed(
        judged,
        configurations=(*table.stored.configurations, wider),
        candidates=(*table.stored.candidates, place),
        entries=tuple(replace(one, choice=place) if one.blind else one for one in table.entries),
    )
    unlisted = {**final.tested.iloc[0][final.spec.problem_columns].to_dict(), "n": 211}
    assert named.answer(GPU, unlisted).suggestions[0].configuration == wider
    blind, both = times[GPU][times[GPU]["blind"]], (named, judged)
    one, other = (held(each, blind, final).devices[0].tested for each in both)
    assert one == other
    one, other = (Weighed.of(each, [0], {}, {0: times[GPU]}).builds() for each in both)
    assert one == other


def test_few_builds_are_as_sure_as_blind_tests_say(final, times):
    alike = Judge((0,), (-1,), (0.0,), (0,), (0,), (0.0,))
    table = answer_table(final, "tiles")
    table = changed(table, devices=tuple(replace(one, judge=alike) for one in table.devices))
    own = [one for one in table.entries if not one.device]
    swept, unmeasured = (
        [one.problem for one in own if (one.basis == MEASURED) is known] for known in (True, False)
    )
    # Of problems that were all measured nothing is expected.
    sure, wide = (
        Weighed.of(table, [0], dict.fromkeys(shapes, 1), {0: times[GPU]}).steps([2])[0]
        for shapes in (swept, unmeasured)
    )
    assert sure.interval is None
    assert wide.interval[0] < wide.reached < wide.interval[1]
    assert sure.tested == wide.tested


def test_a_tested_problem_that_is_drawn_as_well_is_listed_once(final):
    drawn = drawn_problems(final, None)[0]
    blind = final.tested.iloc[:1].assign(**drawn)
    both = replace(final, fastest=pd.concat([final.fastest, blind], ignore_index=True))
    assert len(both.tested) == len(final.tested) + 1
    table = answer_table(both, "tiles")
    own = [one for one in table.entries if table.problem(one.problem) == drawn]
    assert [(table.devices[one.device].name, one.blind) for one in own] == [
        (GPU, True),
        (OTHER, False),
    ]
    keys = [(one.device, one.problem) for one in table.entries]
    assert len({*keys}) == len(keys)
    assert {case.gpu for case in known_cases(both) if case.problem == drawn} == {GPU}
