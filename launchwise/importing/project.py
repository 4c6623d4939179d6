"""What an import writes for the project: a study, and settings that fit those of the project.

Snakemake lays an overlay over ``config.yaml`` key by key: what the project says of a GPU stays
where the overlay says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.storage import write_text
from launchwise.base.typed import read_yaml
from launchwise.experiment.derived import derived_study
from launchwise.experiment.discovery import STUDIES, STUDY_FILE
from launchwise.experiment.experiment import RECORDED
from launchwise.experiment.loading import NEEDED
from launchwise.importing.members import Batch
from launchwise.importing.specs import as_yaml
from launchwise.workloads.spec import Spec

MODELS = ["knn", "tree", "forest", "xgboost", "lightgbm"]
"""Models beside the one that answers: those that need no cost of the kernel."""

ANSWERING = {"kind": "committee", "title": "answering ensemble", "trials": 0}
"""Model that answers, made of those among them that a committee has by default."""


SETTINGS_FILE = "settings.yaml"
PROJECT_SETTINGS = "config.yaml"
SEED = 2026

Entries = Mapping[str, Mapping[str, Any]]
"""GPU to its entry."""


def write_study(target: Path, spec: Spec, fit: Sequence[str], batch: Batch) -> bool:
    """Write a study if there are two GPUs, or three sizes, to hold one out of training.

    Parameters
    ----------
    target
        Folder of the workload.
    fit
        GPUs with a card and without a flag.

    Returns
    -------
    Whether there is a study now; what is missing otherwise is told.
    """
    problems = [member.problem for member in batch.members if member.gpu in fit]
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
        batch.notes.append(f"no study, so nothing to recommend from: {NEEDED}")
        return False
    kind, held_out = ("transfer", "held-out GPUs") if len(fit) > 1 else ("sizes", "held-out sizes")
    path = target / STUDIES / f"{spec.workload}_{kind}" / STUDY_FILE
    if path.is_file():
        batch.notes.append(f"{path} is there and is left as it is")
        return True
    content = {
        "title": f"{batch.asked.title or spec.title}: {held_out}",
        "question": "Which configuration should a GPU, or a size, use that was not measured?",
        "models": ["chosen", *MODELS],
        "own_models": {"chosen": ANSWERING},
        "splits": splits,
    }
    write_text(path, as_yaml(content))
    return True


def project_gpus(gpus: Iterable[str]) -> Entries:
    """Entries of those GPUs in the project's settings; none where there is no such file.

    Raises
    ------
    UserError
        When the project measures one of them itself: its rows would be replaced by imported ones.
    """
    if not Path(PROJECT_SETTINGS).is_file():
        return {}
    content = read_yaml(PROJECT_SETTINGS)
    entries = content.get("gpus") if isinstance(content, Mapping) else None
    named = entries if isinstance(entries, Mapping) else {}
    found = {gpu: named[gpu] for gpu in gpus if isinstance(named.get(gpu), Mapping)}
    for gpu, entry in found.items():
        if entry.get("source") == "live":
            message = f"is measured live: give the imported one a name, such as --gpu FILE={gpu}.2"
            raise UserError(PROJECT_SETTINGS, f"gpus.{gpu}", message)
    return found


def recorded_folder(gpu: str, recorded: Path, known: Entries, notes: list[str]) -> Path:
    """Folder for the rows of a GPU: that of the project's settings, so that its rows stay together.

    Parameters
    ----------
    recorded
        Folder of recorded GPUs that the user names; the usual one is replaced by the settings'.
    known
        See :func:`project_gpus`.
    notes
        Gets a sentence where the settings name another folder.
    """
    own = known.get(gpu, {}).get("path")
    folder = recorded / gpu
    if not isinstance(own, str) or Path(own) == folder:
        return folder
    if recorded == Path(RECORDED):
        notes.append(f"{gpu}: rows are in {own}, which {PROJECT_SETTINGS} names for it")
        return Path(own)
    notes.append(
        f"{gpu}: {PROJECT_SETTINGS} names {own}; with the settings of this import its rows are "
        f"those of {folder} alone"
    )
    return folder


def write_settings(
    target: Path, folders: Mapping[str, Path], folder: Path, known: Entries, notes: list[str]
) -> Path | None:
    """Write settings with the GPUs and the folder of the workload.

    An overlay where there is a ``config.yaml``; settings that stand alone elsewhere.

    Parameters
    ----------
    target
        Folder of the workload, with its study.
    folders
        GPU with a profile to the folder of its rows.
    folder
        Folder of workloads.
    known
        See :func:`project_gpus`.
    notes
        Gets a sentence for each GPU that no study may have.
    """
    if not folders:
        return None
    studies = sorted(path.parent.name for path in (target / STUDIES).glob(f"*/{STUDY_FILE}"))
    entries = {gpu: _entry(gpu, path, known, studies, notes) for gpu, path in folders.items()}
    content: dict[str, Any] = {"workloads": [str(folder)], "gpus": entries}
    if Path(PROJECT_SETTINGS).is_file():
        content["workloads"] = list(dict.fromkeys(["kernels", str(folder)]))
    else:
        content = {"seed": SEED, **content}
    path = target / SETTINGS_FILE
    write_text(path, as_yaml(content))
    return path


def _entry(
    gpu: str, path: Path, known: Entries, studies: Sequence[str], notes: list[str]
) -> dict[str, Any]:
    """What the overlay says of a GPU, so that the new studies have its rows."""
    entry: dict[str, Any] = {"source": "recorded"}
    theirs = known.get(gpu, {})
    if path != Path(RECORDED, gpu) or theirs.get("path") is not None:
        entry["path"] = str(path)
    # Keys of a GPU that was known by its datasheet.
    entry |= {key: None for key in ("card", "host_gbs") if theirs.get(key) is not None}
    if isinstance(theirs.get("studies"), list):
        entry["studies"] = list(dict.fromkeys([*theirs["studies"], *studies]))
    if theirs.get("held_out"):
        notes.append(f"{gpu}: {PROJECT_SETTINGS} holds it out: no study has its rows")
    return entry
