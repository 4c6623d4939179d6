"""What is said of a wrong element."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from launchwise.cpu.device import CpuDevice
from launchwise.workloads.device import Allocations
from launchwise.workloads.results.output_check import OutputCheck, Poison, wrong_element


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
def test_a_small_integer_that_was_left_may_as_well_be_a_wrong_one(
    tmp_path: Path, dtype: str, right: Any, said: str
) -> None:
    device = CpuDevice(tmp_path, [])
    memory = Allocations(device)
    expected = np.array([right, right], dtype)
    buffer = memory.upload(expected)
    poison = Poison(device, memory, buffer, expected)
    poison.fill()
    output = OutputCheck(device, memory, buffer, expected.dtype, expected)
    assert wrong_element("out", output, poison, 1, 1.0, 0.0) == said
