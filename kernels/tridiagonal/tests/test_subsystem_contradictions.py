"""Contradictions between text and tables of the sub-system paper."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kernels.tridiagonal.studies.tridiagonal_subsystem.contradictions import checks, contradictions
from launchwise.experiment.published import Records, read_tables
from launchwise.report.blocks import Table, Text

STUDY = Path(__file__).resolve().parents[1] / "studies" / "tridiagonal_subsystem"

Published = dict[str, Records]


@pytest.fixture
def published() -> Published:
    """The paper's tables, to be changed."""
    return copy.deepcopy(read_tables(STUDY))


def conflicts(published: Published) -> dict[str, tuple[str, str]]:
    """Subject to both figures, where they differ."""
    return {one.subject: (one.here, one.there) for one in checks(published) if not one.agree}


def fact(published: Published, name: str, value: str) -> None:
    """Change one figure of the text."""
    (row,) = [row for row in published["facts"] if row["fact"] == name]
    row["value"] = value


def test_the_paper_contradicts_itself_in_these_places(published: Published) -> None:
    found = conflicts(published)
    said = found["significant losses with the A5000's optimum"]
    assert said == ("6 of 8 (section 4.1)", "8 of 8 (table III)")
    streams = found["number of streams"]
    assert streams == ("3 at n = 400\u202f000 (table III)", "4 (table I)")
    assert found["limit of a small loss"][1].startswith("2.38 % and 2.50 % are printed")
    assert found["one rule for both cards"][1].startswith("their optima differ in 6 of 37 rows")
    assert found["float32 and float64"][1].startswith("the same m in 22 of 36 rows")
    assert found["alignment"][1].endswith("m = 40 at n = 500\u202f000 (table I)")
    assert found["largest number of blocks"][1].endswith("the fastest in 9 of 37 rows")
    assert "n = 75\u202f000" in found["sizes of float64 and float32"][1]
    rule = found["streams by the earlier rule"][1]
    assert rule == (
        "its laws ask for 2, not 1, at n = 100\u202f000 and 4, not 8, at n = 500\u202f000 (table I)"
    )
    assert len(found) == 10


def test_a_figure_of_the_text_is_held_against_the_tables(published: Published) -> None:
    before = set(conflicts(published))
    fact(published, "corrected_optima", "9")
    fact(published, "worst_loss_a5000_percent", "9.45")
    fact(published, "significant_losses_rtx4080_with_optimum_of_a5000", "8")
    after = conflicts(published)
    assert set(after) == {
        *(before - {"significant losses with the A5000's optimum"}),
        "number of corrected optima",
        "largest loss on the RTX A5000",
    }
    assert after["number of corrected optima"][0].startswith("9 (section 2.5), by rank 4, 3 and 1")


def test_a_figure_of_a_table_is_held_against_the_others(published: Published) -> None:
    before = set(conflicts(published))
    (row,) = [row for row in published["transfer"] if row["n"] == "400000"]
    row["streams"] = "4"
    published["optima_float64"][30]["difference_ms"] = "-0.5"
    (row,) = [row for row in published["optima_float32"] if row["n"] == "50000"]
    row["m_observed_float64"] = "32"
    after = set(conflicts(published))
    assert after == {
        *(before - {"number of streams"}),
        "differences of corrected times",
        "optima of float64 beside those of float32",
    }


def test_what_agrees_is_counted(published: Published) -> None:
    table, note = contradictions(published)
    assert isinstance(table, Table)
    assert isinstance(note, Text)
    every = list(checks(published))
    assert len(table.rows) == sum(not one.agree for one in every)
    held = [one.subject for one in every if one.agree]
    assert f"Of {len(every)} things that the paper says twice, {len(held)} agree" in note.text
    assert all(subject in note.text for subject in held)


@pytest.mark.parametrize("name", ["optima_float64", "optima_float32", "transfer"])
def test_without_a_table_there_is_nothing(published: Published, name: str) -> None:
    assert list(contradictions({**published, name: []})) == []
    assert list(contradictions({})) == []
