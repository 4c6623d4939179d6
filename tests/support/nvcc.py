"""Marks of tests that compile with nvcc."""

from __future__ import annotations

import shutil

import pytest

needs_nvcc = [
    pytest.mark.nvcc,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH"),
]
kept_nvcc = [*needs_nvcc, pytest.mark.usefixtures("kept_cubins")]
"""For what need not be compiled anew where it was compiled before."""
