"""Write the report page and its summaries."""

from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    files: dict[str, Any],
    kept_out: dict[str, dict[str, list[str]]],
    settings: dict[str, Any],
    page: str,
    tables: str,
    models: list[str],
    configurations: list[str],
    processes: int,
) -> None:
    """Read every study; write the page, the page without figures and two tables per study."""
    from launchwise.base.provenance import commit, now, versions
    from launchwise.base.storage import digest, write_text
    from launchwise.experiment.study import ModelEntry, Study
    from launchwise.report.assemble import configuration_summary, model_summary, report
    from launchwise.report.overview import Run
    from launchwise.report.study import StudyFiles, read_study

    entries = {
        name: {model: ModelEntry.model_validate(entry) for model, entry in models.items()}
        for name, models in settings["models"].items()
    }
    questions = {name: Study.model_validate(settings["studies"][name]) for name in files}
    studies = [
        read_study(name, questions[name], entries[name], StudyFiles.of(given), kept_out[name])
        for name, given in files.items()
    ]
    facts = Run(commit(), now(), digest(settings), settings["seed"], versions())
    for path, html in zip((page, tables), report(studies, facts, processes), strict=True):
        write_text(path, html)
        log.info("%s: %.1f MB", path, len(html) / 1e6)
    for study, path in zip(studies, models, strict=True):
        write_text(path, model_summary(study).to_csv(index=False, float_format="%.5g"))
    for study, path in zip(studies, configurations, strict=True):
        write_text(path, configuration_summary(study).to_csv(index=False, float_format="%.5g"))


if __name__ == "__main__":
    asked = snakemake.params
    run(
        main,
        snakemake,
        "tables",
        files=asked.files,
        kept_out=asked.kept_out,
        settings={name: asked[name] for name in ("studies", "models", "search", "seed")},
        page=snakemake.output.page,
        tables=snakemake.output.tables,
        models=list(snakemake.output.models),
        configurations=list(snakemake.output.configurations),
        processes=snakemake.threads,
    )
