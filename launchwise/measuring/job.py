"""What a measuring job needs before its first row: kernels, a card, a measuring process."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.provenance import commit, versions
from launchwise.gpus.machine import Fastest
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.cards import Card, free_card
from launchwise.measuring.kernel_bundles import Alongside, Beforehand, Parts
from launchwise.workloads.builds import Build
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import Spec

log = logging.getLogger(__name__)


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


def compilable(spec: Spec, left_out: Mapping[str, str]) -> Spec:
    """``spec`` without the variants whose compiler is missing; a warning names each.

    Parameters
    ----------
    left_out
        Sources to what must be installed (:class:`launchwise.measuring.kernel_bundles.Parts`).

    Raises
    ------
    UserError
        When the baseline is among them: nothing could be compared with it.
    """
    missing = {name: left_out.get(str(one.source)) for name, one in spec.variants.items()}
    if said := missing[str(spec.baseline["variant"])]:
        raise UserError(spec.workload, str(spec.baseline["variant"]), said)
    for name, said in missing.items():
        if said:
            log.warning("%s: variant %s is left out: %s", spec.workload, name, said)
    kept = [name for name, said in missing.items() if not said]
    return spec if len(kept) == len(missing) else spec.narrowed({"variant": kept})


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


@dataclass(frozen=True)
class Ready:
    """A job that can measure: its card, its kernels, and ``fields`` of its shard about both."""

    card: Card
    kernels: JobKernels
    fields: Mapping[str, Any]


@contextmanager
def ready_job(
    bundle: Path | None,
    folder: Path,
    spec: Spec,
    builds: Callable[[], list[Build]],
    profile: GpuProfile,
    threads: int,
    slice_sms: int | None,
) -> Iterator[Ready]:
    """A free card of the profile's kind, or a slice of it, and kernels for it, for the block.

    Parameters
    ----------
    bundle, builds, threads
        See :func:`job_kernels`.

    Raises
    ------
    UserError
        When no such card is there, or kernels cannot be compiled.
    """
    with (
        job_kernels(bundle, folder, spec, builds, profile.arch, threads) as kernels,
        profiled_card(profile) as card,
    ):
        fields = {
            "spec": compilable(spec, kernels.parts.left_out),
            "folder": folder,
            "gpu_facts": gpu_facts(profile.model_dump()),
            "labels": labels_of(spec, profile, card, kernels.toolkit),
            "parts": kernels.parts,
            **measuring_process(card, profile, slice_sms),
        }
        yield Ready(card, kernels, fields)


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
