"""Columns that are the same in every row of one job."""

from __future__ import annotations

from launchwise.base.provenance import commit, versions
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.cards import Card
from launchwise.workloads.spec import Spec


def labels_of(spec: Spec, profile: GpuProfile, card: Card, toolkit: str) -> dict[str, str]:
    """Columns that are the same in every row."""
    return {
        "gpu": profile.name,
        "workload": spec.workload,
        "card": card.mark,
        "driver": card.driver,
        "toolkit": toolkit,
        "backend": f"pycuda {versions().get('pycuda', '')}".strip(),
        "commit": commit(),
    }
