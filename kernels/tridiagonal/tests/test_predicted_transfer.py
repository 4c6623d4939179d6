"""The paper's rule on cards that nobody here has: predicted losses beside the printed ones."""

import dataclasses
from pathlib import Path

import pytest

from kernels.tridiagonal.studies.tridiagonal_subsystem.borrowed import (
    CARDS,
    predicted_losses,
    predicted_transfer,
)
from launchwise.experiment.published import read_tables
from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
from tests.support.report_study import sized_study
from tests.support.shown import said, tables

ROOT = Path(__file__).resolve().parents[3]
TRIDIAGONAL = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def profiles():
    cards = read_cards(ROOT / "data" / "cards.csv")
    efficiency = reference_efficiency(cards, ROOT / "data" / "recorded" / "h200" / "profile.json")
    return {card: described_profile(card, cards, efficiency) for card in CARDS}


@pytest.fixture(scope="module")
def made(profiles):
    bare = sized_study(TRIDIAGONAL, "tridiagonal_subsystem", "Sizes", [100, 1000], {})
    return dataclasses.replace(bare, described=profiles)


@pytest.fixture
def published():
    return read_tables(ROOT / "kernels" / "tridiagonal" / "studies" / "tridiagonal_subsystem")


def test_losses_are_near_the_printed_ones(made, published):
    for rows in predicted_losses(made, published["transfer"]).values():
        assert len(rows) == 15
        # From 2e7 rows on the rule is the best m of both.
        large = rows[rows["n"] >= 2e7]
        assert (large["loss_percent"] == 0).all()
        assert (large["theirs_percent"] == 0).all()
        lossy = rows[rows["n"] < 2e7].dropna()
        away = (lossy["loss_percent"] - lossy["theirs_percent"]).abs()
        assert away.median() < 2.5
        assert 4 < rows["loss_percent"].max() < 15


def test_only_the_printed_m_compete(made, published):
    fewer = [
        {name: "32" if name.startswith("m_") else value for name, value in record.items()}
        for record in published["transfer"]
    ]
    for rows in predicted_losses(made, fewer).values():
        assert set(rows["best_m"]) == {32}
        assert (rows["loss_percent"] == 0).all()


def test_the_page_says_both(made, published):
    shown = predicted_transfer(made, published)
    first, second = said(shown).items()
    assert first[0] == "RTX A5000, by the cost model:"
    assert "(printed: 9.44 %)" in first[1]
    assert "at 10 of 15 sizes (printed: 9)" in first[1]
    # One size of the other card has a loss without a figure.
    assert "at 9 of 14 sizes (printed: 8)" in second[1]
    (table,) = tables(shown, folded=True)
    (row,) = [row for row in table.rows if row.cells[0].text == "400\u202f000"]
    assert [cell.text for cell in row.cells[-2:]] == ["64", "–"]
    assert row.cells[-1].role == "theirs"


def test_a_card_that_is_not_described_has_no_prediction(made, published, profiles):
    one = dataclasses.replace(made, described={"a5000": profiles["a5000"]})
    assert list(predicted_losses(one, published["transfer"])) == ["a5000"]
    assert predicted_transfer(dataclasses.replace(made, described={}), published) == []
    assert predicted_transfer(made, {}) == []
