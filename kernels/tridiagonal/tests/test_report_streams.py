"""The page of the streams study, on times from the published laws and with planted rows."""

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from kernels.tridiagonal.recommenders.stream_law.laws import (
    PUBLISHED_CREATION,
    PUBLISHED_OVERHEAD,
    PUBLISHED_SUM,
    STREAMS,
)
from kernels.tridiagonal.studies.tridiagonal_streams.fits import (
    NUMBERS,
    fit_table,
    optima_table,
    published_optima,
)
from kernels.tridiagonal.studies.tridiagonal_streams.gains import NOT_WELL
from kernels.tridiagonal.studies.tridiagonal_streams.section import (
    optimum_claim,
    overlap_at,
    prediction_claim,
    published_shares,
)
from kernels.tridiagonal.studies.tridiagonal_streams.section import sections as own
from kernels.tridiagonal.studies.tridiagonal_streams.series import series_of
from kernels.tridiagonal.studies.tridiagonal_streams.stages import (
    PAPER,
    published_stage_table,
    stage_table,
)
from launchwise.experiment.published import facts_of
from launchwise.report import wording
from launchwise.report.blocks import Figure, Fold
from launchwise.report.site.rendering import render
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec
from tests.support.report_study import sized_study
from tests.support.shown import blocks_of, rows_of, said, tables, texts, with_sweeps

TRIDIAGONAL = Path(__file__).resolve().parents[1]
STUDY = "tridiagonal_streams"
SIZES = [int(digit * 10**power) for power in range(3, 8) for digit in (1, 2.5, 4, 5, 7.5, 8)]
FEW = [8_000_000, *SIZES[-5:]]  # too few for laws, which take most of the time of a page


def sweep(gpu, sizes=SIZES, serial=1.0, **problem):
    """One GPU's measurements: the published laws, and ``serial`` times 6 ns of other work a row."""
    spec = load_spec(TRIDIAGONAL)
    rows = []
    for n in sizes:
        named = {"n": n, "dtype": "float64", "memory": "pinned", "batch": 1, **problem}
        items = n * named["batch"]
        total = float(PUBLISHED_SUM.predict(items))
        # Of any stage some part; what counts is their sum.
        shares = {"t1_comp_ms": 0.4, "t1_d2h_ms": 0.3, "t3_h2d_ms": 0.1, "t3_comp_ms": 0.2}
        stages = {name: share * total for name, share in shares.items()}
        others = {"t1_h2d_ms": 4e-6 * items, "t2_h_ms": 1e-6 * items, "t3_d2h_ms": 1e-6 * items}
        others = {name: serial * time for name, time in others.items()}
        for count in STREAMS:
            over = 0.0 if count == 1 else float(PUBLISHED_OVERHEAD.predict(items, count))
            time = total / count + over + sum(others.values())
            made = {**named, **baseline(spec), "streams": count, "status": "ok"}
            rows.append({**made, "time_ms": time, **stages, **others, "t2_d_ms": 0.0})
    table = pd.DataFrame(rows)
    return table.assign(gpu=gpu, workload="tridiagonal", reason="", relative_error=0.001)


def study_of(*sweeps):
    rows = pd.concat(sweeps, ignore_index=True)
    return sized_study(TRIDIAGONAL, STUDY, "Streams", SIZES, {"one": rows})


@pytest.fixture(scope="module")
def made():
    return study_of(sweep("one"))


@pytest.fixture(scope="module")
def lucky():
    return study_of(planted({8_000_000: 16}))


def laws_of(study):
    (series,) = series_of(study)
    return series.laws


def section(found, name):
    (one,) = (each for each in found if each.id == f"tridiagonal_streams-{name}")
    return one


def figure(one, name):
    (wanted,) = [
        each for each in blocks_of(one, Figure) if each.id == f"tridiagonal_streams-{name}"
    ]
    return wanted


def test_laws_come_from_training_sizes_alone(made):
    laws = laws_of(made)
    assert set(laws.train["n"]) | set(laws.test["n"]) == set(SIZES)
    assert not set(laws.train["n"]) & set(laws.test["n"])
    assert len(laws.held_out) == pytest.approx(len(SIZES) / 4, abs=1)
    expected = float(PUBLISHED_SUM.predict(10**6))
    assert float(laws.sum.law.predict(10**6)) == pytest.approx(expected, rel=1e-3)


