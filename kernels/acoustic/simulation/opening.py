"""Devices of this process, with the kernels of a simulation."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec, load_spec

from ...calling.driver import Card, located
from ...calling.kept_kernels import kept_bundle

__all__ = ["card_with", "facts", "located", "spec", "wait_for"]

FOLDER = Path(__file__).resolve().parents[1]


@functools.cache
def spec() -> Spec:
    return load_spec(FOLDER)


@functools.cache
def plain_card(number: int) -> Card:
    """A device without kernels; UserError without a driver."""
    return Card(number)


def wait_for(number: int, stream: int) -> None:
    plain_card(number).wait(stream)


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
    path = kept_bundle(FOLDER, spec(), builds, plain_card(number).arch)
    return _card_of(number, path)


@functools.cache
def _card_of(number: int, path: Path) -> Card:
    card = Card(number)
    card.take_kernels(path)
    return card
