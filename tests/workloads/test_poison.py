"""What an output holds before a launch differs from what is expected, in every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.extra import numpy as arrays

from launchwise.workloads.element_types import TYPES, element_type, is_inexact, struct_type
from launchwise.workloads.results.output_check import poisoned

NUMPYS = [name for name in TYPES if name != "bfloat16"]


@given(some.data())
@pytest.mark.parametrize("name", NUMPYS)
def test_no_element_holds_what_is_expected(name: str, data: Any) -> None:
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


def test_bfloat16_holds_nan() -> None:
    expected = np.arange(5).astype(element_type("bfloat16"))
    assert np.isnan(poisoned(expected).astype(np.float32)).all()


def test_each_field_of_a_struct_differs() -> None:
    dtype = struct_type({"x": "float32", "count": "int32", "seen": "bool"})
    expected = np.zeros(4, dtype)
    held = poisoned(expected)
    assert np.isnan(held["x"]).all()
    assert (np.abs(held["count"].astype(float)) > 2e9).all()
    assert held["seen"].all()
