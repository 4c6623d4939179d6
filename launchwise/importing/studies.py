"""The study that an import writes: held-out GPUs, held-out sizes, or both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from launchwise.base.storage import write_text
from launchwise.experiment.derived import derived_study
from launchwise.experiment.discovery import STUDIES, STUDY_FILE
from launchwise.experiment.unknown_study import NEEDED
from launchwise.importing.members import Member, Options
from launchwise.importing.specs import as_yaml
from launchwise.workloads.spec import Spec

MODELS = ["knn", "tree", "forest", "xgboost", "lightgbm"]
"""Models beside the one that answers: those that need no cost of the kernel."""

ANSWERING = {"kind": "committee", "title": "answering ensemble", "trials": 0}
"""Model that answers, made of those among them that a committee has by default."""


def write_study(
    target: Path,
    spec: Spec,
    fit: Sequence[str],
    members: Sequence[Member],
    asked: Options,
    notes: list[str],
) -> bool:
    """Write a study if there are two GPUs, or three sizes, to hold one out of training.

    Parameters
    ----------
    target
        Folder of the workload.
    fit
        GPUs with a card and without a flag.
    notes
        Gets a sentence on what is missing where there is no study.

    Returns
    -------
    Whether there is a study now.
    """
    problems = [member.problem for member in members if member.gpu in fit]
    of_sizes = derived_study(spec, [dict(problem) for problem in problems])
    splits: dict[str, Any] = {}
    if len(fit) > 1:
        splits["transfer"] = {
            "kind": "leave_one_gpu_out",
            "title": "each GPU left out of training",
        }
    for name, split in of_sizes.splits.items() if of_sizes else ():
        splits[name] = split.model_dump(exclude_defaults=True) | {"kind": split.kind}
    if not splits:
        notes.append(f"no study, so nothing to recommend from: {NEEDED}")
        return False
    kind, held_out = ("transfer", "held-out GPUs") if len(fit) > 1 else ("sizes", "held-out sizes")
    path = target / STUDIES / f"{spec.workload}_{kind}" / STUDY_FILE
    if path.is_file():
        notes.append(f"{path} is there and is left as it is")
        return True
    content = {
        "title": f"{asked.title or spec.title}: {held_out}",
        "question": "Which configuration should a GPU, or a size, use that was not measured?",
        "models": ["chosen", *MODELS],
        "own_models": {"chosen": ANSWERING},
        "splits": splits,
    }
    write_text(path, as_yaml(content))
    return True
