"""Compare configurations in pairs on one card; resumes at the end of its journal."""

import contextlib
import os
from pathlib import Path

from launchwise.base.provenance import versions
from launchwise.base.scripting import run
from launchwise.base.storage import digest
from launchwise.experiment.confirmation import (
    Confirmation,
)
from launchwise.experiment.method import Method
from launchwise.gpus.profile import read_profile
from launchwise.measuring.job import job_kernels, measuring_process, profiled_card
from launchwise.measuring.journal import Journal
from launchwise.measuring.labels import labels_of
from launchwise.measuring.pairs.confirming import confirm
from launchwise.measuring.pairs.contests import builds_of, contests_in_order, times_of
from launchwise.measuring.pairs.table import pairs_table, peers_table
from launchwise.measuring.progress import Progress
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import source_state
from launchwise.measuring.sweep import seconds_of
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.tables.files import write_table
from launchwise.tables.pairs import pairs_schema
from launchwise.tables.peers import peers_schema
from launchwise.workloads.loading import load_workload
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import load_spec


def main(
    folder: Path,
    gpu: str,
    profile: Path,
    slice_sms: int | None,
    contests: Path,
    sweep: Path,
    how: Confirmation,
    method: Method,
    seed: int,
    threads: int,
    journal: Path,
    output: Path,
    bundle: Path | None = None,
    peers: Path | None = None,
    once: bool = False,
) -> None:
    """Run the contests on a free card of the profile's kind and write their tables.

    Parameters
    ----------
    bundle
        Bundle of the compile stage; None to compile what the contests need here, on ``threads``
        cores, while measuring.
    sweep
        The sweep whose times chose the entrants.
    peers
        Table of the libraries that took part; none when left out.
    once
        Whether the journal is of one driver, toolkit and card, and ends with the table: the same
        contests are measured anew by the next run.
    """
    spec, known = load_spec(folder), read_profile(profile, gpu)
    wanted = contests_in_order(contests, spec, gpu)
    with contextlib.ExitStack() as stack:
        kernels = stack.enter_context(
            job_kernels(
                bundle,
                folder,
                spec,
                lambda: builds_of(load_workload(folder, spec), wanted),
                known.arch,
                threads,
            )
        )
        card = stack.enter_context(profiled_card(known))
        shard = Shard(
            spec=spec,
            folder=folder,
            problems=[dict(each.problem) for each in wanted],
            method=method,
            seed=seed,
            gpu_facts=gpu_facts(known.model_dump()),
            labels=labels_of(spec, known, card, kernels.toolkit),
            parts=kernels.parts,
            **measuring_process(card, known, slice_sms),
        )
        telemetry = stack.enter_context(Telemetry(nvml_source(card.uuid)))
        # Which configurations take part is a matter of the contests.
        ways = how.model_dump(include={"precision", "seconds", "clock_tolerance"})
        machine = [card.driver, kernels.toolkit, card.mark] if once else []
        fingerprint = digest([shard.fingerprint(known, kernels.fingerprint), ways, *machine])
        kept = stack.enter_context(
            Journal(journal, fingerprint, spec.key_columns, "SLURM_JOB_ID" in os.environ)
        )
        progress = stack.enter_context(Progress(len(wanted), f"{gpu}, pairs", unit="problems"))
        confirm(shard, wanted, how, kept, telemetry, progress)
        notes = list(kept.notes)
        table = pairs_table(shard, wanted, how, notes, times_of(sweep, spec))
        libraries = peers_table(shard, wanted, how, notes)
    facts = {
        "fingerprint": fingerprint,
        "how": how.model_dump(mode="json"),
        "versions": versions(),
        "seconds": seconds_of(notes),
        "states": {shard.labels["commit"]: source_state(folder, spec).as_facts()},
    }
    write_table(output, table, pairs_schema(spec), facts)
    if peers:
        write_table(peers, libraries, peers_schema(spec), facts)
    if once:
        journal.unlink()


if __name__ == "__main__":
    run(main)
