"""The library is generic: what belongs to one workload or study stands in its folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(
    {path.parent.name for path in ROOT.glob("kernels/*/spec.yaml")}
    | {path.parent.name for path in ROOT.glob("kernels/*/studies/*/study.yaml")}
)
SOURCES = [
    path
    for path in sorted((ROOT / "launchwise").rglob("*"))
    if path.suffix in {".py", ".cu", ".cuh", ".html", ".css", ".js"}
]


def named(text, names=NAMES):
    """Workloads and studies whose names stand in a text."""
    return [name for name in names if re.search(rf"(?<![a-z]){name}", text, re.IGNORECASE)]


def test_the_library_names_no_workload_and_no_study():
    assert {path: found for path in SOURCES if (found := named(path.read_text()))} == {}


@pytest.mark.workloads
def test_the_names_are_known():
    assert len(NAMES) >= 12


def test_a_planted_name_is_found():
    assert len(SOURCES) > 100
    known = [*NAMES, "wave", "wave_tile"]
    for name in known:
        for text in (f"OWN = {{'{name}': 1}}", f"# only {name.capitalize()}s", f"x.{name}.host"):
            assert name in named(text, known)
    assert named("a word about nothing in particular", known) == []
