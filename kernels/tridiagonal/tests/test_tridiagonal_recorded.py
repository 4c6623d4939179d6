"""Recorded counters of the launches of the solver, and recorded pairs beside the usual choice."""

import numpy as np
import pandas as pd
import pytest
from harness.projects import own_experiment
from samples import ROOT

from launchwise.cuda.counted import run
from launchwise.experiment.study import Counters
from launchwise.measuring.counters import fastest_by
from launchwise.measuring.pairs.present_usual import beside_usual, peers_beside_usual
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema, pairs_schema, peers_schema
from launchwise.tables.times import judged_times
from launchwise.workflow.bringing import judged_of_studies
from launchwise.workloads.usual import Usual, usual_configuration
from tests.support.profiled import Switch, Watched

FOLDER = ROOT / "kernels" / "tridiagonal"


def made(spec, variant, **changes):
    """A configuration with m = 10 and 64 threads."""
    neutral = {name: tunable.neutral for name, tunable in spec.tunables.items()}
    return {"variant": variant, **neutral, "m": 10, "threads": 64, "stage2": "device", **changes}


def problem(n, memory="device"):
    """One float64 system."""
    return {"n": n, "dtype": "float64", "memory": memory, "batch": 1}


@pytest.fixture
def device(spec, tmp_path):
    found = Watched(FOLDER, spec.headers, cache=tmp_path)
    found.switch, found.seen = Switch(), []
    return found


def test_only_the_launches_of_a_run_are_profiled(spec, device):
    runs = [
        {"problem": problem(1000), "configuration": made(spec, "staged")},
        {"problem": problem(1000), "configuration": made(spec, "interleaved")},
        {
            "problem": problem(1000, "pinned"),
            "configuration": made(spec, "strided", stage2="host", streams=2),
        },
        {"problem": problem(20000), "configuration": made(spec, "blockwise")},
    ]
    free = device.free_bytes
    found = run({"folder": str(FOLDER), "seed": 1, "runs": runs}, device, device.switch)
    assert [launch["symbol"] for each in found for launch in each] == device.seen
    assert device.switch.times == len(runs)
    assert [launch["kernel"] for launch in found[0]] == ["reduce", "finish", "substitute"]
    # Two streams, two launches of each stage; the host does stage 2.
    assert [launch["kernel"] for launch in found[2]] == ["reduce"] * 2 + ["substitute"] * 2
    assert found[3][0] == {
        "symbol": found[3][0]["symbol"],
        **{"kernel": "reduce", "grid_blocks": 32, "block_threads": 64},
    }
    assert device.free_bytes == free


def test_the_fastest_of_every_value_is_profiled(spec):
    rows = pd.DataFrame(
        [
            {**problem(n), **made(spec, "staged", threads=threads, m=m), "time_ms": time}
            for n, threads, m, time in [
                *((1000, 32, 10, 2.0), (1000, 32, 20, 1.0)),
                *((1000, 64, 10, 3.0), (2000, 64, 10, 1.0)),
            ]
        ]
    )
    chosen = fastest_by(rows, spec, Counters(by=["threads"]))
    assert chosen[["n", "threads", "m"]].to_numpy().tolist() == [
        [1000, 32, 20],
        [1000, 64, 10],
        [2000, 64, 10],
    ]
    assert set(chosen.columns) == {*spec.problem_columns, *spec.tunable_columns}
    large = fastest_by(rows, spec, Counters(by=["threads"], among={"n": [2000, 3000]}))
    assert large[["n", "threads", "m"]].to_numpy().tolist() == [[2000, 64, 10]]


RECORDED = ROOT / "data" / "recorded" / "h200"
GAIN = ["gain", "gain_low", "gain_high"]
TOLERANCE = 0.01

ANOTHER = {"n": 10**5, "dtype": "float64"}  # a problem whose rule these tests change


@pytest.fixture(scope="module")
def recorded(spec):
    return read_table(RECORDED / "tridiagonal_device.pairs.parquet", pairs_schema(spec))


def rows_of(table, **problem):
    return table[np.all([table[name] == value for name, value in problem.items()], axis=0)]


def is_usual(table):
    return table["roles"].str.split("+").map(lambda roles: "usual" in roles).astype(bool)


def rule_for(row, spec):
    """Rules that call a row's configuration usual, and for other problems those of the workload."""
    (own,) = row.to_frame().T.infer_objects().to_dict("records")
    problem = " and ".join(f"{name} == {own[name]!r}" for name in spec.problem_columns)
    configuration = {name: own[name] for name in spec.tunable_columns}
    first = Usual.model_validate(
        {"when": problem, "reason": "of this test", "configuration": configuration}
    )
    return [first, *spec.usual]


def without_lists(table):
    return table.drop(columns=["times_ms", "clocks_mhz"])


