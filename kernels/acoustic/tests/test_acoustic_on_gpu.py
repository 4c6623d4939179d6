"""The acoustic workload and simulations on a real GPU."""

import shutil
import statistics
import threading
from collections import Counter

import numpy as np
import pytest
from gpu_runs import described, measured
from samples import ROOT
from test_acoustic_simulation import by_numpy

from kernels.acoustic.simulation import propagate
from launchwise.measuring.journal import read_notes
from launchwise.measuring.repeats import rows_to_table
from launchwise.measuring.sweep import seconds_of
from launchwise.workloads import space
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.gpu

ACOUSTIC = ROOT / "kernels" / "acoustic"
KINDS = [(dtype, order) for dtype in ("float32", "float64") for order in (2, 8, 16)]

# GPts/s at 512^3 of a plain untiled kernel on one H200 (first measured for the design).
UNTILED_H200 = {
    ("float32", 2): 167,
    ("float32", 8): 90,
    ("float32", 16): 47,
    ("float64", 2): 110,
    ("float64", 8): 55,
    ("float64", 16): 29,
}


@pytest.fixture(scope="session")
def profile():
    return described(None)


def test_every_configuration_is_right_on_odd_grids(profile, tmp_path):
    # 61 and 127 are held against NumPy, 251 against the device's own float64 reference.
    problems = [
        {"n": n, "dtype": dtype, "order": order} for n in (61, 127, 251) for dtype, order in KINDS
    ]
    rows = measured(ACOUSTIC, profile, problems, tmp_path)
    statuses = Counter(row["status"] for row in rows)
    print("rows", len(rows), dict(statuses))
    assert set(statuses) <= {"ok", "slow"}
    assert all(row["max_error"] <= row["tolerance"] for row in rows)
    # The variant in C is there where Clang is.
    variants = sorted({row["variant"] for row in rows})
    assert {*load_spec(ACOUSTIC).variants} - {"openmp"} <= {*variants}
    spec = load_spec(ACOUSTIC).narrowed({"variant": variants})
    expected = sum(
        len(space.configurations(spec, problem, gpu_facts(profile.model_dump())))
        for problem in problems
    )
    assert len(rows) == expected


@pytest.mark.times
def test_the_untiled_baseline_is_an_honest_one(profile, tmp_path):
    if "H200" not in profile.device_name:
        pytest.skip("the yardstick was measured on an H200")
    spec = load_spec(ACOUSTIC)
    for dtype, order in KINDS:
        problem = {"n": 512, "dtype": dtype, "order": order}
        folder = tmp_path / f"{dtype}{order}"
        folder.mkdir()
        rows = measured(only_untiled(tmp_path), profile, [problem], folder)
        (row,) = [row for row in rows if row["variant"] == "linear"]
        rate = spec.value("points", problem) / row["time_ms"] / 1e6
        print(f"untiled {dtype} order {order}: {rate:.1f} GPts/s")
        assert rate >= 0.95 * UNTILED_H200[dtype, order]


def only_untiled(scratch):
    """A copy of the workload with one configuration but the baseline."""
    folder = scratch / "few" / "acoustic"
    if not folder.exists():
        shutil.copytree(ACOUSTIC, folder)
        spec = (folder / "spec.yaml").read_text()
        (folder / "spec.yaml").write_text(
            spec.replace('"walked >= 2"', '"walked == 2 and tx == 2"').replace(
                '"threads >= 64"', '"threads == 1024 and bx == 32 and by == 32"'
            )
        )
    return folder


@pytest.mark.times
def test_a_slice_has_fewer_sms_and_shows_it(profile, tmp_path):
    if profile.compute_capability < (9, 0):
        pytest.skip("green contexts of 16 SMs need a larger card")
    part = described(16)
    assert part.sms == 16
    assert part.whole_card_sms == profile.sms
    assert part.is_slice
    problem = {"n": 256, "dtype": "float64", "order": 16}
    times = {}
    for which, slice_sms in ((profile, None), (part, 16)):
        folder = tmp_path / str(which.sms)
        folder.mkdir()
        rows = measured(only_untiled(tmp_path), which, [problem], folder, slice_sms)
        times[which.sms] = statistics.median(
            row["time_ms"] for row in rows if row["variant"] == "linear"
        )
    ratio = times[16] / times[profile.sms]
    print(f"16 of {profile.sms} SMs take {ratio:.2f} times as long")
    # Bound by arithmetic and L1, so by SMs; never more than the SMs that are missing.
    assert 0.4 * profile.sms / 16 < ratio < 1.15 * profile.sms / 16