GAINS = "Largest speed-up of streams"


def gains_of(found):
    """Lines of the table of speed-ups: what was measured to the rest."""
    return {line[0]: line[1:] for line in rows_of(found, GAINS)}


def test_the_table_says_what_streams_gain_and_its_bound(page):
    rows = sweep("one")
    alone = rows[rows["streams"] == 1].set_index("n")["time_ms"]
    gains = alone / rows.groupby("n")["time_ms"].min()
    n = gains.idxmax()
    bound = alone[n] / (alone[n] - float(PUBLISHED_SUM.predict(n)))
    found = gains_of(page)
    assert found[PAPER][0] == "1.30"
    gain, error, at, limit, *counts, share, host = found["one"]
    assert (gain, error, limit) == (f"{gains[n]:.2f}", "0.3", f"{bound:.2f}")
    assert at == wording.count(n)
    assert counts[2] == "0, 0 beyond"
    # 8e7: the sum of all time.
    assert share == f"{100 * float(PUBLISHED_SUM.predict(8e7)) / alone[8e7]:.1f}"
    # 1 of 6 ns a row besides the sum.
    assert host == f"{100 * 0.08 * 1000 / alone[8e7]:.0f}"
    # A line for each number of streams, and the bound, which is drawn up to 1.5.
    *lines, limit = figure(section(page, "gain"), "gain-figure").panels[0].data
    assert [line["name"] for line in lines] == [f"{count} streams" for count in STREAMS[1:]]
    assert max(value for value in limit["y"] if value is not None) <= 1.5


def planted(sizes, factor=0.2):
    """The sweep, with the time of one number of streams from one lucky launch at some sizes."""
    rows = sweep("one")
    for n, streams in sizes.items():
        one = (rows["n"] == n) & (rows["streams"] == streams)
        rows.loc[one, "time_ms"] *= factor
        rows.loc[one, "status"] = "slow"
        rows.loc[one, "relative_error"] = np.nan
    return rows


def test_a_single_launch_is_no_gain_anywhere_on_the_page(lucky, page, published):
    found = own(lucky, published)
    first, second = gains_of(found), gains_of(page)
    title = "one"
    assert first[title][:4] == second[title][:4]
    assert int(first[title][4]) == int(second[title][4]) - 1
    gains = tables(section(found, "gain").blocks, folded=True)[-1]
    (row,) = [cells for cells in texts(gains) if cells[0] == "8\u202f000\u202f000"]
    assert row[-1] == "16 not compared"
    assert set(row[1:-1]) == {"–"}
    # Nor is the size drawn, or its row seen by a law.
    for line in figure(section(found, "gain"), "gain-figure").panels[0].data:
        assert 8e6 not in line["x"]
    laws = laws_of(lucky)
    fitted = pd.concat([laws.train, laws.test])
    assert len(fitted) == len(SIZES) * len(STREAMS) - 1
    assert fitted["overhead_ms"].min() >= 0
    (optima,) = tables(section(found, "optima").blocks, folded=True)
    (row,) = [cells for cells in texts(optima) if cells[0] == "8\u202f000\u202f000"]
    assert row[6:9] == ["–", "", "–"]


def test_a_gain_that_overlap_cannot_give_is_flagged_and_not_counted(published):
    rows = sweep("one", FEW)
    noisy = (rows["n"] == 8_000_000) & (rows["streams"] == 16)
    rows.loc[noisy, "time_ms"] *= 0.5
    found = own(study_of(rows), published)
    line = gains_of(found)["one"]
    assert line[2] != "8\u202f000\u202f000"
    assert line[6] == "1, 1 beyond"
    gains = tables(section(found, "gain").blocks, folded=True)[-1]
    flagged = [cells[0] for cells in texts(gains) if cells[-1] == "above its bound"]
    assert flagged == ["8\u202f000\u202f000"]


def test_overheads_are_drawn_with_the_law_that_made_them(page):
    traces = figure(section(page, "laws"), "overhead").panels[0].data
    assert len(traces) == 2 * (len(STREAMS) - 1)
    for dots, law in zip(traces[::2], traces[1::2], strict=True):
        drawn = dict(zip(law["x"], law["y"], strict=True))
        pairs = [(y, drawn[x]) for x, y in zip(dots["x"], dots["y"], strict=True)]
        pairs = [pair for pair in pairs if None not in pair]
        assert len(pairs) > len(SIZES) / 2
        assert np.median([abs(measured / value - 1) for measured, value in pairs]) < 0.15


