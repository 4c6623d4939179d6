"""A folder with settings to work in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from overlays import ASKED, BASE, SWEPT
from samples import keep_study


@pytest.fixture
def home(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with config.yaml and the kernels, to work in: one study, two recorded GPUs."""
    shutil.copytree(root / "kernels", tmp_path / "kernels")
    keep_study(tmp_path / "kernels", "acoustic", "acoustic_tile", ASKED)
    (tmp_path / "kernels" / "acoustic" / "sweep.yaml").write_text(yaml.safe_dump(SWEPT))
    for gpu in BASE["gpus"]:
        (tmp_path / "data" / "recorded" / gpu).mkdir(parents=True)
        (tmp_path / "data" / "recorded" / gpu / "acoustic.parquet").touch()
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(BASE, sort_keys=False))
    monkeypatch.chdir(tmp_path)
    return tmp_path
