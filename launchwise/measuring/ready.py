"""Whether this machine can measure, with every missing item at once, and profiles of its cards."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import GPU_EXTRA, ROOT
from launchwise.base.storage import digest, digest_files, user_cache, write_json
from launchwise.base.typed import validated
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.cards import Card, NoNvml, cards, in_words, nvml, selects
from launchwise.measuring.compile import nvcc_release

_IMPORTS = """
import json, pycuda, pycuda.driver, cuda.bindings
pycuda.driver.init()
version = ".".join(map(str, pycuda.VERSION))
print(json.dumps({"pycuda": version, "cuda_bindings": cuda.bindings.__version__}))
"""
PATIENCE_S = 120.0  # Timeout of the driver, s


def check_machine(arch: str, device: str | None) -> tuple[dict[str, Any], list[str]]:
    """Card, driver, toolkit and libraries of this machine, and the missing items.

    ``arch``: architecture of the GPU, such as ``sm_90``. ``device``: part of its name, if that
    matters. Returns facts (device_name, card, driver, toolkit, versions of libraries), as far as
    they were found, and one sentence per missing item.
    """
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
        [sys.executable, "-m", "launchwise.cuda.describe"],
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
