"""Times are judged once: by pairs where a configuration ran in any, else by the sweep."""

from __future__ import annotations

import itertools
import math
import runpy
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import stencil
import yaml
from samples import ROOT
from studies import by_size, study

from launchwise.base.errors import UserError
from launchwise.base.robust import EQUAL
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import RATIOS, measurement_schema, pairs_schema
from launchwise.tables.rows import DEFAULT_ERROR, UNTOLD, Z95, fastest_rows, row_numbers, tied
from launchwise.tables.times import (
    JUDGED,
    PAIRS,
    by_sweep,
    judged_times,
    not_in_sweep,
    times_schema,
    with_judged_limits,
    with_judged_times,
)
from launchwise.workflow.bringing import judged_of_studies
from launchwise.workloads.spec import Spec, load_spec

GAINS = ["gain_low", "gain_high"]
RECORDED = ROOT / "data" / "recorded" / "h200"
MADE = "made up"
STUDIES = {
    folder.parents[1].name: folder.name
    for folder in sorted(ROOT.glob("kernels/*/studies/*/"))
    if (RECORDED / f"{folder.name}.pairs.parquet").is_file()
}
"""Workload to one of its studies that was compared in pairs."""


@dataclass(frozen=True)
class Recorded:
    """Sweep and pairs of a study as recorded, or made up, and what is judged from them."""

    spec: Spec
    sweep: pd.DataFrame
    pairs: pd.DataFrame
    times: pd.DataFrame


def swept(spec, sizes):
    """A sweep of so many sizes with each of two types and two orders."""
    parts = [
        stencil.sweep(spec, (200, 256, 300, 400, 450, 512)[:sizes], "card", dtype, order)
        for dtype, order in itertools.product(("float32", "float64"), (2, 8))
    ]
    return pd.concat(parts, ignore_index=True)


def is_usual(sweep, spec):
    (usual,) = spec.usual
    named = {**usual.configuration, "row_padding": 0}
    return pd.Series(
        np.logical_and.reduce([sweep[name].eq(value) for name, value in named.items()]),
        index=sweep.index,
    )


def made_pairs(spec, sweep, generator=None):
    """Six rounds of the usual choice and of the four fastest rows of each problem of a sweep.

    Each takes a little less than in the sweep, by another share. With a generator twelve noisy
    rounds of the usual choice and of four rows that it draws, with the ratios of the sweep.
    """
    order = sweep["time_ms"] if generator is None else pd.Series(generator.random(len(sweep)))
    ranks = order[sweep["time_ms"].notna()].groupby([sweep[name] for name in spec.problem_columns])
    usual = is_usual(sweep, spec)
    rows = sweep.assign(is_usual=usual)[usual | (ranks.rank().reindex(sweep.index) <= 4)]
    rows = rows.reset_index(drop=True)
    paired_ms = rows["time_ms"] * np.random.default_rng(7).uniform(0.97, 0.99, len(rows))
    noise = np.tile(np.linspace(0.998, 1.003, 6), (len(rows), 1))
    if generator is not None:
        noise = np.exp(generator.normal(0, 0.004, (len(rows), 12)))
        paired_ms = rows["time_ms"] * np.median(noise, axis=1)
    usual_ms = paired_ms.where(rows["is_usual"])
    gain = usual_ms.groupby([rows[name] for name in spec.problem_columns]).transform("max")
    gain = gain / paired_ms
    ratios = {
        f"{name}{suffix}": factor * gain
        for name in RATIOS
        for suffix, factor in (("", 1.0), ("_low", 0.999), ("_high", 1.001))
    }
    rounds = list((paired_ms / np.median(noise, axis=1)).to_numpy()[:, None] * noise)
    return rows.assign(
        roles="best",
        sweep_ms=rows["time_ms"],
        time_ms=paired_ms,
        times_ms=pd.Series(rounds, rows.index),
        clocks_mhz=pd.Series([np.full(noise.shape[1], 1980.0)] * len(rows), rows.index),
        rounds=noise.shape[1],
        thrown=0,
        earlier_gain=np.nan,
        **ratios,
    )[list(pairs_schema(spec).columns)]


@pytest.fixture(params=[MADE, *STUDIES], scope="module")
def recorded(request, stencil_spec):
    if request.param == MADE:
        spec = stencil_spec
        sweep = swept(spec, 6)
        pairs = made_pairs(spec, sweep)
        pairs_schema(spec).insist("pairs", pairs)
    else:
        workload = request.param
        spec = load_spec(ROOT / "kernels" / workload)
        sweep = read_table(RECORDED / f"{workload}.parquet", measurement_schema(spec))
        pairs = read_table(RECORDED / f"{STUDIES[workload]}.pairs.parquet", pairs_schema(spec))
        # Problems without pairs would take most of the time.
        compared = pairs[spec.problem_columns].drop_duplicates()
        sweep = sweep.merge(compared, on=spec.problem_columns)
    return Recorded(spec, sweep, pairs, judged_times(sweep, [pairs], spec))


