"""Filter the training rows of a study (Tukey filter)."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    fences: dict[str, Any],
    candidates: dict[str, Any] | None,
    folder: Path,
    gpus: list[str],
    sweeps: list[Path],
    splits: Path,
    training: Path,
    removed: Path,
) -> None:
    """Write the training rows of every split and fold, and the filtered rows.

    Parameters
    ----------
    candidates
        ``candidates`` and ``constraints`` of the study, if models learn from candidates alone.
    gpus, sweeps
        Names, and the file of each.
    """
    from launchwise.experiment.study import Fences
    from launchwise.learning.clean import clean
    from launchwise.learning.features import Domain
    from launchwise.learning.reading import read_tables
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import write_table
    from launchwise.tables.learning import removed_schema, training_schema
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    folds = read_folds(splits)
    tables = read_tables(gpus, sweeps, measurement_schema(spec))
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
    run(main, "tables")
