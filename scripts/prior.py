"""Write rows of other GPUs, for a sweep whose strategy starts from them."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    folder: Path,
    others: list[dict[str, str]],
    facts: dict[str, dict[str, Any]],
    problems: list[dict[str, Any]],
    output: Path,
) -> None:
    """Write the rows of each problem, or of the nearest one that was measured.

    ``others``: other GPUs: ``gpu``, and the ``path`` of its sweep.
    ``facts``: what is known of these GPUs, by which their rows weigh.
    """
    from launchwise.measuring.earlier_rows import write_prior
    from launchwise.tables.files import read_tables
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    names, paths = [each["gpu"] for each in others], [Path(each["path"]) for each in others]
    tables = read_tables(names, paths, measurement_schema(spec))
    elsewhere = write_prior(output, spec, tables, problems, facts)
    log.info(
        "%d problems, %d of them from the nearest problem measured, by %s",
        len(problems), elsewhere, ", ".join(tables),
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