@pytest.mark.parametrize("is_paired", [True, False])
def test_a_problem_that_was_swept_since_its_blind_test_is_one_of_the_sweep(stencil_spec, is_paired):
    sizes = (200, 300), (300, 345)
    own, drawn = (stencil.sweep(stencil_spec, each, "card", "float32", 2) for each in sizes)
    pairs = {"a": made_pairs(stencil_spec, own[own["n"] == 200])} if is_paired else {}
    blind = {"a": (drawn, made_pairs(stencil_spec, drawn))}
    found = judged_of_studies({"a": study("stencil")}, own, pairs, blind, stencil_spec)["a"]
    assert not found.duplicated(stencil_spec.key_columns).any()
    assert found.groupby("n")["blind"].unique().map(list).to_dict() == {
        200: [False],
        300: [False],
        345: [True],
    }
    paired = set(found.loc[found["basis"] == PAIRS, "n"])
    assert paired == ({200, 300, 345} if is_paired else {300, 345})


# Problems of several studies


def of_two(spec):
    """Two studies that ask about two sizes both, and their pairs, which share the usual choice
    alone. It and the slow kernels, of the second study, ran an eighth faster than in the sweep.
    """
    sweep = stencil.sweep(spec, (200, 256, 300, 345), "card", "float32", 2)
    parts = (200, 256, 300), (256, 300, 345)
    asked = {
        name: study("stencil", splits=by_size(sizes[:1], sizes[1:]))
        for name, sizes in zip("ab", parts, strict=True)
    }
    usual, best = is_usual(sweep, spec), sweep["time_ms"].groupby(sweep["n"]).transform("min")
    sweep.loc[usual, "time_ms"] *= 1.3
    slow = (sweep["time_ms"] > 1.3 * best) | usual
    ran = sweep.assign(time_ms=sweep["time_ms"] * np.where(slow, 0.875, 1.0))
    tables = [ran[~slow | usual], ran[slow]]
    pairs = {
        name: made_pairs(spec, rows[rows["n"].isin(sizes)])
        for name, rows, sizes in zip("ab", tables, parts, strict=True)
    }
    return sweep, asked, pairs


def test_a_row_of_several_studies_has_one_time(stencil_spec):
    spec, columns = stencil_spec, ["time_ms", "time_low_ms", "error", "basis", "level"]
    sweep, asked, pairs = of_two(spec)
    together = judged_of_studies(asked, sweep, pairs, {}, spec)
    both = [rows.set_index(spec.key_columns)[columns] for rows in together.values()]
    shared = both[0].index.intersection(both[1].index)
    assert len(shared) > 100
    pd.testing.assert_frame_equal(both[0].loc[shared], both[1].loc[shared])
    alone = [judged_of_studies({name: asked[name]}, sweep, pairs, {}, spec)[name] for name in asked]
    times = [rows.set_index(spec.key_columns).loc[shared, "time_ms"] for rows in alone]
    assert (abs(times[0] / times[1] - 1) > 0.05).sum() == 2  # the usual choice of both
    # Each study's own ratios stand: but for the usual choice they share nothing.
    for name, rows in together.items():
        joined = pairs[name].merge(rows, on=spec.key_columns, suffixes=("", "_now"))
        usual = joined["time_ms_now"].where(joined["gain"] == 1).groupby(joined["n"])
        ratios = usual.transform("max") / joined["time_ms_now"]
        assert np.allclose(ratios, joined["gain"], rtol=1e-9)


def test_ratios_that_contests_dispute_lie_between_them_and_within_their_intervals(stencil_spec):
    spec, (sweep, asked, pairs) = stencil_spec, of_two(stencil_spec)
    ran = pairs["a"][pairs["a"]["n"] > 200].reset_index(drop=True)
    others = {
        f"gain{end}": ran[f"gain{end}"].where(ran["gain"] == 1, 1.2 * ran[f"gain{end}"])
        for end in ("", "_low", "_high")
    }
    pairs["b"] = ran.assign(**others)
    for name, rows in judged_of_studies(asked, sweep, pairs, {}, spec).items():
        own = with_judged_limits(pairs[name], rows, spec).merge(rows, on=spec.key_columns)
        own = own[own["n"] > 200]
        usual_ms = own["time_ms_y"].where(own["gain"] == 1).groupby(own["n"]).transform("max")
        ratio = usual_ms / own["time_ms_y"]
        assert ratio.between(own["gain_low"] * 0.9999, own["gain_high"] * 1.0001).all()
        away = np.log(ratio / own["gain"]).abs()[own["gain"] != 1]
        assert away.to_numpy() == pytest.approx(np.log(1.2) / 2)


