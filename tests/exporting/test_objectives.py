"""Answers by what launches take back to back: sustained time, energy, and no more than a loss."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from agreeing import changed
from answer_forms import Answering
from drawn_questions import drawn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from launchwise.experiment.settings import OBJECTIVE
from launchwise.exporting.building import answer_table, apart, back_to_back
from launchwise.exporting.entries import Ran, by_objective
from launchwise.exporting.table import read_answer_table, write_answer_table
from launchwise.learning.answers import MEASURED
from launchwise.tables.times import APART, judged_times
from launchwise.tables.visits import FEWEST

VISITS = math.log(1.1)  # Energies of two visits differ by a tenth


@pytest.fixture
def entry(table):
    """A measured answer that is not the usual choice."""
    return next(one for one in table.entries if one.basis == MEASURED and one.choice != one.usual)


@pytest.fixture
def planted(table, entry):
    """The table in which the usual choice of an answer ran back to back, too: so many times as
    long alone, with this share of the energy, in so many ms."""

    def make(slower, energy, sustained_ms=1.0):
        joule = energy and 0.5 * energy
        ran = Ran(entry.usual, entry.time_ms * slower, sustained_ms, joule)
        ran = (Ran(entry.choice, entry.time_ms, 1.0, 0.5), ran)
        entries = [replace(one, ran=ran) if one == entry else one for one in table.entries]
        known = {"energy_j": VISITS, "sustained_ms": VISITS}
        devices = tuple(replace(one, apart=known) for one in table.devices)
        return changed(table, entries=tuple(entries), devices=devices)

    return make


def answered(planted, entry, objective):
    """The answer by an objective, and its sentence."""
    made = replace(planted, stored=by_objective(planted.stored, objective))
    found = made.answer(made.devices[entry.device].name, made.problem(entry.problem))
    return found.suggestions[0], found.why


RAN = st.lists(
    st.tuples(st.sampled_from([0.9, 1.0, 1.05, 1.3]), st.sampled_from([0.7, 0.75, 0.8, 0.95]))
)
KNOWN = st.sampled_from([(VISITS, True)] * 6 + [(None, True), (VISITS, False)])
"""How far two visits lie apart, and whether the choice by time ran back to back."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RAN, st.sampled_from([None, 0, 10]), KNOWN)
def test_nothing_allowed_takes_surely_less_than_the_choice(table, entry, others, percent, known):
    """Of drawn times and energies, over those of the choice by time; the first is the usual's."""
    visits, ran = known
    places = [entry.usual, *(place for place in range(9) if place != entry.choice)]
    places = [entry.choice if ran else -1, *dict.fromkeys(places)]
    shares = dict(zip(places, [(1.0, 1.0), *others], strict=False))
    told = tuple(
        Ran(place, entry.time_ms * ms, 1.0, joule) for place, (ms, joule) in shares.items()
    )
    devices = tuple(
        replace(one, apart={"energy_j": visits} if visits else {}) for one in table.devices
    )
    made = changed(table, entries=(replace(entry, ran=told),), devices=devices)
    within = "" if percent is None else f" within {percent} %"
    found = by_objective(made.stored, f"energy{within}").entries[0]
    if visits is None or not ran:
        by_time = f"{entry.why}; chosen by time: no energy is known of it here"
        assert found == replace(entry, ran=told, why=by_time)
        return
    most = math.inf if percent is None else 1 + percent / 100
    less = {p: e for p, (t, e) in shares.items() if t <= most and e * math.exp(visits) < 1}
    if not less:
        assert found.choice == entry.choice
        assert found.why.endswith("back to back surely takes less energy")
        return
    near = [p for p, e in less.items() if e <= math.exp(visits) * min(less.values())]
    ms, joule = shares[found.choice]
    assert found.choice == (entry.usual if entry.usual in near else found.choice) in near
    assert entry.usual in near or ms == min(shares[each][0] for each in near)
    assert (found.time_ms, found.gain_interval) == (entry.time_ms * ms, None)
    assert found.gain == (1.0 if found.choice == entry.usual else pytest.approx(entry.gain / ms))
    assert f"{joule:.3g} J per run, {100 * (1 - joule):.0f} % less" in found.why
    assert f"at {100 * (ms - 1):+.1f} % of its time" in found.why


