"""Measure one shard of a sweep, going on where its journal ends."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.bundle import Bundle
from launchwise.cards import Card, free_card
from launchwise.gpu import GpuProfile, read_profile
from launchwise.journal import Journal
from launchwise.provenance import commit, versions
from launchwise.scripting import log, running
from launchwise.settings import Method
from launchwise.space import gpu_facts
from launchwise.spec import load_spec
from launchwise.storage import digest
from launchwise.sweep import EXIT_RESUMABLE, Interrupted, Shard, measure_shard, rows_to_table
from launchwise.tables import measurement_schema, write_table

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: Path,
    bundle_path: Path,
    profile: GpuProfile,
    slice_sms: int | None,
    problems: list[dict[str, Any]],
    method: Method,
    seed: int,
    journal_path: Path,
    output: Path,
) -> None:
    """Measure ``problems`` on a free card of the profile's kind and write the shard's table."""
    spec, bundle = load_spec(folder), Bundle(bundle_path)
    schema = measurement_schema(spec)
    # The list of problems is no part of it: problems added later must not throw rows away.
    how = method.model_dump(mode="json")
    fingerprint = digest([profile.name, profile.device_name, profile.sms, bundle.fingerprint, how])

    def fits(card: Card) -> bool:
        return (card.device_name, card.arch) == (profile.device_name, profile.arch)

    with free_card(profile.name, fits, f"{profile.device_name} ({profile.arch})") as card:
        shard = Shard(
            spec=spec,
            folder=folder,
            problems=problems,
            method=method,
            seed=seed,
            gpu_facts=gpu_facts(profile.model_dump()),
            labels={
                "gpu": profile.name,
                "workload": spec.workload,
                "card": card.mark,
                "driver": card.driver,
                "toolkit": bundle.toolkit,
                "backend": f"pycuda {versions().get('pycuda', '')}".strip(),
                "commit": commit(),
            },
            command=[sys.executable, "-m", "launchwise.cuda.child"],
            environment={**os.environ, "CUDA_VISIBLE_DEVICES": card.uuid},
            job={
                "bundle": str(bundle_path),
                "slice_sms": slice_sms,
                "expected_sms": profile.sms,
            },
        )
        with Journal(journal_path, fingerprint, spec.key_columns) as journal:
            measure_shard(shard, journal)
            wanted = {tuple(problem.values()) for problem in problems}
            rows = [
                row
                for row in journal.rows
                if tuple(row[name] for name in spec.problem_columns) in wanted
            ]
    table = rows_to_table(rows, spec, list(schema.columns))
    write_table(output, table, schema, {"fingerprint": fingerprint, "versions": versions()})


if __name__ == "__main__":
    with running(snakemake):
        try:
            main(
                Path(snakemake.params.folder),
                Path(snakemake.input.bundle),
                read_profile(snakemake.input.profile, snakemake.wildcards.gpu),
                snakemake.params.slice_sms,
                snakemake.params.problems,
                Method.model_validate(snakemake.params.method),
                snakemake.params.seed,
                Path(snakemake.params.journal),
                Path(snakemake.output[0]),
            )
        except Interrupted as stopped:
            log.warning("%s; run the same command again to go on", stopped)
            sys.exit(EXIT_RESUMABLE)