def test_what_was_not_compared_is_at_the_level_of_the_nearest_contest(stencil_spec):
    sweep, asked, pairs = of_two(stencil_spec)
    found = judged_of_studies(asked, sweep, pairs, {}, stencil_spec)["b"]
    once = found[(found["basis"] == "sweep") & found["n"].isin([256, 300])]
    ratios = once["time_ms"] / once["sweep_ms"]
    best = once["sweep_ms"].groupby(once["n"]).transform("min")
    assert ratios[once["sweep_ms"] < 1.05 * best].sub(1).abs().max() < 0.02
    assert ratios[once["sweep_ms"] > 1.5 * best].max() < 0.98
    assert (found.loc[found["n"] == 345, "level"] == 1).all()


def test_contests_that_share_nothing_stand_as_the_sweep_says(stencil_spec):
    sweep, asked, pairs = of_two(stencil_spec)
    usual = pairs["b"]["gain"] == 1
    apart = {**pairs, "b": pairs["b"][~usual].reset_index(drop=True)}
    found = judged_of_studies(asked, sweep, apart, {}, stencil_spec)["b"]
    paired = found.merge(apart["b"][stencil_spec.key_columns])
    assert len(paired) > 8
    assert (abs(paired["time_ms"] / paired["sweep_ms"] - 1) < 0.05).all()


def test_a_problem_of_a_blind_test_that_another_study_swept_has_the_time_of_that(stencil_spec):
    sweep, asked, pairs = of_two(stencil_spec)
    drawn = stencil.sweep(stencil_spec, (345,), "card", "float32", 2)
    blind = {"a": (drawn, made_pairs(stencil_spec, drawn))}
    found = judged_of_studies(asked, sweep, pairs, blind, stencil_spec)
    own, other = (rows[rows["n"] == 345].reset_index(drop=True) for rows in found.values())
    assert len(own) == len(drawn)
    pd.testing.assert_frame_equal(own, other)


def test_studies_of_other_problems_are_judged_as_alone(stencil_spec):
    sweep, asked, pairs = of_two(stencil_spec)
    asked["c"] = study("stencil", splits=by_size([512], [1024]))
    more = stencil.sweep(stencil_spec, (512, 1024), "card", "float32", 2)
    every = pd.concat([sweep, more], ignore_index=True)
    pairs["c"] = made_pairs(stencil_spec, more)
    found = judged_of_studies(asked, every, pairs, {}, stencil_spec)["c"]
    alone = judged_times(more, [pairs["c"]], stencil_spec)
    pd.testing.assert_frame_equal(found.drop(columns="sweep_row"), alone.drop(columns="sweep_row"))


def test_ratios_are_those_of_the_pairs(recorded):
    spec = recorded.spec
    joined = recorded.pairs.merge(recorded.times, on=spec.key_columns, suffixes=("", "_now"))
    joined = joined[joined["gain"].notna() & joined["time_ms_now"].notna()]
    usual = joined[joined["gain"] == 1.0].drop_duplicates(spec.problem_columns)
    both = joined.merge(
        usual[[*spec.problem_columns, "time_ms_now"]],
        on=spec.problem_columns,
        suffixes=("", "_of_usual"),
    )
    assert len(both) > 50
    ratios = both["time_ms_now_of_usual"] / both["time_ms_now"]
    assert (abs(ratios / both["gain"] - 1) < 1e-9).all()


def test_the_basis_is_said_of_each_row(recorded):
    spec, times = recorded.spec, recorded.times
    ran = recorded.pairs[recorded.pairs["gain"].notna()]
    compared = set(ran[spec.key_columns].itertuples(index=False, name=None))
    keys = list(times[spec.key_columns].itertuples(index=False, name=None))
    for key, row in zip(keys, times.itertuples(), strict=True):
        if np.isnan(row.time_ms):
            assert row.basis == ""
        else:
            assert row.basis == ("pairs" if key in compared else "sweep")
    swept = times["basis"] == "sweep"
    assert times.loc[swept, "time_ms"].equals(times.loc[swept, "sweep_ms"])
    assert (times["basis"] == "pairs").sum() > 30
    assert times["sweep_ms"].equals(recorded.sweep["time_ms"].reset_index(drop=True))


def test_what_ran_alone_is_in_no_pair(recorded):
    spec, pairs = recorded.spec, recorded.pairs
    kept = pairs[pairs["gain"] == 1].drop_duplicates(spec.problem_columns)
    alone = kept.assign(rounds=0, time_ms=np.nan)
    assert len(alone) > 5
    times = judged_times(recorded.sweep, [alone], spec)
    assert set(times["basis"]) <= {"sweep", ""}
    assert times["ratio_error"].isna().all()
    assert not_in_sweep(alone, times.iloc[:0], spec).empty


