"""The GPUs' part of the page: attributes, and what micro-benchmarks measured."""

from launchwise.gpus.profile import Ceilings
from launchwise.report.blocks import Fold
from launchwise.report.pages import gpu_comparison
from tests.support.described_gpus import described_gpus
from tests.support.samples import profile
from tests.support.shown import blocks_of, cells, tables

FIRST = {"copy_bandwidth_gbs": 1000.0, "launch_overhead_us": 5.0}


def rows(**profiles):
    """Rows of the first table."""
    return cells(tables(gpu_comparison.attributes(profiles))[0])


def test_micro_benchmarks_stand_beside_each_other_in_units_to_read():
    measured = Ceilings(**FIRST, float32_gflops=62_843.15, l2_latency_ns=142.0)
    known = {"new": profile(ceilings=measured), "old": profile(ceilings=Ceilings(**FIRST))}
    (fold,) = blocks_of(gpu_comparison.attributes(known), Fold)
    shown, meaning = fold.blocks
    assert [column.title for column in shown.columns] == ["what", "new", "old"]
    assert [cell.text for cell in meaning.rows[2].cells] == [
        "float32",
        "fused multiply-adds, 2 FLOP each",
    ]
    assert cells(shown) == {
        "copy bandwidth (GB/s)": ["1000", "1000"],
        "launch overhead, of GPU and host (µs)": ["5.000", "5.000"],
        "float32 (TFLOP/s)": ["62.84", "–"],
        "l2 latency (ns)": ["142.0", "–"],
    }


def test_every_ceiling_has_a_unit():
    assert {
        name.rpartition("_")[2] for name in Ceilings.model_fields
    } == gpu_comparison.UNITS.keys()


def test_a_gpu_without_a_known_driver_has_a_dash():
    known, unknown = profile(driver="580.1", toolkit="13.0"), profile(driver="", toolkit="")
    assert rows(known=known, unknown=unknown)["driver / CUDA"] == ["580.1 / 13.0", "–"]


def test_sizes_of_memories_are_in_the_units_of_their_rows():
    sizes = {"memory_bytes": 80 * 10**9, "l2_bytes": 50 * 2**20, "shared_per_sm_bytes": 228 * 2**10}
    shown, names = rows(own=profile(**sizes)), ("memory (GB)", "L2 cache (MB)")
    found = [shown[name][0] for name in (*names, "shared memory per SM (KB)")]
    assert list(map(float, found)) == [80, 50, 228]


def test_estimated_ceilings_are_not_called_measured():
    own = profile()
    profiles = {"own": own, "theirs": own.model_copy(update={"source": "attributes"})}
    shown = tables(gpu_comparison.attributes(profiles), folded=True)
    (measured,) = (one for one in shown if one.caption.startswith("Measured ceilings"))
    assert [column.title for column in measured.columns] == ["what", "own"]
    assert all(row.cells[1].text != "–" for row in measured.rows)


def test_many_gpus_have_a_row_each():
    profiles = {f"gpu{place}": profile() for place in range(7)}
    shown = gpu_comparison.attributes(profiles).blocks[0]
    assert [row.cells[0].text for row in shown.rows] == list(profiles)
    titles = {column.title: column.unit for column in shown.columns}
    assert titles["SM clock"] == "MHz"
    assert titles["GPU"] == ""
    few = gpu_comparison.attributes(dict(list(profiles.items())[:6])).blocks[0]
    assert [column.title for column in few.columns][1:] == list(profiles)[:6]


def test_datasheet_only_gpus_are_folded_below():
    section = gpu_comparison.attributes({"known": profile()}, described_gpus("a100", "v100"))
    last = section.blocks[-1]
    (shown,) = last.blocks
    assert [column.title for column in shown.columns][1:] == ["a100", "v100"]
    without = gpu_comparison.attributes({"known": profile()}, {})
    assert without.blocks[-1].title == "Micro-benchmarks"
