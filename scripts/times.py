"""Judge the times of a study: what each configuration takes, and which measurement says so."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: dict[str, Any],
    folder: str,
    sweeps: dict[str, str],
    pairs: dict[str, str],
    blind_sweeps: dict[str, str],
    blind_pairs: dict[str, str],
    outputs: dict[str, str],
) -> None:
    """Write the judged times of every GPU of a study.

    Parameters
    ----------
    sweeps, outputs
        GPU to file.
    pairs, blind_sweeps, blind_pairs
        Likewise, for GPUs that have any.
    """
    import pandas as pd

    from launchwise.experiment.study import Study
    from launchwise.learning.splits import asked_about
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.pairs import pairs_schema
    from launchwise.tables.times import JUDGED_FROM, judged_times, not_in_sweep, times_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    asked = Study.model_validate(study)
    measured, compared = measurement_schema(spec), pairs_schema(spec)
    read = [*spec.key_columns, *JUDGED_FROM]
    for gpu, path in sweeps.items():
        sweep = read_table(path, measured, read)
        rows = sweep[asked_about(asked, sweep)]
        found = read_table(pairs[gpu], compared) if gpu in pairs else None
        tables = [judged_times(rows, found, spec)]
        if found is not None:
            for row in not_in_sweep(found, tables[0], spec)[spec.key_columns].to_dict("records"):
                log.warning("%s: the sweep has no time of %s, which ran there", pairs[gpu], row)
        if gpu in blind_sweeps:
            blind = read_table(blind_sweeps[gpu], measured, read)
            found = read_table(blind_pairs[gpu], compared)
            tables.append(judged_times(blind, found, spec, blind=True))
        write_table(outputs[gpu], pd.concat(tables, ignore_index=True), times_schema(spec))


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "tables",
        study=params.study,
        folder=params.folder,
        sweeps=dict(zip(params.gpus, given.sweeps, strict=True)),
        pairs=dict(zip(params.paired, given.pairs, strict=True)),
        blind_sweeps=dict(zip(params.blind, given.blind_sweeps, strict=True)),
        blind_pairs=dict(zip(params.blind, given.blind_pairs, strict=True)),
        outputs=dict(zip(params.gpus, snakemake.output, strict=True)),
    )
