"""Devices of this process, with kernels that are compiled once and kept in the user's cache."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.storage import digest, digest_files, user_cache
from launchwise.measuring.compile import compile_bundle, nvcc_release
from launchwise.measuring.source_states import fingerprint
from launchwise.workloads.builds import Build
from launchwise.workloads.sources import included_files
from launchwise.workloads.spec import Spec

from .driver import Card


def kept_bundle(folder: Path, spec: Spec, builds: Sequence[Build], arch: str) -> Path:
    """A bundle of a workload's builds in the user's cache, compiled when it is not there. Raises
    UserError without nvcc, or when it knows no such architecture."""
    sources = digest_files(included_files(folder, {build.source for build in builds}))
    made_of = fingerprint(folder, nvcc_release()), sources, *(build.key for build in builds)
    path = user_cache() / f"{folder.name}-{arch}-{digest(made_of)}.cubins"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        compile_bundle(folder, spec, builds, arch, path, os.cpu_count() or 1)
    return path


@functools.cache
def plain_card(number: int) -> Card:
    """A device, by its number among the visible ones, without kernels; UserError without a
    driver."""
    return Card(number)


@functools.cache
def card_with(number: int, bundle: Path) -> Card:
    """A device with the kernels of a bundle."""
    card = Card(number)
    card.take_kernels(bundle)
    return card


def wait_for(number: int, stream: int) -> None:
    plain_card(number).wait(stream)
