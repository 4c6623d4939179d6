"""Recommend configurations for every test problem of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: str,
    folder: str,
    question: dict[str, Any],
    models: dict[str, str],
    training: str,
    splits: str,
    profiles: dict[str, str],
    output: str,
    times: str,
    processes: int,
) -> None:
    """Write the recommendations of every model and baseline, and all predicted times.

    Parameters
    ----------
    models
        Model to the folder that holds it fitted.
    training
        File of training rows, which baselines are made from.
    """
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.recommending import recommend
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import write_table
    from launchwise.tables.learning import (
        predicted_column,
        predicted_times_schema,
        recommendation_schema,
    )
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(spec, described, **question)
    fitted = {name: Path(path) for name, path in models.items()}
    found = recommend(study, fitted, training, read_folds(splits), domain, processes)
    for name, facts in found.facts.items():
        log.info("%s: %.1f s", name, facts["seconds_to_recommend"])
    facts = {"models": found.facts}
    write_table(output, found.recommendations, recommendation_schema(spec), facts)
    predicting = [name for name in models if predicted_column(name) in found.times]
    schema = predicted_times_schema(spec, predicting)
    write_table(times, found.times, schema, {"models": predicting})


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "models",
        study=snakemake.wildcards.study,
        folder=params.folder,
        question=params.question,
        models=dict(zip(params.models, given.models, strict=True)),
        training=given.training,
        splits=given.splits,
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        output=snakemake.output.ranked,
        times=snakemake.output.times,
        processes=snakemake.threads,
    )
