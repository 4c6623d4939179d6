"""The sentiment kernels' own sources on the CPU, held against NumPy in float64."""

from pathlib import Path

import numpy as np
import pytest

from kernels.sentiment.host.launches import (
    BLOCKED,
    BY_WARPS,
    PERSISTENT,
    Batch,
    Choice,
    Pipeline,
    Weights,
)
from kernels.sentiment.host.network import accuracy, logits, read_trained
from launchwise.base.storage import read_json
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Allocations
from launchwise.workloads.space import Part, baseline, configurations
from launchwise.workloads.spec import load_spec
from tests.support.host_device import HostDevice, rows_of_folder
from tests.support.mistakes import mistakes, with_mistake
from tests.support.slow_cases import first_of

FOLDER = Path(__file__).resolve().parents[3] / "kernels" / "sentiment"
SMALL = {"batch": 5, "tokens": 27, "given": "tokens", "memory": "device"}


@pytest.fixture(scope="module")
def spec():
    return load_spec(FOLDER)


def made(spec, variant, **values):
    """A configuration, neutral but for ``values``."""
    return {
        "variant": variant,
        **{name: tunable.neutral for name, tunable in spec.tunables.items()},
        **values,
    }


SHAPES = [
    {"tile_rows": 128, "tile_depth": 16},
    {"tile_rows": 32, "rows_a_thread": 4, "columns_a_thread": 4},
]
WARPS = [
    {"rows_a_warp": 16, "warps": 4, "last_answers": 1},
    {"rows_a_warp": 32, "warps": 1, "resident": 1},
]


def every(spec):
    """Every variant, those that have a shape in another one, too."""
    found = [made(spec, name) for name in spec.variants if name != PERSISTENT]
    found += [made(spec, BLOCKED[-1], **shape) for shape in SHAPES]
    found += [made(spec, "fused_case", rows_a_warp=rows, warps=4) for rows in (8, 24)]
    return found + [
        made(spec, name, **WARPS[place % len(WARPS)]) for place, name in enumerate(BY_WARPS)
    ]


EMBEDDED = ("naive", "tiled", "register_blocked", "fused_pool", "fused_case", "tensor_fp16")
"""One variant per file that reads what is given."""


@pytest.mark.parametrize("given", ["tokens", "embeddings"])
def test_every_variant_is_right(spec, kernel_cache, given):
    # Blocks begin and end within reviews, and the last one is not full.
    tried = every(spec) if given == "tokens" else [made(spec, name) for name in EMBEDDED]
    fewer = {} if given == "tokens" else {"batch": 3}
    rows = rows_of_folder(FOLDER, kernel_cache, {**SMALL, "given": given, **fewer}, tried)
    assert [(row["status"], row.get("reason", "")) for row in rows] == [("ok", "")] * len(tried)
    errors = {}
    for row in rows:
        name = row["variant"]
        errors[name] = max(errors.get(name, 0), row["max_error"])
    # Each rounds as much as its name says, and no more.
    for name, least, most in (
        ("tensor_tf32", 1e-5, 5e-3),
        ("tensor_fp16", 1e-5, 5e-3),
        ("tensor_bf16", 1e-4, 4e-2),
    ):
        assert least < errors.pop(name, (least + most) / 2) < most
    assert max(errors.values()) < 2e-6
    assert all(row["kernels_ms"] > 0 for row in rows)


@pytest.mark.parametrize(("batch", "tokens"), first_of([(41, 2), (1, 1), (1, 150)]))
def test_other_sizes_are_right(spec, kernel_cache, batch, tokens):
    problem = {**SMALL, "batch": batch, "tokens": tokens}
    # Of variants that differ in what a word is, those with two elements a word; of these one shape.
    left_out = ("tensor_tf32", "tensor_3xtf32", PERSISTENT)
    tried = [made(spec, name) for name in spec.variants if name not in left_out]
    shapes = every(spec)[len(spec.variants) - 1 :]
    tried += [each for each in shapes if each["variant"] not in BY_WARPS]
    rows = rows_of_folder(FOLDER, kernel_cache, problem, tried)
    assert {row["status"] for row in rows} == {"ok"}, rows


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
@pytest.mark.parametrize(("batch", "chunk", "streams"), [(70, 0, 1), (5, 1, 4), (70, 64, 2)])
def test_batches_from_host_memory_are_right(spec, kernel_cache, memory, batch, chunk, streams):
    problem = {"batch": batch, "tokens": 2, "given": "tokens", "memory": memory}
    tried = [
        made(spec, name, chunk=chunk, streams=streams, graph=graph, last_answers=last)
        for name, last in (
            ("naive", 0),
            ("separate_tiled", 0),
            ("fused_bias_relu", 0),
            ("fused_case", 0),
            ("fused_case", 1),
        )
        for graph in ((0, 1) if memory == "pinned" else (0,))
    ]
    rows = rows_of_folder(FOLDER, kernel_cache, problem, tried)
    assert {row["status"] for row in rows} == {"ok"}, rows
    for row in rows:
        assert row["timer"] == "host"
        assert min(row[f"{stage}_ms"] for stage in spec.stages) > 0
        assert row["class_flips"] == 0


QUEUED = [
    {"rows_a_warp": 8, "warps": 4},
    {"rows_a_warp": 24, "warps": 1},
    {"rows_a_warp": 32, "warps": 4, "resident": 1},
]


