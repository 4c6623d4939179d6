"""Profiles of datasheet-only GPUs: computed from the project's datasheets."""

from __future__ import annotations

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
    known = read_cards(ROOT / CARDS_FILE)
    efficiency = reference_efficiency(known, ROOT / REFERENCE_PROFILE)
    return {card: described_profile(card, known, efficiency) for card in cards}