@pytest.mark.times
def test_a_row_says_how_it_was_timed_and_what_the_card_did(profile, tmp_path):
    problems = [{"n": n, "dtype": "float32", "order": 8} for n in (64, 256)]
    rows = measured(ACOUSTIC, profile, problems, tmp_path, energy_ms=250, control_s=0.05)
    notes = read_notes(tmp_path / "journal.jsonl")
    table = rows_to_table(rows, notes, load_spec(ACOUSTIC))
    by_host = table["variant"] == "openmp"
    assert set(table.loc[by_host & (table["status"] == "ok"), "timer"]) <= {"host"}
    ok = table[(table["status"] == "ok") & ~by_host]
    short, long = ok[ok["n"] == 64], ok[ok["n"] == 256]
    # 64^3 takes a few microseconds: events around one launch would measure themselves.
    assert (short["timer"] == "graph").mean() > 0.9
    assert set(short["l2"]) == {"warm"}
    assert short["launches_per_repeat"].max() > 10
    assert (long["timer"] == "events").all()
    print("64^3", short["time_ms"].describe().to_dict())
    assert short["time_ms"].min() > 5e-4
    assert ok["occupancy"].between(0.1, 1).all()
    assert set(ok["occupancy"].round(3)) > {1.0}
    assert ok["sm_clock_mhz"].between(300, 1.01 * profile.clock_mhz).mean() > 0.9
    assert ok["power_w"].between(40, 1200).mean() > 0.9
    assert ok["control_ratio"].between(0.8, 1.25).mean() > 0.95
    peak = profile.ceilings.float32_gflops or 0
    assert ok["flop_rate_gflops"].between(0.001 * peak, peak).all()
    energies = table.dropna(subset="energy_j")
    print("energy", energies[["n", "variant", "time_ms", "energy_j", "power_w"]])
    # Best and baseline of two problems; one may be both, one loop may fall between counter steps.
    assert len(energies) >= 2
    watts = energies["energy_j"] / energies["time_ms"] * 1e3
    assert watts.between(40, 1000).all()
    print(seconds_of(notes), [note["ratio"] for note in notes if note["note"] == "control"])


STEPS = 15


def case(dtype, order):
    """Velocity, source and the rest of a call on a grid whose axes differ."""
    rng = np.random.default_rng(order)
    shape = (order + 40, order + 55, order + 83)
    source = tuple(size // 2 for size in shape)
    how = {
        "spacing": 5.0,
        "wavelet": rng.standard_normal(STEPS),
        "order": order,
        "receivers": [source, (order // 2,) * 3],
        "snapshots": [7, STEPS],
        "absorbing": 0,
    }
    return rng.uniform(1500, 3000, shape).astype(dtype), source, how


@pytest.mark.parametrize(("dtype", "order"), KINDS)
@pytest.mark.parametrize("variant", [None, "stream"])
def test_it_is_what_numpy_computes(dtype, order, variant):
    velocity, source, how = case(dtype, order)
    if variant is not None:
        rows = 16 if dtype == "float32" else 8
        how["configuration"] = {
            **{"variant": variant, "tile_x": 64, "tile_y": rows, "stages": 3},
            **{"blocks_per_sm": 1, "z_chunks": 2},
        }
    shot = propagate(velocity, source, STEPS, **how)
    expected = by_numpy(velocity, source, how["wavelet"], 5.0, shot.time_step, order)
    allowed = np.abs(expected).max() * (2e-5 if dtype == "float32" else 1e-13)
    assert np.abs(shot.snapshots - expected[[6, STEPS - 1]]).max() < allowed
    assert np.abs(shot.traces[:, 0] - expected[(slice(None), *source)]).max() < allowed


@pytest.mark.parametrize(("dtype", "order"), KINDS)
def test_arrays_of_cupy_on_a_stream_with_work_before_and_after(dtype, order):
    cupy = pytest.importorskip("cupy")
    velocity, source, how = case(dtype, order)
    expected = propagate(velocity, source, STEPS, **how)
    whole = cupy.asarray(velocity)
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        late = cupy.zeros_like(whole)
        slow = cupy.random.random((4000, 4000))
        slow = slow @ slow
        late += whole
        shot = propagate(late, source, STEPS, **how)
        doubled = shot.snapshots * 2
    stream.synchronize()
    assert np.array_equal(cupy.asnumpy(shot.snapshots), expected.snapshots)
    assert np.array_equal(cupy.asnumpy(shot.traces), expected.traces)
    # CuPy may flush the smallest float32 numbers to zero.
    assert np.allclose(cupy.asnumpy(doubled), 2 * expected.snapshots, rtol=0, atol=1e-30)


@pytest.mark.parametrize(("dtype", "order"), KINDS)
def test_tensors_of_pytorch(dtype, order):
    torch = pytest.importorskip("torch")
    velocity, source, how = case(dtype, order)
    expected = propagate(velocity, source, STEPS, **how)
    shot = propagate(torch.from_numpy(velocity).cuda(), source, STEPS, **how)
    assert np.array_equal(shot.snapshots.cpu().numpy(), expected.snapshots)
    assert np.array_equal(shot.traces.cpu().numpy(), expected.traces)


def test_two_threads_at_once():
    velocity, source, how = case("float32", 8)
    expected = propagate(velocity, source, STEPS, **how)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(propagate(velocity, source, STEPS, **how)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert all(np.array_equal(shot.snapshots, expected.snapshots) for shot in found)
