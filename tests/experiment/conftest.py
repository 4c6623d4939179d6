"""A folder with settings to work in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from overlays import ASKED, BASE, SWEPT
from samples import SAXPY, STENCIL


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with config.yaml and two workloads, to work in: one study, two recorded GPUs."""
    kernels = tmp_path / "kernels"
    shutil.copytree(STENCIL, kernels / "stencil")
    shutil.copytree(SAXPY, kernels / "saxpy", ignore=shutil.ignore_patterns("studies"))
    asked = kernels / "stencil" / "studies" / "stencil_block" / "study.yaml"
    asked.write_text(yaml.safe_dump(ASKED, sort_keys=False))
    (kernels / "stencil" / "sweep.yaml").write_text(yaml.safe_dump(SWEPT))
    for gpu in BASE["gpus"]:
        (tmp_path / "data" / "recorded" / gpu).mkdir(parents=True)
        (tmp_path / "data" / "recorded" / gpu / "stencil.parquet").touch()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(BASE, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path
