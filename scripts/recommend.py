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
) -> None:
    """Write the recommendations of every model and baseline.

    Parameters
    ----------
    models
        Model to the folder that holds it fitted.
    training
        File of training rows, which baselines are made from.
    """
    import pandas as pd

    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.recommending import recommend_baselines, recommend_model
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import write_table
    from launchwise.tables.schemas import recommendation_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(spec, described, **question)
    folds = read_folds(splits)
    tables, facts = [], {}
    for name, path in models.items():
        table, facts[name] = recommend_model(study, Path(path), folds, domain)
        tables.append(table)
        log.info("%s: %.1f s", name, facts[name]["seconds_to_recommend"])
    table, seconds = recommend_baselines(study, training, folds, domain)
    facts |= {name: {"seconds_to_recommend": spent} for name, spent in seconds.items()}
    both = pd.concat([*tables, table], ignore_index=True)
    write_table(output, both, recommendation_schema(spec), {"models": facts})


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
        output=snakemake.output[0],
    )
