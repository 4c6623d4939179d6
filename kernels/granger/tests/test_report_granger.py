"""The page of the study of predicted times, on a source and times that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from granger_pages import (
    CARDS,
    PROBLEM,
    SWEEP,
    TITLES,
    cells,
    change,
    estimated,
    made,
    row,
    said,
    tables,
    words,
)
from samples import ROOT

from kernels.granger.studies.granger_time.formula import Facts, Source
from kernels.granger.studies.granger_time.section import sections as own
from launchwise.experiment.published import Records, facts_of
from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.learning.analytical import PARTS
from launchwise.report.site.rendering import render

pytestmark = pytest.mark.usefixtures("in_the_project")

# The source's figures


def test_the_launch_behind_the_counts(published: dict[str, Records]) -> None:
    facts = Facts.of(facts_of(published))
    assert facts is not None
    assert facts.problem == PROBLEM
    # Regressions 0 to 4 in the first block along x, 32 rows of threads, 5 rows of blocks.
    assert facts.threads_at_work == 5 * 32 * 5
    assert (facts.blocks_at_work, facts.warps_at_work) == (5, 160)
    assert facts.lanes_share(15) == pytest.approx(5 / 32 * 5 / 15)
    assert facts.lanes_share(2) == pytest.approx(5 / 32)
    assert facts.parts == pytest.approx((8400, 102_000, 88_000))
    assert facts.parts_counted == (8400, 102_000, 88_840)
    # X and Q of 1000 words, R of 100, b of 10, a series of 100.
    assert facts.arrays == 4 * (1000 + 1000 + 100 + 10 + 100)
    # Rounding of 8.4, 102 and 88 hides at most .05 + .5 + .5 kB.
    assert facts.rounding_kilobytes == pytest.approx(1.05)


def test_blocks_of_the_launch_overlap_from_regression_16_on(published: dict[str, Records]) -> None:
    change(published, "county", "20")
    facts = Facts.of(facts_of(published))
    assert facts is not None
    # 20 columns of the first block, 4 of the second: regressions 16 to 19 are done by both.
    assert facts.threads_at_work == 24 * 32 * 5
    assert (facts.blocks_at_work, facts.warps_at_work) == (10, 320)


def test_one_number_of_bytes_gives_all_printed_times(published: dict[str, Records]) -> None:
    source = Source.of(published)
    assert source is not None
    # From below TITAN X, 94.565 us at 336.5 GB/s; from above TITAN Black, 94.715 us at 336 GB/s.
    assert source.bytes_implied() == pytest.approx((94.565e-6 * 336.5e9, 94.715e-6 * 336e9))


# The published prediction


def test_the_published_table_is_computed_again(published: dict[str, Records]) -> None:
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


def test_a_gpu_of_the_study_stands_below_by_its_ceilings(published: dict[str, Records]) -> None:
    section = own(made(), published)[0]
    (table,) = tables(section)
    # 1024 cores at 1 GHz are 2.048 TFLOP/s; 31.744 MB at 1000 GB/s; the fastest no_duplicates.
    assert cells(table)["one"] == [
        *("2.048", "1000", "–", "3.38", "–", "31.74", "–", "36.74", "–", "900.0", "280.0"),
    ]
    assert "one: not in the source" in words(section)
    assert "published is not verified" in words(section)


def test_slices_are_no_cards_of_the_formula(published: dict[str, Records]) -> None:
    sections = own(made(gpus=("one.sm4",)), published)
    (table,) = tables(sections[0])
    assert list(cells(table)) == CARDS
    # The cost model knows slices.
    assert "one.sm4" in cells(tables(sections[2])[0])


def test_a_measured_card_of_the_source_has_one_row(published: dict[str, Records]) -> None:
    sections = own(made(gpus=("titan_v",)), published)
    found = cells(tables(sections[0])[0])
    assert list(found) == CARDS
    assert found["titan_v"][-2:] == ["900.0", "280.0"]
    assert list(cells(tables(sections[2])[0])) == CARDS
    assert "titan_black, titan_x, rtx2080ti and rtx4070: estimated" in words(sections[2])


def test_a_changed_fact_changes_the_table(published: dict[str, Records]) -> None:
    change(published, "threads", "320")
    section = own(made(), published)[0]
    (table,) = tables(section)
    assert cells(table)["titan_black"][3] == "2.70"
    # 188.95 + 5 us.
    assert cells(table)["titan_black"][7] == "193.95"
    assert "320 threads" in words(section)


# What it got wrong


def test_errors_of_the_source_are_computed(published: dict[str, Records]) -> None:
    table, _ = tables(own(made(), published)[1])
    found = cells(table)
    # TITAN V: (1.99e6 x 160 / 652.8 GB/s + 5) / 53.75 = 9.17; TITAN Black: 952.62 / 99.71 = 9.55.
    assert found["bytes per thread: the sum of its parts"] == [
        *("1.990 MB", "198.4 kB", "10.0 × too many", "9.17 to 9.55", "1.00"),
    ]
    assert found["bytes of all threads"][:3] == ["318.0 MB", "31.74 MB", "10.0 × too many"]
    # 160 x 199.24 kB beside 31.82 MB: .18 %.
    assert found["bytes behind its times: loads and stores counted again"] == [
        *("31.82 MB", "31.88 MB", "1.002 × too few", "1.00", "1.00"),
    ]
    # Five times the time of the memory: (5 x 48.627 + 5) / 53.75, (5 x 94.476 + 5) / 99.71.
    assert found["threads that work"] == [
        *("160", "800", "5.00 × too few", "1.00", "4.62 to 4.79"),
    ]
    # 5 x 8840 B; arithmetic and launch are left: 6.35 / 99.71 and 5.464 / 53.75.
    assert found["bytes from device memory: each array once"] == [
        *("31.74 MB", "44.20 kB", "718 × too many", "1.00", "0.06 to 0.10"),
    ]


def test_lanes_without_work_keep_a_card_from_its_peak(published: dict[str, Records]) -> None:
    table, _ = tables(own(made(), published)[1])
    found = cells(table)
    # 5 of 32 lanes on 5 of 80 SMs and on 5 of 15: a part of 1 / 102.4 and 1 / 19.2.
    assert found["lanes that work, of the whole GPU"][1:3] == [
        "1.0 to 5.2 %",
        "19 to 102 × too many",
    ]
    # RTX 4070: 800 x 43 200 / (29e12 x 25 / 32 / 46) = 70.2 us; TITAN V: 237.5 us; and 5 us.
    assert found["threads, arrays and lanes at once"][-1] == "1.10 to 4.51"


@pytest.mark.parametrize(
    ("fact", "value", "what", "expected"),
    [
        ("bytes_a_thread", "1.984e5", "bytes per thread: the sum of its parts", "equal"),
        ("bytes_total", "3.1744e7", "bytes of all threads", "equal"),
        ("kilobytes_solve", "888", "bytes of all threads", "1.99 × too many"),
        ("block_y", "16", "threads that work", "2.50 × too few"),
        ("grid_y", "1", "threads that work", "equal"),
        ("cols", "20", "bytes from device memory: each array once", "351 × too many"),
    ],
)
def test_a_changed_fact_changes_its_error(
    published: dict[str, Records], fact: str, value: str, what: str, expected: str
) -> None:
    change(published, fact, value)
    table, _ = tables(own(made(), published)[1])
    assert cells(table)[what][2] == expected


def test_reasons_are_computed(published: dict[str, Records]) -> None:
    found = said(own(made(), published)[1])
    assert "8.4 + 102 + 88 kB are 198.4 kB; the sum as printed is 1.990 MB" in found["Bytes:"]
    assert "318.0 MB and, next to that, 31.8 MB" in found["Bytes:"]
    assert "31.821 to 31.824 MB, which rounding of the parts can explain" in found["Bytes:"]
    assert "8.4 + 102 + 88.84 kB a thread, are +0.18 % off" in found["Bytes:"]
    assert "800 threads have work, in 160 warps of 5 blocks" in found["Copies:"]
    assert "8.840 kB, 44.20 kB of all regressions" in found["Caches:"]
    # TITAN Black: 1536 KiB; the GPU of the study is none of the source's.
    assert "smallest L2 of these GPUs holds 1.573 MB" in found["Caches:"]
    assert found["Race:"].startswith("160 copies of a regression")
    assert "off by up to 2.5e-01 of the largest, where 3.0e-05" in found["Race on one:"]


def test_parts_that_rounding_cannot_explain(published: dict[str, Records]) -> None:
    change(published, "kilobytes_solve", "80")
    assert "rounding of the parts cannot explain" in said(own(made(), published)[1])["Bytes:"]


def test_times_that_belong_to_no_number_of_bytes(published: dict[str, Records]) -> None:
    published["predictions"][2]["memory_us"] = "50.00"
    assert "No one number of bytes" in said(own(made(), published)[1])["Bytes:"]


# The prediction corrected


def test_the_cost_model_stands_beside_the_source_and_the_sweep(
    published: dict[str, Records],
) -> None:
    found = cells(tables(own(made(), published)[2])[0])
    assert list(found) == [*CARDS, "one"]
    for variant, place in (("published", 1), ("no_duplicates", 2)):
        times = [float(found[gpu][place]) for gpu in CARDS]
        assert times == pytest.approx(estimated(variant)["time"], rel=1e-3)
    for gpu in CARDS:
        assert float(found[gpu][3]) <= float(found[gpu][2])
        assert not found[gpu][4].startswith("published")
        assert found[gpu][5:] == ["–"] * 4
    # What is wrong, of another type or of another size is not the best.
    assert found["one"][0] == "36.74"
    assert found["one"][5:] == ["900.0", "280.0", "30.00", "smem threads=64"]


def test_what_is_not_verified_is_never_the_best(published: dict[str, Records]) -> None:
    fast = row("published", 0.001, status="unverified")
    found = cells(tables(own(made(fast, *SWEEP), published)[2])[0])["one"]
    assert found[5:] == ["1.000", "280.0", "30.00", "smem threads=64"]


def test_peaks_that_differ_from_the_table_of_cards(published: dict[str, Records]) -> None:
    _, table, _ = tables(own(made(), published)[2])
    assert table.caption == "Peaks and bandwidths that differ by more than 1 %"
    found = cells(table)
    assert list(found) == ["titan_black", "titan_x"]
    # 5.12e12 / (2 x 2880) = 888.9 MHz; 5.12 / 5.6448 - 1.
    assert found["titan_black"][:3] == ["5.120 TFLOP/s, as at 889 MHz", "5.645 TFLOP/s", "-9.3"]
    assert "2880 cores" in found["titan_black"][3]
    assert found["titan_x"][:3] == ["6.140 TFLOP/s, as at 999 MHz", "6.605 TFLOP/s", "-7.0"]


def test_bandwidths_are_compared_too_and_agreement_is_said(published: dict[str, Records]) -> None:
    published["predictions"][0]["peak_float32_flops"] = "5.6448e12"
    published["predictions"][1]["peak_float32_flops"] = "6.6048e12"
    section = own(made(), published)[2]
    assert len(tables(section)) == 2
    assert "those of the table of cards, within 1 %" in words(section)
    published["predictions"][4]["bandwidth_bytes_a_second"] = "5.544e11"
    _, table, _ = tables(own(made(), published)[2])
    assert cells(table)["rtx4070"][:3] == ["554.4 GB/s", "504.0 GB/s", "10.0"]


def test_parts_of_the_published_launch(published: dict[str, Records]) -> None:
    section = own(made(), published)[2]
    table = tables(section)[-1]
    parts = estimated("published")
    shown = [name for name in PARTS if any(value > 0 for value in parts[name])]
    assert [column.title for column in table.columns] == ["GPU", "in all", *shown, "bound by"]
    for place, gpu in enumerate(CARDS):
        row = dict(
            zip([column.title for column in table.columns][1:], cells(table)[gpu], strict=True)
        )
        for name in shown:
            assert float(row[name]) == pytest.approx(parts[name][place], rel=6e-3)
        assert float(row["in all"]) == pytest.approx(parts["time"][place], rel=1e-3)
        assert row["bound by"] == max(shown, key=lambda name: parts[name][place])
    assert "titan_x, titan_v, rtx2080ti and rtx4070: estimated from datasheets" in words(section)


# Which claims hold


@pytest.mark.parametrize(
    ("time_ms", "holds"), [(0.0403, "yes"), (0.0405, "no"), (0.0335, "yes"), (0.0333, "no")]
)
def test_a_time_holds_within_a_tenth(
    published: dict[str, Records], time_ms: float, holds: str
) -> None:
    # The formula says 36.74 us.
    found = cells(tables(own(made(row("published", time_ms)), published)[3])[0])
    assert found["time on one by the formula"][-1] == holds


# What may be missing


def test_without_the_published_size_nothing_is_measured(published: dict[str, Records]) -> None:
    rows = [each for each in SWEEP if each["county"] != 5]
    sections = own(made(*rows), published)
    assert [section.title for section in sections] == TITLES
    assert cells(tables(sections[0])[0])["one"][-2:] == ["–", "–"]
    assert cells(tables(sections[2])[0])["one"][5:] == ["–"] * 4
    assert list(said(sections[1])) == ["Bytes:", "Copies:", "Caches:", "Race:"]


def test_without_unverified_rows_the_race_is_not_observed(published: dict[str, Records]) -> None:
    rows = [each for each in SWEEP if each["variant"] != "published"]
    rows.append(row("published", np.nan, status="failed"))
    sections = own(made(*rows), published)
    assert cells(tables(sections[0])[0])["one"][-2:] == ["–", "280.0"]
    assert "Race on one:" not in said(sections[1])
    assert "not verified" not in words(sections[0])


def test_coefficients_that_are_no_numbers(published: dict[str, Records]) -> None:
    rows = [row("published", 0.9, status="unverified", max_error=np.nan)]
    found = said(own(made(*rows), published)[1])
    assert found["Race on one:"] == "coefficients of the first launch are NaN."


def test_without_published_tables_there_is_less(published: dict[str, Records]) -> None:
    assert own(made(), {}) == []
    assert own(made(), {"predictions": published["predictions"]}) == []
    (section,) = own(made(), {"facts": published["facts"]})
    assert section.title == TITLES[2]
    assert list(cells(tables(section)[0])) == ["one"]


def test_without_a_fact_there_is_nothing(published: dict[str, Records]) -> None:
    published["facts"] = [row for row in published["facts"] if row["fact"] != "threads"]
    assert own(made(), published) == []


def test_a_card_that_the_table_lacks_has_no_estimate(
    published: dict[str, Records], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    lanes = cells(tables(sections[1])[0])["lanes that work, of the whole GPU"]
    # Most lanes on the TITAN X, least on the RTX 2080 Ti: 5 / 32 of 5 / 24 and of 5 / 68.
    assert lanes[1] == "1.1 to 3.3 %"


def test_the_page_shows_all_of_it(published: dict[str, Records]) -> None:
    page = render("Times", "", own(made(), published))
    for title in TITLES:
        assert title in page
    assert ">nan<" not in page