def test_published_forms_fit_times_of_the_published_laws(made, page):
    fits = fit_table(laws_of(made)).set_index(["model", "set"])
    # Times made from the laws, but for the overhead of one stream, which is 0 when measured.
    assert (fits["r2"] > 0.95).all()
    (paper, ours) = rows_of(section(page, "laws"), "Laws on test sizes")
    assert paper[1:7] == ["0.99999", "0.95497", "0.98968", "–", "0.0667", "0.380"]
    assert [float(r2) for r2 in ours[1:4]] == [
        pytest.approx(fits.loc[(model, "test"), "r2"], abs=1e-5)
        for model in ("sum", "overhead_small", "overhead_big")
    ]
    law = type(laws_of(made).overhead.law).__name__
    assert ours[7] == NUMBERS[law]
    assert f"{NUMBERS[law]}:" in said(blocks_of(section(page, "laws"), Fold)[0].blocks)


def test_stage_times_stand_beside_the_papers(made, page, published):
    (series,) = series_of(made)
    paper = published_stage_table(published)
    assert paper["optimum_created"].tolist() == [7.8, 8.6, 15.8, 45.0, 139.8]
    assert paper["predicted_streams"].tolist() == [1, 1, 4, 32, 32]
    ours = stage_table(dataclasses.replace(series, creation_ms=PUBLISHED_CREATION.tau))
    sums = PUBLISHED_SUM.predict(ours["n"])
    assert ours["sum"].to_numpy() == pytest.approx(sums)
    assert ours["optimum_created"].to_numpy() == pytest.approx(np.sqrt(sums / 0.004448))
    assert series.creation_ms is None
    assert stage_table(series)["optimum_created"].isna().all()
    overlap = section(page, "overlap")
    (table,) = tables(overlap)
    assert [name for name, _ in table.groups][1:] == [PAPER, "one"]
    lines = texts(table)
    assert [line[0] for line in lines] == [
        *(
            "4\u202f000",
            "40\u202f000",
            "400\u202f000",
            "4\u202f000\u202f000",
            "40\u202f000\u202f000",
        )
    ]
    assert lines[0][5:9] == ["0.273", "7.80", "1", "1"]
    # Dots, the chosen line, the published form; then the paper's dots and line.
    names = [trace["name"] for trace in figure(overlap, "sum").panels[0].data]
    assert names == ["measured", "chosen law", "published form", PAPER, "paper's line"]


def test_the_measured_creation_of_a_stream_comes_from_the_profile():
    study = study_of(sweep("one"))
    profile = study.profiles["one"]
    ceilings = profile.ceilings.model_copy(update={"stream_creation_us": 5.0})
    study.profiles = {"one": profile.model_copy(update={"ceilings": ceilings})}
    (series,) = series_of(study)
    assert series.creation_ms == 0.005


def test_every_size_has_both_optima_and_what_predictions_lose(made, page, published):
    theirs = published_optima(published).set_index("n")
    assert len(theirs) == 25
    lost = theirs[theirs["theirs_lost_ms"] > 0]
    assert lost["theirs_lost_ms"].to_dict() == {100_000: 0.008864, 500_000: 0.016224}
    assert lost["theirs_lost_percent"].round(2).tolist() == [0.72, 0.4]
    (series,) = series_of(made)
    found = optima_table(series, laws_of(made), published).set_index("n")
    assert set(found.index) == {*SIZES, *theirs.index}
    # Times made from the laws: the laws lose nothing to speak of on any size.
    assert found["predicted_lost_percent"].max() < 3
    assert found.loc[found["part"] == "held out"].index.tolist() == sorted(laws_of(made).held_out)
    assert found.loc[100_000_000, "part"] == ""
    optima = section(page, "optima")
    (table,) = tables(optima.blocks, folded=True)
    assert len(table.rows) == len(found)