def test_a_row_whose_repeats_disagree_yields_to_the_one_that_chose_the_pairs(stencil_spec):
    sweep = stencil.sweep(stencil_spec, (200, 256, 300), "card", "float32", 2)
    pairs = made_pairs(stencil_spec, sweep)
    key = pairs[stencil_spec.key_columns].iloc[0]
    row = sweep.index[(sweep[stencil_spec.key_columns] == key).all(axis=1)]
    earlier_ms = sweep.loc[row, "time_ms"].item()
    sweep.loc[row, "time_ms"] = 1.7 * earlier_ms
    for error, held_ms in (
        (sweep["relative_error"].median(), 1.7 * earlier_ms),
        (0.12, earlier_ms),
    ):
        sweep.loc[row, "relative_error"] = error
        times = judged_times(sweep, [pairs], stencil_spec).set_axis(sweep.index)
        assert times.loc[row, "sweep_ms"].item() == held_ms


def test_a_row_whose_repeats_disagree_and_has_no_earlier_one_tells_nothing(stencil_spec):
    sweep = stencil.sweep(stencil_spec, (200, 256, 300), "card", "float32", 2)
    pairs = made_pairs(stencil_spec, sweep)
    paired = pairs[stencil_spec.key_columns].apply(tuple, axis=1)
    own = ~sweep[stencil_spec.key_columns].apply(tuple, axis=1).isin(paired)
    row = sweep.index[own & sweep["time_ms"].notna()][0]
    # Far from what the sweep's others have, though below what any row may have.
    for error, tells in ((sweep["relative_error"].median(), True), (0.09, False)):
        sweep.loc[row, "relative_error"] = error
        times = judged_times(sweep, [pairs], stencil_spec).set_axis(sweep.index)
        assert (times.loc[row, "error"] < UNTOLD) == tells
        assert (times["error"].drop(index=row).dropna() < UNTOLD).all()
        groups = np.zeros(2, dtype=np.int64)
        twice = times.loc[[row, row]].assign(error=[times.loc[row, "error"], 0.01])
        assert tied(twice, groups).tolist() == [tells, True]


def test_what_ran_back_to_back_is_that_of_the_pairs(recorded):
    spec = recorded.spec
    pairs = recorded.pairs.assign(energy_j=0.3, sustained_ms=recorded.pairs["time_ms"] * 1.2)
    found = judged_times(recorded.sweep.assign(energy_j=0.2), [pairs], spec)
    ran = found[found["energy_j"].notna()]
    assert len(ran) == len(recorded.pairs.merge(found[spec.key_columns]))
    assert (ran["energy_j_apart"].dropna() == np.log(0.3 / 0.2)).all()
    own = ran.merge(pairs, on=spec.key_columns, suffixes=("", "_there"))
    assert own["sustained_ms"].equals(own["sustained_ms_there"])


def test_what_lost_every_round_is_never_named(recorded):
    """However noisy the usual choice is, whose ratios the times come from."""
    spec, key = recorded.spec, recorded.spec.key_columns
    timed = recorded.times[recorded.times["time_ms"].notna()]
    ran = recorded.pairs[recorded.pairs["gain"].notna()]
    ran = ran.merge(timed[key]).sort_values("gain", ascending=False)
    best = ran.drop_duplicates(spec.problem_columns)[[*spec.problem_columns, "times_ms"]]
    ran = ran.merge(best, on=spec.problem_columns, suffixes=("", "_of_best"))
    ratios = [
        own / best for own, best in zip(ran["times_ms"], ran["times_ms_of_best"], strict=True)
    ]
    lost = np.array([len(each) > 5 and min(each) > 1 and np.median(each) > 1.03 for each in ratios])
    assert lost.sum() > 10
    losers = set(ran.loc[lost, key].itertuples(index=False, name=None))
    named = fastest_rows(timed, spec.problem_columns, spec)
    assert losers.isdisjoint(named[key].itertuples(index=False, name=None))
    # Nor does it tie.
    near = timed[tied(timed, row_numbers(timed, spec.problem_columns))]
    assert losers.isdisjoint(near[key].itertuples(index=False, name=None))


def test_slow_configurations_that_moved_do_not_move_the_fast_ones(recorded):
    """Planted: the usual choice and the baseline ran a fifth faster in pairs than in the sweep."""
    spec, pairs = recorded.spec, recorded.pairs.copy()
    by_problem = [pairs[name] for name in spec.problem_columns]
    most = pairs["gain"].groupby(by_problem).transform("max")
    slow = pairs["gain"] < most / 1.5
    gains = [name for name in pairs if name.startswith("gain")]
    pairs.loc[~slow, gains] *= 0.8
    moved = judged_times(recorded.sweep, [pairs], spec)
    keys = pd.MultiIndex.from_frame(moved[spec.key_columns])
    fast = keys.isin(
        pd.MultiIndex.from_frame(pairs.loc[pairs["gain"].notna() & ~slow, spec.key_columns])
    )
    assert fast.sum() > 20
    now, before = moved.loc[fast, "time_ms"], recorded.times.loc[fast, "time_ms"]
    assert np.allclose(now, before, rtol=1e-9)


