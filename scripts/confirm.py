"""Compare configurations in pairs on one card; resumes at the end of its journal."""

from functools import partial
from pathlib import Path

from launchwise.base.scripting import run
from launchwise.experiment.method import Confirmation, Method
from launchwise.gpus.profile import read_profile
from launchwise.measuring.job import ready_job
from launchwise.measuring.pairs.visit import (
    builds_of,
    contests_in_order,
    visit_contests,
    write_pairs,
)
from launchwise.measuring.shard import Shard
from launchwise.workloads.declared.declared_workload import load_workload
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
    earlier: Path | None = None,
) -> None:
    """Run the contests on a free card of the profile's kind and write their tables.

    ``bundle``: bundle of the compile stage; None to compile what the contests need here, on
        ``threads`` cores, while measuring.
    ``sweep``: the sweep whose times chose the entrants.
    ``peers``: table of the libraries that took part; none when left out.
    ``once``: whether the journal is of one driver, toolkit and card, and ends with the table: the
        same contests are measured anew by the next run.
    ``earlier``: pairs that an earlier visit recorded.
    """
    spec, known = load_spec(folder), read_profile(profile, gpu)
    wanted = contests_in_order(contests, spec, gpu)
    builds = partial(builds_of, load_workload(folder, spec), wanted)
    with ready_job(bundle, folder, spec, builds, known, threads, slice_sms) as ready:
        problems = [dict(each.problem) for each in wanted]
        shard = Shard(**ready.fields, problems=problems, method=method, seed=seed)
        found = visit_contests(shard, wanted, how, known, ready, journal, once)
    write_pairs(found, sweep, output, peers, earlier)
    if once:
        journal.unlink()


if __name__ == "__main__":
    run(main)
