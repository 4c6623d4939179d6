"""Score the answers of a blind test by the measurements made afterwards."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


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
    from launchwise.base.storage import write_sealed_json, write_text
    from launchwise.learning.blind.answering import read_frozen
    from launchwise.learning.blind.scoring import check_measured_after, score, summarise
    from launchwise.learning.reading import read_domain
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.pairs import pairs_schema

    domain = read_domain(folder, [gpu], [profile], question)
    answers = read_frozen(frozen)
    measured = read_table(sweep, measurement_schema(domain.spec))
    compared = read_table(pairs, pairs_schema(domain.spec))
    check_measured_after(answers, {str(sweep): measured, str(pairs): compared})
    found = score(answers, domain, measured, compared)
    write_text(rows, found.to_csv(index=False))
    write_sealed_json(summary, summarise(answers, found))
    log.info("%d problems", len(found))


if __name__ == "__main__":
    run(main, "tables")
