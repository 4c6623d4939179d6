"""Judge the times of a workload's studies on a live GPU."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    studies: dict[str, Any],
    folder: Path,
    sweep: Path,
    pairs: list[Path],
    others: list[Path],
    output: list[Path],
) -> None:
    """Write the judged times of a live GPU, a file for each study, which is named as the study is.

    ``studies``: what each asks.
    ``pairs``: of the studies that compared anything, likewise.
    ``others``: judged times of recorded GPUs, whose errors count where it has too few of its own.
    """
    from launchwise.experiment.study import Study
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.measurements import measurement_schema, pairs_schema
    from launchwise.tables.times import times_schema
    from launchwise.workflow.bringing import judged_columns, judged_of_studies
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    rows = read_table(sweep, measurement_schema(spec), judged_columns(spec))
    compared = {path.stem: read_table(path, pairs_schema(spec)) for path in pairs}
    known: dict[str, Any] = {}
    for path in others:
        times = read_table(path, times_schema(spec))
        known.setdefault(path.parent.name, {})[path.stem] = times[~times["blind"]]
    asked = {name: Study.model_validate(entry) for name, entry in studies.items()}
    judged = judged_of_studies(asked, rows, compared, {}, spec, [*known.values()])
    for path in output:
        write_table(path, judged[path.stem], times_schema(spec))


if __name__ == "__main__":
    run(main)