def test_the_time_back_to_back_is_not_that_alone(planted, entry):
    first, why = answered(planted(1.01, None, sustained_ms=0.8), entry, "sustained time")
    assert first.is_usual
    assert "0.8 ms back to back, 20 % less" in why
    assert first.expected_ms == pytest.approx(entry.time_ms * 1.01)
    # Of any other choice ratios follow from its time.
    own = replace(entry, improvement=1.5)
    other = own.choosing(-1, 1.25 * own.time_ms, "", None)
    assert (other.gain, other.improvement) == pytest.approx((own.gain / 1.25, 1.2))


def test_every_form_has_the_answers_of_the_objective(planted, entry, tmp_path):
    made = planted(1.01, 0.8)
    made = replace(made, stored=by_objective(made.stored, "energy"))
    questions = drawn(made, 200, np.random.default_rng(5))
    answering = Answering(made, tmp_path / "export")
    assert answering.disagreements(questions) == []
    between = [one for one in questions if one.kind == "between"]
    said = [made.answer(one.device, one.problem) for one in between]
    by_time = [
        "chosen by time: no energy is known of it here" in one.why
        for one in said
        if one.basis != "usual"
    ]
    assert all(by_time)
    assert len(by_time) > 10


def test_an_objective_is_a_name_and_maybe_a_loss(table):
    assert by_objective(table.stored, "time") is table.stored
    for text in ("time", "sustained time", "energy", "energy within 2%", "energy within 0.5 %"):
        assert re.match(OBJECTIVE, text)
    for text in ("time within 2%", "energy within", "energy within -1%", "energy 2%", "power", ""):
        assert not re.match(OBJECTIVE, text)


def test_figures_are_those_of_pairs_and_visits_those_of_two(stencil_spec, sweeps):
    rows = sweeps["card"].head(FEWEST + 1).assign(blind=False, energy_j=0.2, sustained_ms=1.5)
    rows.loc[rows.index[0], "energy_j"] = np.nan
    logs = np.linspace(-0.1, 0.09, len(rows))
    rows = rows.assign(**{APART[0]: logs, APART[1]: np.nan})
    assert apart(rows)["energy_j"] == apart(rows)["sustained_ms"]
    assert 0.09 < apart(rows)["energy_j"] < 0.1
    assert apart(rows.tail(FEWEST - 1)) == {}
    found = back_to_back(rows, stencil_spec, lambda one: 7)
    every = [one for some in found.values() for one in some]
    assert len(every) == len(rows)
    assert every[0] == Ran(7, rows["time_ms"].iloc[0], 1.5, None)
    assert {one.energy_j for one in every[1:]} == {0.2}
    assert back_to_back(rows.assign(sustained_ms=np.nan), stencil_spec, int) == {}


def test_a_product_keeps_what_ran_and_whoever_reads_it_names_the_objective(
    final, sweeps, domain, stencil_spec, tmp_path
):
    times = {gpu: judged_times(rows, (), stencil_spec) for gpu, rows in sweeps.items()}
    # The slower a configuration the less it takes.
    ran = {"energy_j": 1 / times["card"]["time_ms"], "sustained_ms": times["card"]["time_ms"]}
    times["card"] = times["card"].assign(**ran, energy_j_apart=0.01)
    table = answer_table(final, "tiles", times=times)
    by_name = {one.name: one for one in table.devices}
    assert by_name["card"].apart == {"energy_j": 0.01, "sustained_ms": 0.01}
    known = [one for one in table.entries if one.ran]
    assert {table.devices[one.device].name for one in known} == {"card"}
    for one in known:
        assert one.choice in {each.place for each in one.ran}
    path = tmp_path / "tiles.json"
    write_answer_table(path, table)
    assert read_answer_table(path, domain).entries == table.entries
    within = read_answer_table(path, domain, "energy within 10%")
    lost = [
        new.time_ms / old.time_ms
        for old, new in zip(table.entries, within.entries, strict=True)
        if old.choice != new.choice
    ]
    assert len(lost) > 3
    assert 1 < min(lost) <= max(lost) <= 1.1
