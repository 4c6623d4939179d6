"""Times of a sweep that take the ratios of pairs."""

from __future__ import annotations

import pandas as pd
import pytest
from samples import ROOT

from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.pairs import pairs_schema, with_paired_times
from launchwise.workloads.spec import Spec, load_spec

RECORDED = ROOT / "data" / "recorded" / "h200"
STUDIES = {
    "acoustic_tile": "acoustic",
    "granger_time": "granger",
    "sentiment_inference": "sentiment",
    "tridiagonal_device": "tridiagonal",
    "tridiagonal_subsystem": "tridiagonal",
}


@pytest.fixture(params=STUDIES, scope="module")
def recorded(request: pytest.FixtureRequest) -> tuple[Spec, pd.DataFrame, pd.DataFrame]:
    """Spec, sweep and pairs of a study as recorded."""
    workload = STUDIES[request.param]
    spec = load_spec(ROOT / "kernels" / workload)
    sweep = read_table(RECORDED / f"{workload}.parquet", measurement_schema(spec))
    pairs = read_table(RECORDED / f"{request.param}.pairs.parquet", pairs_schema(spec))
    return spec, sweep, pairs


def test_ratios_are_those_of_the_pairs(
    recorded: tuple[Spec, pd.DataFrame, pd.DataFrame],
) -> None:
    spec, sweep, pairs = recorded
    found = with_paired_times(sweep, pairs, spec)
    joined = pairs.merge(found, on=spec.key_columns, suffixes=("", "_now"))
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


def test_only_times_of_compared_configurations_change(
    recorded: tuple[Spec, pd.DataFrame, pd.DataFrame],
) -> None:
    spec, sweep, pairs = recorded
    found = with_paired_times(sweep, pairs, spec)
    assert found.drop(columns="time_ms").equals(sweep.drop(columns="time_ms"))
    changed = ~(found["time_ms"].eq(sweep["time_ms"]) | sweep["time_ms"].isna())
    compared = set(pairs[spec.key_columns].itertuples(index=False, name=None))
    keys = sweep.loc[changed, spec.key_columns].itertuples(index=False, name=None)
    assert set(keys) <= compared
    assert changed.sum() > 30
    # What the sweep says of their level stays.
    both = pairs[pairs["gain"].notna()].merge(
        found.assign(before=sweep["time_ms"]), on=spec.key_columns, suffixes=("", "_now")
    )
    ratios = (both["time_ms_now"] / both["before"]).dropna()
    levels = ratios.groupby([both[name] for name in spec.problem_columns]).median()
    assert (abs(levels - 1) < 0.05).all()


def test_without_pairs_a_sweep_stays_as_it_is(
    recorded: tuple[Spec, pd.DataFrame, pd.DataFrame],
) -> None:
    spec, sweep, pairs = recorded
    assert with_paired_times(sweep, pairs.iloc[:0], spec).equals(sweep)
