"""Write imported sweeps as a workload without a kernel, with a study and settings for the project.

Snakemake lays an overlay over ``config.yaml`` key by key: what the project says of a GPU stays
where the overlay says nothing.
"""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.places import now
from launchwise.base.storage import digest_files, write_json, write_text
from launchwise.base.typed import read_yaml, yaml_text
from launchwise.experiment.discovery import STUDIES, STUDY_FILE, derived_study
from launchwise.experiment.experiment import DOUBTS, RECORDED
from launchwise.experiment.loading import NEEDED
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import write_profile
from launchwise.importing.device_names import Timed, doubts
from launchwise.importing.members import FORMAT_KEY, Batch, Member, Options, batch_of, table_of
from launchwise.importing.specs import checked_conditions, spec_content, write_spec
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec, load_spec

MODELS = ["knn", "tree", "forest", "xgboost", "lightgbm"]
"""Models beside the one that answers: those that need no cost of the kernel."""

ANSWERING = {"kind": "committee", "title": "answering ensemble", "trials": 0}
"""Model that answers, made of those among them that a committee has by default."""

SETTINGS_FILE = "settings.yaml"
PROJECT_SETTINGS = "config.yaml"
SEED = 2026

Entries = Mapping[str, Mapping[str, Any]]  # GPU to its entry


def write_study(target: Path, spec: Spec, fit: Sequence[str], batch: Batch) -> bool:
    """Write a study if there are two GPUs, or three sizes, to hold one out of training. ``target``:
    folder of the workload. ``fit``: GPUs with a card and without a flag. Returns whether there is a
    study now; what is missing otherwise is told."""
    problems = [member.problem for member in batch.members if member.gpu in fit]
    of_sizes = derived_study(spec, [dict(problem) for problem in problems])
    splits: dict[str, Any] = {}
    if len(fit) > 1:
        splits["transfer"] = {"kind": "leave_one_gpu_out", "title": "each GPU left out of training"}
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
    write_text(path, yaml_text(content))
    return True


def project_gpus(gpus: Iterable[str]) -> Entries:
    """Entries of those GPUs in the project's settings; none where there is no such file. Raises
    UserError when the project measures one of them itself: its rows would be replaced by imported
    ones."""
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
    ``recorded``: folder of recorded GPUs that the user names; the usual one gives way to the
    settings'. ``known``: see :func:`project_gpus`. ``notes``: gets a sentence where the settings
    name another."""
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
    """Write settings with the GPUs and the folder of the workload: an overlay where there is a
    ``config.yaml``, settings that stand alone elsewhere. ``target``: folder of the workload, with
    its study; ``folder``: of all workloads. ``folders``: GPU with a profile to the folder of its
    rows. ``known``: see :func:`project_gpus`. ``notes``: gets a sentence per GPU that no study may
    have."""
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
    write_text(path, yaml_text(content))
    return path


def _entry(
    gpu: str, path: Path, known: Entries, studies: Sequence[str], notes: list[str]
) -> dict[str, Any]:
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


@dataclass(frozen=True)
class Imported:
    folder: Path  # folder of the workload
    rows: dict[str, dict[str, int]]  # GPU to its number of rows by status
    flagged: dict[str, list[str]]  # GPU to why its rows are kept out of studies
    notes: list[str]  # what was converted, repaired, left out or chosen, one sentence each
    # Overlay for ``config.yaml`` with the GPUs; None where no GPU has a profile.
    settings: Path | None
    studied: bool  # whether there is a study to run
    # GPU without a flag to the fastest configuration of each problem, one line each.
    fastest: dict[str, list[str]]


def write_workload(
    files: Sequence[str | Path],
    name: str,
    folder: str | Path,
    options: Options | None = None,
    recorded: str | Path = RECORDED,
) -> Imported:
    """Write a workload of the sweeps in ``files``: spec, study, rows and profiles of the GPUs. Its
    folder is ``<folder>/<name>``; rows go to ``<recorded>/<gpu>/<name>.parquet``, or where
    ``config.yaml`` has those of the GPU. Raises UserError when a file cannot be read, lacks what
    nothing else states, or does not fit the others."""
    asked, target = options or Options(), Path(folder) / name
    if any(target.glob("*.cu")):
        raise UserError(target, "", "is a workload with a kernel: choose another name")
    batch = batch_of(files, asked)
    notes = batch.notes
    known = project_gpus(member.gpu for member in batch.members)
    constraints = checked_conditions(batch)
    content = spec_content(batch, name, constraints)
    with _whole_workload(target):
        write_spec(target, content, batch)
        spec = load_spec(target)
        flagged: dict[str, list[str]] = {}
        for place, words in doubts([_timed(each, spec, asked) for each in batch.members]).items():
            flagged.setdefault(batch.members[place].gpu, []).extend(words)
        folders = {
            gpu: recorded_folder(gpu, Path(recorded), known, notes)
            for gpu in dict.fromkeys(member.gpu for member in batch.members)
        }
        rows = _write_rows(batch, spec, flagged, folders)
        profiled = _write_profiles(batch, folders)
        fit = [gpu for gpu in profiled if gpu not in flagged]
        studied = write_study(target, spec, fit, batch)
        used = {gpu: folders[gpu] for gpu in profiled}
        settings = write_settings(target, used, Path(folder), known, notes)
    sound = [member for member in batch.members if member.gpu not in flagged]
    return Imported(target, rows, flagged, notes, settings, studied, _fastest(sound))


@contextmanager
def _whole_workload(target: Path) -> Iterator[None]:
    """Remove a new workload's folder when what writes it fails; one that was there stays."""
    is_new = not target.exists()
    try:
        yield
    except BaseException:
        if is_new:
            shutil.rmtree(target, ignore_errors=True)
        raise


