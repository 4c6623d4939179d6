"""Recommend configurations for every test problem of a study."""

from pathlib import Path
from typing import Any

from launchwise.base.forking import run
from launchwise.base.scripting import log


def main(
    study: str,
    folder: Path,
    question: dict[str, Any],
    models: list[str],
    fitted: list[Path],
    training: Path,
    splits: Path,
    gpus: list[str],
    profiles: list[Path],
    ranked: Path,
    times: Path,
    threads: int,
) -> None:
    """Write the recommendations of every model and baseline, and all predicted times.

    Parameters
    ----------
    models, fitted
        Names, and the folder that holds each.
    training
        File of training rows, which baselines are made from.
    """
    from launchwise.learning.reading import read_domain
    from launchwise.learning.recommending import recommend
    from launchwise.learning.splits import read_folds
    from launchwise.tables.files import write_table
    from launchwise.tables.learning import (
        predicted_column,
        predicted_times_schema,
        recommendation_schema,
    )

    domain = read_domain(folder, gpus, profiles, question)
    folders = dict(zip(models, fitted, strict=True))
    found = recommend(study, folders, training, read_folds(splits), domain, threads)
    for name, facts in found.facts.items():
        log.info("%s: %.1f s", name, facts["seconds_to_recommend"])
    facts = {"models": found.facts}
    write_table(ranked, found.recommendations, recommendation_schema(domain.spec), facts)
    predicting = [name for name in models if predicted_column(name) in found.times]
    schema = predicted_times_schema(domain.spec, predicting)
    write_table(times, found.times, schema, {"models": predicting})


if __name__ == "__main__":
    run(main, "models")
