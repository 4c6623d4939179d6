"""Filter the training rows of a study (Tukey filter)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    fences: dict[str, Any],
    candidates: dict[str, Any] | None,
    folder: str,
    sweeps: dict[str, str],
    splits: str,
    training: str,
    removed: str,
) -> None:
    """Write the training rows of every split and fold, and the filtered rows.

    Parameters
    ----------
    candidates
        ``candidates`` and ``constraints`` of the study, if models learn from candidates alone.
    sweeps
        GPU to its file.
    """
    from launchwise.experiment.study import Fences
    from launchwise.learning.clean import clean
    from launchwise.learning.features import Domain
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.learning import removed_schema, training_schema
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    folds = read_folds(splits)
    schema = measurement_schema(spec)
    tables = {gpu: read_table(path, schema) for gpu, path in sweeps.items()}
    if candidates is not None:
        domain = Domain(spec, {}, **candidates)
        tables = {gpu: rows[domain.is_candidate(rows)] for gpu, rows in tables.items()}
    cleaned = clean(tables, folds, spec, Fences.model_validate(fences))
    facts = {"counts": cleaned.counts, "fences": fences}
    cases = [
        {
            "split": fold.split,
            "fold": fold.fold,
            "train": [case.plain() for case in fold.train],
            "test": [case.plain() for case in fold.test],
        }
        for fold in folds
    ]
    write_table(training, cleaned.training, training_schema(spec), {**facts, "folds": cases})
    write_table(removed, cleaned.removed, removed_schema(spec), facts)
    for count in cleaned.counts:
        log.info(
            "%s %s: %d of %d measured rows kept",
            count["split"], count["fold"], count["training"], count["measured"],
        )  # fmt: skip


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "tables",
        fences=snakemake.params.fences,
        candidates=snakemake.params.candidates,
        folder=snakemake.params.folder,
        sweeps=dict(zip(snakemake.params.gpus, snakemake.input.sweeps, strict=True)),
        splits=snakemake.input.splits,
        training=snakemake.output.training,
        removed=snakemake.output.removed,
    )
