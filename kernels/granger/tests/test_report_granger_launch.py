"""The published launch in two types, and the source's tables, on the page."""

import dataclasses
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from granger_pages import change, made, row
from published_tables import facts, table
from samples import ROOT

from kernels.granger.studies.granger_time.launches import counted, read_counted
from kernels.granger.studies.granger_time.section import sections as own
from launchwise.base.errors import UserError
from launchwise.experiment.published import read_tables
from launchwise.report.blocks import Fold
from tests.support.shown import blocks_of, cells, said, tables, texts

pytestmark = pytest.mark.usefixtures("in_the_project")


def test_operations_and_bytes_are_counted_again(published):
    _, table = tables(own(made(), published)[1], folded=True)
    found = cells(table)
    gap = "\u202f"
    # 10 columns: 200 FLOP of a product, a root, a division, 100 multiplications.
    assert found["FLOP: lengths of columns, and scaling by them"] == [
        *(f"3{gap}100", f"3{gap}020", "2.65")
    ]
    # 45 pairs of 400 FLOP more; R takes 100 products of 200 FLOP.
    assert found["FLOP: Gram-Schmidt with them"][1] == f"21{gap}020"
    assert found["FLOP: R = Q^T X"] == [f"20{gap}000", f"20{gap}000", "0.00"]
    # 10 products, 45 multiply-adds, 10 divisions.
    assert found["FLOP: Q^T y and substitution"] == [f"2{gap}100", f"2{gap}100", "0.00"]
    assert found["FLOP: all of a thread"] == [f"43{gap}200", f"43{gap}120", "0.19"]
    assert found["bytes: all of a thread"] == [f"198{gap}400", f"199{gap}240", "-0.42"]


def by_type(*more, repeats=1):
    """The section of a sweep with the published launch in both types."""
    rows = [
        row("published", 0.9, status="unverified", repeats=repeats, relative_error=np.nan),
        row("published", 0.6, status="unverified", dtype="float64"),
        row("no_duplicates", 0.3),
        row("no_duplicates", 0.4, dtype="float64"),
        *more,
    ]
    source = read_tables(ROOT / "kernels" / "granger" / "studies" / "granger_time")
    (section,) = [one for one in own(made(*rows), source) if one.id == "granger_time-launch"]
    return section


def test_the_published_launch_by_type():
    section = by_type()
    (table,) = tables(section)
    ((problem, *found),) = cells(table).values()
    assert problem == "–"
    assert "county=5, countx=5, rows=100, cols=10" in table.caption
    # Time and error of each type; of one launch there is neither error nor ratio.
    assert found == ["0.900", "–", "0.600", "0.2", "–", "0.75"]
    assert said(section) == {}
    section = by_type(repeats=5)
    (table,) = tables(section)
    assert next(iter(cells(table).values()))[-2:] == ["1.50", "0.75"]
    assert (
        "float32 is slower in 1 of 1 pair of rows, on 1 of 1 GPU"
        in (said(section)["float32 against float64:"])
    )


def test_times_and_ratios_are_those_of_the_sweep(published):
    """Pairs hold some of the variants: a ratio to one of the sweep would tell of the visit."""

    def judged(variant, time_ms, sweep_ms, **values):
        limits = {"time_low_ms": 0.9 * time_ms, "time_high_ms": 1.1 * time_ms, "error": 0.05}
        return row(variant, time_ms, sweep_ms=sweep_ms, **limits, basis="pairs", **values)

    rows = [
        row("published", 0.9, status="unverified", sweep_ms=0.9, basis="sweep"),
        row("published", 0.6, status="unverified", sweep_ms=0.6, basis="sweep", dtype="float64"),
        judged("no_duplicates", 0.36, 0.3),
        judged("no_duplicates", 0.4, 0.4, dtype="float64"),
        judged("smem", 0.031, 0.031),
        judged("smem", 0.030, 0.030, threads=64),
    ]
    found = own(made(*rows), published)
    (launch,) = [one for one in found if one.id == "granger_time-launch"]
    assert next(iter(cells(tables(launch)[0]).values()))[-1] == "0.75"
    (predictions,) = tables(found[0])
    assert cells(predictions)["one"][-2:] == ["300.0", "30.00"]


def test_repeated_rows_have_errors():
    slower = row("no_duplicates", 0.5, county=10)
    pair = row("no_duplicates", 0.2, county=10, dtype="float64")
    other = row("published", 0.9, status="unverified", county=10)
    section = by_type(
        slower, pair, other, row("published", 2.0, county=10, dtype="float64"), repeats=5
    )
    text = said(section)
    assert "float32 is slower in 1 of 2 pairs" in text["float32 against float64:"]


def test_without_a_second_type_there_is_no_comparison(published):
    assert "granger_time-launch" not in [one.id for one in own(made(), published)]


def test_claims_are_judged(published):
    (table,) = tables(own(made(), published)[-1])
    found = cells(table)
    holds = {claim: row[-1] for claim, row in found.items()}
    assert holds["FLOP of a thread"] == "yes"
    assert holds["bytes of a thread, its three parts"] == "yes"
    assert holds["bytes of a thread, as summed"] == "no"
    assert found["threads that work"] == ["160", "800", "no"]
    assert holds["bytes from device memory"] == "no"
    # 2 us of the profile; .9 ms of the sweep, and 36.74 us by the formula.
    assert found["time of a launch by the host"] == ["5 µs", "2.00 µs by that of one", "no"]
    assert found["a launch is small beside the rest"] == [
        *("5.0 to 9.3 % of the predicted times", "0.22 % of the measured times", "yes")
    ]
    assert found["times on one by the formula"] == [
        *("36.74 µs", "24.5 times as much, measured", "no")
    ]
    assert holds["times on the source's GPUs"] == "not by the cost model"