def test_recorded_pairs_stand_beside_what_is_usual_today(recorded, spec):
    found = beside_usual(recorded, spec, spec.usual, TOLERANCE)
    for values, rows in found.groupby(spec.problem_columns):
        problem = dict(zip(spec.problem_columns, values, strict=True))
        usual = usual_configuration(spec.usual, problem, spec)
        (own,) = rows[is_usual(rows)].to_dict("records")
        assert {name: own[name] for name in usual} == usual
        assert [own[name] for name in GAIN] == [1, 1, 1]
        for row in rows.to_dict("records"):
            ratios = own["times_ms"] / row["times_ms"]
            assert row["gain"] == pytest.approx(np.median(ratios), rel=1e-3)
            # Limits are missing where less than six pairs are left.
            assert not row["gain_low"] > row["gain"]
            assert not row["gain"] > row["gain_high"]
    # Today's rules chose what ran.
    pd.testing.assert_frame_equal(without_lists(found), without_lists(recorded))
    assert found["improvement"].equals(recorded["improvement"])
    again = beside_usual(found, spec, spec.usual, TOLERANCE)
    pd.testing.assert_frame_equal(without_lists(again), without_lists(found))


def test_gains_have_the_interval_of_their_own_ratios(recorded, spec):
    members = rows_of(recorded, **ANOTHER)
    other = members[~is_usual(members)].iloc[0]
    both = beside_usual(recorded, spec, rule_for(other, spec), TOLERANCE)
    found = rows_of(both, **ANOTHER)
    assert found["earlier_gain"].isna().all()  # over what was usual before
    others = recorded.index.difference(found.index)
    pd.testing.assert_frame_equal(
        without_lists(both.loc[others]), without_lists(recorded.loc[others])
    )
    (own,) = found[is_usual(found)].to_dict("records")
    assert all(own[name] == other[name] for name in spec.tunable_columns)
    for row in found.to_dict("records"):
        ratios = np.sort(other["times_ms"] / row["times_ms"])
        assert row["gain"] == pytest.approx(np.median(ratios))
        assert ratios[0] <= row["gain_low"] <= row["gain"] <= row["gain_high"] <= ratios[-1]


def test_what_did_not_run_beside_the_usual_choice_is_judged_by_the_sweep(recorded, spec):
    members = rows_of(recorded, **ANOTHER)
    other = members[~is_usual(members)].iloc[0]
    without = recorded.drop(index=other.name).reset_index(drop=True)
    found = rows_of(beside_usual(without, spec, rule_for(other, spec), TOLERANCE), **ANOTHER)
    assert found[GAIN].isna().all(axis=None)
    assert not is_usual(found).any()
    assert found["improvement"].notna().all()
    sweep = pd.read_parquet(RECORDED / "tridiagonal.parquet")
    judged = judged_times(rows_of(sweep, **ANOTHER), [found], spec)
    assert set(judged["basis"]) == {"sweep"}


def test_rounds_of_a_hindered_card_say_no_gain(recorded, spec):
    members = rows_of(recorded, **ANOTHER)
    other = members[~is_usual(members)].iloc[0]
    hot = recorded.copy()
    hot.loc[other.name, "throttle"] = "sw_thermal"
    found = rows_of(beside_usual(hot, spec, rule_for(other, spec), TOLERANCE), **ANOTHER)
    assert found[GAIN].isna().all(axis=None)


def test_libraries_stand_beside_the_same_usual_choice(recorded, spec):
    path = RECORDED / "tridiagonal_device.peers.parquet"
    peers = read_table(path, peers_schema(spec))
    found = peers_beside_usual(peers, recorded, spec, spec.usual, TOLERANCE)
    usual = beside_usual(recorded, spec, spec.usual, TOLERANCE)
    usual = usual[is_usual(usual)]
    for row in found[found["status"] == "ok"].to_dict("records"):
        (own,) = rows_of(usual, n=row["n"], dtype=row["dtype"]).to_dict("records")
        ratio = np.median(row["times_ms"] / own["times_ms"])
        assert row["usual_speedup"] == pytest.approx(ratio, rel=1e-3)
    assert found["speedup"].equals(peers["speedup"])


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_recorded_rows_that_studies_share_have_one_time(gpu):
    experiment = own_experiment()
    spec, folder = experiment.specs["tridiagonal"], ROOT / "data" / "recorded" / gpu
    files = {name: folder / f"{name}.pairs.parquet" for name in experiment.studies}
    asked = {
        name: experiment.with_drawn(name)
        for name, path in files.items()
        if path.is_file() and experiment.studies[name].workload == "tridiagonal"
    }
    pairs = {name: read_table(files[name], pairs_schema(spec)) for name in asked}
    every = pd.concat([each[spec.problem_columns].drop_duplicates() for each in pairs.values()])
    several = every[every.duplicated()].drop_duplicates()
    sweep = read_table(folder / "tridiagonal.parquet", measurement_schema(spec))
    sweep = sweep.merge(several, on=spec.problem_columns)
    rows = pd.concat(judged_of_studies(asked, sweep, pairs, {}, spec).values())
    times = rows.groupby("sweep_row")["time_ms"]
    assert (times.count() > 1).sum() > 1000
    assert times.nunique().max() == 1
