"""Search hyper-parameters and fit the models of a study on every split and fold."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    models: dict[str, dict[str, Any]],
    output: list[Path],
    folder: Path,
    question: dict[str, Any],
    training: Path,
    gpus: list[str],
    profiles: list[Path],
    search: dict[str, Any],
    seed: int,
    cap: dict[str, Any],
    threads: int,
) -> None:
    """Fit and write the models that are missing or were made from something else.

    Parameters
    ----------
    models
        Name to ``entry`` (of the settings, its name as title), ``blamed`` (file and key
        of its hyper-parameters), ``journal`` (of its search), ``code`` and ``spec`` (digests of its
        sources and of the spec), and ``inputs`` (files, beside the training rows, that decide what
        it learns).
    output
        Folder of each.
    question
        ``candidates``, ``constraints`` and ``near_best_percent`` of the study.
    training
        File of training rows: all that a model may see.
    cap
        Parameters of :class:`launchwise.learning.row_cap.RowCap`.
    """
    from launchwise.base.storage import digest_files
    from launchwise.experiment.settings import Search
    from launchwise.learning.reading import read_domain
    from launchwise.learning.row_cap import RowCap
    from launchwise.learning.training import Asked, stale, train_models
    from launchwise.tables.files import read_facts

    most_rows = RowCap(**cap)
    common = [question, search, seed, digest_files([training])]
    # What leaves out no row of a study retrains none of its models.
    if any(most_rows.exceeded(fold["training"]) for fold in read_facts(training)["counts"]):
        common.append([most_rows.most, most_rows.seed])

    domain = read_domain(folder, gpus, profiles, question)
    asked = {
        name: Asked.of(one, target, common, profiles)
        for (name, one), target in zip(models.items(), output, strict=True)
    }
    wanted = stale(asked)
    for name in asked.keys() - wanted.keys():
        log.info("%s: as it was", name)
    options = Search.model_validate(search)
    made = train_models(wanted, domain, training, options, seed, threads, most_rows)
    for name, summary in made.items():
        log.info("%s: %d fits in %.1f s", name, len(summary["folds"]), summary["seconds_to_train"])


if __name__ == "__main__":
    run(main, "models")
