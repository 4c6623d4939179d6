"""What a measuring job needs before its first row: kernels, a card, a measuring process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launchwise.gpus.machine import Fastest
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.cards import Card, free_card
from launchwise.measuring.kernel_bundles import Alongside, Beforehand, Parts
from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class JobKernels:
    """Kernels of a job: where they come from, and which toolkit and sources they are of."""

    parts: Parts
    toolkit: str
    fingerprint: str


@contextmanager
def job_kernels(
    bundle_path: Path | None,
    folder: Path,
    spec: Spec,
    builds: Callable[[], list[Build]],
    arch: str,
    threads: int,
) -> Iterator[JobKernels]:
    """Kernels for the block: of a bundle, or compiled while the job measures.

    Parameters
    ----------
    bundle_path
        What the compile stage made; None to compile ``builds`` here, on ``threads`` cores.
    builds
        Gives the builds in the order of need; asked only if they are compiled here.
    """
    if bundle_path is not None:
        bundle = Bundle(bundle_path)
        yield JobKernels(Beforehand(bundle_path), bundle.toolkit, bundle.fingerprint)
        return
    with Alongside(folder, spec, builds(), arch, threads) as parts:
        yield JobKernels(parts, parts.compiler.toolkit, parts.compiler.fingerprint)


def profiled_card(profile: GpuProfile) -> AbstractContextManager[Card]:
    """Hold a free card of the kind that ``profile`` describes (:func:`free_card`)."""

    def fits(card: Card) -> bool:
        return (card.device_name, card.arch) == (profile.device_name, profile.arch)

    return free_card(profile.name, fits, f"{profile.device_name} ({profile.arch})")


def measuring_command(card: Card) -> dict[str, Any]:
    """Command and environment of a measuring process on ``card``."""
    return {
        "command": [sys.executable, "-m", "launchwise.cuda.child"],
        "environment": {**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
    }


def measuring_process(card: Card, profile: GpuProfile, slice_sms: int | None) -> dict[str, Any]:
    """Fields of a shard that start its measuring process on ``card``, or on a slice of it."""
    return {
        **measuring_command(card),
        "job": {
            "slice_sms": slice_sms,
            "expected_sms": profile.sms,
            "fastest": asdict(Fastest.of(profile)),
        },
    }
