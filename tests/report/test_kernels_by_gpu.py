"""Every kernel on every GPU: the ratios that all pages have, and what others measured apart."""

from launchwise.report.blocks import Fold
from launchwise.report.front.index_page import sections
from launchwise.report.gpus import card_ratios
from tests.report.test_tuning_gain import imported
from tests.support.report_pages import html_of
from tests.support.report_study import study
from tests.support.shown import blocks_of, tables


def by_gpu(*studies):
    """The tables of every kernel on every GPU."""
    folds = blocks_of(sections(studies)[-1], Fold)
    return [table for fold in folds if fold.id == "kernels-by-gpu" for table in tables(fold.blocks)]


def test_a_cell_has_the_ratio_and_what_it_rests_on():
    made = study()
    (table,) = by_gpu(made)
    one = card_ratios.of_study(made)["big.sm4", "big"]
    shown = {row.cells[0].text: row.cells[1] for row in table.rows}
    assert shown["big"].text == "1"
    assert (shown["big.sm4"].text, shown["big.sm4"].detail) == (one.number, one.basis)
    assert (one.number, one.basis) == ("0.50", "2 problems")


def test_a_kernel_of_one_gpu_is_not_there():
    assert by_gpu(study(gpus=("big",))) == []


def test_what_others_measured_has_a_table_of_its_own():
    assert [len(one.rows) for one in by_gpu(study(), imported())] == [2, 2]


def test_the_front_page_shows_it_with_links_to_the_rows():
    page = html_of(study())["index.html"]
    assert 'href="gpus.html#compare?study=tiny&amp;gpus=big,big.sm4&amp;beside=big"' in page
