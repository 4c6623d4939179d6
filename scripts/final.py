"""Fit the answering model to all measured rows of a study."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    entry: dict[str, Any],
    folder: Path,
    question: dict[str, Any],
    name: str,
    model: dict[str, Any],
    gpus: list[str],
    sweeps: list[Path],
    judged: list[Path],
    profiles: list[Path],
    seed: int,
    output: Path,
    fitted: Path | None,
    splits: Path,
    cap: dict[str, Any],
) -> None:
    """Write the folder of a study's product.

    Parameters
    ----------
    entry
        The study.
    name, model
        Of the settings' models.
    gpus, sweeps, judged, profiles
        Names, and files of each.
    fitted
        Folder of the model's fits to the folds of ``splits``, which it takes over what it can from.
    cap
        Parameters of :class:`launchwise.learning.row_cap.RowCap`.
    """
    from launchwise.experiment.study import ModelEntry, Study
    from launchwise.learning.final import fit_final
    from launchwise.learning.reading import read_domain, read_tables
    from launchwise.learning.row_cap import RowCap, told
    from launchwise.learning.splits import read_folds
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.times import times_schema

    domain = read_domain(folder, gpus, profiles, question)
    folds = read_folds(splits) if fitted else []
    facts = fit_final(
        Study.model_validate(entry),
        name,
        ModelEntry.model_validate(model),
        domain,
        read_tables(gpus, sweeps, measurement_schema(domain.spec)),
        read_tables(gpus, judged, times_schema(domain.spec)),
        sweeps,
        seed,
        output,
        {Path(fitted or "", fold.split, fold.fold): fold.test for fold in folds},
        RowCap(**cap),
    )
    log.info("%s: %d rows of %d problems", name, facts["rows"], facts["cases"])
    if facts["rows_left_out"]:
        log.info("%s: %s", name, told(facts["rows_left_out"]))


if __name__ == "__main__":
    run(main, "models")
