"""The paper's rule on cards that nobody here has: predicted losses beside the printed ones."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernels.tridiagonal.studies.tridiagonal_subsystem.borrowed import (
    CARDS,
    borrowed,
    predicted_losses,
)
from launchwise.experiment.published import read_tables
from launchwise.gpus.datasheets import described_profile, read_cards, reference_efficiency
from tests.support.report_study import sized_study
from tests.support.shown import rows_of, tables

ROOT = Path(__file__).resolve().parents[3]
TRIDIAGONAL = Path(__file__).resolve().parents[1]
ONE = SimpleNamespace(title="one, float64, pinned")  # the only case: nothing is borrowed


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
        assert (large["theirs"] == "none").all()
        lossy = rows[(rows["n"] < 2e7) & ~rows["theirs"].isin(["none", "small", "lost"])]
        away = (lossy["loss_percent"] - lossy["theirs"].astype(float)).abs()
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
    shown = borrowed(made, [ONE], published)
    rows = {tuple(row[:2]): row for row in rows_of(shown, "Corrected optima used elsewhere")}
    assert rows["RTX 2080 Ti, float64", "RTX A5000"][5:] == ["9.44", "10"]
    by_model = rows["RTX 2080 Ti, by the cost model", "RTX A5000"]
    assert (by_model[2], by_model[6]) == ("5 of 15", "10")
    table = tables(shown, folded=True)[-1]
    (row,) = [row for row in table.rows if row.cells[0].text == "400\u202f000"]
    # What the paper calls small is no loss of 0.
    assert [cell.text for cell in row.cells[-2:]] == ["64", "small"]
    assert row.cells[-1].role == "theirs"


def test_a_card_that_is_not_described_has_no_prediction(made, published, profiles):
    one = dataclasses.replace(made, described={"a5000": profiles["a5000"]})
    assert list(predicted_losses(one, published["transfer"])) == ["a5000"]
    shown = borrowed(dataclasses.replace(made, described={}), [ONE], published)
    sources = [row[0] for row in rows_of(shown, "Corrected optima used elsewhere")]
    assert set(sources) == {"RTX 2080 Ti, float64"}
    assert borrowed(made, [ONE], {}) == []