def test_no_share_of_a_run_is_more_than_the_run():
    def share(noisy):
        rows = sweep("one", [*FEW, 100_000_000], serial=0.9)
        rows.loc[rows["n"].isin(noisy), "t1_comp_ms"] *= 10
        (series,) = series_of(study_of(rows))
        return overlap_at(series, [80_000_000, 100_000_000]).get("share")

    assert 0 < share([100_000_000]) < 1
    assert share([80_000_000, 100_000_000]) is None


def test_the_share_that_overlaps_is_of_judged_times():
    """Planted: at one of the paper's sizes pairs were slower than the sweep."""
    rows = sweep("one", FEW, serial=0.9)
    paired = rows["n"] == 80_000_000
    rows["sweep_ms"] = rows["time_ms"]
    rows.loc[paired, "time_ms"] *= 1.2
    rows["basis"] = np.where(paired, "pairs", "sweep")
    rows["time_low_ms"], rows["time_high_ms"] = 0.99 * rows["time_ms"], 1.01 * rows["time_ms"]
    (series,) = series_of(study_of(rows))
    bound = series.gains.set_index("n")["bound"]
    for n in (50_000_000, 80_000_000):
        assert 1 / (1 - overlap_at(series, [n])["share"]) == pytest.approx(bound[n])


def test_pageable_memory_and_slices_have_no_series():
    study = study_of(sweep("one", FEW), sweep("one", FEW, memory="pageable"))
    assert [one.kind for one in series_of(study)] == ["float64, pinned, batch=1, gtsv"]
    whole = study.profiles["one"]
    sliced = whole.model_copy(update={"sms": whole.whole_card_sms - 1})
    both = sized_study(
        TRIDIAGONAL, STUDY, "Streams", FEW, {name: sweep(name, FEW) for name in ("one", "two")}
    )
    both = dataclasses.replace(both, profiles={**both.profiles, "two": sliced}, _known={})
    assert [one.gpu for one in series_of(both)] == ["one"]


def test_the_papers_stage_2_has_a_series_of_its_own(published):
    thomas = sweep("one", FEW, serial=0.5).assign(stage2="thomas")
    study = study_of(sweep("one", FEW), thomas)
    study.settings = study.settings.model_copy(update={"candidates": {"stage2": ["host"]}})
    found = series_of(study)
    assert [one.kind for one in found] == [
        "float64, pinned, batch=1, gtsv",
        "float64, pinned, batch=1, Thomas",
    ]
    assert [set(one.runs["stage2"]) for one in found] == [{"host"}, {"thomas"}]
    gains = [one.gains.set_index("n").loc[80_000_000, "gain"] for one in found]
    # Less other work, so more of the time can overlap.
    assert gains[1] > gains[0]
    table = tables(section(own(study, published), "conclusion").blocks)[0]
    assert [column.title for column in table.columns[2:]] == ["one, gtsv", "one, Thomas"]


def verdicts(study, published):
    conclusion = section(own(study, published), "conclusion")
    table, *_ = tables(conclusion.blocks, folded=True)
    return [row.cells[2].detail for row in table.rows]


def test_the_share_that_overlaps_in_the_paper_follows_from_its_gain(published):
    shares = published_shares(facts_of(published))
    assert list(shares) == [80_000_000, 100_000_000]
    # 8e7: sum 175.267 ms; 32 streams save 31/32 of it less 19.762 ms, so 150.03 ms; a gain of 1.3
    # makes one stream 650.1 ms.
    assert shares[80_000_000] == pytest.approx(175.267 / 650.1, rel=1e-3)
    assert published_shares({}) == {}


def test_the_papers_claims_hold_on_times_made_from_its_laws(published):
    sizes = [*SIZES, 100_000_000]
    # One stream takes 759 ms at 10^8, 32 streams 571 ms: 1.33 times as fast, at most 1.41 times.
    # At 10^5 the laws ask for 2 streams, where the paper measured 1 as best.
    made = study_of(sweep("one", sizes, serial=0.9))
    one, many, prediction, creation = verdicts(made, published)
    assert [one, many, prediction] == ["holds in part", "holds", "holds"]
    # Small systems take one stream, and a tau that is fitted to all sizes asks for no more.
    assert creation == "holds in part"
    assert float(gains_of(own(made, published))["one"][0]) > 1.3
    # Six times the other work: streams still hide the same ms, but a small part of the time.
    slow = verdicts(study_of(sweep("one", sizes, serial=6.0)), published)
    # 32 streams tie with others, which decides nothing.
    assert slow == [one, "undecided", prediction, creation]
    gains = pd.DataFrame({"n": [1, 2], "well_measured": True, "tied": [(8, 32), (8,)]})
    theirs = pd.DataFrame({"n": [1, 2], "theirs_measured": 32})
    assert optimum_claim(SimpleNamespace(gains=gains), theirs, 32).detail == "holds in part"


