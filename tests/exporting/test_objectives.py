"""Answers by what launches take back to back: sustained time, energy, and no more than a loss."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from agreeing import changed
from answer_forms import Answering
from drawn_questions import drawn
from samples import ROOT

from launchwise.base.typed import read_yaml
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

    def make(slower, energy, sustained_ms=1.0, visits=VISITS):
        ran = (
            Ran(entry.choice, entry.time_ms, 1.0, 0.5),
            Ran(entry.usual, entry.time_ms * slower, sustained_ms, energy and 0.5 * energy),
        )
        entries = [replace(one, ran=ran) if one == entry else one for one in table.entries]
        known = {} if visits is None else {"energy_j": visits, "sustained_ms": visits}
        devices = tuple(replace(one, apart=known) for one in table.devices)
        return changed(table, entries=tuple(entries), devices=devices)

    return make


def answered(planted, entry, objective):
    """The answer by an objective, and its sentence."""
    made = replace(planted, stored=by_objective(planted.stored, objective))
    found = made.answer(made.devices[entry.device].name, made.problem(entry.problem))
    return found.suggestions[0], found.why


@pytest.mark.parametrize(
    ("objective", "slower", "energy", "changes"),
    read_yaml(ROOT / "tests/exporting/data/objectives.yaml"),
)
def test_a_choice_changes_where_another_takes_surely_less(
    planted, entry, objective, slower, energy, changes
):
    first, why = answered(planted(slower, energy), entry, objective)
    assert first.is_usual == changes
    if objective == "time":
        assert why == entry.why
    elif changes:
        assert first.expected_ms == pytest.approx(entry.time_ms * slower)
        assert (first.gain, first.gain_interval) == (1.0, None)
        assert f"{0.5 * energy:.3g} J per run, {100 * (1 - energy):.0f} % less" in why
        assert f"at {100 * (slower - 1):+.1f} % of its time" in why
    else:
        assert first.expected_ms == entry.time_ms
        assert "surely takes less" in why


def test_the_time_back_to_back_is_not_that_alone(planted, entry):
    first, why = answered(planted(1.01, None, sustained_ms=0.8), entry, "sustained time")
    assert first.is_usual
    assert "0.8 ms back to back, 20 % less" in why
    assert first.expected_ms == pytest.approx(entry.time_ms * 1.01)
    # Of any other choice ratios follow from its time.
    own = replace(entry, improvement=1.5)
    other = own.choosing(-1, 1.25 * own.time_ms, "")
    assert (other.gain, other.improvement) == pytest.approx((own.gain / 1.25, 1.2))


def test_without_two_visits_or_a_figure_of_the_choice_time_decides(planted, entry):
    said = "chosen by time: no energy is known of it here"
    for made in (planted(1.01, 0.1, visits=None), changed(planted(1.01, 0.1), entries=(entry,))):
        first, why = answered(made, entry, "energy")
        assert not first.is_usual
        assert why == f"{entry.why}; {said}"


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


def test_an_objective_is_a_name_and_maybe_a_loss():
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
