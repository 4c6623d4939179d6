"""Pairs beside the usual choice of today: rules for it may change after pairs were recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import ROOT

from launchwise.measuring.pairs.present_usual import beside_usual, peers_beside_usual
from launchwise.tables.files import read_table
from launchwise.tables.pairs import pairs_schema, peers_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.spec import Spec
from launchwise.workloads.usual import Usual, usual_configuration

RECORDED = ROOT / "data" / "recorded" / "h200"
GAIN = ["gain", "gain_low", "gain_high"]
TOLERANCE = 0.01

ANOTHER = {"n": 10**5, "dtype": "float64"}  # a problem whose rule these tests change


@pytest.fixture(scope="module")
def recorded(spec: Spec) -> pd.DataFrame:
    return read_table(RECORDED / "tridiagonal_device.pairs.parquet", pairs_schema(spec))


def rows_of(table: pd.DataFrame, **problem: Any) -> pd.DataFrame:
    return table[np.all([table[name] == value for name, value in problem.items()], axis=0)]


def is_usual(table: pd.DataFrame) -> pd.Series:
    return table["roles"].str.split("+").map(lambda roles: "usual" in roles).astype(bool)


def rule_for(row: pd.Series, spec: Spec) -> list[Usual]:
    """Rules that call a row's configuration usual, and for other problems those of the workload."""
    (own,) = row.to_frame().T.infer_objects().to_dict("records")
    problem = " and ".join(f"{name} == {own[name]!r}" for name in spec.problem_columns)
    configuration = {name: own[name] for name in spec.tunable_columns}
    first = Usual.model_validate(
        {"when": problem, "reason": "of this test", "configuration": configuration}
    )
    return [first, *spec.usual]


def without_lists(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=["times_ms", "clocks_mhz"])


def test_recorded_pairs_stand_beside_what_is_usual_today(
    recorded: pd.DataFrame, spec: Spec
) -> None:
    found = beside_usual(recorded, spec, spec.usual, TOLERANCE)
    for values, rows in found.groupby(spec.problem_columns):
        problem = dict(zip(spec.problem_columns, values, strict=True))
        usual = usual_configuration(spec.usual, problem, spec)
        assert usual is not None
        (own,) = rows[is_usual(rows)].to_dict("records")
        assert {name: own[name] for name in usual} == usual
        assert [own[name] for name in GAIN] == [1, 1, 1]
        for row in rows.to_dict("records"):
            ratios = own["times_ms"] / row["times_ms"]
            assert row["gain"] == pytest.approx(np.median(ratios), rel=1e-3)
            # Limits are missing where less than six pairs are left.
            assert not row["gain_low"] > row["gain"]
            assert not row["gain"] > row["gain_high"]
    # The rule that changed after it was measured: its fastest is the usual choice itself.
    changed = rows_of(found, n=10**6, dtype="float32")
    assert rows_of(recorded, n=10**6, dtype="float32")["gain"].max() > 1.15
    assert changed["gain"].max() == 1
    others = found.index.difference(changed.index)
    pd.testing.assert_frame_equal(
        without_lists(found.loc[others]), without_lists(recorded.loc[others])
    )
    assert found["improvement"].equals(recorded["improvement"])


def test_gains_have_the_interval_of_their_own_ratios(recorded: pd.DataFrame, spec: Spec) -> None:
    members = rows_of(recorded, **ANOTHER)
    other = members[~is_usual(members)].iloc[0]
    found = rows_of(beside_usual(recorded, spec, rule_for(other, spec), TOLERANCE), **ANOTHER)
    (own,) = found[is_usual(found)].to_dict("records")
    assert all(own[name] == other[name] for name in spec.tunable_columns)
    for row in found.to_dict("records"):
        ratios = np.sort(other["times_ms"] / row["times_ms"])
        assert row["gain"] == pytest.approx(np.median(ratios))
        assert ratios[0] <= row["gain_low"] <= row["gain"] <= row["gain_high"] <= ratios[-1]


def test_what_did_not_run_beside_the_usual_choice_is_judged_by_the_sweep(
    recorded: pd.DataFrame, spec: Spec
) -> None:
    members = rows_of(recorded, **ANOTHER)
    other = members[~is_usual(members)].iloc[0]
    without = recorded.drop(index=other.name).reset_index(drop=True)
    found = rows_of(beside_usual(without, spec, rule_for(other, spec), TOLERANCE), **ANOTHER)
    assert found[GAIN].isna().all(axis=None)
    assert not is_usual(found).any()
    assert found["improvement"].notna().all()
    sweep = pd.read_parquet(RECORDED / "tridiagonal.parquet")
    judged = judged_times(rows_of(sweep, **ANOTHER), found, spec)
    assert set(judged["basis"]) == {"sweep"}


def test_rounds_of_a_hindered_card_say_no_gain(recorded: pd.DataFrame, spec: Spec) -> None:
    members = rows_of(recorded, **ANOTHER)
    other = members[~is_usual(members)].iloc[0]
    hot = recorded.copy()
    hot.loc[other.name, "throttle"] = "sw_thermal"
    found = rows_of(beside_usual(hot, spec, rule_for(other, spec), TOLERANCE), **ANOTHER)
    assert found[GAIN].isna().all(axis=None)


def test_libraries_stand_beside_the_same_usual_choice(recorded: pd.DataFrame, spec: Spec) -> None:
    path = RECORDED / "tridiagonal_device.peers.parquet"
    peers = read_table(path, peers_schema(spec))
    found = peers_beside_usual(peers, recorded, spec, spec.usual, TOLERANCE)
    usual = beside_usual(recorded, spec, spec.usual, TOLERANCE)
    usual = usual[is_usual(usual)]
    for row in found.to_dict("records"):
        (own,) = rows_of(usual, n=row["n"], dtype=row["dtype"]).to_dict("records")
        ratio = np.median(row["times_ms"] / own["times_ms"])
        assert row["usual_speedup"] == pytest.approx(ratio, rel=1e-3)
    assert found["speedup"].equals(peers["speedup"])


def test_new_pairs_stay_as_they_are(recorded: pd.DataFrame, spec: Spec) -> None:
    once = beside_usual(recorded, spec, spec.usual, TOLERANCE)
    again = beside_usual(once, spec, spec.usual, TOLERANCE)
    pd.testing.assert_frame_equal(without_lists(again), without_lists(once))
