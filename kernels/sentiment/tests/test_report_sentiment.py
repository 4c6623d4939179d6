"""The page of the sentiment study, on times that are known."""

import dataclasses
from pathlib import Path

import pandas as pd
import pytest

from kernels.sentiment.host.launches import Choice, intermediate_bytes
from kernels.sentiment.host.workload import LOOSER
from kernels.sentiment.studies.sentiment_inference.section import WORDS
from kernels.sentiment.studies.sentiment_inference.section import sections as own
from launchwise.base.storage import read_json
from launchwise.experiment.published import read_tables
from launchwise.workloads.space import baseline
from tests.support.report_study import known_spec, swept_study
from tests.support.shown import cells as cells_of
from tests.support.shown import notes, tables, texts

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "kernels" / "sentiment"
SPEC = known_spec(FOLDER)
TIMES_MS = {name: 80.0 / 2**place for place, name in enumerate(WORDS)}
"""Each step of the ladder halves the time."""
EXACT = [name for name in WORDS if name not in LOOSER]


def row(variant, time_ms, **values):
    """A measurement on the device, all cases at once but for ``values``."""
    known = {"batch": 20000, "tokens": 256, "given": "tokens", "memory": "device"}
    known |= {**baseline(SPEC), "variant": variant}
    measured = {"time_ms": time_ms, "status": "ok", "max_error": 1e-7, "tolerance": 1e-5}
    stages = {"setup_ms": 3.0, "h2d_ms": 1.0, "kernels_ms": time_ms, "d2h_ms": 0.5}
    shape = {"registers": 64, "occupancy": 0.5, "class_flips": 0.0, "repeats": 5, "graph": 0}
    return {**known, **measured, **stages, **shape, **values}


def sweep():
    """Every variant twice on the device; two of them from host memory, for two batches. On the
    device with either form of the input."""
    rows = [row(name, time) for name, time in TIMES_MS.items()]
    rows += [row(name, 2 * time, warps=4) for name, time in TIMES_MS.items()]
    for batch in (1, 20000):
        rows += [row(name, TIMES_MS[name] + 1, batch=batch, memory="pinned") for name in EXACT[:2]]
    rows += [row(name, 1e-3 * time, batch=1) for name, time in TIMES_MS.items()]
    rows += [{**each, "given": "embeddings"} for each in rows if each["memory"] == "device"]
    table = pd.DataFrame([*rows, *published_way()])
    # One variant rounds: its answers are further off, and two cases change sides.
    rounds = table["variant"] == "tensor_bf16"
    table.loc[rounds, "max_error"] = 1e-3
    table.loc[rounds & (table["batch"] > 1), "class_flips"] = 2.0
    return table.assign(gpu="one", workload="sentiment", reason="")


def published_way():
    """Embeddings from host memory one by one; tiles take longer, four streams do not help them."""
    host = {"given": "embeddings", "memory": "pinned"}
    rows = [
        row(name, time, **host, chunk=1, streams=streams)
        for name, streams, time in (
            ("separate", 1, 1500.0),
            ("separate_tiled", 1, 1800.0),
            ("separate_tiled", 4, 2000.0),
            ("naive", 1, 1000.0),
        )
    ]
    rows += [row("separate", 0.5, **host, batch=1), row("separate_tiled", 0.4, **host, batch=1)]
    rows.append(row("naive", 900.0, memory="pinned", chunk=1, streams=4, status="slow"))
    return [*rows, row("tensor_3xfp16", 120.0, **host, chunk=1024, streams=4)]


@pytest.fixture(scope="module")
def made():
    sizes = {"batch": [1]}, {"batch": [20000]}
    asked = {"title": "Reviews", "candidates": {"variant": EXACT}}
    return swept_study(FOLDER, "sentiment_inference", *sizes, {"one": sweep()}, **asked)


@pytest.fixture(scope="module")
def published():
    return read_tables(ROOT / "kernels" / "sentiment" / "studies" / "sentiment_inference")


def cells(table, variant):
    return next(each for each in texts(table) if variant in each)


@pytest.fixture(scope="module")
def page(made, published):
    return own(made, published)


def times_of(made, published, *more):
    """The table of times, with these rows besides."""
    rows = sweep()
    if more:
        others = pd.DataFrame(list(more)).assign(gpu="one", workload="sentiment")
        rows = pd.concat([rows, others])
    one = dataclasses.replace(made, sweeps={"one": rows})
    return tables(own(one, published)[1].blocks)[0]


