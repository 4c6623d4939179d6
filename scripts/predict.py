"""Predict run times of a study's problems on datasheet-only GPUs."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    folder: Path,
    question: dict[str, Any],
    described: dict[str, str],
    study_folder: Path,
    sweeps: list[Path],
    gpus: list[str],
    profiles: list[Path],
    splits: Path,
    cards: Path,
    predictions: Path,
    published: Path,
    cap: dict[str, Any],
) -> None:
    """Predict the test problems of the first split, and published run times.

    The predictors are trained on all measurements, or on as many as the settings allow.

    Parameters
    ----------
    described
        GPUs to predict for, to their cards.
    study_folder
        Of the study, with its published run times if it has any.
    gpus, profiles
        Of those and of the GPUs that were measured.
    cap
        Parameters of :class:`launchwise.learning.row_cap.RowCap`.
    """
    from launchwise.experiment.run_times import read_run_times
    from launchwise.gpus.datasheets import read_cards
    from launchwise.learning.predicting import (
        fitted_predictors,
        learnable_rows,
        predict_times,
        problems_left_out,
    )
    from launchwise.learning.published_times import held_against
    from launchwise.learning.reading import read_domain
    from launchwise.learning.row_cap import RowCap, told
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.predictions import published_times_schema, unmeasured_schema

    domain = read_domain(folder, gpus, profiles, question)
    spec = domain.spec
    schema = measurement_schema(spec)
    rows = learnable_rows(domain, [read_table(path, schema) for path in sweeps])
    learnt = RowCap(**cap).applied(rows, domain, "predict")
    if len(learnt) < len(rows):
        log.info("%s", told(len(rows) - len(learnt)))
    predictors = fitted_predictors(domain, learnt)
    folds = read_folds(splits)
    tested = [case.problem for fold in folds if fold.split == folds[0].split for case in fold.test]
    problems = list({str(problem): problem for problem in tested}.values())
    table = predict_times(domain, list(described), problems, predictors)
    log.info("%d problems on %d GPUs", len(problems), len(described))
    left_out = problems_left_out(table, spec, described, problems)
    if left_out:
        log.info("without a known link to the host (host_gbs): %s", left_out)
    facts = {"learnt_from": len(learnt), "left_out": left_out}
    write_table(predictions, table, unmeasured_schema(spec), facts)
    known_times = read_run_times(study_folder, spec, read_cards(cards))
    held = held_against(domain, known_times.times, described, predictors)
    log.info("%d published times", len(held.table.drop_duplicates(["series", "row", "gpu"])))
    facts = {"skipped": known_times.skipped, "unfit": held.unfit}
    write_table(published, held.table, published_times_schema(spec), facts)


if __name__ == "__main__":
    run(main, "models")
