"""Devices of this process, with the solver's kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.spec import load_spec

from ...calling.driver import Card, located
from ...calling.kept_kernels import card_with, kept_bundle, plain_card, wait_for
from ..host.launches import LAYOUTS, build
from .interleaved import SOURCE as INTERLEAVED
from .plans import SOURCE as CHECKS

__all__ = ["kernels", "located", "open_card", "wait_for"]

FOLDER = Path(__file__).resolve().parents[1]


def kernels(arch: str) -> Path:
    """A bundle of all kernels for an architecture, compiled when it is not in the user's cache.
    Raises UserError without nvcc, or when it knows no such architecture."""
    types = [np.dtype(name) for name in ("float32", "float64")]
    builds = [build(layout, dtype) for layout in (*LAYOUTS, "finish") for dtype in types]
    builds += [
        Build.of(source, real_macro(dtype.name))
        for source in (CHECKS, INTERLEAVED)
        for dtype in types
    ]
    return kept_bundle(FOLDER, load_spec(FOLDER), builds, arch)


def open_card(number: int) -> Card:
    """A device by its number among the visible ones; its kernels are compiled at the first use.
    Raises UserError without a driver or nvcc, or when nvcc does not know the device's architecture.
    """
    return card_with(number, kernels(plain_card(number).arch))
