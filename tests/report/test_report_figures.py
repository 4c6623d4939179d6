"""Figures of a study: no plot of a single point, scales that show what is drawn."""

import dataclasses

import pandas as pd

from launchwise.report.answer.rates import compared, rates
from launchwise.report.answer.tunables import tunables
from launchwise.report.blocks import Figure
from launchwise.report.numbers import winners
from tests.support.report_study import study, sweep
from tests.support.shown import blocks_of, tables


def test_a_single_size_is_no_plot_against_size_and_no_bar_of_nothing():
    made = study()
    at_202 = {gpu: rows[rows["n"] == 202] for gpu, rows in made.sweeps.items()}
    evaluated = made.evaluation[made.evaluation["n"] == 202]
    one = dataclasses.replace(made, sweeps=at_202, evaluation=evaluated, _known={})
    for each, has_sizes in ((made, True), (one, False)):
        drawn = [figure.id for figure in blocks_of(compared(each), Figure, folded=True)]
        assert any("roofline" not in name for name in drawn) == has_sizes
        assert bool(tables(tunables(each))) == has_sizes


def test_of_many_kinds_the_rates_of_some_are_drawn_and_the_others_counted():
    made = study(("big",))
    rows = sweep(made.spec, "big")
    one = [rows[rows["n"] == rows["n"].min()].assign(order=order) for order in range(1, 4)]
    rows = pd.concat([*one, rows.assign(order=50)], ignore_index=True)
    own = dataclasses.replace(made, sweeps={"big": rows}, _known={})
    drawn = rates(own, winners(own))
    orders = [panel.title.partition("order=")[2] for panel in drawn.panels]
    assert orders == ["50", "1", "2"]
    assert drawn.caption.endswith("; of 4 kinds of problems 3 with most sizes.")
