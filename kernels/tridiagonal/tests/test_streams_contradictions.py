"""Contradictions between slides, tables and laws of the streams paper."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kernels.tridiagonal.studies.tridiagonal_streams.contradictions import checks, contradictions
from launchwise.experiment.published import Records, read_tables
from launchwise.report.blocks import Table, Text

STUDY = Path(__file__).resolve().parents[1] / "studies" / "tridiagonal_streams"

Published = dict[str, Records]


@pytest.fixture
def published() -> Published:
    """The paper's tables, to be changed."""
    return copy.deepcopy(read_tables(STUDY))


def conflicts(published: Published) -> dict[str, tuple[str, str, str]]:
    """Subject to both figures and what follows, where they differ."""
    return {
        one.subject: (one.here, one.there, one.conflict)
        for one in checks(published)
        if not one.agree
    }


def row_of(published: Published, table: str, **same: str) -> dict[str, str]:
    """The only row with these values, to be changed."""
    (row,) = [row for row in published[table] if all(row[key] == same[key] for key in same)]
    return row


def test_the_slides_contradict_themselves_in_these_places(published: Published) -> None:
    found = conflicts(published)
    assert set(found) == {"sizes", "line of the sum", "overhead of one stream"}
    slide, results, follows = found["sizes"]
    assert (slide[:2], results[:2]) == ("30", "25")
    assert "n = 100\u202f000\u202f000 is not among" in follows
    assert follows.endswith("2\u202f500, 7\u202f500, 25\u202f000, 75\u202f000, 250\u202f000 and "
                            "750\u202f000 no optimum is printed")  # fmt: skip
    # At 1e3 rows and one stream 0.0002 - 0.0605 ms, above 1e6 rows the constant of the law.
    assert found["overhead of one stream"] == (
        "0 (definition, slide of the model for the overhead)",
        "-0.0603 to 0.394 ms by the printed laws",
        "with 0 the laws ask for 2, not 1, at n = 80\u202f000",
    )
    assert (
        "-43 % at n = 4\u202f000, -28 % at n = 40\u202f000 and -7 % at n = 400\u202f000"
        in (found["line of the sum"][1])
    )


def test_a_changed_figure_is_found(published: Published) -> None:
    before = set(conflicts(published))
    row_of(published, "stages", n="4000")["t1_comp_ms"] = "0.2"
    row_of(published, "stages", n="40000")["streams_gomez_luna"] = "9.6"
    row_of(published, "models", model="overhead_big", set="test")["rmse_ms"] = "0.5"
    row_of(published, "facts", fact="loss_5e5_ms")["value"] = "0.02"
    row_of(published, "optima", n="80000")["streams_predicted"] = "2"
    assert set(conflicts(published)) - before == {
        "sums of stages",
        "numbers of streams of the earlier model",
        "RMSE and MSE of the laws",
        "predicted numbers of streams",
        "time that wrong predictions lose",
    }


def test_what_agrees_is_named(published: Published) -> None:
    table, said = contradictions(published)
    assert isinstance(table, Table)
    assert [row.cells[0].text for row in table.rows] == [
        "sizes",
        "line of the sum",
        "overhead of one stream",
    ]
    assert isinstance(said, Text)
    assert said.text.startswith("Of 8 things that the paper says twice, 5 agree: ")
    assert "predicted numbers of streams" in said.text


def test_without_its_tables_there_is_nothing_to_compare(published: Published) -> None:
    del published["stages"]
    assert list(contradictions(published)) == []
