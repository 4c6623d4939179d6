"""The roofline with the fastest configuration of each problem, against values computed by hand."""

import dataclasses

import numpy as np
import pytest

from launchwise.learning.row_arrays import least_ms
from launchwise.report.answer import hardware
from launchwise.report.answer.rates import compared
from launchwise.report.front import finder
from launchwise.report.numbers import winners
from launchwise.workloads.cost import Cost, KernelCost
from tests.support.report_study import profile, study
from tests.support.shown import tables

POINTS = 100**3
FLOP, BYTES = 9 * POINTS, 16 * POINTS
"""Of the smaller problem without its rim: order 2 in float32, four arrays once."""


def faster(factor):
    """The small study with shorter times."""
    made = study()
    sweeps = {
        gpu: rows.assign(time_ms=rows["time_ms"] / factor) for gpu, rows in made.sweeps.items()
    }
    return dataclasses.replace(made, sweeps=sweeps, _known={})


def of_big(made):
    found = hardware.points(made)
    return found[(found["gpu"] == "big") & (found["n"] == 102)].iloc[0]


def test_points_lie_at_flop_per_byte_and_at_the_rate_of_the_fastest():
    own = of_big(study())
    assert own["intensity"] == pytest.approx(FLOP / BYTES)
    assert own["gflops"] == pytest.approx(FLOP / 1e-3 / 1e9)
    # 16 bytes per point at 1000 GB/s take 17 us of 1 ms.
    assert own["share"] == pytest.approx(BYTES / 1e12 / 1e-3)


def test_the_figure_has_ceilings_and_a_point_per_problem():
    figure = hardware.roofline_figure(faster(20))
    # A slice has no panel of its own.
    assert [panel.title for panel in figure.panels] == ["big"]
    memory, *ceilings, points = figure.panels[0].data
    assert memory["name"] == "copy bandwidth"
    assert memory["y"][0] / memory["x"][0] == pytest.approx(1000, rel=1e-3)
    assert [one["name"] for one in ceilings] == ["float32 ceiling", "float64 ceiling"]
    for one in ceilings:
        assert one["y"][0] == one["y"][1]
        assert one["y"][0] / one["x"][0] == pytest.approx(1000, rel=1e-3)
    assert len(points["x"]) == 2
    assert "32 % of the roofline" in points["text"][0]


def test_panels_beside_each_other_take_the_width_that_there_is():
    made = faster(20)
    profiles = {**made.profiles, "big.sm4": profile("big.sm4")}
    figure = hardware.roofline_figure(dataclasses.replace(made, profiles=profiles))
    assert [panel.title for panel in figure.panels] == ["big", "big.sm4"]
    assert figure.limit == 0 or figure.limit >= 2 * figure.width


def test_a_study_far_below_every_ceiling_has_no_figure():
    assert hardware.roofline_figure(study()) is None


def several(made, runs):
    """``made`` whose cost says that a launch of each variant does several runs at once."""
    arrays = KernelCost(launches=f"1 / {runs}", least_bytes="5 * itemsize * points", uses={})
    cost = Cost(kernels={"all": arrays})
    return dataclasses.replace(made, spec=made.spec.model_copy(update={"cost": cost}), _known={})


def test_a_launch_of_several_runs_is_held_against_the_bytes_that_they_need_together():
    made = several(study(), 2)
    own = of_big(made)
    # Five arrays for two runs, in place of four for each.
    assert own["share"] == pytest.approx(20 / 2 * POINTS / 1e12 / 1e-3)
    assert own["intensity"] == pytest.approx(FLOP / (10 * POINTS))
    best = winners(made)
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
        made = faster(factor)
        profiles = {gpu: measured_at(one, 1000.0) for gpu, one in made.profiles.items()}
        table = rows_table(dataclasses.replace(made, profiles=profiles))
        place = [column.title for column in table.columns].index("FLOP")
        return [row.cells[place].detail for row in table.rows]

    # 9e6 FLOP take 9 us at 1000 GFLOP/s; the fastest run 1 ms, or 5 us.
    assert set(details(1)) == {""}
    assert details(200)[0] == "passed"


def measured_at(one, gflops):
    rates = one.ceilings.model_copy(update={"float32_gflops": gflops})
    return one.model_copy(update={"ceilings": rates})


def rows_table(made):
    found = tables(compared(made), folded=True)
    return next(each for each in found if each.caption == "Best time of every problem")


def test_every_measured_rate_is_a_ceiling_of_its_type():
    known = profile("big").ceilings.model_copy(update={"float16_gflops": 5e5})
    assert known.flop_gflops("float16") == 5e5
    assert np.isnan(known.flop_gflops("bfloat16"))
