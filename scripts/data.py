"""Bring what is recorded of a workload; judge times and score blind tests."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    wanted: dict[str, Any],
    folder: Path,
    gpus: list[str],
    profiles: list[Path],
    clock_tolerance: float | None,
) -> None:
    """Check every recorded file and write what is made of it.

    ``wanted``: see :class:`launchwise.workflow.answer_checks.RecordedWorkload`.
    ``gpus``, ``profiles``: GPUs that blind tests asked about, and the profile of each.
    """
    from launchwise.workflow.answer_checks import RecordedWorkload
    from launchwise.workflow.bringing import bring

    files = RecordedWorkload.model_validate(wanted)
    bring(files, folder, dict(zip(gpus, profiles, strict=True)), clock_tolerance)
    log.info("%d sweeps, %d studies", len(files.sweeps), len(files.studies))


if __name__ == "__main__":
    run(main)