@pytest.mark.parametrize(
    ("batch", "tokens", "given"),
    first_of([(5, 27, "embeddings"), (19, 2, "tokens"), (1, 150, "tokens")]),
)
def test_reviews_from_a_queue_are_right(spec, kernel_cache, batch, tokens, given):
    problem = {"batch": batch, "tokens": tokens, "given": given, "memory": "pinned"}
    tried = [made(spec, PERSISTENT, **shape) for shape in QUEUED]
    rows = rows_of_folder(FOLDER, kernel_cache, problem, tried)
    assert {row["status"] for row in rows} == {"ok"}, rows
    assert {row["timer"] for row in rows} == {"host"}
    assert max(row["max_error"] for row in rows) < 2e-6
    assert min(row["kernels_ms"] for row in rows) > 0


def test_every_run_of_a_queue_answers_anew(spec, kernel_cache):
    device = HostDevice(FOLDER, spec.headers, cache=kernel_cache)
    problem = {"batch": 5, "tokens": 2, "given": "tokens", "memory": "pinned"}
    session = load_workload(FOLDER, spec).open(device, problem, (), 1)
    work = session.launch(made(spec, PERSISTENT, **QUEUED[0]))
    for _ in range(3):
        session.poison()
        work.run()
        assert not session.check().wrong
    session.close()


def test_a_queue_is_for_page_locked_memory_alone(spec):
    for memory, any_there in (("pinned", True), ("pageable", False), ("device", False)):
        problem = {"batch": 5, "tokens": 27, "given": "tokens", "memory": memory}
        listed = configurations(spec, problem, parts=[Part({"variant": [PERSISTENT]})])
        # The baseline is always listed.
        assert (len(listed) > 1) == any_there


def test_memory_is_given_back(spec, kernel_cache):
    device = HostDevice(FOLDER, spec.headers, cache=kernel_cache)
    free = device.free_bytes
    workload = load_workload(FOLDER, spec)
    session = workload.open(device, {**SMALL, "memory": "pinned"}, (), 1)
    lanes = {"chunk": 1, "streams": 2}
    for name, how in (("naive", lanes), ("fused_pool", lanes), (PERSISTENT, {})):
        work = session.launch(made(spec, name, **how))
        work.run()
    session.close()
    assert device.free_bytes == free


@pytest.mark.slow
@pytest.mark.parametrize("mistake", mistakes(FOLDER), ids=str)
def test_a_mistake_in_a_kernel_is_found(tmp_path, kernel_cache, spec, mistake):
    folder = with_mistake(FOLDER, tmp_path, mistake.file, mistake.right, mistake.wrong)
    (variant,) = mistake.variants
    # Blocks of one warp: what belongs together comes at different times.
    values = {"last_answers": 1} if variant != PERSISTENT else {}
    problem = SMALL if variant != PERSISTENT else {**SMALL, "memory": "pinned"}
    (row,) = rows_of_folder(folder, kernel_cache, problem, [made(spec, variant, warps=1, **values)])
    assert row["status"] == "wrong", row


def test_a_mistake_in_the_reference_is_found(tmp_path, kernel_cache, spec):
    folder = with_mistake(FOLDER, tmp_path, "check.cu", "pooled / length", "pooled / tokens")
    device = HostDevice(folder, spec.headers, cache=kernel_cache)
    said = load_workload(folder, load_spec(folder)).self_check(device, SMALL, 1)
    assert "reference differs from NumPy's" in said


def test_kernels_classify_real_reviews_as_the_reference_does(spec, kernel_cache):
    trained = read_trained(FOLDER / "network.npz")
    held_out, few = trained.held_out, slice(0, 20)
    words, lengths = held_out.tokens[few], held_out.lengths[few]
    device = HostDevice(FOLDER, spec.headers, cache=kernel_cache)
    memory = Allocations(device)
    weights = Weights(device, trained.network, memory)
    expected = logits(trained.network, words, lengths)
    for variant in ("naive", "fused_bias_relu", "fused_case", "tensor_3xtf32"):
        found = np.full((20, 2), np.nan, np.float32)
        buffers = [memory.take(array.nbytes) for array in (words, lengths, found)]
        for buffer, array in zip(buffers, (words, lengths, found), strict=True):
            device.upload(buffer, array)
        pipeline = Pipeline(device, weights, Choice(variant), "tokens", *words.shape)
        for launch in pipeline.launches(Batch(*buffers, *words.shape)):
            device.launch(launch)
        device.download(buffers[2], found)
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
        assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_the_network_reaches_what_its_training_said():
    trained = read_trained(FOLDER / "network.npz")
    figures = read_json(FOLDER / "network.json")
    held_out = trained.held_out
    found = logits(trained.network, held_out.tokens, held_out.lengths)
    assert accuracy(found, held_out.labels) == pytest.approx(figures["accuracy_held_out"])
    assert len(held_out.labels) == figures["reviews_held_out"]
    assert trained.network.words == figures["words"] == len(trained.counts)


@pytest.mark.parametrize("capability", [75, 80])
def test_cards_before_sm_80_run_no_variant_by_tensor_cores(spec, capability):
    problem = {"batch": 512, "tokens": 64, "given": "tokens", "memory": "device"}
    facts = {"gpu_compute_capability": capability, "gpu_shared_per_block_bytes": 64 << 10}
    found = {one["variant"] for one in configurations(spec, problem, facts)}
    assert any(name.startswith("tensor_") for name in found) == (capability == 80)


def test_the_baseline_is_the_published_first_version(spec):
    assert baseline(spec)["variant"] == "naive"
    assert spec.value(spec.work.flop, {**SMALL, "batch": 20000, "tokens": 256}) == pytest.approx(
        20000 * 27.96e6, rel=1e-3
    )