def test_what_rests_on_single_launches_is_judged_not_measured_well_enough(published):
    rows = sweep("one")
    rows.loc[rows["streams"] > 1, ["status", "time_ms"]] = ["slow", 1e-6]
    assert own(study_of(rows), published) == []
    few = sweep("one")
    several = few["n"].isin(SIZES[:4])
    few.loc[~several & (few["streams"] > 1), "status"] = "slow"
    *_, prediction, creation = verdicts(study_of(few), published)
    assert {prediction, creation} == {NOT_WELL}


def test_the_page_is_made_of_them(page):
    text = render("x", "x", page, figures=False)
    assert "Speed-up of streams" in text
    assert "the most of n = 80\u202f000\u202f000 and 100\u202f000\u202f000" in text
    assert not re.search(r"\bnan\b", text.lower())


def test_a_study_without_published_tables_has_no_conclusion(made):
    names = [one.id.removeprefix("tridiagonal_streams-") for one in own(made, {})]
    assert names == ["gain", "overlap", "laws", "optima"]


def test_too_little_has_no_laws_or_no_page(made, published):
    few = {gpu: rows[rows["n"] <= 2500] for gpu, rows in made.sweeps.items()}
    found = own(with_sweeps(made, **few), published)
    assert "No laws for one" in render("x", "x", found, figures=False)
    single = {gpu: rows[rows["streams"] == 1] for gpu, rows in made.sweeps.items()}
    assert own(with_sweeps(made, **single), {}) == []


def test_laws_rest_on_times_of_the_sweep_alone(published):
    plain = sweep("one")
    (before,) = series_of(study_of(plain))
    # In pairs everything took half as long; one stream was in them and four, nothing else.
    paired = plain["streams"].isin([1, 4])
    times = plain["time_ms"]
    judged = plain.assign(
        sweep_ms=times,
        time_ms=times.where(~paired, times / 2),
        basis=paired.map({True: "pairs", False: "sweep"}),
        time_low_ms=np.nan,
        time_high_ms=np.nan,
    )
    study = study_of(judged)
    (after,) = series_of(study)
    assert after.rows.equals(before.rows)
    assert set(after.compared["streams"]) == {1, 4}
    assert after.compared["sum_ms"].notna().all()
    assert (after.gains["gain"] >= 1).all()
    assert set(after.gains["best_streams"]) == {1, 4}
    claims = tables(section(own(study, published), "conclusion").blocks, folded=True)[0]
    (said,) = (row for row in texts(claims) if row[0].startswith("Laws of sum and overhead"))
    assert "not compared" in said[2]


def test_a_size_where_not_all_were_compared_holds_nothing_of_an_optimum():
    gains = pd.DataFrame({"n": [10, 20, 30], "tied": [(1,), (), (1, 2)]})
    theirs = pd.DataFrame({"n": [10, 30], "theirs_measured": 1})
    claims = [optimum_claim(SimpleNamespace(gains=own), theirs, 1) for own in (gains, gains[1:2])]
    assert [one.text for one in claims] == ["2 of 2, alone at 1, 1 not compared", "1 not compared"]
    assert [one.detail for one in claims] == ["holds in part", NOT_WELL]


@pytest.mark.parametrize(
    ("percent", "tied", "verdict"),
    [(0.5, (4,), "holds"), (2.6, (4, 8), "undecided"), (2.6, (4,), "does not hold")],
)
def test_a_loss_within_error_is_shown_and_decides_nothing(percent, tied, verdict):
    columns = {"part": "held out", "well_measured": True, "predicted_streams": 8}
    shown = prediction_claim(
        pd.DataFrame({**columns, "predicted_lost_percent": [percent], "tied": [tied]}), 1.0
    )
    assert f"at most {percent:.2f} % lost" in shown.text
    assert shown.detail == verdict
