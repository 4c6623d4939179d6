"""Arrays of 16-bit floating-point numbers are drawn by parts."""

from __future__ import annotations

import numpy as np
import pytest

from launchwise.workloads.declared import content
from launchwise.workloads.element_types import element_type

SHAPE = (3, content.PART // 2 + 5)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(("fill", "deviation"), [("uniform", 3**-0.5), ("normal", 1.0)])
def test_every_part_is_drawn_anew(name: str, fill: str, deviation: float) -> None:
    """Moments are those of the distribution, and neighbouring parts do not resemble each other."""
    dtype = element_type(name)
    found = content.drawn(fill, SHAPE, dtype, np.random.default_rng(7))
    again = content.drawn(fill, SHAPE, dtype, np.random.default_rng(7))
    assert found.shape == SHAPE
    assert found.dtype == dtype
    assert found.tobytes() == again.tobytes()
    flat = found.reshape(-1).astype(np.float64)
    assert abs(flat.mean()) < 0.01
    assert flat.std() == pytest.approx(deviation, rel=0.01)
    if fill == "uniform":
        assert np.abs(flat).max() <= 1
    rest = flat[content.PART :]
    assert 0 < rest.size < content.PART
    assert abs(np.corrcoef(flat[: rest.size], rest)[0, 1]) < 0.02


def test_an_array_without_elements_is_drawn() -> None:
    found = content.drawn("uniform", (0, 4), element_type("float16"), np.random.default_rng(7))
    assert found.shape == (0, 4)
