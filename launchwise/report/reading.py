"""Every study of the settings, as the report's scripts are given them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.parallel import in_parallel
from launchwise.experiment.study import ModelEntry, Study
from launchwise.report.missing import MissingStudy
from launchwise.report.study import StudyData, StudyFiles, read_study

log = logging.getLogger("launchwise")


def read_studies(
    files: Mapping[str, Any],
    settings: Mapping[str, Any],
    kept_out: Mapping[str, Mapping[str, Sequence[str]]],
    processes: int = 1,
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
    processes
        Largest number of studies at once.
    """

    def read(name: str) -> StudyData | MissingStudy:
        asked = Study.model_validate(settings["studies"][name])
        models = settings["models"][name]
        entries = {model: ModelEntry.model_validate(entry) for model, entry in models.items()}
        try:
            return read_study(name, asked, entries, StudyFiles.of(files[name]), kept_out[name])
        except UserError as error:
            log.warning("%s is not in the report: %s", name, error)
            return MissingStudy(name, asked.title, asked.question, str(error))

    read_ones = in_parallel(read, list(files), processes)
    return (
        [each for each in read_ones if isinstance(each, StudyData)],
        [each for each in read_ones if isinstance(each, MissingStudy)],
    )
