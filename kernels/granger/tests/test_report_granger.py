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
    # 160 x 43 200 FLOP / 5.12e12; 160 x 198.4 kB / 336 GB/s; 5 us more; 99.476 / 99.71 - 1.
    assert found["titan_black"] == [
        *("5.120", "336.0", "1.35", "1.35", "94.71", "94.48", "99.71", "99.48", "-0.23"),
        *("–", "–"),
    ]
    # 31.744 MB / 504 GB/s.
    assert found["rtx4070"][4:9] == ["63.14", "62.98", "68.14", "67.98", "-0.23"]
    for printed, computed in ((2, 3), (4, 5), (6, 7)):
        for gpu in CARDS:
            ratio = float(found[gpu][computed]) / float(found[gpu][printed])
            assert ratio == pytest.approx(1, abs=0.003)


def test_a_gpu_of_the_study_stands_below_by_its_ceilings(published):
    section = own(made(), published)[0]
    (table,) = tables(section)
    # 1024 cores at 1 GHz are 2.048 TFLOP/s; 31.744 MB at 1000 GB/s; the fastest no_duplicates.
    assert cells(table)["one"] == [
        *("2.048", "1000", "–", "3.38", "–", "31.74", "–", "36.74", "–", "900.0", "280.0")
    ]
    assert "one: not in the source" in words(section)
    assert "published is not verified" in words(section)


def test_slices_are_no_cards_of_the_formula(published):
    sections = own(made(gpus=("one.sm4",)), published)
    (table,) = tables(sections[0])
    assert list(cells(table)) == CARDS
    # The cost model knows slices.
    assert "one.sm4" in cells(tables(sections[2])[0])


def test_a_measured_card_of_the_source_has_one_row(published):
    sections = own(made(gpus=("titan_v",)), published)
    found = cells(tables(sections[0])[0])
    assert list(found) == CARDS
    assert found["titan_v"][-2:] == ["900.0", "280.0"]
    assert list(cells(tables(sections[2])[0])) == CARDS
    assert "titan_black, titan_x, rtx2080ti and rtx4070: estimated" in words(sections[2])


def test_a_changed_fact_changes_the_table(published):
    change(published, "threads", "320")
    section = own(made(), published)[0]
    (table,) = tables(section)
    assert cells(table)["titan_black"][3] == "2.70"
    # 188.95 + 5 us.
    assert cells(table)["titan_black"][7] == "193.95"
    assert "320 threads" in words(section)


# What it got wrong


def test_errors_and_reasons_are_the_rows_of_their_tables(published):
    section = own(made(), published)[1]
    errors, again = tables(section)
    assert list(cells(errors)) == [row["what"] for row in published["errors"]]
    assert cells(errors)["threads that work"] == [
        *("160", "800", "5.00 × too few", "1.00", "4.62 to 4.79")
    ]
    assert cells(again)["bytes: R, Q^T y and substitution"][-1] == "-0.95"
    found = said(section)
    assert list(found) == ["Bytes:", "Copies:", "Caches:", "Race:", "Race on one:"]
    assert "off by up to 2.5e-01 of the largest, where 3.0e-05" in found["Race on one:"]


# The prediction corrected


def test_the_cost_model_stands_beside_the_source_and_the_sweep(published):
    (table, *_) = tables(own(made(), published)[2])
    found, launches = cells(table), details(table)
    assert list(found) == [*CARDS, "one"]
    for variant, place in (("published", 1), ("no_duplicates", 2)):
        times = [float(found[gpu][place]) for gpu in CARDS]
        assert times == pytest.approx(estimated(variant)["time"], rel=1e-3)
    for gpu in CARDS:
        assert float(found[gpu][3]) <= float(found[gpu][2])
        assert not launches[gpu][3].startswith("published")
        assert found[gpu][4:] == ["–"] * 3
    # What is wrong, of another type or of another size is not the best.
    assert found["one"][0] == "36.74"
    assert found["one"][4:] == ["900.0", "280.0", "30.00"]
    assert launches["one"][4:] == ["", "threads=32", "smem threads=64"]


def details(table):
    """First cell of each row to the second lines of the others."""
    return {row.cells[0].text: [cell.detail for cell in row.cells[1:]] for row in table.rows}


