"""What readers of earlier reports were misled by: axes, edges, shares, baselines."""

import dataclasses

import numpy as np
import pandas as pd

from launchwise.report import theme
from launchwise.report.answer.tunables import tunables
from launchwise.report.blocks import Text
from launchwise.report.numbers import winners
from launchwise.tables.rows import is_baseline
from tests.support.report_study import sized_study, study, sweep
from tests.support.samples import STENCIL
from tests.support.shown import blocks_of


def changed(**times):
    """The study where, on ``big``, a configuration's times are multiplied by a factor."""
    made = study()
    rows = made.sweeps["big"].copy()
    untuned = is_baseline(rows, made.spec)
    rows["time_ms"] *= np.where(untuned, times.get("baseline", 1), times.get("others", 1))
    return dataclasses.replace(made, sweeps={**made.sweeps, "big": rows})


def points_of(chosen):
    """A study of one GPU with size to fastest number of points per thread, of 2 to 16 measured."""
    made = study()
    first = sweep(made.spec, "big").iloc[0]
    kept = {name: first[name] for name in first.index if name not in made.spec.key_columns}
    neutral = {name: one.neutral for name, one in made.spec.tunables.items()}
    rows = [
        {**kept, **neutral, "gpu": "big", "workload": "stencil", "n": n, "dtype": "float32",
         "order": 2, "variant": "column", "tz": points,
         "time_ms": 1.0 if points == best else 2.0}
        for n, best in chosen.items() for points in (2, 4, 8, 16)
    ]  # fmt: skip
    return sized_study(STENCIL, "t", "t", list(chosen), {"big": pd.DataFrame(rows)})


def said_of_edges(made):
    return [one.text for one in blocks_of(tunables(made), Text) if "largest value" in one.text]


def test_the_edge_of_the_sweep_is_said():
    made = points_of({1000: 2, 1200: 4, 1400: 16, 1600: 16})
    (said,) = said_of_edges(made)
    assert "measured of tz (16, at 2 of 4 problems); larger ones were not tried." in said
    assert said_of_edges(points_of({1000: 2, 1200: 4, 1400: 8, 1600: 8})) == []
    rows = made.sweeps["big"]
    # Where all tie, the name of the fastest is no optimum.
    near = rows["time_ms"].clip(upper=1.005)
    tied = {"big": rows.assign(error=0.1, basis="sweep", time_ms=near)}
    assert said_of_edges(dataclasses.replace(made, sweeps=tied, _known={})) == [said]
    # Larger values were tried, at a size that the study does not ask about.
    larger = rows.iloc[[0]].assign(n=9, tz=32)
    tried = {"big": pd.concat([rows, larger], ignore_index=True)}
    assert said_of_edges(dataclasses.replace(made, sweeps=tried, _known={})) == []
    # The fastest has no tz: its rows hold a value that nobody chose.
    lacking = rows.drop_duplicates("n").assign(variant="linear", tz=16, time_ms=0.5)
    other = {"big": pd.concat([rows, lacking], ignore_index=True)}
    assert said_of_edges(dataclasses.replace(made, sweeps=other, _known={})) == []


def test_panels_beside_each_other_have_one_kind_of_axis():
    made = points_of({20: 2, 200: 4, 2040: 8})
    whole = winners(made)
    for rows in (whole, whole[whole["n"] < 500]):
        assert theme.size_layout(made, rows)["type"] == "log"
