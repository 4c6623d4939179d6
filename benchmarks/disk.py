"""Space on the disk of a finished main job, folder by folder.

    snakemake --cores all
    python benchmarks/disk.py benchmarks/results/disk.json --project .

Sizes are those of the blocks that files take;
what several names share counts once. Links are not followed, but for ``results`` itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.command_line import arguments, write_result

from launchwise.base.provenance import commit

OTHERS = (".snakemake", ".venv", "data")  # folders beside ``results`` that take space in a clone
BLOCK = 512  # bytes of what ``st_blocks`` counts


def files(folder: Path) -> Iterator[os.stat_result]:
    """Each file and folder below ``folder``."""
    for above, folders, names in os.walk(folder):
        for name in (*folders, *names):
            yield os.lstat(os.path.join(above, name))


def taken(folder: Path) -> dict[str, Any]:
    """Space and number of the files below a folder, or of one file."""
    found = list(files(folder)) if folder.is_dir() else [folder.stat()]
    distinct = {(each.st_dev, each.st_ino): each.st_blocks * BLOCK for each in found}
    size = sum(distinct.values()) / 1e6
    return {"folder": folder.name, "megabytes": round(size, 2), "files": len(distinct)}


def measure(project: Path, smallest: bool) -> dict[str, Any]:
    """Space of a project's folders, the largest first."""
    results = project / "results"
    made = [taken(each) for each in sorted(results.iterdir())] if results.is_dir() else []
    made.sort(key=lambda each: each["megabytes"], reverse=True)
    beside = (
        [] if smallest else [taken(project / name) for name in OTHERS if (project / name).is_dir()]
    )
    return {
        "results": made,
        "beside": beside,
        "megabytes": round(sum(each["megabytes"] for each in made), 2),
        "files": sum(each["files"] for each in made),
    }


def main() -> None:
    """Command line."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--project", type=Path, default=Path(), help="folder that Snakemake ran in (default: here)"
    )
    given = parser.parse_args()
    measured = measure(given.project, given.smallest)
    made_by = {"project": commit(given.project)}
    write_result(given.output, {**made_by, **measured})


if __name__ == "__main__":
    main()
