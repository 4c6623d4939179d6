"""Measure one shard of a sweep; resumes at the end of its journal."""

import contextlib
import math
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.provenance import versions
from launchwise.base.scripting import log, running
from launchwise.base.storage import digest, read_json
from launchwise.experiment.method import Method
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.measuring.extension import Extension, read_extension
from launchwise.measuring.guesses import read_guesses
from launchwise.measuring.job import job_kernels, measuring_process, profiled_card
from launchwise.measuring.journal import Journal
from launchwise.measuring.labels import labels_of
from launchwise.measuring.priors import read_prior
from launchwise.measuring.problem_locks import Claims
from launchwise.measuring.progress import Progress
from launchwise.measuring.rows import rows_to_table
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import earlier_fingerprints, source_state
from launchwise.measuring.sweep import EXIT_RESUMABLE, Interrupted, measure_shard, seconds_of
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.builds import Build
from launchwise.workloads.space import (
    Problem,
    ProblemBlock,
    configurations,
    gpu_facts,
    narrowings,
)
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.workload import builds_in_order, load_workload

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
        shard = shard.with_something_to_measure()
        fingerprint = shard.fingerprint(profile, kernels.fingerprint)
        telemetry = stack.enter_context(Telemetry(nvml_source(card.uuid)))
        # On a cluster a job may outlive the workflow that made it, and meet its successor.
        patient = "SLURM_JOB_ID" in os.environ
        earlier = [
            shard.fingerprint(profile, each)
            for each in earlier_fingerprints(folder, kernels.toolkit)
        ]
        journal = stack.enter_context(
            Journal(journal_path, fingerprint, spec.key_columns, patient, earlier)
        )
        if shards > 1:
            claims = claims_of(journal_path, fingerprint, shards, method, shard.problems)
            shard = shard.sharing(claims, journal.rows)
        progress = stack.enter_context(Progress(shard.size(), profile.name))
        progress.skip(len(shard.own(journal.rows)))
        measure_shard(shard, journal, telemetry, progress)
        rows, notes = shard.own(journal.rows), list(journal.notes)
    table = rows_to_table(rows, notes, spec)
    state = source_state(folder, spec).as_facts()
    facts = {
        "fingerprint": fingerprint,
        "versions": versions(),
        "seconds": seconds_of(notes),
        "states": dict.fromkeys(sorted(set(table["commit"])), state),
    }
    write_table(output, table, measurement_schema(spec), facts)


def builds_of(
    folder: Path, spec: Spec, problems: list[Problem], blocks: list[ProblemBlock], method: Method
) -> list[Build]:
    """Every build that the sweep needs, in the order of need."""
    # What an explorer will propose is not known.
    exhaustive = method.strategy.kind == "exhaustive"
    parts_of = narrowings(spec, blocks) if exhaustive else None
    return builds_in_order(load_workload(folder, spec), problems, parts_of)


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


def problem_seconds(method: Method, problems: int, shards: int) -> float | None:
    """Time per problem that a strategy allows, s; None without a limit."""
    if method.strategy.minutes is None:
        return None
    return 60 * method.strategy.minutes / math.ceil(problems / shards)


def claims_of(
    journal: Path, fingerprint: str, shards: int, method: Method, problems: list[Problem]
) -> Claims:
    """Locks on the problems of a sweep; a changed sweep or number of shards starts new locks."""
    sweep = digest([fingerprint, shards, method.strategy.model_dump(mode="json")])
    return Claims(journal.parent / "claims" / sweep, journal.stem, shards, problems)


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