def _fastest(members: Sequence[Member]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for member in members:
        if times := member.sweep.times_ms:
            first = min(times, key=lambda each: times[each])
            said = f"{assigned(member.problem)}: {assigned(dict(first))} ({times[first]:.4g} ms)"
            found.setdefault(member.gpu, []).append(said)
    return found


def _timed(member: Member, spec: Spec, asked: Options) -> Timed:
    sizes = [size for size in member.problem.values() if isinstance(size, int)]
    least = None if asked.bytes is None else float(spec.value(spec.work.bytes, member.problem))
    return Timed(
        name=member.gpu,
        datasheet=member.datasheet,
        problem=tuple(member.problem.items()),
        times_ms=member.sweep.times_ms,
        least_bytes=least,
        items=math.prod(map(float, sizes)) if len(sizes) == len(member.problem) else None,
    )


def _write_rows(
    batch: Batch, spec: Spec, flagged: Mapping[str, list[str]], folders: Mapping[str, Path]
) -> dict[str, dict[str, int]]:
    """Write rows and provenance of every GPU; their counts by status."""
    found = {}
    for gpu, folder in folders.items():
        own = [member for member in batch.members if member.gpu == gpu]
        table = table_of([m.sweep for m in own], gpu, spec, [m.problem for m in own])
        facts = {
            FORMAT_KEY: {
                "device": own[0].sweep.device_name,
                "kernel": own[0].sweep.kernel_name,
                "tunables": {ours: theirs for theirs, ours in batch.names.items()},
            }
        }
        path = folder / f"{spec.workload}.parquet"
        write_table(path, table, measurement_schema(spec), facts)
        counts = dict(Counter(table["status"]))
        write_json(
            folder / f"{spec.workload}.provenance.json",
            {
                "workload": spec.workload,
                "rows": len(table),
                "rows_by_status": counts,
                "imported_at": now(),
                "source": batch.asked.source,
                "licence": batch.asked.licence,
                "files": [
                    {
                        "name": Path(member.sweep.source).name,
                        "digest": digest_files([Path(member.sweep.source)]),
                        "format": member.sweep.format,
                        "notes": member.sweep.notes,
                    }
                    for member in own
                ],
                DOUBTS: list(flagged.get(gpu, [])),
                **facts,
            },
        )
        found[gpu] = counts
    return found


def _write_profiles(batch: Batch, folders: Mapping[str, Path]) -> list[str]:
    """Write the profile of every GPU whose card is known; their names."""
    cards = read_cards()
    efficiency = reference_efficiency(cards)
    found = []
    for gpu, member in {member.gpu: member for member in batch.members}.items():
        card = member.datasheet
        if card is None:
            batch.notes.append(
                f"{gpu}: no card for the device {member.sweep.device_name!r} in {CARDS_FILE}: rows "
                "are kept, but no study can use them until its figures are there"
            )
        elif card.missing:
            lacking = ", ".join(card.missing)
            batch.notes.append(
                f"{gpu}: {CARDS_FILE} lacks {lacking} of {card.name}: no study can use it"
            )
        else:
            path = folders[gpu] / "profile.json"
            if not path.is_file():
                write_profile(path, described_profile(gpu, cards, efficiency, card.name))
            found.append(gpu)
    return found
