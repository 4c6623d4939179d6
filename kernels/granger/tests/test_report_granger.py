"""The page of the study of predicted times, on a source and times that are known."""

import numpy as np
import pytest
from granger_pages import CARDS, SWEEP, TITLES, change, estimated, made, row, words
from samples import ROOT

from kernels.granger.studies.granger_time.section import sections as own
from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.report.site.rendering import render
from tests.support.shown import cells, said, tables

pytestmark = pytest.mark.usefixtures("in_the_project")

# The published prediction


def test_the_published_table_is_computed_again(published):
    (table,) = tables(own(made(), published)[0])
    found = cells(table)
    assert list(found) == [*CARDS, "one"]
    # 5.12 / 5.6448 - 1; 160 x 198.4 kB / 336 GB/s and 5 us.
    assert found["titan_black"][:5] == ["5.120", "-9.3", "336.0", "99.71", "99.48"]
    # 31.744 MB / 504 GB/s.
    assert found["rtx4070"][3:5] == ["68.14", "67.98"]
    for gpu in CARDS:
        assert float(found[gpu][4]) == pytest.approx(float(found[gpu][3]), rel=0.003)


def test_a_gpu_of_the_study_stands_below_by_its_ceilings(published):
    section = own(made(), published)[0]
    (table,) = tables(section)
    # 1024 cores at 1 GHz are 2.048 TFLOP/s; 31.744 MB at 1000 GB/s.
    assert cells(table)["one"][:5] == ["2.048", "–", "1000", "–", "36.74"]
    assert "one: not in the source" in words(section)
    assert "published is not verified" in words(section)


def test_slices_have_no_row(published):
    (table,) = tables(own(made(gpus=("one", "one.sm4")), published)[0])
    assert list(cells(table)) == [*CARDS, "one"]


def test_a_measured_card_of_the_source_has_one_row(published):
    found = cells(tables(own(made(gpus=("titan_v",)), published)[0])[0])
    assert list(found) == CARDS
    assert found["titan_v"][-3:] == ["900.0", "280.0", "30.00"]


def test_a_changed_fact_changes_the_table(published):
    change(published, "threads", "320")
    section = own(made(), published)[0]
    # 188.95 + 5 us.
    assert cells(tables(section)[0])["titan_black"][4] == "193.95"
    assert "320 threads" in words(section)


# What it got wrong


def test_errors_and_reasons_are_the_rows_of_their_tables(published):
    section = own(made(), published)[1]
    errors, again = tables(section, folded=True)
    assert list(cells(errors)) == [row["what"] for row in published["errors"]]
    assert cells(errors)["threads that work"] == [
        *("160", "800", "5.00 × too few", "1.00", "4.62 to 4.79")
    ]
    assert cells(again)["bytes: R, Q^T y and substitution"][-1] == "-0.95"
    found = said(section)
    assert list(found) == ["Bytes:", "Copies:", "Caches:", "Race:", "Race, as measured:"]
    assert found["Race, as measured:"] == (
        "coefficients of the first launch on one are off by up to 2.5e-01 of the largest, where "
        "3.0e-05 is allowed."
    )


def test_the_cost_model_stands_beside_the_source_and_the_sweep(published):
    (table,) = tables(own(made(), published)[0])
    found, launches = cells(table), details(table)
    assert list(found) == [*CARDS, "one"]
    for variant, place in (("published", 5), ("no_duplicates", 6)):
        times = [float(found[gpu][place]) for gpu in CARDS]
        assert times == pytest.approx(estimated(variant)["time"], rel=1e-3)
    for gpu in CARDS:
        assert float(found[gpu][7]) <= float(found[gpu][6])
        assert not launches[gpu][7].startswith("published")
        assert found[gpu][8:] == ["–"] * 3
    # What is wrong, of another type or of another size is not the best.
    assert found["one"][8:] == ["900.0", "280.0", "30.00"]
    assert launches["one"][8:] == ["", "threads=32", "smem threads=64"]