def details(table, name):
    row = next(row for row in table.rows if name in [cell.text for cell in row.cells])
    return row.cells[5].detail, row.cells[7].detail


def test_the_ladder_says_what_each_step_gained(page):
    (table,) = tables(page[0].blocks)
    assert [each.cells[0].text for each in table.rows] == list(WORDS)
    assert cells(table, "naive")[1:] == ["17.5", "80.00", "1.00"]
    assert cells(table, "tensor_bf16")[2:] == ["0.1562", "512.0"]


def test_the_papers_implementations_stand_beside_ours(made, published):
    beside = times_of(made, ours_measured(published))
    naive = cells(beside, "CUDA naive")
    # The variant with a kernel per step, though the other one is faster; 3 s on the CPU.
    assert naive == ["CUDA naive", "RTX 4070", "1.549", "159", "0.2215", "1.50", "2.00", "0.500"]
    assert cells(beside, "CUDA streams")[5:] == ["2.00", "1.50", "–"]
    assert details(beside, "CUDA streams") == ("4 streams", "")
    assert cells(beside, "PyTorch on the CPU")[5:7] == ["3.00", "1.00"]
    given = "embeddings, page-locked", "embeddings on the GPU"
    assert details(beside, "PyTorch on the GPU") == given
    assert cells(beside, "fastest on float32 embeddings")[5:7] == ["0.120", "25.0"]


def test_each_time_names_its_own_variant_and_replayed_graphs_have_lines_of_their_own(
    made, published
):
    host = {"given": "embeddings", "memory": "pinned", "batch": 1}
    quick = [row("naive", 0.03, **host, graph=1), row("separate", 0.04, **host, graph=1)]
    beside = times_of(made, ours_measured(published), *quick, row("tiled", 0.4, **host))
    assert cells(beside, "CUDA naive")[7] == "0.500"
    assert cells(beside, "CUDA naive, graph replayed")[7] == "0.0400"
    best = "fastest on float32 embeddings"
    # The fastest of one review is another variant than that of all reviews.
    assert details(beside, best) == ("tensor_3xfp16", "tiled")
    assert cells(beside, f"{best}, graph replayed")[7] == "0.0300"
    assert details(beside, f"{best}, graph replayed") == ("", "naive")


def with_eigen(published):
    """Published tables with the paper's program on a host of another card: 15 s, 0.75 ms."""
    tables = ours_measured(published)
    numpy = next(row for row in tables["peers"] if row["name"] == "numpy_cpu")
    eigen = {
        **{**numpy, "name": "eigen_one_core", "implementation": "C++ with Eigen", "gpu": "two"},
        **{"total_s": "15.0", "one_case_ms": "0.75", "source": "a result with Eigen"},
    }
    return {**tables, "peers": [*tables["peers"], eigen]}


def test_speed_ups_are_over_the_papers_program_on_one_host_for_every_card(made, published):
    blocks = own(made, with_eigen(published))[1].blocks
    beside = tables(blocks)[0]
    # Timed on the host of another card, so not a time of this one.
    assert cells(beside, "C++ with Eigen, one core")[5:] == ["–", "–", "–"]
    assert cells(beside, "CUDA naive")[6] == "10.0"
    assert "× CPU: C++ with Eigen on 16 CPU cores of two's host, for every" in notes(blocks)[0]


def test_the_page_says_what_speed_ups_are_over(made, published):
    blocks = own(made, ours_measured(published))[1].blocks
    assert "PyTorch on the CPU on 16 CPU cores of one's host" in notes(blocks)[0]
    blocks = own(made, {**published, "peers": []})[1].blocks
    assert "No program was timed on a CPU" in notes(blocks)[0]


def test_one_launch_for_reviews_one_by_one_stands_beside_the_published_ways(made, published):
    host = {"given": "embeddings", "memory": "pinned"}
    queued = [row("persistent", 130.0, **host), row("persistent", 0.2, **host, batch=1)]
    beside = times_of(made, ours_measured(published), *queued)
    assert cells(beside, "all in one launch")[5:8] == ["0.130", "23.1", "0.200"]


def of_one_launch(rows, **values):
    """``rows`` with those that have these values stopped after one launch."""
    chosen = pd.Series(True, index=rows.index)
    for name, value in values.items():
        chosen &= rows[name] == value
    assert chosen.any()
    return rows.assign(status=rows["status"].mask(chosen, "slow"))


