"""The report's numbers against values computed by hand (see tests/support/report_study.py)."""

import copy
import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

from launchwise.report.answer.model_tables import (
    losses_by_transfer,
    tables_of,
    transferred,
    verdicts,
)
from launchwise.report.numbers import (
    answering,
    best_model,
    best_rule,
    fixed_sets,
    fractions,
    leader,
    null_accuracy,
    scores_on,
    winners,
)
from tests.support.report_study import NARROW, WIDE, settings, study
from tests.support.shown import rows_of, with_sweeps


def row(table, **wanted):
    """The only row with these values."""
    found = table
    for name, value in wanted.items():
        found = found[found[name] == value]
    assert len(found) == 1
    return found.iloc[0]


def test_winners_hold_best_gain_rate_and_share_of_the_limit():
    best = winners(study())
    assert len(best) == 4
    small = row(best, gpu="big", n=102)
    assert small["best_ms"] == 1.0
    assert small["bx"] == NARROW["bx"]
    assert small["gain"] == pytest.approx(2.0)
    # 100^3 points in 1 ms; 16 bytes a point of 1000 GB/s.
    assert small["rate"] == pytest.approx(1.0)
    assert small["bytes_ms"] == pytest.approx(0.016)
    assert small["best_error"] == pytest.approx(0.001)
    assert small["configurations"] == 3
    large = row(best, gpu="big", n=202)
    assert large["bx"] == WIDE["bx"]
    assert large["rate"] == pytest.approx(2.0)


def test_the_error_of_the_best_is_of_the_best_row_itself():
    made = study()
    rows = made.measured
    best = rows.groupby(["gpu", "n"])["time_ms"].transform("min") == rows["time_ms"]
    # Launched once: it has no error of its own, and must not borrow the next configuration's.
    made.measured = rows.assign(error=rows["error"].mask(best, math.nan))
    small = row(winners(made), gpu="big", n=102)
    assert math.isnan(small["best_error"])


def test_losses_are_over_what_is_named_and_of_what_tells_nothing_unknown():
    made = study(("big",))
    rows = made.sweeps["big"].assign(error=0.01)
    own = (rows["n"] == 102) & (rows["status"] == "ok")
    least = rows.loc[own, "time_ms"].idxmin()
    slow = rows.loc[own, "time_ms"].idxmax()

    def reached(errors):
        changed = rows.assign(error=rows["error"].where(~rows.index.isin(errors), 1.0))
        found = dataclasses.replace(made, sweeps={"big": changed}, _known={})
        named = row(winners(found), gpu="big", n=102)["best_ms"]
        known = fractions(found)
        known = known[known["n"] == 102].set_index("time_ms")["fraction"]
        return named, [known.get(rows.loc[at, "time_ms"]) for at in (least, slow)]

    times = rows["time_ms"]
    second = times[own].nsmallest(2).iloc[1]
    assert reached([]) == (times[least], [1, times[least] / times[slow]])
    # The luck of the least is nobody's loss; what a disturbed row took is unknown, not 0.
    assert reached([least]) == (second, [None, second / times[slow]])
    assert reached([slow]) == (times[least], [1, None])


def test_few_fixed_configurations_add_what_gains_most():
    sets = fixed_sets(study())
    first, second = (row(sets, gpu="big", count=count) for count in (1, 2))
    assert [first["bx"], second["bx"]] == [NARROW["bx"], WIDE["bx"]]
    assert first["fraction"] == pytest.approx(math.sqrt(1.0 * 0.8))
    assert (first["worst"], second["worst"]) == (pytest.approx(0.8), 1)
    assert (first["problems"], first["at"]) == (2, "n=202, float32, order=2")
    # The baseline gains nothing beside both.
    assert sets.loc[sets["gpu"] == "big", "count"].max() == 2


def test_the_first_fixed_configuration_is_what_is_possible_everywhere():
    tiny = study(("big",))
    sweep = tiny.sweeps["big"]
    # NARROW is perfect where it exists, but it no longer exists at the larger size.
    gone = (sweep["n"] == 202) & (sweep["bx"] == NARROW["bx"])
    tiny.sweeps = {"big": sweep[~gone]}
    assert row(fixed_sets(tiny), gpu="big", count=1)["bx"] == WIDE["bx"]
    # What was compared with none is not the best.
    alone = study(("big",))
    alone.sweeps = {"big": sweep[sweep["bx"] == WIDE["bx"]]}
    assert fixed_sets(alone).empty


@pytest.mark.parametrize("timer", ["host", "device"])
@pytest.mark.parametrize("basis", ["sweep", "pairs"])
def test_single_rows_by_the_clock_of_a_host_say_nothing_for_sure(timer, basis):
    sweeps = study().sweeps.items()
    made = with_sweeps(study(), **{g: rows.assign(timer=timer, basis=basis) for g, rows in sweeps})
    sure, sets = (timer, basis) != ("host", "sweep"), fixed_sets(made)
    assert (sets["worst"].notna().all(), sets["at"].ne("").all()) == (sure, sure)
    assert (fractions(made)["at_most"] < 1).any() == sure


def test_scores_of_a_model_on_one_gpu():
    got = row(scores_on(study(), "sizes", "big"), model="knn")
    assert got["fraction"] == pytest.approx(math.sqrt(0.8))
    assert got["worst"] == pytest.approx(0.8)
    assert got["coefficient"] == pytest.approx(1.8)
    assert got["improved"] == 1.0
    assert got["accuracy"] == pytest.approx(0.5)
    assert got["mape"] == pytest.approx(10.0)
    assert got["unmeasured"] == 0


