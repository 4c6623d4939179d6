"""Write the fastest configuration of each problem of one sweep, as JSON and as a page."""

from pathlib import Path
from typing import TYPE_CHECKING

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: str, gpu: str, sweep: str, profile: str, facts: str, page: str) -> None:
    """Read a sweep of ``gpu`` and its profile; write the answers."""
    from launchwise.base.storage import write_json, write_text
    from launchwise.gpus.profile import read_profile
    from launchwise.report.answer_page import page as page_of
    from launchwise.tables.answers import answers
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    known = read_profile(profile, gpu)
    rows = read_table(sweep, measurement_schema(spec))
    found = answers(rows, spec)
    about = {"workload": spec.workload, "gpu": gpu, "device_name": known.device_name}
    write_json(facts, {**about, "answers": [each.as_facts() for each in found]})
    write_text(page, page_of(spec, known, rows, found))


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
