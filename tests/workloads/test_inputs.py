"""The uniform sequence in NumPy, and arrays of 16-bit numbers, which are drawn by parts."""

import numpy as np
import pytest

from launchwise.base.arrays import element_type
from launchwise.workloads.declared import content
from launchwise.workloads.inputs import uniform


def test_a_longer_sequence_begins_with_the_shorter_one():
    assert np.array_equal(uniform(1000, 3)[:10], uniform(10, 3))
    assert uniform(0, 3).shape == (0,)


def test_values_are_those_of_the_published_generator():
    # SplitMix64 (Steele, Lea, Flood 2014) from seed 1234567: its first outputs are widely printed.
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    expected = [(value >> 11) * 2.0**-53 for value in published]
    assert uniform(3, 1234567, 0.0, 1.0).tolist() == expected
    assert uniform(3, 1234567) == pytest.approx([2 * value - 1 for value in expected], rel=1e-15)
    found = uniform(3, 1234567, 1500.0, 4500.0)
    assert found == pytest.approx([1500 + 3000 * value for value in expected], rel=1e-15)


SHAPE = (3, content.PART // 2 + 5)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@pytest.mark.parametrize(("fill", "deviation"), [("uniform", 3**-0.5), ("normal", 1.0)])
def test_every_part_is_drawn_anew(name, fill, deviation):
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


def test_an_array_without_elements_is_drawn():
    found = content.drawn("uniform", (0, 4), element_type("float16"), np.random.default_rng(7))
    assert found.shape == (0, 4)
