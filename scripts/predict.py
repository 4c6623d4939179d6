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
    from launchwise.learning import predicting
    from launchwise.learning.published_times import write_published
    from launchwise.learning.reading import read_domain
    from launchwise.learning.row_cap import RowCap, told
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.predictions import unmeasured_schema

    domain = read_domain(folder, gpus, profiles, question)
    spec = domain.spec
    schema = measurement_schema(spec)
    rows = predicting.learnable_rows(domain, [read_table(path, schema) for path in sweeps])
    learnt = RowCap(**cap).applied(rows, domain, "predict")
    if len(learnt) < len(rows):
        log.info("%s", told(len(rows) - len(learnt)))
    predictors = predicting.fitted_predictors(domain, learnt)
    problems = predicting.tested_problems(read_folds(splits))
    table = predicting.predict_times(domain, list(described), problems, predictors)
    log.info("%d problems on %d GPUs", len(problems), len(described))
    left_out = predicting.problems_left_out(table, spec, described, problems)
    if left_out:
        log.info("without a known link to the host (host_gbs): %s", left_out)
    facts = {"learnt_from": len(learnt), "left_out": left_out}
    write_table(predictions, table, unmeasured_schema(spec), facts)
    known = read_run_times(study_folder, spec, read_cards(cards))
    write_published(published, domain, known, described, predictors)


if __name__ == "__main__":
    run(main, "models")
