"""One visit of a job to its contests: from their order to a journal, and tables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.provenance import versions
from launchwise.base.storage import digest
from launchwise.experiment.method import (
    Confirmation,
    Contest,
    Entrant,
    peer_of,
    read_contests,
)
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.job import Ready
from launchwise.measuring.journal import Journal
from launchwise.measuring.pairs.confirming import confirm
from launchwise.measuring.pairs.table import pairs_table, peers_table
from launchwise.measuring.progress import Progress
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import source_state
from launchwise.measuring.sweep import seconds_of
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema, pairs_schema, peers_schema
from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload


@dataclass(frozen=True)
class Confirmed:
    """Contests that were run, and what their journal holds after the visit."""

    shard: Shard
    contests: Sequence[Contest]
    how: Confirmation
    fingerprint: str
    notes: list[dict[str, Any]]


def visit_contests(
    shard: Shard,
    contests: list[Contest],
    how: Confirmation,
    profile: GpuProfile,
    ready: Ready,
    journal_path: Path,
    once: bool = False,
) -> Confirmed:
    """Run what the journal of some contests lacks.

    Parameters
    ----------
    once
        Whether the journal is of one driver, toolkit and card.

    Raises
    ------
    UserError, Interrupted
        See :func:`launchwise.measuring.pairs.confirming.confirm`.
    """
    # Which configurations take part is a matter of the contests.
    ways = how.model_dump(include={"precision", "seconds", "clock_tolerance"})
    machine = [ready.card.driver, ready.kernels.toolkit, ready.card.mark] if once else []
    fingerprint = digest([shard.fingerprint(profile, ready.kernels.fingerprint), ways, *machine])
    patient = "SLURM_JOB_ID" in os.environ
    with contextlib.ExitStack() as stack:
        telemetry = stack.enter_context(Telemetry(nvml_source(ready.card.uuid)))
        journal = stack.enter_context(
            Journal(journal_path, fingerprint, shard.spec.key_columns, patient)
        )
        progress = stack.enter_context(
            Progress(len(contests), f"{profile.name}, pairs", unit="problems")
        )
        confirm(shard, contests, how, journal, telemetry, progress)
        return Confirmed(shard, contests, how, fingerprint, list(journal.notes))


def write_pairs(found: Confirmed, sweep: Path, output: Path, peers: Path | None = None) -> None:
    """Write the table of the contests, and that of the libraries that took part.

    Parameters
    ----------
    sweep
        The sweep whose times chose the entrants.
    """
    shard, spec = found.shard, found.shard.spec
    state = source_state(shard.folder, spec).as_facts()
    facts = {
        "fingerprint": found.fingerprint,
        "how": found.how.model_dump(mode="json"),
        "versions": versions(),
        "seconds": seconds_of(found.notes),
        "states": {shard.labels["commit"]: state},
    }
    notes = found.notes
    table = pairs_table(shard, found.contests, found.how, notes, times_of(sweep, spec))
    write_table(output, table, pairs_schema(spec), facts)
    if peers:
        libraries = peers_table(shard, found.contests, found.how, notes)
        write_table(peers, libraries, peers_schema(spec), facts)


def contests_in_order(path: Path, spec: Spec, gpu: str) -> list[Contest]:
    """Contests of a file, their names in the order of the spec.

    Raises
    ------
    UserError
        When they are of another workload or GPU, or name what the workload does not have.
    """
    found = read_contests(path)
    if (found.workload, found.gpu) != (spec.workload, gpu):
        message = f"are of {found.workload} on {found.gpu}, not of {spec.workload} on {gpu}"
        raise UserError(path, "contests", message)
    ordered = []
    for contest in found.contests:
        try:
            problem = {name: contest.problem[name] for name in spec.problem_columns}
            entrants = [_in_order(each, spec) for each in contest.entrants]
        except KeyError as error:
            raise UserError(path, "contests", f"{error} is missing") from error
        ordered.append(Contest(problem=problem, entrants=entrants))
    return ordered


def _in_order(entrant: Entrant, spec: Spec) -> Entrant:
    given = entrant.configuration
    if peer_of(given) is not None:
        return entrant
    configuration = {name: given[name] for name in spec.tunable_columns}
    return entrant.model_copy(update={"configuration": configuration})


def builds_of(workload: Workload, contests: list[Contest]) -> list[Build]:
    """Every build that the contests need, once, in the order of need."""
    needed: dict[Build, None] = {}
    for contest in contests:
        needed |= dict.fromkeys(workload.check_builds(contest.problem))
        for entrant in contest.entrants:
            if peer_of(entrant.configuration) is not None:
                continue
            needed[workload.build(contest.problem, entrant.configuration)] = None
    return list(needed)


def times_of(sweep: Path, spec: Spec) -> dict[tuple[Any, ...], float]:
    """Values of problem and configuration to their time in a sweep, ms."""
    columns = [*spec.problem_columns, *spec.tunable_columns]
    rows = read_table(sweep, measurement_schema(spec), [*columns, "time_ms"]).dropna()
    keys = rows[columns].itertuples(index=False, name=None)
    return dict(zip(keys, rows["time_ms"].tolist(), strict=True))
