"""Physical limits beside the fastest configuration, against values computed by hand."""

import dataclasses

import numpy as np
import pytest

from launchwise.learning.row_arrays import least_ms
from launchwise.report.answer.rates import compared
from launchwise.report.numbers import winners
from launchwise.report.pages import finder
from launchwise.workloads.cost import Cost, KernelCost
from tests.support.report_study import profile, study
from tests.support.shown import tables

POINTS = 100**3
"""Of the smaller problem without its rim: order 2 in float32."""


def several(made, runs):
    """``made`` whose cost says that a launch of each variant does several runs at once."""
    arrays = KernelCost(launches=f"1 / {runs}", least_bytes="5 * itemsize * points", uses={})
    cost = Cost(kernels={"all": arrays})
    return dataclasses.replace(made, spec=made.spec.model_copy(update={"cost": cost}), _known={})


def test_a_launch_of_several_runs_is_held_against_the_bytes_that_they_need_together():
    made = several(study(), 2)
    best = winners(made)
    own = best[(best["gpu"] == "big") & (best["n"] == 102)].iloc[0]
    # Five arrays for two runs, in place of four for each.
    assert own["bytes_ms"] == pytest.approx(1e3 * 20 / 2 * POINTS / 1e12)
    assert (
        least_ms(best, made.spec, made.profiles)[0]
        < least_ms(best.drop(columns="variant"), made.spec, made.profiles)[0]
    )
    name = best["variant"].iloc[0]
    assert f"A launch of {name} does 2 runs: its times" in finder.data(made)["several"][name]
    assert finder.data(study())["several"] == {}


def test_the_lookup_begins_with_a_kernel_that_replaces_one_launch():
    plain, twice = dataclasses.replace(study(), name="plain"), several(study(), 2)
    assert finder.block([twice, plain]).first["study"] == "plain"
    assert finder.block([twice]).first["study"] == "tiny"


def test_a_rate_above_the_measured_one_is_marked():
    def details(factor):
        made = study()
        sweeps = {
            gpu: rows.assign(time_ms=rows["time_ms"] / factor) for gpu, rows in made.sweeps.items()
        }
        rates = profile("big").ceilings.model_copy(update={"float32_gflops": 1000.0})
        profiles = {
            gpu: one.model_copy(update={"ceilings": rates}) for gpu, one in made.profiles.items()
        }
        shown = compared(dataclasses.replace(made, sweeps=sweeps, profiles=profiles, _known={}))
        found = tables(shown, folded=True)
        (table,) = (each for each in found if each.caption == "Best time of every problem")
        place = [column.title for column in table.columns].index("FLOP")
        return [row.cells[place].detail for row in table.rows]

    # 9e6 FLOP take 9 us at 1000 GFLOP/s; the fastest run 1 ms, or 5 us.
    assert set(details(1)) == {""}
    assert details(200)[0] == "passed"


def test_every_measured_rate_is_a_ceiling_of_its_type():
    known = profile("big").ceilings.model_copy(update={"float16_gflops": 5e5})
    assert known.flop_gflops("float16") == 5e5
    assert np.isnan(known.flop_gflops("bfloat16"))
