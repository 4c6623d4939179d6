"""Write imported sweeps as a workload without a kernel."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.provenance import now
from launchwise.base.storage import digest_files, write_json
from launchwise.experiment.experiment import DOUBTS, RECORDED
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import write_profile
from launchwise.importing.conditions import checked_conditions
from launchwise.importing.members import Batch, Member, Options, batch_of
from launchwise.importing.plausibility import Timed, doubts
from launchwise.importing.project import (
    project_gpus,
    recorded_folder,
    write_settings,
    write_study,
)
from launchwise.importing.specs import spec_content, write_spec
from launchwise.importing.tables import FORMAT_KEY, table_of
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import Spec, load_spec


@dataclass(frozen=True)
class Imported:
    """Result of an import."""

    # Folder of the workload.
    folder: Path
    # GPU to its number of rows by status.
    rows: dict[str, dict[str, int]]
    # GPU to why its rows are kept out of studies.
    doubts: dict[str, list[str]]
    # What was converted, repaired, left out or chosen, one sentence each.
    notes: list[str]
    # Overlay for ``config.yaml`` with the GPUs; None where no GPU has a profile.
    settings: Path | None
    # Whether there is a study to run.
    studied: bool
    # GPU to the fastest configuration of each problem, one line each.
    fastest: dict[str, list[str]]


def write_workload(
    files: Sequence[str | Path],
    name: str,
    folder: str | Path,
    options: Options | None = None,
    recorded: str | Path = RECORDED,
) -> Imported:
    """Write a workload of the sweeps in ``files``: spec, study, rows and profiles of the GPUs.

    Parameters
    ----------
    name
        Name of the workload.
    folder
        Folder of workloads; the workload's is ``<folder>/<name>``.
    recorded
        Folder of recorded GPUs; rows go to ``<recorded>/<gpu>/<name>.parquet``, or where
        ``config.yaml`` has those of the GPU.

    Raises
    ------
    UserError
        When a file cannot be read, lacks what nothing else states, or does not fit the others.
    """
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
        flagged = _doubts(batch, spec)
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
    return Imported(target, rows, flagged, notes, settings, studied, _fastest(batch.members))


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
        timed = [(row.time_ms, row) for row in member.sweep.timed if row.time_ms is not None]
        if timed:
            time, row = min(timed, key=lambda each: each[0])
            problem = assigned(member.problem)
            choice = assigned(row.configuration)
            found.setdefault(member.gpu, []).append(f"{problem}: {choice} ({time:.4g} ms)")
    return found


def _doubts(batch: Batch, spec: Spec) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    timed = [_timed(member, spec, batch.asked) for member in batch.members]
    for place, words in doubts(timed).items():
        found.setdefault(batch.members[place].gpu, []).extend(words)
    return found


def _timed(member: Member, spec: Spec, asked: Options) -> Timed:
    sizes = list(member.problem.values())
    least = None if asked.bytes is None else float(spec.value(spec.work.bytes, member.problem))
    return Timed(
        name=member.gpu,
        datasheet=member.datasheet,
        problem=tuple(member.problem.items()),
        times_ms={
            tuple(row.configuration.values()): row.time_ms
            for row in member.sweep.timed
            if row.time_ms is not None
        },
        least_bytes=least,
        items=float(math.prod(sizes)) if all(isinstance(size, int) for size in sizes) else None,
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
