"""Write the fastest configuration of each problem of one sweep, as JSON and as a page."""

from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: str, gpu: str, sweep: str, profile: str, facts: str, page: str) -> None:
    """Read a sweep of ``gpu`` and its profile; write the answers."""
    from launchwise.report.answer_files import write_answers

    write_answers(Path(folder), gpu, sweep, profile, facts, page)


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        folder=snakemake.params.folder,
        gpu=snakemake.wildcards.gpu,
        sweep=snakemake.input.sweep,
        profile=snakemake.input.profile,
        facts=snakemake.output.facts,
        page=snakemake.output.page,
    )