def test_scores_over_gpus_count_what_got_slower():
    got = row(scores_on(study(), "sizes", "all"), model="knn")
    assert got["improved"] == pytest.approx(0.5)
    assert got["coefficient"] == pytest.approx((2.0 + 1.6 + 0.8 + 0.8) / 4)
    assert got["least_gain"] == pytest.approx(0.8)
    assert got["fraction"] == pytest.approx((1.0 * 0.8 * 0.4 * 0.4) ** 0.25)


def test_scores_are_sorted_and_name_the_best_model():
    table = scores_on(study(), "sizes", "big")
    assert table["model"].iloc[0] == "oracle"
    assert table["fraction"].is_monotonic_decreasing
    assert best_model(table) == "knn"


def test_the_answering_model_leads_though_another_is_better_on_a_gpu():
    made = study()
    committee = {"kind": "committee", "members": ["knn", "nearest_size"], "caution": 6.0}
    own = dataclasses.replace(made, models={**made.models, "tree": committee})
    assert [leader(made, "sizes", gpu) for gpu in made.gpus] == ["knn", "tree"]
    assert [answering(own), *(leader(own, "sizes", gpu) for gpu in own.gpus)] == ["tree"] * 3


def test_the_strongest_rule_stands_beside_a_model():
    made = study()
    facts = copy.deepcopy(made.facts)
    models = facts["splits"]["sizes"]["all"]["models"]
    for name, fraction in (("usual", 0.7), ("nearest_size", 0.6)):
        models[name] = {**models["untuned"], "fraction_geometric_mean": fraction}
    made = dataclasses.replace(made, facts=facts, _known={})
    assert best_rule(made, "sizes", "all")["model"] == "usual"


def test_accuracies_are_shares():
    got = row(scores_on(study(), "sizes", "all"), model="tree")
    # WIDE is the best of three of the four problems.
    assert got["exact"] == pytest.approx(0.75)
    assert null_accuracy(study(), "sizes", "all") == pytest.approx(0.75)
    assert math.isnan(null_accuracy(study(), "sizes", "unknown"))


def test_scores_of_nothing_are_an_empty_table():
    assert scores_on(study(), "no such split", "big").empty
    assert best_model(scores_on(study(), "no such split", "big")) is None


def test_transfer_loss_of_both_directions():
    pairs = losses_by_transfer(study())
    out = row(pairs, source="big", target="big.sm4")
    assert out["loss"] == pytest.approx(1 / math.sqrt(0.4 * 1.0) - 1)
    reach = np.exp(1.96 * np.hypot(*study().measured["error"].iloc[[0, 0]]))
    assert out["worst"] == pytest.approx(2.5 / reach - 1)
    back = row(pairs, source="big.sm4", target="big")
    assert back["loss"] == pytest.approx(1 / math.sqrt(0.625 * 1.0) - 1)
    assert back["impossible"] == 0
    assert back["problems"] == 2
    # Where nothing can be told apart, the best is as the evaluation has it; the usual one is named.
    unsure = {
        gpu: rows.assign(error=rows["variant"].map({"linear": 0.01, "block3d": 0.9}))
        for gpu, rows in study().sweeps.items()
    }
    found = losses_by_transfer(with_sweeps(study(), **unsure))
    assert (found["worst"] == 0).all()
    pd.testing.assert_frame_equal(found.assign(worst=pairs["worst"]), pairs)
    # A single row by a host's clock loses nothing for sure.
    by_host = {
        gpu: rows.assign(timer="host", basis="sweep") for gpu, rows in study().sweeps.items()
    }
    assert (losses_by_transfer(with_sweeps(study(), **by_host))["worst"] == 0).all()


@pytest.mark.parametrize("disturbed", [False, True])
def test_transfer_counts_what_the_target_cannot_do(disturbed):
    tiny = study()
    sweep = tiny.sweeps["big.sm4"].assign(error=0.01)
    gone = (sweep["n"] == 102) & (sweep["bx"] == NARROW["bx"])
    unsure = sweep.assign(error=sweep["error"].mask(gone, 1.0))
    tiny.sweeps = {**tiny.sweeps, "big.sm4": unsure if disturbed else sweep[~gone]}
    out = row(losses_by_transfer(tiny), source="big", target="big.sm4")
    assert out["impossible"] == 1
    assert out["loss"] == pytest.approx(0.0)
    assert "'0.0 surely at worst, 1 problem without a sure time'" in repr(transferred(tiny))


GOALS = {"mean_speed_up": 1.17, "improved_percent": 95, "best_percent": 97}


def with_goals(tiny):
    """The study with figures to reach."""
    return dataclasses.replace(tiny, settings=settings(goals=GOALS))


def judged(made):
    return {one["figure"]: one["verdict"] for one in verdicts(made, "sizes")}


def test_goals_are_judged_on_whole_cards_only():
    assert judged(with_goals(study())) == {
        "mean speed-up, big": "reached",
        "problems improved (%), big": "reached",
        "fraction of the best, big": "missed",
    }
    (row, *_) = rows_of(tables_of(with_goals(study())), "Goals")
    assert row[1:] == ["> 1.170", "1.800", "kNN", "2.000", "reached"]


def test_a_goal_above_the_oracle_is_out_of_reach():
    tiny = study(("big",))
    for figures in tiny.facts["splits"]["sizes"]["big"]["models"].values():
        figures["improvement_coefficient"] = 1.1
    assert judged(with_goals(tiny))["mean speed-up, big"] == "missed, out of reach"


def test_a_study_without_goals_is_not_judged_by_those_of_another():
    assert verdicts(study(), "sizes") == []
