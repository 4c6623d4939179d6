"""Every study of the settings, as the report's scripts are given them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.base.errors import UserError
from launchwise.experiment.study import ModelEntry, Study
from launchwise.report.missing import MissingStudy
from launchwise.report.study import StudyData, StudyFiles, read_study

log = logging.getLogger("launchwise")


def read_studies(
    files: Mapping[str, Any],
    settings: Mapping[str, Any],
    kept_out: Mapping[str, Mapping[str, Sequence[str]]],
) -> tuple[list[StudyData], list[MissingStudy]]:
    """Studies that can be read, and those that cannot.

    Parameters
    ----------
    files
        Study to its files (:meth:`launchwise.report.study.StudyFiles.of`).
    settings
        ``studies`` and ``models``, each by study, as plain values.
    kept_out
        Study to GPU to why its rows are not among the study's.
    """
    found, missing = [], []
    for name, given in files.items():
        asked = Study.model_validate(settings["studies"][name])
        models = settings["models"][name]
        entries = {model: ModelEntry.model_validate(entry) for model, entry in models.items()}
        try:
            found.append(read_study(name, asked, entries, StudyFiles.of(given), kept_out[name]))
        except UserError as error:
            log.warning("%s is not in the report: %s", name, error)
            missing.append(MissingStudy(name, asked.title, asked.question, str(error)))
    return found, missing