def test_what_stopped_early_sets_no_level(stencil_spec):
    """Planted: a busy host launched the fastest of a problem late, in the sweep alone."""
    sweep = swept(stencil_spec, 2)
    pairs = made_pairs(stencil_spec, sweep)
    ranks = pairs["gain"].groupby([pairs[name] for name in stencil_spec.problem_columns]).rank()
    near = is_usual(pairs, stencil_spec) | (ranks == ranks.max())
    pairs = pairs[near].reset_index(drop=True)
    fastest = pairs[pairs["n"] == 200].sort_values("gain")[-1:][stencil_spec.key_columns]
    late = sweep[stencil_spec.key_columns].eq(fastest.iloc[0]).all(axis=1)
    assert late.sum() == 1
    once = sweep.assign(
        status=sweep["status"].astype(object).mask(late, "slow"),
        time_ms=sweep["time_ms"].mask(late, 8 * sweep["time_ms"]),
    )
    found, before = (judged_times(each, [pairs], stencil_spec) for each in (once, sweep))
    paired = found["basis"] == PAIRS
    ratio = found.loc[paired, "time_ms"] / before.loc[paired, "time_ms"]
    assert ratio.between(0.98, 1.02).all()
    # Nothing else says a level where all of them stopped early.
    every = once.assign(status=np.where(paired, "slow", once["status"]))
    assert judged_times(every, [pairs], stencil_spec)["time_ms"].notna().all()


def test_stored_and_beside_the_sweep_they_are_the_same(recorded, tmp_path):
    spec, sweep, path = recorded.spec, recorded.sweep, tmp_path / "times.parquet"
    write_table(path, recorded.times, times_schema(spec))
    again = read_table(path, times_schema(spec))
    pd.testing.assert_frame_equal(again, recorded.times)
    found = with_judged_times(sweep, again, spec)
    assert found.drop(columns=[*JUDGED]).equals(sweep.drop(columns="time_ms"))
    for name in JUDGED:
        assert found[name].tolist() == again[name].tolist() or found[name].equals(again[name])
    # Times of a blind test are of rows of another file.
    both = pd.concat([again, again.assign(blind=True, time_ms=9 * again["time_ms"])])
    pd.testing.assert_frame_equal(with_judged_times(sweep, both, spec), found)


def test_what_was_not_asked_about_keeps_its_time(recorded):
    spec, sweep = recorded.spec, recorded.sweep
    asked = sweep["time_ms"].notna() & (np.arange(len(sweep)) % 3 == 0)
    few = judged_times(sweep[asked], [recorded.pairs], spec)
    found = with_judged_times(sweep, few, spec)
    assert found.loc[~asked, "time_ms"].equals(sweep.loc[~asked, "time_ms"])
    assert found.loc[~asked, "time_low_ms"].isna().all()
    assert found.loc[asked, "time_ms"].tolist() == few["time_ms"].tolist()
    assert few["sweep_row"].tolist() == np.flatnonzero(asked).tolist()


def test_times_of_another_sweep_are_refused(recorded):
    spec, sweep = recorded.spec, recorded.sweep
    turned = sweep.iloc[::-1].reset_index(drop=True)
    for other in (turned, sweep.iloc[:5]):
        with pytest.raises(UserError, match=r"times\.parquet: sweep_row: is of another sweep"):
            with_judged_times(other, recorded.times, spec, "times.parquet")


def test_a_row_of_pairs_that_the_sweep_lacks_is_found(recorded):
    spec, pairs = recorded.spec, recorded.pairs
    before = not_in_sweep(pairs, recorded.times, spec)
    ran = pairs[pairs["gain"].notna()].drop(index=before.index, errors="ignore")
    lost = ran[spec.key_columns].iloc[0]
    same = np.logical_and.reduce([recorded.times[name] == lost[name] for name in spec.key_columns])
    found = not_in_sweep(pairs, recorded.times[~same], spec)
    assert len(found) == len(before) + 1
    assert tuple(lost) in set(found[spec.key_columns].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("basis", "", "must be given exactly where time_ms is"),
        ("basis", "guess", "guess"),
        ("time_low_ms", 1e9, "must lie between time_low_ms and time_high_ms"),
        ("status", "failed", "must be given exactly where status is"),
        ("time_ms", -1.0, "must be above 0"),
        ("error", np.nan, "must be given, with limits of its own, exactly where time_ms is"),
    ],
)
def test_what_cannot_be_is_not_written(recorded, tmp_path, column, value, said):
    spoilt = recorded.times.copy()
    row = int(np.flatnonzero(spoilt["time_low_ms"].notna())[0])
    spoilt.loc[row, column] = value
    with pytest.raises(UserError, match=said):
        write_table(tmp_path / "times.parquet", spoilt, times_schema(recorded.spec))


