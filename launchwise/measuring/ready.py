"""Checks whether this machine can measure on a GPU; reports every missing item at once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import GPU_EXTRA
from launchwise.measuring.cards import Card, NoNvml, cards, in_words, nvml, selects
from launchwise.measuring.compile import nvcc_release

_IMPORTS = """
import json, pycuda, pycuda.driver, cuda.bindings
pycuda.driver.init()
version = ".".join(map(str, pycuda.VERSION))
print(json.dumps({"pycuda": version, "cuda_bindings": cuda.bindings.__version__}))
"""
PATIENCE_S = 120.0
"""Timeout of the driver, s."""


def check_machine(arch: str, device: str | None) -> tuple[dict[str, Any], list[str]]:
    """Card, driver, toolkit and libraries of this machine, and the missing items.

    Parameters
    ----------
    arch
        Architecture of the GPU, such as ``sm_90``.
    device
        Part of its name, if that matters.

    Returns
    -------
    Facts (device_name, card, driver, toolkit, versions of libraries), as far as they were found,
    and one sentence per missing item.
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
    """Versions of the libraries that talk to the driver, imported in a process of their own.

    Raises
    ------
    ValueError
        When they cannot be imported, or the driver does not answer them.
    """
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
