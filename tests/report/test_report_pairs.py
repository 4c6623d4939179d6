"""The section of gains in pairs, of pairs that are known."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from docs.generator.recorded_answers import saved_by_energy
from launchwise.base.robust import FASTER, NO_INTERVAL, TIE, UNDECIDED
from launchwise.experiment.study import Design
from launchwise.report import wording
from launchwise.report.answer.in_pairs import back_to_back, gains_in_pairs, relative
from launchwise.report.blocks import Section
from launchwise.report.numbers import contests, winners
from launchwise.report.pages import finder, index_page
from tests.support.report_study import study
from tests.support.shown import notes, rows_of, tables

PAIRED = {
    # The baseline and two others of either size; the baseline is usual.
    "roles": ["baseline+usual", "best", "near"] * 2,
    "gain": [1.0, 2.0, 1.5, 1.0, 1.2, 1.25],
    "gain_low": [1.0, 1.99, 1.4, 1.0, 1.1, 0.9],
    "gain_high": [1.0, 2.01, 1.6, 1.0, 1.3, 1.6],
    "rounds": [20, 20, 20, 10, 10, 10],
    "thrown": [0, 3, 0, 0, 0, 6],
    "throttle": [""] * 6,
    "clocks_mhz": [np.array([1980.0])] * 6,
    "card": "a",
    "measured_at": "2030-01-01T00:00:00+00:00",
}


def paired(**changes):
    """The tiny study with pairs on the card."""
    made = study()
    rows = made.sweeps["big"].iloc[:6].reset_index(drop=True)
    there = {"sustained_ms": np.nan, "energy_j": np.nan}
    rows = rows.assign(sweep_ms=rows["time_ms"]).assign(**{**PAIRED, **there, **changes})
    for end in ("", "_low", "_high"):
        rows[f"improvement{end}"] = rows[f"gain{end}"]
    return dataclasses.replace(made, pairs={"big": rows}, _known={})


def overview(made, over="usual choice"):
    """Rows of the first table, of comparisons with one thing."""
    caption = "Gains in pairs, over every problem that ran so; the overview page has test"
    return [row for row in rows_of(gains_in_pairs(made), caption) if row[2] == over]


def every(made, over="usual choice"):
    """Rows of the file, of comparisons with one thing, from the last part of the problem."""
    rows = rows_of(gains_in_pairs(made), "Every gain in pairs")
    return [row[3:] for row in rows if row[5] == over]


def test_a_gpu_is_one_row_over_the_fastest_of_its_problems():
    # The square root of 2 and 1.2: the sweep's fastest, not that of the rounds, whose gain of 1.25
    # they chose themselves. 3 of 30 pairs are discarded.
    (row,) = overview(paired())
    assert row[3:12] == ["2", "1.549", "1.200", "2.000", "2", "0", "0", "0", "0"]
    assert row[12:15] == ["10.0", "0", "0"]


def test_the_fastest_of_the_sweep_may_be_slower_in_pairs():
    limits = {"gain_low": [1.0, 0.85, 1.4] * 2, "gain_high": [1.0, 0.95, 1.6, 1.0, 1.3, 1.6]}
    limits["gain_low"][4] = 1.1
    (row,) = overview(paired(gain=[1.0, 0.9, 1.5, 1.0, 1.2, 1.25], **limits))
    assert row[4:10] == ["1.039", "0.900", "1.200", "1", "1", "0"]


def test_the_usual_choice_as_the_fastest_is_a_tie_that_counts():
    # It ran in no round: it has no rival.
    roles = ["baseline+usual+best", "", "near", "baseline+usual", "best", "near"]
    (row,) = overview(paired(roles=roles, rounds=[0, 20, 20, 10, 10, 10]))
    assert row[3:10] == ["2", "1.095", "1.000", "1.200", "1", "0", "1"]


def test_contests_without_the_usual_choice_or_the_named_answer_are_none():
    whole = paired()
    rows = whole.pairs["big"]
    best = winners(whole)
    best = best[best["gpu"] == "big"].iloc[:1]
    named = rows.reset_index().merge(best[[*whole.problem_columns, *whole.spec.tunable_columns]])
    assert len(named) == 1
    # At the second size the gain is over the baseline; at the first another row was the fastest.
    unusual = rows.assign(roles=[*PAIRED["roles"][:3], "baseline", "best", "near"])
    others = ["best" if row != named["index"][0] else "" for row in range(1, 3)]
    overtaken = rows.assign(roles=["baseline+usual", *others, *PAIRED["roles"][3:]])
    overtaken = overtaken.drop(index=named["index"])
    for pairs, gain in ((unusual, "2.000"), (overtaken, "1.200")):
        (row,) = overview(dataclasses.replace(whole, pairs={"big": pairs}, _known={}))
        assert row[3:5] == ["1", gain]


def test_every_gain_names_the_timer_of_its_rounds():
    made = paired(timer=["events"] * 3 + ["graph"] * 3)
    assert [row[-2] for row in every(made)] == ["events", "graph"]


def test_every_problem_has_its_fastest_and_the_verdict():
    assert [row[3:8] for row in every(paired(gain_low=[1.0, 1.99, 1.4, 1.0, 0.9, 1.1]))] == [
        ["2.000", "1.990 to 2.010", FASTER, "17", "3"],
        ["1.200", "0.900 to 1.300", UNDECIDED, "10", "0"],
    ]
    # Less than six rounds: the ratio is all that is known.
    made = paired(gain_low=math.nan, gain_high=math.nan)
    assert {row[5] for row in every(made)} == {NO_INTERVAL}
    assert overview(made)[0][7:12] == ["0", "0", "0", "0", "2"]


def test_without_pairs_there_is_no_section():
    assert gains_in_pairs(study()) is None


def test_problems_under_a_power_cap_are_counted_and_not_discarded():
    throttle = ["", "", "sw_power_cap", "", "idle+sw_power_cap", ""]
    shares = [[row[13] for row in overview(made)] for made in (paired(), paired(throttle=throttle))]
    # The fastest of the second size, not of the first.
    assert shares == [["0"], ["50"]]


def test_a_sweep_is_paid_by_what_launches_save():
    made = paired()
    rows = made.sweeps["big"]
    moments = [f"2026-11-30T10:00:{place:02}Z" for place in range(len(rows))]
    made.sweeps["big"] = rows.assign(measured_at=moments, card="one")
    (row,) = overview(made)
    known = contests(made, "big")
    saved_ms = (known["time_ms"] * (known["gain"] - 1)).mean()
    assert row[-1] == wording.count(math.ceil(1e3 * (len(rows) - 1) / saved_ms))


def test_back_to_back_is_compared_with_the_same_launches_alone():
    there = {
        "time_ms": [2.0, 1.0, 1.5, 4.0, 2.0, 2.0],
        # The first problem's fastest is slower there, the second's as fast as alone.
        "sustained_ms": [2.2, 2.4, np.nan, 4.0, 2.0, np.nan],
        "energy_j": [0.88, 1.2, np.nan, 2.0, 0.5, np.nan],
    }
    rows = paired(roles=["usual", "best", "near"] * 2, **there).pairs["big"]
    every = pd.concat([rows.assign(n=rows["n"] + more) for more in (0, 1, 2)])
    # A problem whose usual choice has no energy, and ten times its time.
    lacking = rows.iloc[:3].assign(n=7, sustained_ms=[22.0, 2.4, np.nan], energy_j=[np.nan, 1.2, 0])
    made = dataclasses.replace(study(), pairs={"big": pd.concat([every, lacking])}, _known={})
    (row,) = rows_of(gains_in_pairs(made), "Launches back to back")
    # 2 and 2 alone; 2.2 / 2.4 and 2 there; .88 / 1.2 and 4 in energy.
    assert row == [
        "big",
        "usual choice",
        "6",
        "2.000",
        "1.354",
        "1.713",
        "1.700",
        "375",
        "0.850",
        "3",
    ]
    library = every[every["roles"] == "usual"].assign(peer="cublas", energy_j=[0.25] * 5 + [None])
    changes = {}, {"card": "another"}, {"measured_at": "2031-01-01T00:00:00+00:00"}
    for change, compared in zip(changes, ([["cublas", "5"]], [], []), strict=True):
        beside = {"big": library.assign(**change)}
        shown = Section("", "", back_to_back(dataclasses.replace(made, peers=beside)))
        assert [one[1:3] for one in rows_of(shown, "")[1:]] == compared
        assert ("5 rows of libraries have no" in notes([shown])[-1]) == (not compared)
    # Four problems are too few.
    few = dataclasses.replace(made, pairs={"big": every[every["n"] > every["n"].min() + 1]})
    assert not back_to_back(few)


def test_energy_saved_at_a_small_loss_is_that_of_the_allowed_alone():
    # Fastest, then another at a loss: of three problems.
    rows = pd.DataFrame(
        {
            "n": [1, 1, 2, 2, 3, 3],
            "roles": ["best", "usual"] * 3,
            "time_ms": [1.0, 1.019, 1.0, 1.03, 1.0, 0.99],
            "energy_j": [1.0, 0.8, 1.0, 0.5, 1.0, 0.95],
        }
    )
    rows = rows.assign(sustained_ms=1.0, card="a", measured_at="2030-01-01T00:00:00+00:00")
    known = relative(rows, rows, ["n"])
    saved, changed, problems = saved_by_energy(known, ["n"])
    # Nothing but the fastest is left at the second: it could not save anything.
    assert (saved, changed, problems) == (pytest.approx(1 - (0.8 * 0.95) ** (1 / 2)), 2, 2)
    surely, sure, _ = saved_by_energy(known, ["n"], 0.9)
    assert (surely, sure) == (pytest.approx(1 - 0.8 ** (1 / 2)), 1)
    assert saved_by_energy(known[known["n"] == 2], ["n"])[2] == 0


def with_library():
    made = study()
    problem = made.sweeps["big"][made.problem_columns].iloc[[0, 3]].reset_index(drop=True)
    rows = problem.assign(
        peer="cublas", version="13", reason=["", "no memory"], time_ms=[2.0, np.nan], rounds=[10, 0]
    ).assign(thrown=0, throttle="", timer="graph")
    for name, factor in (("speedup", 2.0), ("usual_speedup", 1.0)):
        for end, width in (("", 0.0), ("_low", -0.01), ("_high", 0.01)):
            rows[f"{name}{end}"] = [factor + width, np.nan]
    return dataclasses.replace(made, peers={"big": rows})


def test_kinds_of_problems_that_a_library_serves_otherwise_stand_apart():
    made = with_library()
    sizes = made.peers["big"]["n"].tolist()
    kinds = {"small": f"n == {sizes[0]}", "all others": "1 == 1"}
    made.settings.peer_kinds.update(kinds)
    try:
        for name in kinds:
            found = overview(made, f"cublas (13), {name}")
            assert [row[1] for row in found] == ["fastest", "usual choice"]
            assert [row[3] for row in found] == [str(int(name == "small"))] * 2
        assert not overview(made, "cublas (13)")
    finally:
        made.settings.peer_kinds.clear()


def test_a_library_is_compared_with_the_fastest_and_with_the_usual_choice():
    found = overview(with_library(), "cublas (13)")
    assert [[row[1], *row[3:5], *row[7:11], row[14]] for row in found] == [
        ["fastest", "1", "2.000", "1", "0", "0", "0", "1"],
        ["usual choice", "1", "1.000", "0", "0", "1", "0", "1"],
    ]


def test_a_library_that_is_faster_is_named_beside_the_verdict_and_the_answer():
    made = with_library()
    rows = made.peers["big"]
    for factor, slower in ((1.0, 0), (0.25, 1)):
        ratios = {f"speedup{end}": factor * rows[f"speedup{end}"] for end in ("", "_low", "_high")}
        known = dataclasses.replace(made, peers={"big": rows.assign(**ratios)}, _known={})
        (table,) = tables(index_page.sections([known])[-1])
        said = f"best / cublas {2 * factor:.2f}, slower at {slower} of 1" if slower else ""
        assert table.rows[0].cells[2].detail == said
        ((problem, name, ratio, *_),) = finder.libraries(known)["big"]
        assert (problem, name) == ([*rows.iloc[0][made.problem_columns]], "cublas (13)")
        assert ratio == 2 * factor


OTHERS = {"others": Design(title="narrow blocks alone", candidates={"bx": [32]})}


def designed(roles, sweep_ms, **columns):
    """The tiny study with pairs on the card: the baseline, NARROW and WIDE of two sizes."""
    made = paired()
    rounds = np.arange(20)
    # NARROW takes 1.5 times as long as WIDE in every round, whatever the round's clock.
    slow = [3.0, 1.5, 1.0] * 2
    rows = made.pairs["big"].assign(
        roles=roles * 2,
        sweep_ms=sweep_ms * 2,
        rounds=20,
        times_ms=[factor * (1 + 0.1 * (rounds % 3)) for factor in slow],
        clocks_mhz=[np.full(20, 1980.0)] * 6,
        **columns,
    )
    settings = made.settings.model_copy(update={"designs": OTHERS})
    return dataclasses.replace(made, settings=settings, pairs={"big": rows}, _known={})


THREE = ["baseline+usual", "design", "best"]


def test_the_gain_over_a_part_is_that_of_the_same_rounds():
    made = designed(THREE, [3.0, 1.6, 1.0])
    (row,) = overview(made, "narrow blocks alone")
    assert row[3:8] == ["2", "1.500", "1.500", "1.500", "2"]
    assert [row[3] for row in every(made, "narrow blocks alone")] == ["1.500"] * 2


def test_what_differs_between_visits_is_no_gain_over_a_part():
    made = designed(THREE, [3.0, 1.6, 1.0])
    for error, verdict in ((0.01, FASTER), (0.2, UNDECIDED)):
        sweeps = {gpu: rows.assign(error=error) for gpu, rows in made.sweeps.items()}
        rows = every(dataclasses.replace(made, sweeps=sweeps, _known={}), "narrow blocks alone")
        assert [row[5] for row in rows] == [verdict] * 2


def test_a_design_that_holds_the_fastest_gains_nothing():
    made = designed(["baseline+usual", "best+design", "near"], [3.0, 0.9, 1.0])
    assert [row[5] for row in every(made, "narrow blocks alone")] == [TIE, TIE]


def test_a_design_has_its_fastest_row_of_the_rounds():
    made = designed(THREE, [3.0, 1.6, 1.0])
    # The row that the sweep chose took four times as long as another of the design.
    rows = made.pairs["big"]
    disturbed = rows[rows["roles"] == "design"].assign(by=2, sweep_ms=1.5)
    disturbed = disturbed.assign(times_ms=[4 * times for times in disturbed["times_ms"]])
    disturbed["time_ms"] *= 4
    # Nor does one count that ran alone.
    alone = disturbed.assign(by=8, rounds=0, time_ms=1e-6)
    made.pairs = {"big": pd.concat([rows, disturbed, alone], ignore_index=True)}
    assert [row[3] for row in every(made, "narrow blocks alone")] == ["1.500"] * 2


def test_rounds_on_a_hindered_card_give_no_gain():
    made = designed(THREE, [3.0, 1.6, 1.0], throttle=["", "sw_thermal", ""] * 2)
    (row,) = overview(made, "narrow blocks alone")
    assert row[3:8] == ["0", "–", "–", "–", "0"]


@pytest.mark.parametrize("designs", [{}, {"other": Design(title="x", candidates={"bx": [7]})}])
def test_without_a_design_or_its_rows_nothing_is_said_of_it(designs):
    data = designed(THREE, [3.0, 1.6, 1.0])
    settings = data.settings.model_copy(update={"designs": designs})
    assert overview(dataclasses.replace(data, settings=settings, _known={}), "x") == []
