"""Marks of tests that compile with nvcc."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

nvcc_alone = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH"),
]
needs_nvcc = [
    *nvcc_alone,
    pytest.mark.skipif(
        importlib.util.find_spec("pycuda") is None, reason="PyCUDA is not installed (make gpu)"
    ),
]


kept_nvcc = [*needs_nvcc, pytest.mark.usefixtures("kept_cubins")]
"""For what need not be compiled anew where it was compiled before."""
