"""Compare configurations in pairs on one card; resumes at the end of its journal."""

import contextlib
import os
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.provenance import versions
from launchwise.base.scripting import run
from launchwise.base.storage import digest
from launchwise.experiment.confirmation import (
    Confirmation,
    Contest,
    Entrant,
    peer_of,
    read_contests,
)
from launchwise.experiment.method import Method
from launchwise.gpus.profile import read_profile
from launchwise.measuring.job import job_kernels, measuring_process, profiled_card
from launchwise.measuring.journal import Journal
from launchwise.measuring.labels import labels_of
from launchwise.measuring.pairs.confirming import confirm
from launchwise.measuring.pairs.table import pairs_table, peers_table
from launchwise.measuring.progress import Progress
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import source_state
from launchwise.measuring.sweep import seconds_of
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.pairs import pairs_schema
from launchwise.tables.peers import peers_schema
from launchwise.workloads.builds import Build
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.workload import Workload, load_workload


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


if __name__ == "__main__":
    run(main)
