"""Compare recommendations with measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: str,
    folder: str,
    question: dict[str, Any],
    random_draws: list[int],
    recommendations: str,
    times: str,
    sweeps: dict[str, str],
    judged: dict[str, str],
    profiles: dict[str, str],
    splits: str,
    output: str,
    curves: str,
    summary: str,
    processes: int,
) -> None:
    """Write the evaluation of a study: its rows, learning curves and their summary.

    Parameters
    ----------
    sweeps, judged
        GPU to its measurements, and to what is held true of their times.
    """
    from launchwise.base.storage import write_json
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.curves import learning_curves
    from launchwise.learning.evaluate import Truth, evaluate
    from launchwise.learning.features import Domain
    from launchwise.learning.prediction_errors import prediction_errors
    from launchwise.learning.splits import read_folds
    from launchwise.learning.summary import summarise
    from launchwise.tables.files import read_facts, read_table, write_table
    from launchwise.tables.learning import (
        curves_schema,
        evaluation_schema,
        predicted_times_schema,
        recommendation_schema,
    )
    from launchwise.tables.measurements import measurement_schema
    from launchwise.tables.times import times_schema, with_judged_times
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(spec, described, **question)
    schema = measurement_schema(spec)
    read = [name for name in Truth.columns(spec) if name in schema.columns]
    tables = {}
    for gpu, path in sweeps.items():
        known = read_table(judged[gpu], times_schema(spec))
        tables[gpu] = with_judged_times(read_table(path, schema, read), known, spec, judged[gpu])
    truth = Truth(tables, domain)
    found = read_table(recommendations, recommendation_schema(spec))
    facts = read_facts(recommendations)["models"]
    predicting = read_facts(times)["models"]
    predicted = truth.timed(read_table(times, predicted_times_schema(spec, predicting)))
    folds = read_folds(splits)
    table = evaluate(found, predicted, folds, truth, domain, random_draws)
    write_table(output, table, evaluation_schema(spec), {"models": list(facts)})
    drawn = learning_curves(found, folds, truth).assign(study=study)
    write_table(curves, drawn, curves_schema(), {"models": list(facts)})
    summed = summarise(table, spec, domain.near_best_percent, facts)
    errors = prediction_errors(predicted, predicting, domain, processes)
    facts_of_study = {"study": study, "random_draws": random_draws, "predictions": errors}
    write_json(summary, {**facts_of_study, **summed})


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "tables",
        study=snakemake.wildcards.study,
        folder=params.folder,
        question=params.question,
        random_draws=params.random_draws,
        recommendations=given.recommendations,
        times=given.times,
        sweeps=dict(zip(params.gpus, given.sweeps, strict=True)),
        judged=dict(zip(params.gpus, given.judged, strict=True)),
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        splits=given.splits,
        output=snakemake.output.rows,
        curves=snakemake.output.curves,
        summary=snakemake.output.summary,
        processes=snakemake.threads,
    )
