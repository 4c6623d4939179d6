"""Predict run times of a study's problems on datasheet-only GPUs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: str,
    question: dict[str, Any],
    described: list[str],
    sweeps: list[str],
    profiles: dict[str, str],
    splits: str,
    output: str,
) -> None:
    """Predict the test problems of the first split, trained on all measurements.

    Parameters
    ----------
    described
        GPUs to predict for.
    profiles
        Of those and of the GPUs that were measured.
    """
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.predicting import fitted_predictors, learnable_rows, predict_times
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.schemas import measurement_schema, unmeasured_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    known = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(spec, known, **question)
    schema = measurement_schema(spec)
    rows = learnable_rows(domain, [read_table(path, schema) for path in sweeps])
    predictors = fitted_predictors(domain, rows)
    folds = read_folds(splits)
    tested = [case.problem for fold in folds if fold.split == folds[0].split for case in fold.test]
    problems = list({str(problem): problem for problem in tested}.values())
    table = predict_times(domain, described, problems, predictors)
    log.info("%d problems on %d GPUs", len(problems), len(described))
    write_table(output, table, unmeasured_schema(spec), {"learnt_from": len(rows)})


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "models",
        folder=params.folder,
        question=params.question,
        described=params.described,
        sweeps=list(given.sweeps),
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        splits=given.splits,
        output=snakemake.output[0],
    )
