"""Cost models: what files may say, the arithmetic of phases, and every workload that has one."""

import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.gpus.machine import L1_BYTES_PER_CYCLE, Fastest, Machine
from launchwise.gpus.profile import Ceilings
from launchwise.learning.analytical import PARTS, SHARPNESS, CostModel
from launchwise.workloads import space
from launchwise.workloads.cost import Cost
from launchwise.workloads.sampling import Draws
from launchwise.workloads.spec import Spec, load_spec
from tests.support.samples import STENCIL, profile
from tests.support.spaces import made
from tests.support.spec_changes import MISTAKES, with_changes

ROOT = Path(__file__).resolve().parents[2]
MEASURED = Ceilings(
    copy_bandwidth_gbs=1000.0,
    launch_overhead_us=5.0,
    float32_gflops=10_000.0,
    float64_gflops=5_000.0,
    l2_bandwidth_gbs=2000.0,
    dram_latency_ns=500.0,
    l2_latency_ns=200.0,
    graph_launch_us=2.0,
    host_synchronize_us=8.0,
    to_device_gbs=50.0,
    to_host_gbs=40.0,
    pageable_to_device_gbs=10.0,
    pageable_to_host_gbs=20.0,
    copy_overhead_us=3.0,
    host_solve_ns=20.0,
)
"""Round numbers, so that expected times can be worked out by hand."""


def gpu(**changes):
    return profile(sms=10, whole_card_sms=10, clock_mhz=1000.0, ceilings=MEASURED, **changes)


def estimate(cost, m, of=None):
    """Of a workload whose problems have a size ``m`` and which has one configuration."""
    spec = made({"tile": [1]}, {"plain": ((), ())}, tile=1)
    spec = Spec.model_validate({**spec.model_dump(exclude_unset=True), "cost": cost})
    rows = pd.DataFrame({"gpu": "test", "m": m, "variant": "plain", "tile": 1})
    return CostModel(spec, {"test": of or gpu()}).estimate(rows)


def kernel(uses, **more):
    return {"kernels": {"one": {"blocks": "10", "threads": "256", "uses": uses, **more}}}


# Times that can be worked out by hand


def test_one_resource_takes_its_amount_over_its_rate_and_a_launch():
    found = estimate(kernel({"dram_bytes": "m"}, blocks="5 if m < 10**6 else 10"), [10**5, 10**9])
    # At 64 bytes a cycle, ten SMs draw at most 640 GB/s of the 1000, and five of them half of it.
    assert found.time_ms == pytest.approx([10**5 / 320e6 + 0.002, 10**9 / 640e6 + 0.002])
    assert found.bound_by().tolist() == ["launches", "dram"]
    assert found.parts["dram"] == pytest.approx([10**5 / 320e6, 10**9 / 640e6])


def test_resources_join_by_a_norm():
    found = estimate(kernel({"dram_bytes": "m", "float32_flop": "10 * m"}), [64 * 10**7])
    dram, flop = 1.0, 0.64
    assert found.time_ms == pytest.approx(0.002 + (dram**SHARPNESS + flop**SHARPNESS) ** (1 / 3))


def test_the_sm_with_most_blocks_decides():
    uses = {"float32_flop": "1e9", "l1_bytes": "128e6", "shared_traffic_bytes": "128e6"}
    uses["instructions"] = "128e6"
    times = [
        estimate(kernel(uses, blocks=f"{blocks}", threads="64"), [1]) for blocks in (10, 11, 20, 1)
    ]
    # 10 GFLOP/s a us: .1 ms where all SMs have a block; with 11 blocks one SM has two.
    for part in ("arithmetic", "l1", "shared", "instructions"):
        milliseconds = [each.parts[part][0] for each in times]
        assert milliseconds == pytest.approx([0.1, 0.1 * 20 / 11, 0.1, 1.0]), part


