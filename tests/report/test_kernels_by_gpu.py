"""Every kernel on every GPU: the ratios that all pages have, and what others measured apart."""

import dataclasses

from launchwise.report.blocks import Fold, Table
from launchwise.report.front.index_page import section
from launchwise.report.gpus import card_ratios
from tests.support.report_pages import html_of
from tests.support.report_study import study


def test_a_cell_has_the_ratio_and_what_it_rests_on():
    made = study()
    table = next(block for block in section([made]).blocks if isinstance(block, Table))
    one = card_ratios.of_study(made)["big.sm4", "big"]
    shown = {row.cells[0].text: row.cells[1] for row in table.rows}
    assert shown["big"].text == "1"
    assert (shown["big.sm4"].text, shown["big.sm4"].detail) == (one.number, one.basis)
    assert (one.number, one.basis) == ("0.50", "2 problems")


def test_a_kernel_of_one_gpu_is_not_there():
    assert section([study(gpus=("big",))]) is None


def test_what_others_measured_is_folded():
    made = study(name="theirs")
    profiles = {
        gpu: one.model_copy(update={"source": "described"}) for gpu, one in made.profiles.items()
    }
    theirs = dataclasses.replace(made, profiles=profiles)
    both = section([study(), theirs])
    assert [type(block) for block in both.blocks[:2]] == [Table, Fold]


def test_the_front_page_shows_it_with_links_to_the_rows():
    page = html_of(study())["index.html"]
    assert 'href="gpus.html#compare?study=tiny&amp;gpus=big,big.sm4&amp;beside=big"' in page
