"""Score the answers of a live GPU's blind test."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    folder: Path,
    question: dict[str, Any],
    gpu: str,
    profile: Path,
    frozen: Path,
    sweep: Path,
    pairs: Path,
    rows: Path,
    summary: Path,
) -> None:
    """Write a row per problem, and their summary."""
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema, pairs_schema
    from launchwise.workflow.bringing import BlindTest, write_score
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    measured = read_table(sweep, measurement_schema(spec))
    compared = read_table(pairs, pairs_schema(spec))
    test = BlindTest(frozen=frozen, sweep=sweep, pairs=pairs, rows=rows, summary=summary)
    write_score(gpu, test, measured, compared, folder, question, profile)


if __name__ == "__main__":
    run(main)
