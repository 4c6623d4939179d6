"""Kernels of the library function as nvcc compiles them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from kernels.tridiagonal.solver.opening import CHECKS, FOLDER, INTERLEAVED, kernels
from launchwise.base.errors import UserError
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.spec import load_spec

pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
]

KERNELS = {
    CHECKS: ("dominance", "residual"),
    INTERLEAVED: ("reduce_interleaved", "substitute_interleaved", "thomas_interleaved"),
}


def test_kernels_beside_the_measured_ones_are_compiled(tmp_path: Path) -> None:
    builds = [
        Build.of(source, real_macro(np.dtype(dtype).name))
        for source in KERNELS
        for dtype in ("float32", "float64")
    ]
    path = tmp_path / "some.cubins"
    compile_bundle(FOLDER, load_spec(FOLDER), builds, "sm_90", path, 1)
    bundle = Bundle(path)
    for build in builds:
        for name in KERNELS[build.source]:
            assert bundle.kernel(build, name).spill_bytes == 0


def test_an_architecture_without_a_kernel_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError) as caught:
        kernels("sm_20")
    assert re.search(r"sm_20.*nvcc failed", str(caught.value))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.rglob("*.cubins")) == []
