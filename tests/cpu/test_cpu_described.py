"""Null pointers and arrays without elements on the CPU device; all else is in tests/strangers."""

import shutil

import pytest
from mistakes import planted

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check.on_cpu import outcome
from launchwise.cpu.device import CpuDevice
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")


def run_on_cpu(folder, cache):
    """Outcome of the baseline at n=1000."""
    spec = load_spec(folder)
    device = CpuDevice(folder, spec.headers, cache=cache)
    chosen = baseline(spec)
    return outcome(load_workload(folder, spec), spec, device, {"n": 1000}, chosen, 1)


SUMS = 'shape: ["ceil_div(n, BLOCK)"], role: scratch'


class TestNoElements:
    """Null pointers, and arrays without elements, in a workload that scans in three launches."""

    def folder(self, place, old, new):
        """The workload with one passage of its spec replaced."""
        path = place / "running_total"
        shutil.copytree(ROOT / "tests" / "strangers" / "running_total", path)
        return planted(path, "spec.yaml", old, new)

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            (SUMS, "shape: [0], role: scratch", "arguments.sums.shape: has no element"),
            (SUMS, "shape: [n - 1000]", "arguments.sums.shape: shape (0,) has no element"),
            (SUMS, "shape: [n - 1000], role: inout", "arguments.sums.shape: shape (0,)"),
        ],
    )
    def test_an_array_without_elements_is_refused(self, tmp_path, old, new, said):
        folder = self.folder(tmp_path, old, new)
        with pytest.raises(UserError) as refused:
            run_on_cpu(folder, tmp_path)
        assert said in str(refused.value)
        assert "nullptr among a kernel's arguments" in str(refused.value)

    def test_a_write_to_scratch_memory_without_elements_is_beyond_its_end(self, tmp_path):
        folder = self.folder(tmp_path, SUMS, "shape: [n - 1000], role: scratch")
        found = run_on_cpu(folder, tmp_path)
        assert "writes byte 0, beyond the end of a buffer of 0 B" in found["reason"]

    def test_a_null_pointer_for_a_number_is_refused(self, tmp_path, capsys):
        folder = self.folder(tmp_path, "nullptr, blocks", "nullptr, nullptr")
        assert main(["check", str(folder)]) == 2
        assert "nullptr is given, the kernel takes a number: running_total(n)" in (
            capsys.readouterr().err
        )
