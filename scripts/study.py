"""Learn, evaluate and answer: the whole of a study in one job, or a job for each part."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    settings: dict[str, Any],
    files: dict[str, Any],
    sweeps: list[Path],
    profiles: list[Path],
    judged: list[Path],
    answered: list[Path],
    cards: Path | None,
    front: Path,
    archive: Path,
    threads: int,
) -> None:
    """See :mod:`launchwise.exporting.study_results`; as long as there is no report, show answers.

    ``profiles``: of what is learnt from; none where it was learnt before.
    ``judged``, ``answered``, ``cards``: what is evaluated and answered by; none in a job that only
        learns.
    ``front``, ``archive``: see :func:`launchwise.report.site.reading.write_first_page`.
    """
    from launchwise.exporting.study_results import (
        StudyFiles,
        StudySettings,
        domain_of,
        evaluate_study,
        learn_study,
    )
    from launchwise.report.site.reading import write_first_page

    asked, known = StudySettings.model_validate(settings), StudyFiles.model_validate(files)
    # One for both parts: it keeps which candidates each problem has.
    gpus, paths = (asked.answered, answered) if answered else (asked.gpus, profiles)
    domain = domain_of(asked, gpus, paths)
    made = None
    if profiles:
        made = learn_study(asked, domain, sweeps, profiles, known, threads)
    if cards is not None:
        evaluate_study(asked, domain, sweeps, judged, cards, known, threads, made)
        if write_first_page(front, archive, known.lookup.parent):
            log.info("first answers: %s", front)


if __name__ == "__main__":
    run(main)
