"""Split, filter, fit every model of a study, and ask it about the test problems."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    settings: dict[str, Any],
    files: dict[str, Any],
    sweeps: list[Path],
    profiles: list[Path],
    threads: int,
) -> None:
    """See :func:`launchwise.exporting.study_results.learn_study`."""
    from launchwise.exporting.study_results import StudyFiles, StudySettings, domain_of, learn_study

    asked = StudySettings.model_validate(settings)
    domain = domain_of(asked, asked.gpus, profiles)
    learn_study(asked, domain, sweeps, profiles, StudyFiles.model_validate(files), threads)


if __name__ == "__main__":
    run(main)
