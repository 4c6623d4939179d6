"""Score the answers of a blind test by the measurements made afterwards."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: str,
    question: dict[str, Any],
    gpu: str,
    profile: str,
    frozen: str,
    sweep: str,
    pairs: str,
    rows: str,
    summary: str,
) -> None:
    """Write a row per problem, and their summary."""
    from launchwise.base.storage import write_json, write_text
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.blind.answering import read_frozen
    from launchwise.learning.blind.scoring import check_measured_after, score, summarise
    from launchwise.learning.features import Domain
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.pairs import pairs_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    domain = Domain(spec, {gpu: read_profile(profile, gpu)}, **question)
    answers = read_frozen(frozen)
    measured = read_table(sweep, measurement_schema(spec))
    compared = read_table(pairs, pairs_schema(spec))
    check_measured_after(answers, {sweep: measured, pairs: compared})
    found = score(answers, domain, measured, compared)
    write_text(rows, found.to_csv(index=False))
    write_json(summary, summarise(answers, found))
    log.info("%d problems", len(found))


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "tables",
        folder=params.folder,
        question=params.question,
        gpu=snakemake.wildcards.gpu,
        profile=given.profile,
        frozen=given.frozen,
        sweep=given.sweep,
        pairs=given.pairs,
        rows=snakemake.output.rows,
        summary=snakemake.output.summary,
    )