def test_the_ladder_has_no_speed_up_of_one_launch(made, published):
    def ladder(rows):
        (section, *_) = own(dataclasses.replace(made, sweeps={"one": rows}), published)
        (table,) = tables(section.blocks)
        return {row.cells[0].text: row.cells[2:] for row in table.rows}

    rows = of_one_launch(sweep(), variant="fused_case", memory="device")
    time, gain = ladder(rows)["fused_case"]
    assert (time.text, time.detail) == (f"{TIMES_MS['fused_case']:.3f}", "one launch")
    assert gain.text == "–"
    # Nor is there one over naive of one launch.
    naive = of_one_launch(rows, variant="naive", memory="device")
    assert ladder(naive)["tensor_bf16"][1].text == "–"

    # The slower configuration has repeats: how fast the variant is remains unknown.
    only = (rows["variant"] == "fused_case") & (rows["time_ms"] == 2 * TIMES_MS["fused_case"])
    repeated = rows.assign(status=rows["status"].mask(only, "ok"))
    assert ladder(repeated)["fused_case"][1].text == "–"
    # Within 2 % of one launch, the row with repeats stands.
    repeated.loc[only, "time_ms"] = 1.01 * TIMES_MS["fused_case"]
    assert ladder(repeated)["fused_case"][0].detail == ""
    # Compared in pairs, a row that was stopped early is known.
    assert ladder(rows.assign(basis="pairs"))["fused_case"][1].text != "–"


def test_the_ladder_has_the_least_time_of_a_variant(made, published):
    # The errors of both configurations do not tell them apart: an answer names the simpler one.
    rows = sweep().assign(error=0.1, basis="sweep")
    own_rows = (rows["variant"] == "tensor_bf16") & (rows["time_ms"] == TIMES_MS["tensor_bf16"])
    rows.loc[own_rows & (rows["batch"] > 1), "time_ms"] *= 2.1
    blocks = own(dataclasses.replace(made, sweeps={"one": rows}), published)[0].blocks
    found = cells(tables(blocks)[0], "tensor_bf16")
    assert float(found[2]) == pytest.approx(2 * TIMES_MS["tensor_bf16"])


def test_without_repeats_there_is_no_time(made, published):
    rows = sweep()
    few = rows[~((rows["given"] == "embeddings") & (rows["memory"] == "pinned"))]
    less = dataclasses.replace(made, sweeps={"one": few})
    beside, *_ = tables(own(less, published)[1].blocks)
    # One launch alone.
    assert cells(beside, "CUDA streams")[5:] == ["–"] * 3
    # Of tiles from the host one review alone.
    assert cells(beside, "CUDA shared memory")[5] == "–"
    assert details(beside, "CUDA shared memory") == ("", "tiled")


def ours_measured(published):
    """Published tables with the CPU's times as if the host of the GPU ``one`` had taken 3 s."""
    own = [{**row, "gpu": "one"} for row in published["peers"] if row["gpu"] == "h200"]
    own = [{**row, "total_s": "3.0"} if row["name"] == "pytorch_cpu" else row for row in own]
    return {**published, "peers": own}


def test_claims_stand_beside_what_they_reach_here(made, published):
    one = dataclasses.replace(made, sweeps={"one": sweep()})
    claims = tables(own(one, ours_measured(published))[1].blocks)[2]
    # 3 s on the CPU over 1.5 s of the fastest published way.
    assert cells(claims, "All reviews: faster than the CPU")[1:] == ["150×", "one 2.00×", "0 of 1"]
    slower = cells(claims, "One review: slower than PyTorch")[1:]
    assert slower == ["20 to 100×", "one 2.38×", "1 of 1"]


def test_steps_of_the_paper_are_held_against_ours(made, published, page):
    steps = tables(page[1].blocks)[1]
    shared = cells(steps, "shared memory, all reviews")
    assert shared[1:3] == ["9 %; 20 %", "9.2 %"]
    # 1500 to 1800 ms from the host; on the device, tiles halve the time.
    assert shared[3:] == ["-20.0 %", "50.0 %"]
    one = cells(steps, "shared memory, one review")
    assert one[2:4] == ["17.2 %", "20.0 %"]
    assert cells(steps, "streams, all reviews")[2:] == ["0.4 %", "-11.1 %", "–"]
    # The form of the input is named where it is not the published one.
    rows = sweep()
    rows = rows[(rows["memory"] != "device") | (rows["given"] == "tokens")]
    words = dataclasses.replace(made, sweeps={"one": rows})
    table = tables(own(words, published)[0].blocks)[1]
    assert table.rows[0].cells[4].detail == "word numbers"
    assert steps.rows[0].cells[4].detail == ""


