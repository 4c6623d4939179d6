"""What outputs hold before a launch, what they are compared by, and what is said of a wrong one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from launchwise.base.arrays import TYPES, element_type, is_inexact, struct_type
from launchwise.cpu.device import CpuDevice
from launchwise.workloads.comparison import SPAN, Expected, largest_difference
from launchwise.workloads.device import Allocations
from launchwise.workloads.output_check import OutputCheck, Poison, poisoned, wrong_element

NUMBERS = st.floats(-(2.0**100), 2.0**100, width=32) | st.sampled_from(
    [math.inf, -math.inf, math.nan]
)


def difference(found, expected):
    """Size of the largest difference."""
    return largest_difference(np.asarray(found), np.asarray(expected)).size


@given(
    arrays.arrays(np.float32, 40, elements=NUMBERS),
    arrays.arrays(np.float64, 40, elements=NUMBERS),
    st.integers(0, 40),
)
def test_it_is_what_one_element_after_the_other_gives(found, expected, alike):
    expected[:alike] = found[:alike]
    each = [
        0.0 if one == other or (math.isnan(one) and math.isnan(other)) else abs(one - other)
        for one, other in zip(found.tolist(), expected.tolist(), strict=True)
    ]
    worst = largest_difference(found, expected)
    if any(map(math.isnan, each)):
        assert math.isnan(worst.size)
        assert math.isnan(each[worst.index])
    else:
        assert worst.size == max(each)
        assert each[worst.index] == worst.size


@pytest.mark.parametrize("wrong", [0, SPAN - 1, 3 * SPAN + 7, 5 * SPAN - 1])
@pytest.mark.parametrize("value", [0.5, math.nan, math.inf])
def test_one_wrong_element_of_a_large_output_is_found(wrong, value):
    expected = np.random.default_rng(1).uniform(-1, 1, 5 * SPAN)
    found = expected.astype(np.float32)
    found[wrong] += value
    worst = largest_difference(found, expected)
    assert worst.index == wrong
    assert worst.size == pytest.approx(value, rel=1e-6, nan_ok=True)


def test_integers_that_float64_does_not_tell_apart_differ():
    large = np.array([1, 2**62, 2**62 + 1])
    assert difference(large, large) == 0
    assert difference(large + np.array([0, 1, 0]), large) == 1
    assert difference(np.array([250], np.uint8), np.array([-1])) == 251
    # A mean of integers is none.
    assert difference(np.array([4]), np.array([3.5])) == 0.5


def test_an_error_is_relative_to_the_largest_finite_value():
    right = Expected(np.array([[4.0, -8.0], [0.0, math.inf]]))
    found = np.array([4.0, -8.0, 0.08, math.inf], np.float32)
    assert right.relative(largest_difference(found, right.flat)) == pytest.approx(0.01)
    # What does not matter is no error, and nothing that one is relative to.
    right = Expected(np.ma.masked_array([4.0, -8.0, 1e6, 0.0], mask=[0, 0, 1, 0]))
    found = np.array([4.0, -8.0, 7.0, 0.08], np.float32)
    assert right.relative(right.difference(0, found)) == pytest.approx(0.01)
    nothing = Expected(np.zeros(3))
    assert nothing.relative(largest_difference(np.array([0.0, 0.0, 0.25]), nothing.flat)) == 0.25


def test_nothing_has_no_difference():
    assert difference(np.empty(0, np.float32), np.empty(0)) == 0
    assert Expected(np.empty((0, 3))).scale == 0


NUMPYS = [name for name in TYPES if name != "bfloat16"]


@given(st.data())
@pytest.mark.parametrize("name", NUMPYS)
def test_no_element_holds_what_is_expected(name, data):
    dtype = element_type(name)
    expected = data.draw(arrays.arrays(dtype, 20))
    held = poisoned(expected)
    assert held.dtype == dtype
    if is_inexact(dtype):
        assert (np.isnan(held) != np.isnan(expected)).all()
        return
    assert (held != expected).all()
    if dtype.kind in "iu":
        # A tolerance cannot hide it: half the range lies between.
        limits = np.iinfo(dtype)
        distance = [abs(int(a) - int(b)) for a, b in zip(held, expected, strict=True)]
        assert min(distance) >= (limits.max - limits.min) // 2


def test_bfloat16_holds_nan():
    expected = np.arange(5).astype(element_type("bfloat16"))
    assert np.isnan(poisoned(expected).astype(np.float32)).all()


def test_each_field_of_a_struct_differs():
    dtype = struct_type({"x": "float32", "count": "int32", "seen": "bool"})
    expected = np.zeros(4, dtype)
    held = poisoned(expected)
    assert np.isnan(held["x"]).all()
    assert (np.abs(held["count"].astype(float)) > 2e9).all()
    assert held["seen"].all()


@pytest.mark.parametrize(
    ("dtype", "right", "said"),
    [
        ("int8", 127, "out[1] is never written or is wrongly -128, expected 127"),
        ("bool", True, "out[1] is never written or is wrongly 0, expected 1"),
        ("int32", 5, "out[1] is never written, expected 5"),
        ("float16", 0.5, "out[1] is never written or only added to, expected 0.5"),
        ("float32", np.nan, "out[1] is never written, expected nan"),
    ],
)
def test_a_small_integer_that_was_left_may_as_well_be_a_wrong_one(tmp_path, dtype, right, said):
    device = CpuDevice(tmp_path, [])
    memory = Allocations(device)
    expected = np.array([right, right], dtype)
    buffer = memory.upload(expected)
    poison = Poison(device, memory, buffer, expected)
    poison.fill()
    output = OutputCheck(device, memory, buffer, expected.dtype, expected)
    assert wrong_element("out", output, poison, 1, 1.0, 0.0) == said
