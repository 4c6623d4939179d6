"""Figures of a study: no plot of a single point, scales that show what is drawn."""

import dataclasses

import pandas as pd

from launchwise.report.answer.rates import compared, rates
from launchwise.report.answer.tunables import tunables
from launchwise.report.blocks import Figure
from launchwise.report.numbers import winners
from launchwise.report.site.rendering import every_block
from tests.support.report_study import study, sweep
from tests.support.shown import tables


def of_one_size():
    """The small study as if it had measured a single size."""
    made = study()

    def at_202(table):
        return table[table["n"] == 202].reset_index(drop=True)

    return dataclasses.replace(
        made,
        sweeps={gpu: at_202(table) for gpu, table in made.sweeps.items()},
        evaluation=at_202(made.evaluation),
        _known={},
    )


def kinds(section, kind):
    return [block.id for block in every_block([section]) if isinstance(block, kind)]


def test_a_single_size_is_no_plot_against_size_and_no_bar_of_nothing():
    assert kinds(compared(study()), Figure)
    assert tables(tunables(study()))
    one = of_one_size()
    assert [name for name in kinds(compared(one), Figure) if "roofline" not in name] == []
    assert not tables(tunables(one))


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
