"""A folder with settings to work in, and a small project that a run begins in."""

import shutil
from pathlib import Path

import pytest
import yaml
from overlays import ASKED, BASE, SWEPT
from samples import SAXPY, STENCIL
from snakemake.utils import update_config

from launchwise.workflow import checks


@pytest.fixture
def home(tmp_path, monkeypatch):
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


@pytest.fixture
def line_at_start(project, monkeypatch, capsys):
    """What a run of ``project`` says of an overlay (``o.yaml``) and stops; '' if it goes on."""
    monkeypatch.chdir(project.folder)
    monkeypatch.setattr("launchwise.workflow.plan.SHIPPED", project.folder)
    monkeypatch.setattr("launchwise.base.places.SHIPPED", project.folder)

    def line(overlay):
        Path("o.yaml").write_text(yaml.safe_dump(overlay))
        config = project.config()
        update_config(config, overlay)
        try:
            checks.start(config, "config.yaml", ["o.yaml"])
        except SystemExit:
            (said,) = capsys.readouterr().err.splitlines()
            return str(said.removeprefix("launchwise: "))
        return ""

    return line
