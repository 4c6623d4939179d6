"""One study of an experiment, for commands that ask about it alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.experiment import cross_checks
from launchwise.experiment.blame import Sources
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import read_settings
from launchwise.experiment.method import Sweep
from launchwise.experiment.settings import Settings


class _SingleStudy(Experiment):
    """Settings with one study; other studies and all sweeps are neither read nor checked."""

    def __init__(self, settings: Settings, sources: Sources, root: Path, study: str) -> None:
        self._study = study
        super().__init__(settings, sources, root)

    def _is_wanted(self, study: str) -> bool:
        return study == self._study and super()._is_wanted(study)

    def _described_whole(self) -> list[str]:
        # Which they are is not looked up: settings may name a study after any workload.
        return [*self.folders]

    def _read_sweeps(self) -> dict[str, Sweep]:
        return {}

    def _derive(self) -> None:
        pass

    def _check(self) -> None:
        cross_checks.check_gpus(self)
        cross_checks.check_studies(self)


def load_study(config: Mapping[str, Any], files: list[Path], root: Path, study: str) -> Experiment:
    """An experiment that holds ``study`` at least, and only what that study needs where it can.

    Parameters
    ----------
    config, files, root
        As of :func:`launchwise.experiment.loading.load_experiment`.
    study
        Where no folder has this name, the whole experiment is read: it may be derived, or unknown.

    Raises
    ------
    UserError
        One line: file, key, what is wrong, what is allowed.
    """
    settings, sources = read_settings(config, files)
    if settings.studies.get(study, {}) is not None:
        found = _SingleStudy(settings, sources, root, study)
        if found.studies:
            return found
    return Experiment(settings, sources, root)
