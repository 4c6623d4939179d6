"""Search hyper-parameters and fit one model on every split and fold of a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.scripting import log, running
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.training import train_model
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    model: dict[str, Any],
    folder: Path,
    question: dict[str, Any],
    training: str,
    profiles: dict[str, str],
    search: dict[str, Any],
    seed: int,
    output: Path,
    journal: Path,
) -> None:
    """Fit and write a model.

    Parameters
    ----------
    question
        ``candidates``, ``constraints`` and ``near_best_percent`` of the study.
    training
        File of training rows: all that the model may see.
    """
    described = {gpu: read_profile(path, gpu) for gpu, path in profiles.items()}
    domain = Domain(load_spec(folder), described, **question)
    entry = ModelEntry.model_validate(model)
    options = Search.model_validate(search)
    summary = train_model(name, entry, domain, training, options, seed, output, journal)
    log.info("%s: %d fits in %.1f s", name, len(summary["folds"]), summary["seconds_to_train"])


if __name__ == "__main__":
    with running(snakemake):
        params = snakemake.params
        main(
            snakemake.wildcards.model,
            params.model,
            Path(params.folder),
            params.question,
            snakemake.input.training,
            dict(zip(params.gpus, snakemake.input.profiles, strict=True)),
            params.search,
            params.seed,
            Path(snakemake.output[0]),
            Path(params.journal),
        )