def details(table):
    """First cell of each row to the second lines of the others."""
    return {row.cells[0].text: [cell.detail for cell in row.cells[1:]] for row in table.rows}


def test_a_time_of_one_launch_is_marked_where_it_stands(published):
    rows = [each for each in SWEEP if each["time_ms"] != 0.28]
    rows.append(row("no_duplicates", 0.28, threads=32, status="slow", repeats=1))
    launches = details(tables(own(made(*rows), published)[0])[0])["one"]
    assert launches[-2:] == ["threads=32, one launch timed", "smem threads=64"]


def test_what_is_not_verified_is_never_the_best(published):
    fast = row("published", 0.001, status="unverified")
    found = cells(tables(own(made(fast, *SWEEP), published)[0])[0])["one"]
    assert found[8:] == ["1.000", "280.0", "30.00"]


# Which claims hold


@pytest.mark.parametrize(
    ("time_ms", "holds"), [(0.0403, "yes"), (0.0405, "no"), (0.0335, "yes"), (0.0333, "no")]
)
def test_a_time_holds_within_a_tenth(published, time_ms, holds):
    # The formula says 36.74 us.
    found = cells(tables(own(made(row("published", time_ms)), published)[-1])[0])
    assert found["times on one by the formula"][-1] == holds


# What may be missing


def test_without_the_published_size_nothing_is_measured(published):
    rows = [each for each in SWEEP if each["county"] != 5]
    sections = own(made(*rows), published)
    assert [section.title for section in sections] == TITLES
    assert cells(tables(sections[0])[0])["one"][8:] == ["–"] * 3
    assert list(said(sections[1])) == ["Bytes:", "Copies:", "Caches:", "Race:"]


def test_without_unverified_rows_the_race_is_not_observed(published):
    rows = [each for each in SWEEP if each["variant"] != "published"]
    rows.append(row("published", np.nan, status="failed"))
    sections = own(made(*rows), published)
    assert cells(tables(sections[0])[0])["one"][8:10] == ["–", "280.0"]
    assert "Race, as measured:" not in said(sections[1])


def test_gpus_whose_coefficients_are_alike_are_named_together(published):
    rows = [row("published", 0.9, status="unverified", max_error=np.nan)]
    found = said(own(made(*rows, gpus=("one", "two")), published)[1])
    assert found["Race, as measured:"] == (
        "coefficients of the first launch on one and two are NaN."
    )


def test_without_predictions_or_a_fact_there_is_nothing(published):
    assert own(made(), {}) == []
    assert own(made(), {"predictions": published["predictions"]}) == []
    assert own(made(), {"facts": published["facts"]}) == []
    facts = [row for row in published["facts"] if row["fact"] != "threads"]
    assert own(made(), {**published, "facts": facts}) == []


def test_a_card_that_the_table_lacks_has_no_estimate(published, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    kept = [
        line
        for line in (ROOT / CARDS_FILE).read_text().splitlines(keepends=True)
        if not line.startswith(("titan_black,", "titan_v,l2_bytes"))
    ]
    (tmp_path / CARDS_FILE).write_text("".join(kept))
    (tmp_path / REFERENCE_PROFILE).parent.mkdir(parents=True)
    (tmp_path / REFERENCE_PROFILE).write_text((ROOT / REFERENCE_PROFILE).read_text())
    monkeypatch.setattr("launchwise.base.places.SHIPPED", tmp_path)
    sections = own(made(), published)
    found = cells(tables(sections[0])[0])
    assert [gpu for gpu, row in found.items() if row[5] == "–"] == ["titan_black", "titan_v"]
    assert found["titan_black"][1] == "–"


def test_the_page_shows_all_of_it(published):
    page = render("Times", "", own(made(), published))
    for title in TITLES:
        assert title in page
    assert ">nan<" not in page
