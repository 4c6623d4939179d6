"""One visit of a job to its contests: from a shard that is ready to a journal, and tables."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.provenance import versions
from launchwise.base.storage import digest
from launchwise.experiment.confirmation import Confirmation, Contest
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.job import Ready
from launchwise.measuring.journal import Journal
from launchwise.measuring.pairs.confirming import confirm
from launchwise.measuring.pairs.contests import times_of
from launchwise.measuring.pairs.table import pairs_table, peers_table
from launchwise.measuring.progress import Progress
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import source_state
from launchwise.measuring.sweep import seconds_of
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.tables.files import write_table
from launchwise.tables.pairs import pairs_schema
from launchwise.tables.peers import peers_schema


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