def test_a_gpu_that_measured_nothing_of_a_study_has_no_times(recorded, tmp_path):
    spec = recorded.spec
    none = judged_times(recorded.sweep.iloc[:0], (), spec)
    write_table(tmp_path / "times.parquet", none, times_schema(spec))
    assert read_table(tmp_path / "times.parquet", times_schema(spec)).empty


def test_the_times_of_the_sweep_come_back(recorded):
    joined = with_judged_times(recorded.sweep, recorded.times, recorded.spec)
    assert (joined["basis"] == "pairs").any()
    again = by_sweep(joined)
    assert again["time_ms"].equals(recorded.sweep["time_ms"])
    assert set(again["basis"]) <= {"sweep", ""}
    for name in ("time_low_ms", "time_high_ms"):
        wide, before = (rows[name] / rows["time_ms"] for rows in (again, joined))
        assert np.allclose(wide, before, equal_nan=True)
    assert by_sweep(recorded.sweep) is recorded.sweep


LEVELS = np.log([1.0, 1.35])  # A visit times a configuration at one of two levels


def planted(spec, seed):
    """Judged times of which the truth is known, and that truth (ms) by row: of a sweep of two
    levels, drawn for each row, and of pairs of four rows of each problem and of the usual choice,
    whose ratios are true."""
    generator = np.random.default_rng(seed)
    sweep = swept(spec, 4)
    true_ms = sweep["time_ms"].copy()
    pairs = made_pairs(spec, sweep, generator)
    levels = generator.choice(LEVELS, len(sweep)) + generator.normal(0, 0.01, len(sweep))
    sweep["time_ms"] = true_ms * np.exp(levels)
    times = judged_times(sweep, [pairs], spec)
    level = (times["time_ms"] / true_ms).where(times["basis"] == "pairs")
    problems = [sweep[name] for name in spec.problem_columns]
    return times, (true_ms * level.groupby(problems).transform("median")).to_numpy()


def test_intervals_hold_what_another_visit_measures(stencil_spec):
    """Both ways round: the sweep's row of what was compared in pairs, and the truth of the rest."""
    held = {"pairs": [], "sweep": []}
    for times, true_ms in (planted(stencil_spec, seed) for seed in range(12)):
        times = times[times["time_ms"].notna()]
        other = np.where(times["basis"] == "pairs", times["sweep_ms"], true_ms[times.index])
        inside = (times["time_low_ms"] <= other) & (other <= times["time_high_ms"])
        for basis, part in inside.groupby(times["basis"]):
            held[basis].extend(part)
    assert 0.93 <= np.mean(held["pairs"]) <= 0.98
    assert np.mean(held["sweep"]) >= 0.93


def revisited(pairs, spec, sigma):
    """Pairs whose ratios an earlier visit found otherwise, but for the usual choice's."""
    visits = np.exp(np.random.default_rng(11).normal(0, sigma, len(pairs)))
    reference = pairs["gain"] == 1
    return pairs.assign(earlier_gain=pairs["gain"] * np.where(reference, 1, visits))


def seen(times, spec):
    """What was measured more than once on a GPU, and where, by problem and by its own row."""
    parts = []
    timed = times[times["time_ms"].notna()]
    for number, (_, own) in enumerate(timed.groupby(spec.problem_columns)):
        logs, again = np.log(own["sweep_ms"]), own["visits_apart"]
        paired_ms = own["time_ms"].where(own["basis"] == PAIRS)
        near = paired_ms <= 1.1 * paired_ms.min()
        close = again.notna() & (own["time_ms"] <= 1.1 * own["time_ms"][again.notna()].min())
        share = math.sqrt(close.sum() / (close.sum() - 1)) if close.sum() > 1 else math.nan
        beyond = share * (again - again[close].median())
        found = {"log": logs, "least": logs.min(), "gap": np.log(logs - logs.min() + EQUAL)}
        # What alone tells the level of its problem tells nothing of its error.
        tells = paired_ms.notna() & ~(near & (near.sum() == 1))
        found["apart"] = np.log(own["sweep_ms"] / paired_ms).abs().where(tells)
        found["away"] = np.log(own["sweep_ms"] / own["paired_ms"]).abs().where(tells)
        found |= {"again": again.abs(), "among": beyond.abs(), "problem": number}
        parts.append(pd.DataFrame(found))
    return pd.concat(parts).sort_index()


