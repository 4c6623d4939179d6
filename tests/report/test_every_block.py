"""What holds for every table and figure of the pages, whatever it shows."""

import itertools
import re

import numpy as np
import pytest

from launchwise.report import theme
from launchwise.report.blocks import MISSING, Figure, File, Table
from launchwise.report.site.rendering import every_block
from tests.report.test_report_pairs import paired
from tests.support.report_pages import pages
from tests.support.report_study import study

NUMBER = re.compile(r"[-+]?\d[\d.\u202f]*(e[-+]\d+)?( (to|of) \d[\d.\u202f]*)?")


@pytest.fixture(scope="module")
def report():
    """Every page of a small study, and of one with pairs."""
    return [page for made in (study(), paired()) for page in pages([made])]


def blocks(report):
    return [block for page in report for block in every_block(page.sections)]


def test_columns_of_numbers_hold_numbers(report):
    shown = [one.content if isinstance(one, File) else one for one in blocks(report)]
    tables = [block for block in shown if isinstance(block, Table)]
    assert len(tables) > 20
    for table in tables:
        for place, column in enumerate(table.columns):
            texts = {row.cells[place].text for row in table.rows} - {"", MISSING}
            if column.number and texts:
                assert any(NUMBER.fullmatch(text) for text in texts), (table.caption, column.title)


def test_no_figure_stands_twice_on_a_page_or_is_narrower_than_it_must_be(report):
    for page in report:
        drawn = [one for one in every_block(page.sections) if isinstance(one, Figure)]
        assert len({each.id for each in drawn}) == len(drawn)
        assert all(each.limit == 0 or each.limit >= each.width for each in drawn)


@pytest.mark.parametrize("decades", [0.05, 0.2, 0.5, 0.8, 1, 2, 3, 6])
def test_labels_of_a_logarithmic_axis_ascend_and_are_round(decades):
    for lowest in (0.002, 0.7, 1.0, 47.0):
        axis = theme.log_axis("time", [lowest, lowest * 10**decades])
        ticks = axis["tickvals"]
        assert all(before < after for before, after in itertools.pairwise(ticks))
        assert ticks == [float(f"{tick:.2g}") for tick in ticks]
        low, high = axis["range"]
        assert all(low <= tick <= high for tick in np.log10(ticks))
