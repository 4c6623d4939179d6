"""Evaluate what was learnt of a study; write its product, its answers, and predictions."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    settings: dict[str, Any],
    files: dict[str, Any],
    sweeps: list[Path],
    judged: list[Path],
    answered: list[Path],
    cards: Path,
    threads: int,
) -> None:
    """See :func:`launchwise.exporting.study_results.evaluate_study`."""
    from launchwise.exporting.study_results import (
        StudyFiles,
        StudySettings,
        domain_of,
        evaluate_study,
    )

    asked = StudySettings.model_validate(settings)
    domain = domain_of(asked, asked.answered, answered)
    known = StudyFiles.model_validate(files)
    evaluate_study(asked, domain, sweeps, judged, cards, known, threads)


if __name__ == "__main__":
    run(main)