def test_waiting_takes_a_chain_a_round_of_resident_blocks():
    waits = {"dram": "2", "l2": "1"}
    chain_ms = (2 * 500 + 200) / 1e6
    # Warps have all of their registers, 8 at a time: 256 threads take 56 each.
    shape = {"blocks": "270", "threads": "225"}
    for registers, rounds in ((32, 4), (49, 7)):
        found = estimate(kernel({}, **shape, registers=f"{registers}", waits=waits), [1])
        assert found.parts["waiting"] == pytest.approx([rounds * chain_ms])


def test_resident_blocks_are_a_name_for_expressions():
    for shared, resident in ((0, 8), (57_800, 3), (220_000, 1)):  # And 1 KB of each block.
        found = estimate(
            kernel({"l1_bytes": "resident_blocks * 1e6"}, shared_bytes=f"{shared}"), [1]
        )
        rate = L1_BYTES_PER_CYCLE * 10 * 1.0
        assert found.parts["l1"] == pytest.approx([resident * 1e6 / rate / 1e6])


def test_what_stands_on_resident_blocks_is_another_in_each_kernel():
    each = {"blocks": "10", "threads": "256", "uses": {"l1_bytes": "deeper * 1e6"}}
    cost = {
        "derived": {"held": "2 * resident_blocks", "deeper": "held + m"},
        "kernels": {"small": each, "large": {**each, "shared_bytes": "220000"}},
    }
    rate = L1_BYTES_PER_CYCLE * 10 * 1.0
    found = estimate(cost, [1])
    assert found.parts["l1"] == pytest.approx([(2 * 8 + 1 + 2 * 1 + 1) * 1e6 / rate / 1e6])


def test_the_least_time_of_a_problem_is_the_one_that_sweeps_go_by():
    # Device memory takes what is printed in nanoseconds, and a launch 2 us.
    waits = {"dram": "least_us * 1000 / machine_dram_ns"}
    spec = made({"tile": [1]}, {"plain": ((), ())}, tile=1)
    work = {**spec.work.model_dump(), "bytes": "12 * m", "flop": "m * m"}
    cost = kernel({}, waits=waits)
    changed = {**spec.model_dump(exclude_unset=True), "work": work, "cost": cost}
    sizes = [100, 10**5, 10**7]
    rows = pd.DataFrame({"gpu": "test", "m": sizes, "variant": "plain", "tile": 1})
    for ceilings in (MEASURED, MEASURED.model_copy(update={"float16_gflops": 90_000.0})):
        known = profile(sms=10, whole_card_sms=10, clock_mhz=1000.0, ceilings=ceilings)
        found = CostModel(Spec.model_validate(changed), {"test": known}).estimate(rows)
        fastest = Fastest.of(known)
        expected = [fastest.least_us(12 * m, m * m) / 1e3 + 0.002 for m in sizes]
        assert found.time_ms == pytest.approx(expected)


def test_a_phase_that_a_run_does_not_have_costs_nothing():
    # What is not there may divide by zero.
    cost = kernel({"dram_bytes": "640 * 10**6 / (m - 1)"}, when="m > 1")
    found = estimate({**cost, "host": {"end": {"synchronisations": "1"}}}, [1, 2])
    assert found.time_ms == pytest.approx([0.003, 1.005])


def test_launches_follow_one_another_and_cost_more_from_the_host():
    cost = kernel({"dram_bytes": "640e6"}, launches="3")
    assert estimate(cost, [1]).time_ms == pytest.approx([3 * 1.002])
    assert estimate({**cost, "host_driven": "1"}, [1]).time_ms == pytest.approx([3 * 1.005])


def test_transfers_go_by_their_direction_and_memory():
    for to, locked, gbs in (
        *(("device", 1, 50), ("device", 0, 10)),
        *(("host", 1, 40), ("host", 0, 20)),
    ):
        copied = {"to": to, "bytes": "m", "copies": "2", "page_locked": f"{locked}"}
        found = estimate({**kernel({}), "transfers": {"copy": copied}}, [10**8])
        assert found.parts["transfers"] == pytest.approx([10**8 / gbs / 1e6 + 0.006])


