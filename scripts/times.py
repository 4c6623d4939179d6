"""Judge the times of a study: what each configuration takes, and which measurement says so."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    entry: dict[str, Any],
    folder: Path,
    gpus: list[str],
    sweeps: list[Path],
    paired: list[str],
    pairs: list[Path],
    blind: list[str],
    blind_sweeps: list[Path],
    blind_pairs: list[Path],
    output: list[Path],
) -> None:
    """Write the judged times of every GPU of a study.

    Parameters
    ----------
    entry
        The study.
    gpus, sweeps, output
        Names, and files of each.
    paired, pairs
        GPUs that have pairs, and the file of each.
    blind, blind_sweeps, blind_pairs
        GPUs that have a recorded blind test, and files of each.
    """
    import pandas as pd

    from launchwise.experiment.study import Study
    from launchwise.learning.splits import asked_about
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.pairs import pairs_schema
    from launchwise.tables.times import JUDGED_FROM, judged_times, not_in_sweep, times_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    asked = Study.model_validate(entry)
    measured, compared = measurement_schema(spec), pairs_schema(spec)
    read = [*spec.key_columns, *JUDGED_FROM]
    pairs_of = dict(zip(paired, pairs, strict=True))
    blind_of = dict(zip(blind, zip(blind_sweeps, blind_pairs, strict=True), strict=True))
    for gpu, path, target in zip(gpus, sweeps, output, strict=True):
        sweep = read_table(path, measured, read)
        rows = sweep[asked_about(asked, sweep)]
        found = read_table(pairs_of[gpu], compared) if gpu in pairs_of else None
        tables = [judged_times(rows, found, spec)]
        if found is not None:
            for row in not_in_sweep(found, tables[0], spec)[spec.key_columns].to_dict("records"):
                log.warning("%s: the sweep has no time of %s, which ran there", pairs_of[gpu], row)
        if gpu in blind_of:
            rows = read_table(blind_of[gpu][0], measured, read)
            found = read_table(blind_of[gpu][1], compared)
            tables.append(judged_times(rows, found, spec, blind=True))
        write_table(target, pd.concat(tables, ignore_index=True), times_schema(spec))


if __name__ == "__main__":
    run(main, "tables")
