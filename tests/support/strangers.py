"""The corpus in ``tests/strangers``: kernels of many hands, with faults that must be found."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator
from samples import ROOT

from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.workloads.space import baseline, configurations
from launchwise.workloads.spec import Spec

STRANGERS = ROOT / "tests" / "strangers"
EXPECT_FILE = "expect.yaml"
FOLDERS = sorted(path.parent.name for path in STRANGERS.glob(f"*/{EXPECT_FILE}"))

FACTS = {
    "gpu_memory_bytes": 80e9,
    "gpu_max_threads_per_block": 1024,
    "gpu_shared_per_block_bytes": 232448,
    "gpu_compute_capability": 90,
}
"""Limits of a card, where there is none."""

FOUND = ("wrong", "failed")  # Statuses of a fault that was found


class Fault(Strict):
    """A mistake that somebody might make: a passage of a file, and another in its place."""

    name: str
    file: str = Field(alias="in")
    replace: str
    by: str
    says: str
    devices: tuple[Literal["cpu", "gpu"], ...] = ("cpu", "gpu")
    why: str = ""

    @model_validator(mode="after")
    def _reason(self) -> Fault:
        re.compile(self.says)
        if (len(self.devices) == 1) != bool(self.why):
            raise ValueError("why: says why a fault is for one device only")
        return self


class Expectation(Strict):
    """What is expected of a folder."""

    # A small problem for the CPU device and a larger one; a list stands for each of its values.
    problem: dict[str, Any]
    gpu_problem: dict[str, Any]
    faults: list[Fault] = Field(min_length=1)
    needs: str = ""  # what the CPU device lacks for it


def expectation(name: str) -> Expectation:
    """What is expected of a folder of the corpus."""
    path = STRANGERS / name / EXPECT_FILE
    return validated(Expectation, read_yaml(path), path)


def each_problem(listed: dict[str, Any]) -> list[dict[str, Any]]:
    """Problems that one entry stands for, the first one first."""
    values = [each if isinstance(each, list) else [each] for each in listed.values()]
    return [dict(zip(listed, chosen, strict=True)) for chosen in itertools.product(*values)]


def few(spec: Spec, problem: dict[str, Any]) -> list[dict[str, Any]]:
    """The baseline, and the last configuration of each variant that differs from it."""
    last = {str(each["variant"]): each for each in configurations(spec, problem, FACTS)}
    first = baseline(spec)
    return [first, *(each for each in last.values() if each != first)]


def faulty(spec: Spec, fault: Fault) -> dict[str, Any]:
    """The configuration in which a fault shows: the baseline, or that of the file's variant."""
    first = baseline(spec)
    own = [name for name, one in spec.variants.items() if one.source == fault.file]
    if not own or first["variant"] in own:
        return first
    neutral = {name: one.neutral for name, one in spec.tunables.items()}
    return {**neutral, "variant": own[0]}


def planted(name: str, fault: Fault, place: Path) -> Path:
    """A copy of a folder with a fault in it. Raises ValueError when the passage is not there
    exactly once: the fault would plant nothing, or two."""
    folder = place / name
    shutil.copytree(STRANGERS / name, folder)
    path = folder / fault.file
    # Latin-1 keeps every byte.
    text = path.read_text(encoding="latin-1")
    if (count := text.count(fault.replace)) != 1:
        raise ValueError(f"{name}: {fault.replace!r} is {count} times in {fault.file}")
    path.write_text(text.replace(fault.replace, fault.by), encoding="latin-1")
    return folder
