"""Devices of this process, with the kernels of a simulation."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec, load_spec

from ...calling import kept_kernels
from ...calling.driver import Card, located
from ...calling.kept_kernels import kept_bundle, plain_card, wait_for

__all__ = ["card_with", "facts", "located", "spec", "wait_for"]

FOLDER = Path(__file__).resolve().parents[1]


@functools.cache
def spec() -> Spec:
    return load_spec(FOLDER)


def facts(number: int) -> dict[str, Any]:
    card = plain_card(number)
    return {
        "gpu_memory_bytes": card.free_memory(),
        "gpu_max_threads_per_block": 1024,
        "gpu_shared_per_block_bytes": card.shared_limit,
        "gpu_compute_capability": int(card.arch.removeprefix("sm_")),
    }


def card_with(number: int, builds: Sequence[Build]) -> Card:
    """A device with these builds, compiled at their first use and kept in the user's cache. Raises
    UserError without a driver or nvcc, or when nvcc does not know the device's architecture."""
    bundle = kept_bundle(FOLDER, spec(), builds, plain_card(number).arch)
    return kept_kernels.card_with(number, bundle)
