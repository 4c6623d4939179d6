"""Physical cards of this machine, and the lock that lets one job at a time measure on one.

Slices of one card share its memory, L2 and power, so the lock is on the card, by UUID.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import GPU_EXTRA

POLL_S = 0.5

NO_GPU = "this machine has no NVIDIA GPU, or no driver of one"
"""What a command says that measures here."""

LOCKS = Path("/tmp") if os.access("/tmp", os.W_OK) else Path(tempfile.gettempdir())
"""Folder of lock files. Not TMPDIR: on clusters each job may have its own."""


@dataclass(frozen=True)
class Card:
    """A physical card: ``uuid`` as NVML gives it, ``arch`` such as sm_90."""

    index: int
    uuid: str
    device_name: str
    arch: str
    driver: str

    @property
    def mark(self) -> str:
        """Hash of the UUID (16 hex characters), which names the card in results."""
        return hashlib.sha256(self.uuid.encode()).hexdigest()[:16]


class NoNvml(Exception):
    """NVML, the driver or the card does not answer; the message says which."""


def nvml() -> Any:
    """NVML's module, initialised. Raises NoNvml when it is not installed, or the driver does not
    answer."""
    try:
        import pynvml
    except ImportError as error:
        raise NoNvml(f"nvidia-ml-py cannot be imported: {GPU_EXTRA} installs it") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoNvml(f"the NVIDIA driver does not respond: {error}") from error
    return pynvml


def cards() -> list[Card]:
    """Cards that this process may use (CUDA_VISIBLE_DEVICES is respected), by PCI order. Empty
    where there is no driver or NVML is not installed."""
    try:
        pynvml = nvml()
    except NoNvml:
        return []
    try:
        driver = _text(pynvml.nvmlSystemGetDriverVersion())
        found = []
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            found.append(
                Card(
                    index=index,
                    uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
                    device_name=_text(pynvml.nvmlDeviceGetName(handle)),
                    arch=f"sm_{major}{minor}",
                    driver=driver,
                )
            )
    finally:
        pynvml.nvmlShutdown()
    return visible(found, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def visible(found: list[Card], variable: str | None) -> list[Card]:
    """Cards of ``found`` that CUDA_VISIBLE_DEVICES names, by index or by the start of the UUID."""
    if variable is None:
        return found
    chosen = []
    for part in filter(None, (part.strip() for part in variable.split(","))):
        match = [card for card in found if part == str(card.index) or card.uuid.startswith(part)]
        if not match:
            break  # CUDA, too, ignores everything after the first entry that it cannot find.
        chosen.append(match[0])
    return chosen


def selects(arch: str, device: str | None) -> Callable[[Card], bool]:
    """Whether a card has this architecture and, if given, ``device`` in its name."""

    def fits(card: Card) -> bool:
        return card.arch == arch.rstrip("af") and (device is None or device in card.device_name)

    return fits


def arch_here(device: str | None, present: list[Card]) -> str:
    """Architecture of the cards whose names hold ``device``; of all where that is None. Raises
    ValueError when there is no such card, or there are several kinds."""
    named = [card for card in present if device is None or device in card.device_name]
    found = sorted({(card.arch, card.device_name) for card in named})
    if len(found) == 1:
        return found[0][0]
    if not found:
        wanted = f"GPU named {device!r}" if device else "NVIDIA GPU"
        message = f"source is live, but this machine has no {wanted}; give its arch (such as sm_90)"
        raise ValueError(f"{message} to measure on another machine, or remove the entry")
    kinds = in_words(named)
    raise ValueError(f"this machine has several kinds of GPU, select one by device: {kinds}")


def in_words(present: list[Card]) -> str:
    """Kinds of card, such as ``NVIDIA H200 (sm_90)``, for messages."""
    kinds = sorted({f"{card.device_name} ({card.arch})" for card in present})
    return ", ".join(kinds) or "no GPU"


@contextmanager
def free_card(
    gpu: str,
    fits: Callable[[Card], bool],
    wanted: str,
    folder: Path | None = None,
    present: list[Card] | None = None,
) -> Iterator[Card]:
    """Wait for a card that ``fits`` and is not being measured on; hold it for the block.

    ``gpu``: name of the GPU in the settings, for the message.
    ``wanted``: what fits, in words.
    ``folder``: where the lock files lie: a folder that every job on this machine shares
        (:data:`LOCKS`).
    ``present``: cards of this machine where they are known (:func:`cards`).
    Raises UserError when no card of this machine fits.
    """
    from filelock import FileLock, Timeout

    present = cards() if present is None else present
    fitting = [card for card in present if fits(card)]
    if not fitting:
        message = f"source is live and needs {wanted}, but this machine has {in_words(present)}"
        raise UserError("config.yaml", f"gpus.{gpu}", message)
    folder = folder or LOCKS
    while True:
        for card in fitting:
            # Readable by everyone: users of one machine share its cards.
            lock = FileLock(folder / f"launchwise-card-{card.mark}.lock", mode=0o666)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            try:
                yield card
            finally:
                lock.release()
            return
        time.sleep(POLL_S)
