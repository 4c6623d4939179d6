"""Recommend configurations for every test problem of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from launchwise.base.scripting import log, running
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.recommending import recommend_baselines, recommend_model
from launchwise.learning.splits import read_folds
from launchwise.tables.files import write_table
from launchwise.tables.schemas import recommendation_schema
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    study: str,
    folder: Path,
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
    spec = load_spec(folder)
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
    with running(snakemake):
        params, given = snakemake.params, snakemake.input
        main(
            snakemake.wildcards.study,
            Path(params.folder),
            params.question,
            dict(zip(params.models, given.models, strict=True)),
            given.training,
            given.splits,
            dict(zip(params.gpus, given.profiles, strict=True)),
            snakemake.output[0],
        )
