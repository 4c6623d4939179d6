"""Settings with one study, overlays on them, and the line that bad ones give."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.utils import update_config

from launchwise.base.errors import UserError
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment

STUDY = "studies.stencil_block"

PARTS: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("overlays.yaml").read_text(encoding="utf-8")
)
BASE, ASKED, SWEPT = PARTS["settings"], PARTS["study"], PARTS["sweep"]


def experiment(*overlays: str | dict[str, Any], said: dict[str, Any] | None = None) -> Experiment:
    """Settings as Snakemake merges them from config.yaml, overlays and ``--config``."""
    files = [Path("config.yaml")]
    config = copy.deepcopy(yaml.safe_load(files[0].read_text()))
    for number, overlay in enumerate(overlays):
        path = Path(f"overlay{number}.yaml")
        path.write_text(overlay if isinstance(overlay, str) else yaml.safe_dump(overlay))
        update_config(config, yaml.safe_load(path.read_text()))
        files.append(path)
    update_config(config, said or {})
    return load_experiment(config, files, Path.cwd())


def line_of(*overlays: str | dict[str, Any], said: dict[str, Any] | None = None) -> str:
    """The one line that bad settings give."""
    with pytest.raises(UserError) as caught:
        experiment(*overlays, said=said)
    line = str(caught.value)
    assert "\n" not in line
    return line


def nested(key: str, value: Any) -> dict[str, Any]:
    """A mapping that sets one key; ``/`` goes down, so that names may have dots."""
    for part in reversed(key.split("/")):
        value = {part: value}
    return dict(value)


BLOCK = {"n": [64], "dtype": ["float32"], "order": [2]}
S = "studies/stencil_block"