def test_contradictions_of_the_paper_are_told(page):
    found = tables(page[1].blocks, folded=True)[3]
    cpu = cells(found, "CPU (C++ with Eigen)")
    assert cpu[1].startswith("110.8 ms")
    assert cpu[2].startswith("12.3 ms")
    assert cpu[3] == "9.0 times apart, 0.252 and 2.26 GFLOP/s"
    assert "10.4 TFLOP/s" in cells(found, "PyTorch on a CPU")[3]
    assert cells(found, "CUDA naive")[3] == "2.9 times apart"
    assert "500 (naive) to 682 times" in cells(found, "Speed-up for one review")[2]
    assert "20.3 to 82.0" in cells(found, "Slower than PyTorch")[2]


def test_data_and_accuracy_stand_beside_the_papers(page):
    data, _ = tables(page[-1].blocks)
    assert cells(data, "embeddings")[1].startswith("GloVe")
    figures = read_json(ROOT / "kernels" / "sentiment" / "network.json")
    right = cells(data, "classified correctly")
    assert right[1] == "84 %"
    assert right[2].startswith(f"{100 * figures['accuracy_held_out']:.1f} % of those held out")


def reviews_of(flips):
    """Rows of the held-out comparison on ``one``: float64, and variants with so many flips."""
    known = {"gpu": "one", "reviews": "1056", "source": "x"}
    reference = {**known, "name": "float64", "accuracy": "0.78", "class_flips": ""}
    return [
        {**reference, "logit_error": ""},
        *(
            {**reference, "name": name, "class_flips": str(count), "logit_error": "1e-7"}
            for name, count in flips.items()
        ),
    ]


def test_answers_are_held_against_float64(made, published, page):
    every = {"naive": 0, "tensor_bf16": 2, "eigen": 1}
    section = own(made, {**published, "held_out": reviews_of(every)})[-1]
    found = cells_of(tables(section.blocks)[-1])
    assert found["naive"] == ["1.0e-05", "1.0e-07", "0", "1.0e-07", "0", "1"]
    # Two cases of either form of the input.
    assert found["tensor_bf16"] == ["1.0e-05", "1.0e-03", "4", "1.0e-07", "2", "1"]
    # No variant of ours; and a variant that was not compared.
    assert found["eigen"] == ["–", "–", "–", "1.0e-07", "1", "1"]
    assert found["separate"][3:] == ["–", "–", "0"]
    assert "Held out: 1\u202f056." in notes(section)[0]
    assert "Held out" not in " ".join(notes(page[-1]))


def test_wrong_rows_are_counted(made, published):
    rows = sweep()
    rows.loc[rows["variant"] == "tiled", "status"] = "wrong"
    wrong = int((rows["status"] == "wrong").sum())
    section = own(dataclasses.replace(made, sweeps={"one": rows}), published)[-1]
    assert f"{wrong} of {len(rows)} rows wrong" in notes(section)[0]
    assert cells_of(tables(section.blocks)[-1])["tiled"][1:3] == ["–", "0"]


def test_without_host_rows_there_is_no_table_of_times(made):
    only = sweep()
    less = dataclasses.replace(made, sweeps={"one": only[only["memory"] == "device"]})
    titles = [section.title for section in own(less, {})]
    assert titles == ["From naive to best", "Accuracy, and the effect of rounding"]


def test_bytes_between_kernels():
    rows = 256 * 100
    moved = {name: intermediate_bytes(Choice(name), rows, 256) for name in WORDS}
    assert moved["naive"] == moved["register_blocked"] == 16 * rows * (150 + 64)
    assert moved["fused_bias_relu"] == moved["naive"] // 2
    assert moved["fused_bias_relu"] > moved["fused_pool"] > 10 * moved["fused_case"]
    # 800 parts of 32 rows, each of one case only; with 24 tokens a case, two cases in most parts.
    assert moved["tensor_bf16"] == 4 * 2 * 64 * 800
    assert intermediate_bytes(Choice("tensor_bf16"), 96, 24) == 4 * 2 * 64 * (3 + 4 - 1)
