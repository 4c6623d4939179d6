"""Measure one shard of a sweep; resumes at the end of its journal."""

from functools import partial
from pathlib import Path
from typing import Any

from launchwise.base.scripting import run
from launchwise.experiment.method import Method
from launchwise.gpus.profile import read_profile
from launchwise.measuring.earlier_rows import (
    lacks_anything,
    read_extension,
    read_guesses,
    read_prior,
)
from launchwise.measuring.job import ready_job
from launchwise.measuring.shard import Shard
from launchwise.measuring.sweep import (
    Measured,
    asked_problems,
    builds_of,
    problem_seconds,
    visit,
    write_shard,
)
from launchwise.workloads.space import ProblemBlock, narrowings
from launchwise.workloads.spec import load_spec


def main(
    folder: Path,
    gpu: str,
    profile: Path,
    slice_sms: int | None,
    problems: list[dict[str, Any]] | None,
    blocks: list[ProblemBlock] | None,
    method: Method,
    seed: int,
    threads: int,
    journal: Path,
    shards: int,
    extends: dict[str, Any] | None,
    output: Path,
    asked: Path | None = None,
    bundle: Path | None = None,
    guesses: Path | None = None,
    prior: Path | None = None,
) -> None:
    """Measure ``problems`` on a free card of the profile's kind and write the shard's table.

    With several ``shards``, it measures problems that no other shard has taken.

    ``problems``, ``blocks``, ``asked``: see :func:`launchwise.measuring.sweep.asked_problems`.
    ``guesses``, ``prior``: files of configurations to measure first, and of rows of other GPUs, if
        there are any.
    ``extends``: recorded sweep (``path``) whose rows stay, except some that are measured ``anew``.
    ``bundle``: bundle of the compile stage; None to compile here, on ``threads`` cores, while
        measuring.
    """
    spec, known = load_spec(folder), read_profile(profile, gpu)
    wanted, entries = asked_problems(spec, asked or (problems, blocks))
    extension = (
        read_extension(Path(extends["path"]), folder, spec, extends["anew"]) if extends else None
    )
    if extension and not lacks_anything(spec, known, wanted, entries, method, extension):
        # Every row is recorded: that needs no card, nor the driver that they were measured with.
        return write_shard(output, Measured(), folder, spec)
    builds = partial(builds_of, folder, spec, wanted, entries, method, extension)
    with ready_job(bundle, folder, spec, builds, known, threads, slice_sms) as ready:
        if extends and extension:
            extension.check_labels(ready.fields["labels"], extends["path"])
        shard = Shard(
            **ready.fields,
            problems=wanted,
            method=method,
            seed=seed,
            parts_of=narrowings(spec, entries),
            guesses=read_guesses(guesses) if guesses else None,
            prior=read_prior(prior, spec) if prior else None,
            extension=extension,
            problem_seconds=problem_seconds(method, len(wanted), shards),
        )
        measured = visit(shard, known, ready.card, ready.parts, journal, shards)
    write_shard(output, measured, folder, spec, ready.parts.compilers)


if __name__ == "__main__":
    run(main)
