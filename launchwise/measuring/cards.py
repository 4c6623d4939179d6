"""Physical cards of this machine: their lock, their profiles, and what is missing to measure.

Slices of one card share its memory, L2 and power, so the lock is on the card, by UUID.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import GPU_EXTRA, ROOT
from launchwise.base.storage import digest, digest_files, user_cache, write_json
from launchwise.base.typed import validated
from launchwise.gpus.profile import GpuProfile

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

    ``gpu``, ``wanted``: its name in the settings, and what fits in words, for the message.
    ``folder``: where the lock files lie: one that every job on this machine shares (:data:`LOCKS`).
    ``present``: cards of this machine where they are known (:func:`cards`).
    Raises UserError when no card of this machine fits, or a lock file cannot be opened.
    """
    from filelock import FileLock, Timeout

    present = cards() if present is None else present
    fitting = [card for card in present if fits(card)]
    if not fitting:
        message = f"source is live and needs {wanted}, but this machine has {in_words(present)}"
        raise UserError("config.yaml", f"gpus.{gpu}", message)
    while True:
        for card in fitting:
            # Readable by everyone: users of one machine share its cards.
            lock = FileLock((folder or LOCKS) / f"launchwise-card-{card.mark}.lock", mode=0o666)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            except OSError as error:
                why = f"locks {gpu} and cannot be opened: {error.strerror}; its owner removes it"
                raise UserError(lock.lock_file, "", why) from error
            try:
                yield card
            finally:
                lock.release()
            return
        time.sleep(POLL_S)


_IMPORTS = """
import json, pycuda, pycuda.driver, cuda.bindings
pycuda.driver.init()
version = ".".join(map(str, pycuda.VERSION))
print(json.dumps({"pycuda": version, "cuda_bindings": cuda.bindings.__version__}))
"""
PATIENCE_S = 120.0  # Timeout of the driver, s


def check_machine(arch: str, device: str | None) -> tuple[dict[str, Any], list[str]]:
    """Card, driver, toolkit and libraries of this machine, and the missing items. ``arch``:
    architecture of the GPU, such as ``sm_90``. ``device``: part of its name, if that matters.
    Returns facts (device_name, card, driver, toolkit, versions of libraries), as far as they were
    found, and one sentence per missing item."""
    # What compiles loads slowly, and most ask for cards alone.
    from launchwise.measuring.compile import nvcc_release

    facts: dict[str, Any] = {}
    missing: list[str] = []
    present = cards()
    fits = selects(arch, device)
    fitting = [card for card in present if fits(card)]
    if fitting:
        chosen = fitting[0]
        facts |= {"device_name": chosen.device_name, "card": chosen.mark, "driver": chosen.driver}
    else:
        missing.append(_no_card(present, f"{device or 'a card'} of {arch}"))
    try:
        facts["toolkit"] = nvcc_release()
        missing += _refusals(arch, facts["toolkit"])
    except UserError as error:
        missing.append(f"{error.key} {error.message}")
    try:
        facts |= _libraries()
    except ValueError as error:
        missing.append(str(error))
    return facts, missing


def _no_card(present: list[Card], wanted: str) -> str:
    if present:
        return f"no matching GPU: wanted {wanted}, found {in_words(present)}"
    try:
        nvml()
    except NoNvml as error:
        return str(error)
    return "no GPU is visible to this job (CUDA_VISIBLE_DEVICES?)"


def _refusals(arch: str, release: str) -> Iterator[str]:
    """Reasons why nvcc (release such as ``13.0``) cannot compile for an architecture."""
    command = ["nvcc", "--list-gpu-code"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    known = re.findall(r"sm_\d+", done.stdout)
    # A toolkit that has no such list tells when it compiles.
    if known and arch.rstrip("af") not in known:
        yield f"nvcc {release} cannot compile for {arch} (it can for {', '.join(known)})"


def _libraries() -> dict[str, str]:
    """Versions of the libraries that talk to the driver, imported in a process of their own. Raises
    ValueError when they cannot be imported, or the driver does not answer them."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORTS],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ValueError(f"the driver does not respond to PyCUDA within {PATIENCE_S:g} s") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        remedy = f"; {GPU_EXTRA} installs it" if "No module named" in said else ""
        raise ValueError(f"PyCUDA does not work here ({said}){remedy}")
    versions: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return versions


log = logging.getLogger("launchwise")

MEASURING = "launchwise/cuda/ceilings*"
"""Files that decide what a ceiling means, from the root of the project."""


def measured_profile(name: str, card: Card, slice_sms: int | None) -> GpuProfile:
    """Attributes and measured ceilings of a card that this process holds. Raises UserError with the
    last words of the process that measures."""
    job = {"name": name, "card": card.mark, "driver": card.driver, "slice_sms": slice_sms}
    done = subprocess.run(
        [sys.executable, "-m", "launchwise.cuda.ceilings"],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
        check=False,
    )
    if done.returncode:
        raise UserError("describe", name, (done.stderr.strip().splitlines() or ["died"])[-1])
    # Ceilings that could not be measured, and why.
    for line in done.stderr.splitlines():
        log.warning("%s", line)
    return validated(GpuProfile, json.loads(done.stdout.splitlines()[-1]), name)


def kept_or_measured_profile(name: str, card: Card, slice_sms: int | None) -> GpuProfile:
    """:func:`measured_profile`, kept for this card, slice and driver in the user's cache. Raises
    UserError: see :func:`measured_profile`."""
    means = digest_files(ROOT.glob(MEASURING))
    path = user_cache() / "profiles" / f"{digest([card.uuid, card.driver, slice_sms, means])}.json"
    with contextlib.suppress(OSError, ValueError, UserError):
        kept = json.loads(path.read_text(encoding="utf-8"))
        return validated(GpuProfile, {**kept, "name": name}, path)
    found = measured_profile(name, card, slice_sms)
    # Where nothing can be kept it is measured again.
    with contextlib.suppress(UserError):
        write_json(path, found.model_dump(mode="json"))
    return found