def test_streams_hide_all_but_the_longest_phase():
    cost = {
        **kernel({"dram_bytes": "640e6"}, when="1"),
        "transfers": {
            "in": {"to": "device", "bytes": "150e6"},
            "out": {"to": "host", "bytes": "40e6"},
        },
        "host": {"end": {"synchronisations": "1", "solved_rows": "100"}},
        "overlaps": [{"streams": "m", "phases": ["in", "one", "out"]}],
    }
    copy_in, run, copy_out, end = 3.003, 1.002, 1.003, 0.005
    found = estimate(cost, [1, 4])
    hidden = (run + copy_out) * 3 / 4
    total = copy_in + run + copy_out + end
    assert found.time_ms == pytest.approx([total, total - hidden])
    # Parts say what each takes, hidden or not.
    assert sum(part[1] for part in found.parts.values()) == pytest.approx(total)


def test_a_cost_that_is_no_time_is_refused():
    for bytes_ in ("m / (m - 1)", "0 - m * 10 ** 9"):
        with pytest.raises(UserError, match=r"made: gpu=test, m=1, .* ms by cost\.yaml"):
            estimate(kernel({"dram_bytes": bytes_}), [3, 1] if "/" in bytes_ else [1])


# What a file may not say


@pytest.mark.parametrize("what", MISTAKES["cost"])
def test_a_bad_file_is_one_line_with_file_and_key(what, tmp_path):
    changes, said = MISTAKES["cost"][what]
    spec = made({"tile": [1]}, {"plain": ((), ())}, tile=1)
    folder = tmp_path / "made"
    folder.mkdir()
    content = spec.model_dump(mode="json", exclude_unset=True)
    (folder / "spec.yaml").write_text(yaml.safe_dump(content))
    (folder / "x.cu").touch()
    load_spec(folder)
    (folder / "cost.yaml").write_text(yaml.safe_dump(with_changes(kernel({}), changes)))
    with pytest.raises(UserError) as caught:
        load_spec(folder)
    line = str(caught.value)
    assert line.startswith(str(folder / "cost.yaml"))
    assert said in line


def test_a_variant_without_a_kernel_and_a_name_that_means_something_else_here_are_refused():
    cost = Cost.model_validate(kernel({}, variants=["plain"]))
    cost.check(["m"], ["plain"])
    with pytest.raises(ValueError, match="none covers variant 'other'"):
        cost.check(["m"], ["plain", "other"])
    with pytest.raises(ValueError, match=r"resident_blocks is defined in spec\.yaml but reserved"):
        cost.check(["m", "resident_blocks"], ["plain"])


def test_how_many_runs_a_launch_does_is_the_same_for_every_problem():
    several = Cost.model_validate(kernel({}, launches="1 / 2", least_bytes="5 * m"))
    several.check(["m"], ["plain"])
    assert several.several("plain") is several.kernels["one"]
    assert Cost.model_validate(kernel({}, launches="1 / 2")).several("plain") is None
    varying = Cost.model_validate(kernel({}, launches="1 / m", least_bytes="5 * m"))
    with pytest.raises(ValueError, match=r"unknown name 'm'"):
        varying.check(["m"], ["plain"])


# Workloads


WITH_COST = sorted(path.parent.name for path in (ROOT / "kernels").glob("*/cost.yaml"))


def test_every_workload_of_the_project_has_a_cost():
    every = sorted(path.parent.name for path in (ROOT / "kernels").glob("*/spec.yaml"))
    assert every == WITH_COST


@pytest.fixture(scope="module", params=WITH_COST)
def workload(request):
    return load_spec(ROOT / "kernels" / request.param)


def a_problem(spec, data):
    drawn = {}
    for name, one in spec.problem.items():
        if one.values is not None:
            drawn[name] = data.draw(st.sampled_from(one.values), name)
        else:
            low, high = one.minimum or 1, min(one.maximum or 10**6, 10**6)
            # As many small ones as large ones.
            power = data.draw(st.floats(np.log(low), np.log(high)), name)
            drawn[name] = min(max(round(np.exp(power)), low), high)
    return drawn


