"""The search as a strategy of Kernel Tuner, in its simulation mode: no GPU is needed."""

import contextlib
import io
import json

import pytest

SPACE = {"block_size_x": [32, 64, 128, 256, 512], "tile_size": [1, 2, 3, 4, 6, 8]}


def time_ms(block, tile, best):
    """Times with one best block, and a best tile for each."""
    return 1 + abs(block - best) / 64 + 0.1 * abs(tile - 3)


@pytest.fixture
def cache(tmp_path):
    """A cache of Kernel Tuner with every configuration; two failed."""
    entries = {}
    for block in SPACE["block_size_x"]:
        for tile in SPACE["tile_size"]:
            found = {"block_size_x": block, "tile_size": tile}
            time = time_ms(block, tile, 256)
            failed = block == 512 and tile >= 6
            found |= {"time": "RuntimeFailedConfig" if failed else time, "times": [time]}
            for name in ("compile", "verification", "benchmark", "strategy", "framework"):
                found[f"{name}_time"] = 0.0
            entries[f"{block},{tile}"] = found | {"timestamp": "2026-01-01 00:00:00+00:00"}
    content = {
        "device_name": "made up",
        "kernel_name": "k",
        "problem_size": [1024, 1],
        "tune_params_keys": list(SPACE),
        "tune_params": SPACE,
        "objective": "time",
        "cache": entries,
    }
    path = tmp_path / "cache.json"
    path.write_text(json.dumps(content))
    return path


def tuned(cache, most, **how):
    """What Kernel Tuner says it evaluated."""
    kernel_tuner = pytest.importorskip("kernel_tuner")
    from launchwise.search.kernel_tuner import strategy

    with contextlib.redirect_stdout(io.StringIO()):
        results, _ = kernel_tuner.tune_kernel(
            "k",
            "__global__ void k() {}",
            (1024, 1),
            [],
            SPACE,
            strategy=strategy(**how),
            strategy_options={"max_fevals": most},
            simulation_mode=True,
            cache=str(cache),
            lang="CUDA",
            quiet=True,
        )
    return results


def test_it_finds_the_best_within_its_limit(cache):
    found = tuned(cache, 20)
    assert len(found) <= 20
    times = [each["time"] for each in found if isinstance(each["time"], float)]
    assert min(times) == 1


def test_rows_of_another_gpu_and_certainty_save_most(cache):
    known = [
        ({"block_size_x": block, "tile_size": tile}, 3 * time_ms(block, tile, 256))
        for block in SPACE["block_size_x"]
        for tile in SPACE["tile_size"]
    ]
    first, *others = tuned(cache, 30, known=[known], percent=2)
    assert (first["block_size_x"], first["tile_size"]) == (256, 3)
    assert 4 <= len(others) < 20
