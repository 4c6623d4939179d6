"""Profiles of datasheet-only GPUs: computed from the project's datasheets."""

from __future__ import annotations

from collections.abc import Mapping

from samples import ROOT

from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import GpuProfile


def described_gpus(*cards: str) -> dict[str, GpuProfile]:
    """Card to its profile."""
    return gpus_in_hosts({card: (card, None) for card in cards})


def gpus_in_hosts(gpus: Mapping[str, tuple[str, float | None]]) -> dict[str, GpuProfile]:
    """Name to the profile of a card, behind a link to the host of so many GB/s, if it is known."""
    known = read_cards(ROOT / CARDS_FILE)
    efficiency = reference_efficiency(known, ROOT / REFERENCE_PROFILE)
    return {
        name: described_profile(name, known, efficiency, card, host_gbs)
        for name, (card, host_gbs) in gpus.items()
    }
