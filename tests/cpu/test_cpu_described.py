"""A workload that its spec alone describes, on the CPU device."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest
from described_workloads import written

from launchwise.base.imports import ROOT
from launchwise.cpu.device import CpuDevice
from launchwise.workloads import space
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import load_workload

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"


def complaints(folder: Path, kept: Path) -> list[str]:
    """What is wrong with the first configurations of a small problem; '' where nothing is."""
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers, cache=kept)
    problem = {"w": 61, "h": 40}
    found = []
    for configuration in islice(space.configurations(spec, problem), 3):
        session = workload.open(device, problem, workload.layout(configuration), 1)
        session.poison()
        device.launch(session.launch(configuration))  # type: ignore[arg-type]
        found.append(session.check().wrong)
        session.close()
    return found


def test_an_untouched_file_is_right(tmp_path: Path) -> None:
    assert complaints(CONVOLUTION, tmp_path) == ["", "", ""]


def test_a_transposed_filter_is_wrong(tmp_path: Path) -> None:
    folder = tmp_path / "convolution"
    shutil.copytree(CONVOLUTION, folder)
    (source,) = folder.glob("*.cu")
    text = source.read_text()
    assert text.count("filter[r * FILTER + c]") == 1
    source.write_text(text.replace("filter[r * FILTER + c]", "filter[c * FILTER + r]"))
    assert all(complaints(folder, tmp_path))


def test_the_first_configuration_is_compared_with_the_variant_not_with_itself(
    tmp_path: Path,
) -> None:
    folder = written("constant", tmp_path)
    source = folder / "blocked.cu"
    source.write_text(source.read_text().replace("start - 1.0f", "start + 1.0f"))
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers, cache=tmp_path)
    session = workload.open(device, {"n": 100}, (), 1)
    session.poison()
    device.launch(session.launch({"variant": "blocked", "block_size_x": 64}))  # type: ignore[arg-type]
    assert "output[" in session.check().wrong
    session.close()