def near(gpus, asked, by):
    """Mean over GPUs, of which the first is asked about, of how far the 40 nearest places of other
    problems lay apart in 95 of 100 cases, as standard errors."""
    found = []
    for gpu, known in enumerate(gpus):
        told = known[known[by].notna() & ((known["problem"] != asked.problem) | (gpu > 0))]
        order = np.hypot(told["least"] - asked.least, told["gap"] - asked.gap).argsort()
        apart = np.sort(told[by].to_numpy()[order[:40]])
        if len(apart):
            rank = min(math.ceil(0.95 * (len(apart) + 1)), len(apart))
            floor = DEFAULT_ERROR if len(apart) < 19 else 5e-4
            found.append(np.log(max(apart[rank - 1] / Z95, floor)))
    return np.exp(np.mean(found)) if found else np.nan


def stretched(times, own, gpus):
    """Basis to what limits are multiplied by, so that 95 of 100 visits of pairs lie within them."""
    known, factors = times[times["paired_ms"].notna() & times["time_ms"].notna()], {}
    asked = [own.loc[at] for at in known.index]
    reach = [Z95 * max(near(gpus, each, by) for by in ("apart", "away")) for each in asked]
    for basis, held in (("pairs", "time_ms"), ("sweep", "sweep_ms")):
        apart = sorted(np.log(known[held] / known["paired_ms"]).abs() / reach)
        factors[basis] = max(1, apart[math.ceil(0.95 * (len(apart) - 1))]) if len(apart) > 18 else 1
    return factors


def halves_of(pairs, spec):
    """By row of pairs: log ratios of the first half of the rounds less those of the second, and
    the limits of its time in one round over that of the fastest, in times of the usual choice."""
    found = {}
    for _, own in pairs.groupby(spec.problem_columns):
        usual, best = own[own["gain"] == 1].iloc[0], own.loc[own["gain"].idxmax()]
        for row in own.itertuples():
            logs, half = np.log(usual["times_ms"] / row.times_ms), len(row.times_ms) // 2
            halves = abs(np.median(logs[:half]) - np.median(logs[half:]))
            ratios = row.times_ms / best["times_ms"] / best["gain"]
            itself = row.gain == 1
            found[row.Index] = (np.nan if itself else halves, ratios.min(), ratios.max())
    return found


@pytest.mark.parametrize(("sizes", "visits", "sigma"), [(3, 9, 0.02), (6, 4, 0.0005)])
def test_errors_and_limits_are_those_of_their_definition(stencil_spec, sizes, visits, sigma):
    spec, sides = stencil_spec, []
    for number, count in enumerate((6, sizes)):
        dice = np.random.default_rng(number)
        sweep = swept(spec, count)
        pairs = revisited(made_pairs(spec, sweep, dice), spec, sigma).reset_index(drop=True)
        of_problem = row_numbers(pairs, spec.problem_columns)
        pairs["earlier_gain"] *= np.exp(dice.normal(0, 4 * sigma, 99))[of_problem]
        # The second visit was to the first problems alone.
        pairs["earlier_gain"] = pairs["earlier_gain"].where((of_problem < visits) | (number == 0))
        pairs[["gain_high", "improvement_high"]] *= dice.choice([1.0, 1.1], (len(pairs), 2))
        sweep["time_ms"] *= np.exp(dice.normal(0, 0.03, len(sweep)))
        sides.append((sweep, pairs))
    other = judged_times(sides[0][0], [sides[0][1]], spec)
    sweep, pairs = sides[1]
    found = judged_times(sweep, [pairs], spec, others=[other])
    own, others = (seen(each, spec) for each in (found, other))
    few = own.loc[own["apart"].notna(), "problem"].nunique() < 19
    gpus = [own, others] if few else [own]
    factors = stretched(found, own, gpus)
    both = pairs.merge(found.reset_index(), on=spec.key_columns, suffixes=("", "_found"))
    rounds = halves_of(pairs, spec)
    paired = dict(zip(both["index"], both.index, strict=True))
    of_halves = own.assign(halves=pd.Series({at: rounds[pair][0] for at, pair in paired.items()}))
    known = {
        by: [own] if own[by].notna().sum() >= 19 else [own, others] for by in ("again", "among")
    }
    # The level of a problem is that of its fastest in the sweep.
    gain, problems = both.set_index("index")["gain"].reindex(own.index), own["problem"]
    fast = gain.where(gain * 1.1 >= gain.groupby(problems).transform("max"))
    level = (found["sweep_ms"] * fast).groupby(problems).transform("median")
    paired_ms = (level / gain).dropna()
    assert np.allclose(found.loc[paired_ms.index, "time_ms"], paired_ms)
    for asked in list(own.itertuples())[::2]:
        row = found.loc[asked.Index]
        error, whole = near(gpus, asked, "apart"), near(gpus, asked, "away")
        if asked.Index not in paired:
            beside = own[(own["problem"] == asked.problem) & own["apart"].notna()]
            nearest = (beside["log"] - asked.log).abs().argmin()
            error = max(error, beside["apart"].iloc[nearest])
            assert row["error"] == pytest.approx(error, rel=6e-3)
        reach = np.exp(factors[row["basis"]] * Z95 * max(error, whole))
        assert row["time_ms"] / row["time_low_ms"] == pytest.approx(reach, rel=2e-3)
        assert row["time_high_ms"] / row["time_ms"] == pytest.approx(reach, rel=2e-3)
        if asked.Index in paired:
            pair = pairs.loc[paired[asked.Index]]
            least = near([of_halves], asked, "halves") / np.sqrt(2)
            ratio = np.fmax(least, near(known["again"], asked, "again"))
            span = np.log(pair["gain_high"] / pair["gain_low"]) / 2 / Z95
            among = np.fmin(near(known["among"], asked, "among"), ratio / np.sqrt(2))
            shared = max(least, span) / np.sqrt(2)
            assert row["error"] == pytest.approx(np.fmax(shared, among), rel=6e-3)
            other_span = np.log(pair["improvement_high"] / pair["improvement_low"]) / 2 / Z95
            assert row["ratio_error"] == pytest.approx(max(ratio, span, other_span), rel=6e-3)
            ends = [level[asked.Index] * each for each in rounds[paired[asked.Index]][1:]]
            assert [row["rounds_low_ms"], row["rounds_high_ms"]] == pytest.approx(ends)


