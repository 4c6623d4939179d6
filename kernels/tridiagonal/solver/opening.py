"""Devices of this process, with the solver's kernels."""

from __future__ import annotations

import functools

from ...calling.driver import Card, located
from ..host.compiled import kernels
from .checks import SOURCE as CHECKS
from .interleaved import SOURCE as INTERLEAVED

__all__ = ["located", "open_card", "wait_for"]


@functools.cache
def open_card(number: int) -> Card:
    """A device by its number among the visible ones; its kernels are compiled at the first use.

    Raises
    ------
    UserError
        Without a driver or nvcc, or when nvcc does not know the device's architecture.
    """
    card = Card(number)
    card.take_kernels(kernels(card.arch, (CHECKS, INTERLEAVED)))
    return card


def wait_for(number: int, stream: int) -> None:
    """Wait for what is queued on a stream of a device."""
    open_card(number).wait(stream)