MACHINES = [
    profile("h"),
    profile("small", sms=16, shared_per_sm_bytes=65_536, shared_per_block_bytes=65_536),
    profile("old", compute_capability=(7, 5), sms=40, l2_bytes=4 << 20, max_threads_per_sm=1024),
]


def chosen_for(spec, problem, machine, dice, count):
    """Feasible configurations of a problem, or of one near it whose sizes are multiples of 16,
    which a workload may insist on; none where neither has any."""
    facts = space.gpu_facts(machine.model_dump())
    near = {
        name: max(16, value // 16 * 16) if isinstance(value, int) and value > 8 else value
        for name, value in problem.items()
    }
    for each in (problem, near):
        if found := Draws(spec, each, facts, seed=0).sample(dice, count):
            return each, found
    return problem, []


@settings(max_examples=30)
@given(st.data())
def test_every_feasible_configuration_has_a_time(workload, data):
    machine = data.draw(st.sampled_from(MACHINES))
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    problem, chosen = chosen_for(workload, a_problem(workload, data), machine, dice, 40)
    assume(chosen)
    rows = pd.DataFrame([{"gpu": machine.name, **problem, **one} for one in chosen])
    found = CostModel(workload, {machine.name: machine}).estimate(rows)
    assert np.isfinite(found.time_ms).all()
    assert (found.time_ms > 0).all()
    for name in PARTS:
        assert np.isfinite(found.parts[name]).all()
        assert (found.parts[name] >= 0).all()


def test_rows_are_estimated_on_their_own(workload):
    dice = random.Random(5)
    chosen = []
    while len(chosen) < 5:
        drawn = {
            name: dice.choice(one.values)
            if one.values
            else dice.randint(one.minimum or 1, min(one.maximum or 2000, 2000))
            for name, one in workload.problem.items()
        }
        problem, chosen = chosen_for(workload, drawn, MACHINES[0], dice, 10)
    table = [{"gpu": gpu.name, **problem, **one} for gpu in MACHINES for one in chosen]
    model = CostModel(workload, {gpu.name: gpu for gpu in MACHINES})
    together = model.estimate(pd.DataFrame(table)).time_ms
    alone = [model.estimate(pd.DataFrame([row])).time_ms[0] for row in table]
    assert together == pytest.approx(alone)


def test_a_workload_without_a_file_costs_its_least_bytes_and_flop(stencil_spec, tmp_path):
    folder = tmp_path / "stencil"
    shutil.copytree(STENCIL, folder)
    (folder / "cost.yaml").unlink()
    bare = load_spec(folder)
    assert stencil_spec.cost is not None
    assert bare.cost is None
    machine = gpu()
    rows = pd.DataFrame(
        [{"gpu": "test", "n": 512, "dtype": "float64", "order": 2, **space.baseline(bare)}]
    )
    found = CostModel(bare, {"test": machine}).estimate(rows)
    points = (512 - 2) ** 3
    assert found.parts["dram"] == pytest.approx([4 * 8 * points / 640e6])
    assert found.parts["arithmetic"][0] == pytest.approx(9 * points / 5e9, rel=1e-3)


# The machine


def test_what_was_measured_is_taken_and_the_rest_estimated():
    measured = Machine.of(gpu())
    assert measured.l2_gbs == 2000.0
    assert measured.dram_ns == 500.0
    assert measured.launch_us == 2.0
    # 8 us were measured for a launch of 5 and the wait for it.
    assert measured.synchronise_us == 3.0
    bare = Machine.of(profile())
    # 5120 bytes a cycle at 1.98 GHz; a slice of 16 SMs draws 64 a cycle each.
    assert bare.l2_gbs == pytest.approx(5120 * 1.98)
    assert Machine.of(profile(sms=16)).l2_gbs == pytest.approx(16 * 64 * 1.98)
    assert bare.float32 == pytest.approx(2 * 16896 * 1.98)
    assert bare.tf32 > bare.float32
    assert Machine.of(profile(compute_capability=(6, 0))).tf32 == pytest.approx(bare.float32)
    for name in Machine.names():
        assert np.isfinite(getattr(bare, name))
        assert getattr(bare, name) > 0
