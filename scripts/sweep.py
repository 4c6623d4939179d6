"""Measure one shard of a sweep; resumes at the end of its journal."""

import contextlib
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from launchwise.base.provenance import versions
from launchwise.base.scripting import run
from launchwise.base.storage import read_json
from launchwise.experiment.method import Method
from launchwise.gpus.profile import read_profile
from launchwise.measuring.extension import lacks_anything, read_extension
from launchwise.measuring.guesses import read_guesses
from launchwise.measuring.job import job_kernels, measuring_process, profiled_card
from launchwise.measuring.labels import labels_of
from launchwise.measuring.priors import read_prior
from launchwise.measuring.rows import rows_to_table
from launchwise.measuring.shard import Shard
from launchwise.measuring.visit import builds_of, problem_seconds, visit, write_shard
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import (
    ProblemBlock,
    gpu_facts,
    narrowings,
)
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

    Parameters
    ----------
    problems, blocks
        The problems, and their keys in the settings, whose entries may narrow the configurations;
        None where both stand in the file ``asked``.
    guesses
        File of configurations to measure first, if there is one.
    prior
        File of rows of other GPUs, if the strategy starts from them.
    extends
        Recorded sweep (``path``) whose rows stay, except some that are measured ``anew``.
    bundle
        Bundle of the compile stage; None to compile here, on ``threads`` cores, while measuring.
    """
    spec, known = load_spec(folder), read_profile(profile, gpu)
    if asked:
        problems, blocks = itemgetter("problems", "blocks")(read_json(asked))
    assert problems is not None
    assert blocks is not None
    # JSON objects come back sorted by name.
    problems = [{name: each[name] for name in spec.problem_columns} for each in problems]
    extension = (
        read_extension(Path(extends["path"]), folder, spec, extends["anew"]) if extends else None
    )
    if extension and not lacks_anything(spec, known, problems, blocks, method, extension):
        # Every row is recorded: that needs no card, nor the driver that they were measured with.
        facts: dict[str, Any] = {"versions": versions(), "seconds": {}, "states": {}}
        write_table(output, rows_to_table([], [], spec), measurement_schema(spec), facts)
        return
    with contextlib.ExitStack() as stack:
        builds = partial(builds_of, folder, spec, problems, blocks, method)
        kernels = stack.enter_context(
            job_kernels(bundle, folder, spec, builds, known.arch, threads)
        )
        card = stack.enter_context(profiled_card(known))
        labels = labels_of(spec, known, card, kernels.toolkit)
        if extends and extension:
            extension.check_labels(labels, extends["path"])
        shard = Shard(
            spec=spec,
            folder=folder,
            problems=problems,
            method=method,
            seed=seed,
            gpu_facts=gpu_facts(known.model_dump()),
            labels=labels,
            parts=kernels.parts,
            parts_of=narrowings(spec, blocks),
            guesses=read_guesses(guesses) if guesses else None,
            prior=read_prior(prior, spec) if prior else None,
            extension=extension,
            problem_seconds=problem_seconds(method, len(problems), shards),
            **measuring_process(card, known, slice_sms),
        )
        measured = visit(shard, known, card, kernels, journal, shards)
    write_shard(output, measured, folder, spec)


if __name__ == "__main__":
    run(main)
