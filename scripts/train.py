"""Search hyper-parameters and fit one model on every split and fold of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    model: dict[str, Any],
    folder: str,
    question: dict[str, Any],
    training: str,
    profiles: dict[str, str],
    search: dict[str, Any],
    seed: int,
    output: str,
    journal: str,
    processes: int,
) -> None:
    """Fit and write a model.

    Parameters
    ----------
    question
        ``candidates``, ``constraints`` and ``near_best_percent`` of the study.
    training
        File of training rows: all that the model may see.
    """
    from launchwise.experiment.settings import Search
    from launchwise.experiment.study import ModelEntry
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.training import train_model
    from launchwise.workloads.spec import load_spec

    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(load_spec(Path(folder)), described, **question)
    entry = ModelEntry.model_validate(model)
    options = Search.model_validate(search)
    summary = train_model(
        name, entry, domain, training, options, seed, Path(output), Path(journal), processes
    )
    log.info("%s: %d fits in %.1f s", name, len(summary["folds"]), summary["seconds_to_train"])


if __name__ == "__main__":
    params = snakemake.params
    run(
        main,
        snakemake,
        "models",
        name=snakemake.wildcards.model,
        model=params.model,
        folder=params.folder,
        question=params.question,
        training=snakemake.input.training,
        profiles=dict(zip(params.gpus, snakemake.input.profiles, strict=True)),
        search=params.search,
        seed=params.seed,
        output=snakemake.output[0],
        journal=params.journal,
        processes=snakemake.threads,
    )
