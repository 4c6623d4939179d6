"""Compare recommendations with measurements."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run


def main(
    study: str,
    folder: Path,
    question: dict[str, Any],
    random_draws: list[int],
    answering: str,
    recommendations: Path,
    times: Path,
    gpus: list[str],
    sweeps: list[Path],
    judged: list[Path],
    profiles: list[Path],
    splits: Path,
    rows: Path,
    curves: Path,
    summary: Path,
    threads: int,
) -> None:
    """Write the evaluation of a study: its rows, learning curves and their summary.

    Parameters
    ----------
    answering
        Model that answers users.
    gpus, sweeps, judged
        Names, the measurements of each, and what is held true of their times.
    """
    from launchwise.base.storage import write_sealed_json
    from launchwise.learning.curves import learning_curves
    from launchwise.learning.evaluate import Truth, evaluate
    from launchwise.learning.prediction_errors import prediction_errors
    from launchwise.learning.reading import read_domain
    from launchwise.learning.searching import expectations_of
    from launchwise.learning.splits import read_folds
    from launchwise.learning.summary import summarise
    from launchwise.tables import learning as schemas
    from launchwise.tables.files import read_facts, read_table, write_table

    domain = read_domain(folder, gpus, profiles, question)
    spec = domain.spec
    truth = Truth.read(gpus, sweeps, judged, domain)
    found = read_table(recommendations, schemas.recommendation_schema(spec))
    facts = read_facts(recommendations)["models"]
    predicting = read_facts(times)["models"]
    expected = read_table(times, schemas.predicted_times_schema(spec, predicting))
    predicted = truth.timed(expected)
    folds = read_folds(splits)
    table = evaluate(found, predicted, folds, truth, domain, random_draws)
    write_table(rows, table, schemas.evaluation_schema(spec), {"models": list(facts)})
    said = expectations_of(answering, found, expected)
    drawn = learning_curves(found, folds, truth, spec, said).assign(study=study)
    write_table(curves, drawn, schemas.curves_schema(), {"models": list(facts)})
    summed = summarise(table, spec, domain.near_best_percent, facts)
    errors = prediction_errors(predicted, predicting, domain, threads)
    facts_of_study = {"study": study, "random_draws": random_draws, "predictions": errors}
    write_sealed_json(summary, {**facts_of_study, **summed})


if __name__ == "__main__":
    run(main, "tables")
