"""The work of a run against a committed budget, without the noise of seconds.

Each job counts what it reads, fits and asks (:mod:`launchwise.base.work`). Whoever adds a study,
rows or a model finds the work for it, or changes the budget and says why in the same commit.

    python benchmarks/budget.py              hold the run in this folder against the budget
    python benchmarks/budget.py --write WHY  make what it took the budget
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.places import shipped
from launchwise.base.storage import read_json, write_json
from launchwise.base.typed import Strict, validated
from launchwise.base.work import ASKED, COUNTED, FITTED, FOLDER

BUDGET_FILE = "benchmarks/budget.json"  # Of the default project
TOLERATED = 0.03  # Share above the budget, and below it, that is no change

UNITS = {
    FITTED: "rows x trees fitted",
    ASKED: "rows x trees asked",
    "files_read": "files read",
    "rows_read": "rows read",
    "jobs": "jobs",
    "megabytes": "MB of results",
}


class Budget(Strict):
    """Work of the main job. ``why`` is the reason of the last change; ``whole`` maps a key of
    :data:`UNITS` to its amount, ``studies`` a study to its rows x trees, fitted and asked.
    ``calibrated`` are core-seconds of the whole over those of a fixed work beside it
    (``benchmarks/main_job.py``)."""

    why: str
    whole: dict[str, int]
    studies: dict[str, dict[str, int]]
    calibrated: float | None = None


def measured(results: Path = Path("results")) -> Budget:
    """Work of the run whose results lie in a folder. Raises UserError when no job has counted
    anything."""
    folder = results / FOLDER.name
    jobs = {path: read_json(path) for path in sorted(folder.rglob("*.json"))}
    if not jobs:
        raise UserError(folder, "", "holds no counted work: run snakemake first")
    whole: Counter[str] = Counter()
    studies: dict[str, dict[str, int]] = {}
    for path, counted in jobs.items():
        whole.update({name: int(counted[name]) for name in COUNTED})
        if path.parent.name in ("learn", "evaluate"):
            own = studies.setdefault(path.stem, {FITTED: 0, ASKED: 0})
            for name in own:
                own[name] += int(counted[name])
    whole["jobs"] = len(jobs)
    whole["megabytes"] = round(_bytes_in(results) / 1e6)
    return Budget(why="", whole=dict(whole), studies=studies)


def _bytes_in(folder: Path) -> int:
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            each = Path(root, name).stat()
            found[each.st_dev, each.st_ino] = each.st_size
    return sum(found.values())


def complaints(run: Budget, budget: Budget) -> list[str]:
    """What a run takes more than its budget, or so much less that the budget must follow."""
    said = []
    for name, unit in UNITS.items():
        now, most = run.whole[name], budget.whole[name]
        if abs(now - most) > TOLERATED * most:
            said.append(f"{now:,} {unit}, budget {most:,} ({_percent(now, most)})")
    for study, own in run.studies.items():
        known = budget.studies.get(study)
        for name, now in own.items():
            share = f"{100 * now / max(run.whole[name], 1):.0f} % of the whole"
            if known is None:
                said.append(f"{study} has no budget: {now:,} {UNITS[name]}, {share}")
            elif now > (1 + TOLERATED) * known[name]:
                most = known[name]
                words = f"{now:,} {UNITS[name]}, budget {most:,} ({_percent(now, most)}; {share})"
                said.append(f"{study}: {words}")
    return said


def _percent(now: int, before: int) -> str:
    return f"{100 * (now / before - 1):+.0f} %" if before else "new"


def main(arguments: Sequence[str]) -> int:
    """Hold the run in this folder against the budget, or write it; the exit status."""
    path = Path(shipped(BUDGET_FILE))
    run = measured()
    if arguments[:1] == ["--write"]:
        if not " ".join(arguments[1:]).strip():
            raise UserError("--write", "", "say why the work changes")
        known = validated(Budget, read_json(path), path).calibrated if path.is_file() else None
        given = {"why": " ".join(arguments[1:]), "calibrated": known}
        write_json(path, run.model_copy(update=given).model_dump())
        return 0
    said = complaints(run, validated(Budget, read_json(path), path))
    for line in said:
        print(f"launchwise: work: {line}", file=sys.stderr)
    if said:
        print(
            f"launchwise: find the work for it, or change {BUDGET_FILE} and say why",
            file=sys.stderr,
        )
    return 1 if said else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"launchwise: {error}")
