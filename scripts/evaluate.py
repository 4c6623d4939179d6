"""Evaluate what was learnt of a study; write its product, its answers, and predictions."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    settings: dict[str, Any],
    sweeps: list[Path],
    judged: list[Path],
    answered: list[Path],
    cards: Path,
    splits: Path,
    training: Path,
    removed: Path,
    learnt: list[Path],
    fitted: Path,
    rows: Path,
    curves: Path,
    summary: Path,
    final: Path,
    lookup: Path,
    published: Path,
    threads: int,
) -> None:
    """See :func:`launchwise.exporting.study_results.evaluate_study`."""
    from launchwise.exporting.study_results import (
        LearntFiles,
        ResultFiles,
        StudySettings,
        domain_of,
        evaluate_study,
    )

    known = LearntFiles(
        splits=splits, training=training, removed=removed, learnt=learnt, fitted=fitted
    )
    files = ResultFiles(
        rows=rows,
        curves=curves,
        summary=summary,
        final=final,
        lookup=lookup,
        published=published,
    )
    asked = StudySettings.model_validate(settings)
    domain = domain_of(asked, asked.answered, answered)
    evaluate_study(asked, domain, sweeps, judged, cards, known, files, threads)


if __name__ == "__main__":
    run(main)
