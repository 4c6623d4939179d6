"""Reads the settings and what they name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.blame import Sources
from launchwise.experiment.cross_checks import checked
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.settings import Settings


def load_experiment(config: Mapping[str, Any], files: list[Path], root: Path) -> Experiment:
    """Check merged settings and every file they came from.

    ``config``: the merged mapping (Snakemake's ``config``).
    ``files``: where it came from, the strongest last.
    ``root``: folder of the Snakefile.
    Raises UserError: one line: file, key, what is wrong, what is allowed.
    """
    return checked(Experiment(*_read_settings(config, files), root))


def load_study(config: Mapping[str, Any], files: list[Path], root: Path, study: str) -> Experiment:
    """As :func:`load_experiment`, with ``study`` at least, and only what that study needs where
    it can: where no folder has its name, it may be derived, or unknown."""
    settings, sources = _read_settings(config, files)
    if settings.studies.get(study, {}) is not None:
        found = Experiment(settings, sources, root, only=study)
        if found.studies:
            return checked(found, only=study)
    return checked(Experiment(settings, sources, root))


def _read_settings(config: Mapping[str, Any], files: list[Path]) -> tuple[Settings, Sources]:
    for path in files:
        read_yaml(path)  # Snakemake merges silently; a key given twice must not pass.
    where = files[0] if files else Path("config.yaml")
    sources = Sources(files, config)
    try:
        return validated(Settings, dict(config), where), sources
    except UserError as error:
        raise sources.error(error.key, error.message) from error
