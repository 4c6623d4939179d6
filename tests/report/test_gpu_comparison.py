"""GPU comparison: entries by hand, their table, the power of cards, how far predictions are off."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from launchwise.base.errors import UserError
from launchwise.gpus.datasheets import CARDS_FILE, read_cards
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import least_ms
from launchwise.report.answer.predicted_times import UNKNOWN, Spread, off_in, spread, within
from launchwise.report.pages.gpu_comparison import data, entries, section, tdp_w
from launchwise.tables.rows import is_baseline
from tests.support.named_tables import named_table
from tests.support.report_study import study
from tests.support.samples import ROOT

APART = Spread(2.0, 20, ("t4",))
CARDS = read_cards(ROOT / CARDS_FILE)


def with_energy():
    """The study with 3 J per ms of the baseline and 2 J of the others, on ``big`` alone."""
    made = study()
    sweep = made.sweeps["big"]
    rate = np.where(is_baseline(sweep, made.spec), 3.0, 2.0)
    sweeps = {**made.sweeps, "big": sweep.assign(energy_j=rate * sweep["time_ms"])}
    return dataclasses.replace(made, sweeps=sweeps)


def with_prediction(time_ms=3.0):
    """The study with a datasheet-only GPU whose lookup answers one problem."""
    made = study()
    first = made.evaluation[made.evaluation["model"] == "knn"].iloc[0]
    answer = {
        "gpu": "card",
        "problem": {name: first[name] for name in made.problem_columns},
        "configuration": {name: first[name] for name in made.spec.tunable_columns},
        "time_ms": time_ms,
        "improvement": 2.0,
    }
    profile = made.profiles["big"].model_copy(update={"device_name": "t4", "name": "card"})
    table = named_table([answer], Domain(made.spec, {"card": profile}), made.name)
    return dataclasses.replace(made, table=table, described={"card": profile})


def by_case(made):
    return {(each.gpu, each.n): each for each in entries(made).itertuples()}


def test_measured_entries_hold_the_fastest_and_its_baseline():
    made = with_energy()
    found = by_case(made)
    assert set(found) == {("big", 102), ("big", 202), ("big.sm4", 102), ("big.sm4", 202)}
    one = found["big", 102]
    assert (one.basis, one.best_ms, one.baseline_ms) == ("measured", 1.0, 2.0)
    assert one.error == 0.001
    assert (one.energy_j, one.baseline_energy_j) == (2.0, 6.0)
    assert np.isnan(one.gain)
    assert np.isnan(found["big.sm4", 102].energy_j)
    rows = made.rows[(made.rows["gpu"] == "big") & (made.rows["n"] == 102)]
    assert one.least_ms == least_ms(rows, made.spec, made.profiles)[0]


def test_energy_is_of_the_row_that_is_named():
    made = with_energy()
    sweep = made.sweeps["big"]
    fastest = sweep.groupby("n")["time_ms"].transform("min") == sweep["time_ms"]
    without = sweep.assign(energy_j=sweep["energy_j"].mask(fastest))
    made = dataclasses.replace(made, sweeps={**made.sweeps, "big": without}, _known={})
    for n in (102, 202):
        # Others of its problem have an energy: theirs.
        assert without.loc[without["n"] == n, "energy_j"].notna().sum() > 1
        assert np.isnan(by_case(made)["big", n].energy_j)
        assert by_case(made)["big", n].baseline_energy_j > 0


def test_predicted_entries_have_the_times_of_the_lookup():
    one = by_case(with_prediction())["card", 102]
    assert (one.basis, one.best_ms, one.baseline_ms) == ("predicted", 3.0, 6.0)
    assert np.isnan(one.error)


def test_the_script_gets_each_problem_once():
    found = data(with_prediction(), APART)
    assert found["gpus"] == [
        {"name": "big", "basis": "measured", "kind": "whole"},
        {"name": "big.sm4", "basis": "measured", "kind": "slice"},
        {"name": "card", "basis": "predicted", "kind": "predicted"},
    ]
    assert found["problems"] == [[102, "float32", 2], [202, "float32", 2]]
    assert [entry[:3] for entry in found["entries"]] == [
        [0, 0, 1.0], [0, 1, 4.0], [1, 0, 2.0], [1, 1, 8.0], [2, 0, 3.0]
    ]  # fmt: skip
    ratios = {(gpu, other): numbers for gpu, other, *numbers in found["ratios"]}
    assert ratios[0, 1] == [False, 2, 2.0, None, None]
    assert ratios[2, 0] == [True, 1, pytest.approx(1 / 3, rel=1e-4), None, None]
    assert found["within"] == "within 2.0 times"


@pytest.mark.parametrize(("watts", "count"), [(699.0, 0), (701.0, 2)])
def test_energy_over_time_is_held_against_the_limit_as_it_is(watts, count):
    made = with_energy()
    sweep = made.sweeps["big"].assign(energy_j=lambda rows: watts * rows["time_ms"] / 1e3)
    profiles = {
        gpu: one.model_copy(update={"device_name": "h200"}) for gpu, one in made.profiles.items()
    }
    sweeps = {**made.sweeps, "big": sweep}
    hot = dataclasses.replace(made, sweeps=sweeps, profiles=profiles, _known={})
    assert len(data(hot, APART, CARDS)["above"]) == count


def test_power_is_that_of_the_whole_card():
    assert tdp_w("h200", "NVIDIA H200", CARDS) == 700
    assert tdp_w("h200.sm16", "NVIDIA H200", CARDS) == 700
    assert tdp_w("mine", "t4", CARDS) == 70
    assert tdp_w("mine", "Test GPU", CARDS) is None


def test_the_section_says_what_is_missing():
    made = section([with_prediction()], CARDS, {})
    block = made.blocks[0]
    assert (block.tdp_w, block.prices) == ({"card": 70.0}, {})
    assert data(with_prediction(), None)["predicted"] == UNKNOWN
    assert section([], CARDS, {}) is None


def published(ratios, **changes):
    """Published times of 2 ms that the trees predict with these ratios."""
    named = {"predictor": "learnt", "gpu": "t4", "phases": "", "runs": 1, "published_ms": 2.0}
    return pd.DataFrame({**named, "predicted_ms": 2 * np.array(ratios), **changes})


def test_intervals_rest_on_published_times(tmp_path):
    known = published([1.0] * 8 + [2.0, 0.5, 4.0])
    others = [published([99.0] * 20, **other) for other in (
        {"runs": 0}, {"phases": "stage 1"}, {"predictor": "roofline"}
    )]  # fmt: skip
    made = dataclasses.replace(study(), published_times=pd.concat([known, *others]))
    apart = spread([made.published_times])
    # Of eleven ratios the tenth is the 90th percentile.
    assert (apart.factor, apart.times, apart.gpus) == (pytest.approx(2.0), 11, ("t4",))
    assert "11 published" in apart.words
    assert within(apart) == "within 2.0 times"
    assert within(None) == "error unknown"
    assert spread([known.iloc[:9], None]) is None
    # As a command reads them.
    (tmp_path / "predictions").mkdir()
    path = tmp_path / "predictions" / "tiny.published.parquet"
    made.published_times.to_parquet(path)
    assert off_in(tmp_path) == within(apart)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UserError, match="predictions: cannot be read"):
        off_in(tmp_path)
    assert off_in(tmp_path / "predictions") == ""
