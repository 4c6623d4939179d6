"""What every workload and session has from its base class."""

from pathlib import Path

import numpy as np
import pytest

from launchwise.base.errors import UserError
from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.device import Allocations, closed_on_error
from launchwise.workloads.workload import Finding, Session, Workload
from tests.support.host_device import HostDevice


class Checked(Workload):
    """Says what ``complaints`` holds, one after the other, and counts its checks."""

    def __init__(self, folder, spec):
        super().__init__(folder, spec)
        self.complaints = []
        self.checks = []

    def build(self, problem, configuration):
        """One for all."""
        return Build.of("a.cu", {})

    def check_reference(self, device, problem, seed):
        """The next complaint."""
        self.checks.append(problem)
        return self.complaints.pop(0) if self.complaints else ""

    def open(self, device, problem, layout, seed):
        """See :class:`Plain`."""
        return Plain(self, device, problem, seed)


class ByOrder(Checked):
    """Its reference depends on the problem's order."""

    def check_key(self, problem):
        """The order."""
        return problem["order"]


class Plain(Session):
    """Takes memory, then fails where the problem says so."""

    def __init__(self, workload, device, problem, seed):
        super().__init__(workload, device, problem, seed)
        with closed_on_error(self):
            self.buffer = self.memory.upload(np.arange(4.0))
            if problem.get("fails"):
                raise KeyboardInterrupt

    def launch(self, configuration):
        """Never asked for."""
        raise NotImplementedError

    def poison(self):
        """Nothing to poison."""

    def check(self):
        """All is well."""
        return Finding(0.0, 0.0)


@pytest.fixture
def device(tmp_path):
    """A device without kernels."""
    return HostDevice(tmp_path, [], cache=tmp_path)


def test_the_reference_is_checked_once_per_type(stencil_spec, device):
    workload = Checked(Path(), stencil_spec)
    for dtype in ("float32", "float64", "float32", "float64"):
        for n in (1, 2):
            assert workload.self_check(device, {"n": n, "dtype": dtype}, 1) == ""
    assert workload.checks == [{"n": 1, "dtype": "float32"}, {"n": 1, "dtype": "float64"}]


def test_a_workload_may_say_what_its_reference_depends_on(stencil_spec, device):
    workload = ByOrder(Path(), stencil_spec)
    for order, dtype in ((2, "float32"), (2, "float64"), (4, "float64")):
        assert workload.self_check(device, {"order": order, "dtype": dtype}, 1) == ""
    assert [problem["order"] for problem in workload.checks] == [2, 4]


def test_a_reference_that_was_wrong_is_checked_again(stencil_spec, device):
    workload = Checked(Path(), stencil_spec)
    workload.complaints = ["off by 1"]
    said = [workload.self_check(device, {}, 1) for _ in range(3)]
    assert said == ["off by 1", "", ""]
    assert len(workload.checks) == 2


def test_check_kernels_are_built_for_the_problems_type(stencil_spec):
    workload = Checked(Path(), stencil_spec)
    builds = {
        dtype: workload.check_builds({"dtype": dtype}) for dtype in ("float32", "float64")
    } | {"": workload.check_builds({"n": 1})}
    assert builds == {
        "float32": [Build.of("check.cu", {"REAL": "float"})],
        "float64": [Build.of("check.cu", {"REAL": "double"})],
        "": [Build.of("check.cu", {})],
    }
    with pytest.raises(ValueError, match="no REAL for dtype 'float16': only for float32 and"):
        real_macro("float16")


def test_a_session_that_cannot_be_opened_releases_its_memory(stencil_spec, device):
    workload, free = Checked(Path(), stencil_spec), device.free_bytes
    with pytest.raises(KeyboardInterrupt):
        workload.open(device, {"fails": True}, (), 1)
    assert device.free_bytes == free
    session = workload.open(device, {}, (), 1)
    assert device.free_bytes == free - 32
    found = np.empty(4)
    device.download(session.buffer, found)
    assert found.tolist() == [0, 1, 2, 3]
    session.close()
    session.close()
    assert device.free_bytes == free


@pytest.mark.parametrize("page_locked", [False, True])
def test_host_arrays_have_the_shape_and_type_asked_for(stencil_spec, device, page_locked):
    session = Checked(Path(), stencil_spec).open(device, {}, (), 1)
    found = session.host_array((3, 5), np.float32, page_locked)
    assert (found.shape, found.dtype) == ((3, 5), np.float32)
    assert found.flags.writeable
    assert found.flags.c_contiguous


def test_scratch_memory_is_released_at_the_end_of_its_block(device):
    free = device.free_bytes

    def fail_with_memory():
        with Allocations(device) as scratch:
            scratch.take(100)
            assert device.free_bytes == free - 100
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_with_memory()
    assert device.free_bytes == free


def test_host_code_in_another_place_is_told_where_it_belongs(saxpy_spec, tmp_path):
    with pytest.raises(UserError, match="is missing"):
        load_workload(tmp_path, saxpy_spec)
    (tmp_path / "workload.py").write_text("")
    with pytest.raises(UserError, match=r"must be moved to host/workload\.py"):
        load_workload(tmp_path, saxpy_spec)