def test_a_time_of_one_launch_is_marked_where_it_stands(published):
    rows = [each for each in SWEEP if each["time_ms"] != 0.28]
    rows.append(row("no_duplicates", 0.28, threads=32, status="slow", repeats=1))
    sections = own(made(*rows), published)
    assert details(tables(sections[2])[0])["one"][5] == "threads=32, one launch timed"
    assert details(tables(sections[0])[0])["one"][-1] == "threads=32, one launch timed"
    assert details(tables(sections[2])[0])["one"][6] == "smem threads=64"


def test_what_is_not_verified_is_never_the_best(published):
    fast = row("published", 0.001, status="unverified")
    found = cells(tables(own(made(fast, *SWEEP), published)[2])[0])["one"]
    assert found[4:] == ["1.000", "280.0", "30.00"]


def test_peaks_that_differ_from_the_table_of_cards(published):
    _, table, _ = tables(own(made(), published)[2])
    assert table.caption == "Peaks and bandwidths that differ by more than 1 %"
    found = cells(table)
    assert list(found) == ["titan_black", "titan_x"]
    # 5.12e12 / (2 x 2880) = 888.9 MHz; 5.12 / 5.6448 - 1.
    assert found["titan_black"][:3] == ["5.120 TFLOP/s, as at 889 MHz", "5.645 TFLOP/s", "-9.3"]
    assert "2880 cores" in found["titan_black"][3]
    assert found["titan_x"][:3] == ["6.140 TFLOP/s, as at 999 MHz", "6.605 TFLOP/s", "-7.0"]


def test_bandwidths_are_compared_too_and_agreement_is_said(published):
    published["predictions"][0]["peak_float32_flops"] = "5.6448e12"
    published["predictions"][1]["peak_float32_flops"] = "6.6048e12"
    section = own(made(), published)[2]
    assert len(tables(section)) == 2
    assert "those of the table of cards, within 1 %" in words(section)
    published["predictions"][4]["bandwidth_bytes_a_second"] = "5.544e11"
    _, table, _ = tables(own(made(), published)[2])
    assert cells(table)["rtx4070"][:3] == ["554.4 GB/s", "504.0 GB/s", "10.0"]


# Which claims hold


@pytest.mark.parametrize(
    ("time_ms", "holds"), [(0.0403, "yes"), (0.0405, "no"), (0.0335, "yes"), (0.0333, "no")]
)
def test_a_time_holds_within_a_tenth(published, time_ms, holds):
    # The formula says 36.74 us.
    found = cells(tables(own(made(row("published", time_ms)), published)[3])[0])
    assert found["time on one by the formula"][-1] == holds


# What may be missing


def test_without_the_published_size_nothing_is_measured(published):
    rows = [each for each in SWEEP if each["county"] != 5]
    sections = own(made(*rows), published)
    assert [section.title for section in sections] == TITLES
    assert cells(tables(sections[0])[0])["one"][-2:] == ["–", "–"]
    assert cells(tables(sections[2])[0])["one"][4:] == ["–"] * 3
    assert list(said(sections[1])) == ["Bytes:", "Copies:", "Caches:", "Race:"]


def test_without_unverified_rows_the_race_is_not_observed(published):
    rows = [each for each in SWEEP if each["variant"] != "published"]
    rows.append(row("published", np.nan, status="failed"))
    sections = own(made(*rows), published)
    assert cells(tables(sections[0])[0])["one"][-2:] == ["–", "280.0"]
    assert "Race on one:" not in said(sections[1])
    assert "not verified" not in words(sections[0])


def test_coefficients_that_are_no_numbers(published):
    rows = [row("published", 0.9, status="unverified", max_error=np.nan)]
    found = said(own(made(*rows), published)[1])
    assert found["Race on one:"] == "coefficients of the first launch are NaN."


def test_without_published_tables_or_a_fact_there_is_less(published):
    assert own(made(), {}) == []
    assert own(made(), {"predictions": published["predictions"]}) == []
    (section,) = own(made(), {"facts": published["facts"]})
    assert section.title == TITLES[2]
    assert list(cells(tables(section)[0])) == ["one"]
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
    assert list(cells(tables(sections[0])[0])) == [*CARDS, "one"]
    assert list(cells(tables(sections[2])[0])) == ["titan_x", "rtx2080ti", "rtx4070", "one"]


def test_the_page_shows_all_of_it(published):
    page = render("Times", "", own(made(), published))
    for title in TITLES:
        assert title in page
    assert ">nan<" not in page
