"""The search as a strategy of Kernel Tuner, in its simulation mode: no GPU is needed."""

import foreign
import pytest

SPACE = {"block_size_x": foreign.X, "tile": foreign.Y, "pad": foreign.PAD}
BEST = {"block_size_x": 64, "tile": 1, "pad": 0}


@pytest.fixture
def cache(tmp_path):
    """A cache of Kernel Tuner with every configuration; two failed."""
    content = foreign.cache()
    for entry in content["cache"].values():
        phases = ("compile", "verification", "benchmark", "strategy", "framework")
        entry |= {f"{name}_time": 0.0 for name in phases}
    return foreign.write(tmp_path / "cache.json", content)


def tuned(cache, most, **how):
    """What Kernel Tuner says it evaluated."""
    pytest.importorskip("kernel_tuner")
    from launchwise.search import strategy

    options = {"strategy": strategy(**how), "strategy_options": {"max_fevals": most}}
    return foreign.tuned("blur_kernel", SPACE, cache, **options)


def test_it_finds_the_best_within_its_limit(cache):
    found = tuned(cache, 10)
    assert len(found) <= 10
    times = {each["time"]: each for each in found if isinstance(each["time"], float)}
    assert BEST.items() <= times[min(times)].items()


def test_rows_of_another_gpu_and_certainty_save_most(cache):
    every = foreign.space()
    known = [(dict(zip(SPACE, each, strict=True)), 3 * foreign.time_of(*each)) for each in every]
    first, *others = tuned(cache, len(every), known=[known], percent=2)
    assert BEST.items() <= first.items()
    assert 4 <= len(others) < len(every) - 4
