"""Kernels that become ready while a sweep already measures."""

import contextlib
import dataclasses
import shutil
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest
from host_device import HostParts, compiled
from supervising import rows_of, sweep

from launchwise.base.errors import UserError
from launchwise.measuring import job, serving
from launchwise.measuring.bundle import Bundle
from launchwise.measuring.job import Alongside, Part
from launchwise.measuring.sweep import builds_of
from launchwise.workloads.builds import CHECK_SOURCE, Build
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order
from tests.measuring.conftest import quick

pytestmark = pytest.mark.usefixtures("forked_starts")

PROBLEMS = [{"n": 20, "dtype": dtype, "order": 2} for dtype in ("float32", "float64")]


class Late(HostParts):
    """Parts that a test lets out: the builds of the last problem first."""

    def __init__(self, folder, journal):
        workload = load_workload(folder, load_spec(folder))
        self._keys = [
            frozenset(build.key for build in builds_in_order(workload, [problem]))
            for problem in PROBLEMS
        ]
        self._journal = journal
        self.seen = []

    def listen(self, hear):
        """One problem's kernels, then, when it is measured, the other's."""
        hear(compiled(Part(Path("one"), self._keys[1])))
        threading.Thread(target=self._later, args=[hear]).start()

    def _later(self, hear):
        for _ in range(2000):
            found = [row["dtype"] for row in rows_of(self._journal)]
            if found.count("float64") >= 5:
                break
            time.sleep(0.01)
        self.seen.append({*found})
        hear(compiled(Part(Path("two"), self._keys[0])))


def test_a_problem_is_measured_as_soon_as_its_kernels_are_ready(make_shard, stencil_copy, tmp_path):
    late = Late(stencil_copy, tmp_path / "j")
    shard = dataclasses.replace(make_shard(PROBLEMS), parts=late)
    sweep(shard, tmp_path / "j")
    rows = rows_of(tmp_path / "j")
    assert late.seen == [{"float64"}]
    assert {row["dtype"] for row in rows} == {"float32", "float64"}
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.parametrize("sms", [1, 3])
def test_a_card_or_slice_of_other_sms_than_its_profile_is_not_measured(make_shard, tmp_path, sms):
    shard = make_shard(PROBLEMS)
    shard = dataclasses.replace(shard, job={**shard.job, "expected_sms": sms})
    with pytest.raises(UserError, match=f"the device has 2 SMs, its profile says {sms}"):
        sweep(shard, tmp_path / "j")
    assert rows_of(tmp_path / "j") == []


def test_kernels_that_cannot_be_compiled_end_the_sweep_with_what_nvcc_said(make_shard, tmp_path):
    class Refused(HostParts):
        def listen(self, hear):
            future = Future()
            future.set_exception(UserError("kernels", "sm_90", "nvcc failed: expected a ';'"))
            hear(future)

    shard = dataclasses.replace(make_shard(PROBLEMS), parts=Refused())
    with pytest.raises(UserError, match="nvcc failed: expected a ';'"):
        sweep(shard, tmp_path / "j")


class Held(contextlib.nullcontext):
    """A compiler that makes nothing until it is let go."""

    toolkit, fingerprint, compilers = "", "", {}

    def __init__(self, *_):
        super().__init__()
        self.made, self.go = [], threading.Event()

    def compile(self, group):
        self.go.wait(60)
        self.made += group

    def write(self, path, compiled):
        """Nothing."""


def test_what_was_likely_alone_is_dropped_and_made_where_it_is_wanted_later(monkeypatch):
    monkeypatch.setattr(job, "Compiler", Held)
    first, dropped, kept = (Build.of("kernels.cu", {"N": str(n)}) for n in range(3))
    with Alongside(Path(), None, [first], "sm_90", 1) as parts:
        made = parts.compiler.made
        parts.want([], [dropped, kept])
        parts.want([kept])
        parts.compiler.go.set()
        parts.wait()
        assert made == [first, kept]
        parts.want([dropped, first])
        parts.wait()
    assert made == [first, kept, dropped]


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
def test_what_is_compiled_alongside_is_what_a_bundle_holds(stencil_copy, tmp_path):
    spec = load_spec(stencil_copy)
    workload = load_workload(stencil_copy, spec)
    builds = builds_in_order(workload, PROBLEMS[:1])
    with Alongside(stencil_copy, spec, builds, "sm_90", 2) as parts:
        parts.wait()
        heard, again = [], []
        parts.listen(heard.append)
        parts.listen(again.append)
        found = [future.result() for future in heard]
        bundles = [Bundle(part.path) for part in found]
    assert again == heard
    assert parts.seconds > 0
    assert frozenset[str]().union(*(part.keys or set() for part in found)) == {
        build.key for build in builds
    }
    for build in builds:
        (holder,) = [bundle for bundle in bundles if build.key in bundle.index["builds"]]
        kernels = holder.index["builds"][build.key]
        assert kernels
        assert all(kernel["registers"] > 0 for kernel in kernels.values())
    # Its folder is gone: nothing is left behind.
    assert not found[0].path.exists()


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
@pytest.mark.parametrize("kind", ["random", "transfer"])
def test_a_search_compiles_what_it_proposes(
    kind, make_shard, stencil_copy, tmp_path, kept_cubins, monkeypatch
):
    monkeypatch.setattr(serving, "AHEAD", 0)
    method = quick(kind=kind, budget=3)
    shard = make_shard(PROBLEMS[:1], method=method, waits_for_bundles=True)
    workload = load_workload(stencil_copy, shard.spec)
    first = builds_of(stencil_copy, shard.spec, PROBLEMS[:1], [], method)
    with Alongside(stencil_copy, shard.spec, first, "sm_90", 1) as parts:
        sweep(dataclasses.replace(shard, parts=parts), tmp_path / "j")
        parts.listen((heard := []).append)
        made = frozenset[str]().union(*(each.result().keys for each in heard))
    rows = rows_of(tmp_path / "j")
    assert [row["status"] for row in rows] == ["ok"] * 3
    proposed = {workload.build(PROBLEMS[0], row).key for row in rows}
    assert made == proposed | {build.key for build in first}
    assert len(made) < len(builds_in_order(workload, PROBLEMS[:1]))
    # What is chosen does not depend on what is there already.
    sweep(make_shard(PROBLEMS[:1], method=method), tmp_path / "k")
    names = shard.spec.tunable_columns
    assert [[row[name] for name in names] for row in rows] == [
        [row[name] for name in names] for row in rows_of(tmp_path / "k")
    ]


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on the PATH")
def test_a_search_ends_when_nvcc_refuses_the_source(make_shard, stencil_copy, tmp_path):
    for source in stencil_copy.glob("*.cu"):
        if source.name != CHECK_SOURCE:
            source.write_text(source.read_text() + "\nint broken = ;\n")
    method = quick(kind="random", budget=50)
    shard = make_shard(PROBLEMS[:1], method=method, waits_for_bundles=True)
    first = builds_of(stencil_copy, shard.spec, PROBLEMS[:1], [], method)
    with (
        Alongside(stencil_copy, shard.spec, first, "sm_90", 2) as parts,
        pytest.raises(UserError, match=r"nvcc failed: .*expected an expression"),
    ):
        sweep(dataclasses.replace(shard, parts=parts), tmp_path / "j")
    assert len(rows_of(tmp_path / "j")) < 10