def test_without_a_second_measurement_the_error_is_that_of_others_or_stated(recorded):
    spec, sweep = recorded.spec, recorded.sweep
    alone = judged_times(sweep, (), spec)
    known = alone["time_ms"].notna()
    repeats = np.hypot(DEFAULT_ERROR, sweep["relative_error"].fillna(0.0).to_numpy())[known]
    told = alone.loc[known, "error"] < UNTOLD
    assert told.mean() > 0.97
    assert np.allclose(alone.loc[known, "error"][told], repeats[told])
    beside = judged_times(sweep, (), spec, others=[recorded.times])
    assert (beside.loc[known, "error"] > 0).all()
    assert not np.allclose(beside.loc[known, "error"], alone.loc[known, "error"])


@pytest.mark.workloads
def test_a_live_gpu_that_compared_nothing_has_the_errors_of_recorded_ones(tmp_path):
    folder = ROOT / "kernels" / "granger"
    spec = load_spec(folder)
    sweep = read_table(RECORDED / "granger.parquet", measurement_schema(spec))
    pairs = read_table(RECORDED / "granger_time.pairs.parquet", pairs_schema(spec))
    known = judged_times(sweep, [pairs], spec)
    write_table(tmp_path / "granger_time.parquet", known, times_schema(spec))
    entry = yaml.safe_load((folder / "studies" / "granger_time" / "study.yaml").read_text())
    main = runpy.run_path(str(ROOT / "scripts" / "times.py"))["main"]
    made, files = [], [tmp_path / "granger_time.parquet"]
    for others in ([], files):
        path = tmp_path / "live" / "granger_time.parquet"
        asked = {"granger_time": {"workload": "granger", **entry}}
        main(asked, folder, RECORDED / "granger.parquet", [], others, [path])
        made.append(read_table(path, times_schema(spec)))
    alone, beside = made
    timed = beside["time_ms"].notna()
    assert (beside.loc[timed, "error"] != alone.loc[timed, "error"]).mean() > 0.9
    # The rows are those of the recorded GPU: so are the errors of what was in no pairs.
    once = known.merge(beside[timed], on=spec.key_columns, suffixes=("", "_beside"))
    once = once[once["basis"] == "sweep"]
    assert np.median(once["error_beside"] / once["error"]) == pytest.approx(1, rel=0.2)


def test_what_pairs_say_of_their_error_is_in_their_intervals(recorded):
    spec = recorded.spec
    found = with_judged_limits(recorded.pairs, recorded.times, spec)
    both = recorded.pairs[GAINS].notna().all(axis=1) & (recorded.pairs["gain"] != 1)
    assert both.sum() > 20
    assert (found.loc[both, "gain_low"] <= recorded.pairs.loc[both, "gain_low"]).all()
    assert (found.loc[both, "gain_high"] >= recorded.pairs.loc[both, "gain_high"]).all()
    assert (found.loc[both, "gain_low"] < found.loc[both, "gain"]).all()
    # Nothing differs from itself.
    itself = (recorded.pairs[["gain", *GAINS]] == 1).all(axis=1)
    assert (found.loc[itself, GAINS] == 1).all(axis=None)