def test_a_launch_that_takes_what_is_printed_holds(published):
    change(published, "launch_overhead_us", "2")
    (table,) = tables(own(made(row("published", 0.0335)), published)[-1])
    found = cells(table)
    assert found["time of a launch by the host"][-1] == "yes"
    # 31.74 + 2 us by the formula.
    assert found["times on one by the formula"][-1] == "yes"


def test_a_claim_may_hold_on_some_gpus(published):
    change(published, "launch_overhead_us", "2")
    known = made(row("published", 0.0335), gpus=("one", "two"))
    slow = known.profiles["two"].ceilings.model_copy(update={"launch_overhead_us": 3.0})
    profiles = {
        **known.profiles,
        "two": known.profiles["two"].model_copy(update={"ceilings": slow}),
    }
    (table,) = tables(own(dataclasses.replace(known, profiles=profiles), published)[-1])
    assert cells(table)["time of a launch by the host"] == [
        *("2 µs", "2.00 µs by that of one and 3.00 µs by that of two", "on 1 of 2 hosts")
    ]


# Counters

STUDY = ROOT / "kernels" / "granger" / "studies" / "granger_time"


@pytest.fixture
def recorded(tmp_path):
    shutil.copytree(STUDY / "recorded", tmp_path / "recorded")
    return tmp_path


def test_counters_of_the_published_launch(published):
    rows = [
        row("published", 0.9, status="unverified"),
        row("published", 0.6, status="unverified", dtype="float64"),
    ]
    known = dataclasses.replace(made(*rows), folder=STUDY)
    (section,) = [one for one in own(known, published) if one.id == "granger_time-launch"]
    found = {tuple(each[:3]): each for each in texts(tables(section, folded=True)[-1])}
    assert found["5", "published", "float32"][3:5] == ["5.40", "19.5"]
    assert found["5", "published", "float64"][6:8] == ["1.82", "94.7"]
    (fold,) = blocks_of(section, Fold)
    text = said(fold.blocks)
    # 2 838 304 of 1 816 167 missed sectors, 5.404 of 3.554 ms.
    assert text["Misses in L1:"].startswith("1.56 and 1.43 times as many")
    assert text["Misses in L1:"].endswith("time follows the misses.")
    assert "99.4 to 99.7 %" in text["Without copies:"]


def test_time_that_does_not_follow_the_misses_is_said(recorded):
    path = recorded / "recorded" / "counters.csv"
    # The time of the float64 launch with 320 regressions.
    path.write_text(path.read_text().replace("41,686,016", "99,000,000"))
    known = dataclasses.replace(made(), folder=recorded)
    found = said(counted(known, "published")[0].blocks)
    assert found["Misses in L1:"].endswith("time does not follow them.")


def test_the_device_of_the_counters_is_that_of_their_record(recorded):
    path = recorded / "recorded" / "counters.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "device": "Another GPU"}))
    (fold,) = counted(dataclasses.replace(made(), folder=recorded), "published")
    (table,) = tables(fold.blocks)
    assert table.caption.startswith("Counters of one launch on Another GPU (")


def test_counters_that_do_not_fit_their_runs_are_refused(recorded):
    path = recorded / "recorded" / "counters.json"
    job = json.loads(path.read_text())
    path.write_text(json.dumps({**job, "runs": job["runs"][1:]}))
    with pytest.raises(UserError, match=r"6 launches, counters\.json lists 5 runs"):
        read_counted(recorded)


def test_a_counter_that_is_missing_is_named(recorded):
    path = recorded / "recorded" / "counters.csv"
    path.write_text(path.read_text().replace("lts__t_sectors.max", "lts__t_sectors.least"))
    with pytest.raises(UserError, match=r"lacks lts__t_sectors\.max"):
        read_counted(recorded)


def test_printed_times_follow_from_their_parts_on_cards_that_are_known():
    predictions, given = table("granger_time", "predictions"), facts("granger_time")
    assert list(predictions["gpu"]) == ["titan_black", "titan_x", "titan_v", "rtx2080ti", "rtx4070"]
    cards = pd.read_csv(ROOT / "data" / "cards.csv")
    assert set(predictions["gpu"]) <= set(cards["card"])
    compute = 1e6 * float(given["flop_total"]) / predictions["peak_float32_flops"]
    assert list(compute.round(2)) == list(predictions["compute_us"])
    longer = predictions[["compute_us", "memory_us"]].max(axis=1)
    assert list(longer) == list(predictions["body_us"])
    total = predictions["body_us"] + float(given["launch_overhead_us"])
    assert np.allclose(total, predictions["predicted_us"], rtol=0, atol=1e-9)


def test_counts_of_one_thread_add_up():
    counted = list(table("granger_time", "recount")["counted_again"])
    norms, gram_schmidt, r, b, solve, flop, *words, count = counted
    assert norms < gram_schmidt
    assert (solve, flop, count) == (r + b, gram_schmidt + solve, sum(words))
