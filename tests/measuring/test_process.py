"""A measuring process that ended leaves nothing behind."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from launchwise.measuring import compile
from launchwise.measuring.compile import Compiler
from launchwise.measuring.process import MeasuringProcess
from launchwise.workloads.spec import Spec


def open_files() -> set[str]:
    """Descriptors of this process that are no directory."""
    return {
        each for each in os.listdir("/proc/self/fd") if not Path(f"/proc/self/fd/{each}").is_dir()
    }


def test_what_it_was_heard_by_is_closed() -> None:
    before = open_files()
    process = MeasuringProcess([sys.executable, "-c", "input()"], os.environ)
    assert open_files() > before
    process.close()
    assert process.popen.poll() is not None
    assert open_files() == before


def test_sources_that_a_compiler_wrote_are_removed_when_it_is_done(
    saxpy_spec: Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(compile, "nvcc_release", lambda: "13.0")
    with Compiler(saxpy_spec.folder, saxpy_spec, "sm_90") as compiler:
        assert list(tmp_path.iterdir())
    assert compiler.arch == "sm_90"
    assert not list(tmp_path.iterdir())
