"""Measure one shard of a sweep; resumes at the end of its journal."""

import contextlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.provenance import versions
from launchwise.base.scripting import log, running
from launchwise.base.storage import read_json
from launchwise.experiment.method import Method
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.measuring.extension import Extension, read_extension
from launchwise.measuring.guesses import read_guesses
from launchwise.measuring.job import job_kernels, measuring_process, profiled_card
from launchwise.measuring.labels import labels_of
from launchwise.measuring.priors import read_prior
from launchwise.measuring.rows import rows_to_table
from launchwise.measuring.shard import Shard
from launchwise.measuring.sweep import EXIT_RESUMABLE, Interrupted
from launchwise.measuring.visit import builds_of, problem_seconds, visit, write_shard
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import (
    Problem,
    ProblemBlock,
    configurations,
    gpu_facts,
    narrowings,
)
from launchwise.workloads.spec import Spec, load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: Path,
    bundle_path: Path | None,
    profile: GpuProfile,
    slice_sms: int | None,
    problems: list[dict[str, Any]],
    blocks: list[ProblemBlock],
    method: Method,
    seed: int,
    threads: int,
    journal_path: Path,
    shards: int,
    guesses: Path | None,
    prior: Path | None,
    extends: dict[str, Any] | None,
    output: Path,
) -> None:
    """Measure ``problems`` on a free card of the profile's kind and write the shard's table.

    With several ``shards``, it measures problems that no other shard has taken.

    Parameters
    ----------
    blocks
        Keys of the problems in the settings, whose entries may narrow the configurations.
    guesses
        File of configurations to measure first, if there is one.
    prior
        File of rows of other GPUs, if the strategy starts from them.
    extends
        Recorded sweep (``path``) whose rows stay, except some that are measured ``anew``.
    bundle_path
        Bundle of the compile stage; None to compile here, on ``threads`` cores, while measuring.
    """
    spec = load_spec(folder)
    # JSON objects come back sorted by name.
    problems = [{name: each[name] for name in spec.problem_columns} for each in problems]
    extension = (
        read_extension(Path(extends["path"]), folder, spec, extends["anew"]) if extends else None
    )
    if extension and not lacks_anything(spec, profile, problems, blocks, method, extension):
        # Every row is recorded: that needs no card, nor the driver that they were measured with.
        facts: dict[str, Any] = {"versions": versions(), "seconds": {}, "states": {}}
        write_table(output, rows_to_table([], [], spec), measurement_schema(spec), facts)
        return
    with contextlib.ExitStack() as stack:
        builds = partial(builds_of, folder, spec, problems, blocks, method)
        kernels = stack.enter_context(
            job_kernels(bundle_path, folder, spec, builds, profile.arch, threads)
        )
        card = stack.enter_context(profiled_card(profile))
        labels = labels_of(spec, profile, card, kernels.toolkit)
        if extends and extension:
            extension.check_labels(labels, extends["path"])
        shard = Shard(
            spec=spec,
            folder=folder,
            problems=problems,
            method=method,
            seed=seed,
            gpu_facts=gpu_facts(profile.model_dump()),
            labels=labels,
            parts=kernels.parts,
            parts_of=narrowings(spec, blocks),
            guesses=read_guesses(guesses) if guesses else None,
            prior=read_prior(prior, spec) if prior else None,
            extension=extension,
            problem_seconds=problem_seconds(method, len(problems), shards),
            **measuring_process(card, profile, slice_sms),
        )
        measured = visit(shard, profile, card, kernels, journal_path, shards)
    write_shard(output, measured, folder, spec)


def lacks_anything(
    spec: Spec,
    profile: GpuProfile,
    problems: list[Problem],
    blocks: list[ProblemBlock],
    method: Method,
    extension: Extension,
) -> bool:
    """Whether a recorded sweep lacks a row of these problems; an explorer always may."""
    if method.strategy.kind != "exhaustive":
        return True
    facts, parts = gpu_facts(profile.model_dump()), narrowings(spec, blocks)
    return any(
        extension.missing(
            problem, configurations(spec, problem, facts, parts.get(tuple(problem.values())))
        )
        for problem in problems
    )


def asked(params: Any, given: Any) -> tuple[list[Problem], list[ProblemBlock]]:
    """Problems and blocks: those of the settings, or of a file where the rule names one."""
    if params.problems is not None:
        return params.problems, params.blocks
    content = read_json(given.asked)
    return content["problems"], content["blocks"]


if __name__ == "__main__":
    with running(snakemake):
        wanted = asked(snakemake.params, snakemake.input)
        try:
            main(
                Path(snakemake.params.folder),
                None if snakemake.params.alongside else Path(snakemake.input.bundle),
                read_profile(snakemake.input.profile, snakemake.wildcards.gpu),
                snakemake.params.slice_sms,
                *wanted,
                Method.model_validate(snakemake.params.method),
                snakemake.params.seed,
                snakemake.threads,
                Path(snakemake.params.journal),
                snakemake.params.shards,
                next(map(Path, snakemake.input.guesses), None),
                next(map(Path, getattr(snakemake.input, "prior", ())), None),
                snakemake.params.extends,
                Path(snakemake.output[0]),
            )
        except Interrupted as stopped:
            log.warning("%s; run the same command again to resume", stopped)
            sys.exit(EXIT_RESUMABLE)
