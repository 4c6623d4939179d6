"""Judge the times of a study on a live GPU."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    entry: dict[str, Any],
    folder: Path,
    sweep: Path,
    pairs: Path | None,
    others: list[Path],
    output: Path,
) -> None:
    """Write the judged times of a live GPU; ``pairs`` is None where nothing was compared.

    ``others``: judged times of recorded GPUs, whose errors count where it has too few of its own.
    """
    from launchwise.experiment.study import Study
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema, pairs_schema
    from launchwise.tables.times import times_schema
    from launchwise.workflow.bringing import judged_columns, write_times
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    rows = read_table(sweep, measurement_schema(spec), judged_columns(spec))
    compared = read_table(pairs, pairs_schema(spec)) if pairs else None
    known = [read_table(path, times_schema(spec)) for path in others]
    swept = [times[~times["blind"]] for times in known]
    write_times(Study.model_validate(entry), rows, compared, None, spec, output, swept)


if __name__ == "__main__":
    run(main)
