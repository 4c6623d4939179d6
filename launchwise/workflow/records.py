"""Says that results came without Snakemake's records of how they were made.

Snakemake notes in ``.snakemake/metadata`` with which parameters, and from which inputs, a file was
made. Of a file without such a record it compares times alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from launchwise.base.storage import RESULTS

RECORDS = Path(".snakemake", "metadata")
UNRECORDED = {"journal", "launchwise.json", "logs"}
"""What a run writes in the folder of results that is no result of a rule."""
TUNED = "tune"
"""What ``launchwise tune`` writes there: its results never have records."""


def tell_missing_records(workflow: Any) -> None:
    """Print one line if there are results and no record at all; jobs of a run print nothing.

    Parameters
    ----------
    workflow
        Snakemake's workflow.
    """
    if not workflow.is_main_process:
        return
    results = _names(Path(RESULTS))
    if results - UNRECORDED and TUNED not in results and not _names(RECORDS):
        print(
            f"launchwise: {RESULTS}/ came without {RECORDS}/, where Snakemake notes how files were "
            "made: results are taken as they are unless an input is newer. To make them anew: "
            "snakemake --forceall; to note them as made today: snakemake --forceall --touch",
            file=sys.stderr,
        )


def _names(folder: Path) -> set[str]:
    """Names of what is in a folder; none if it is missing."""
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
