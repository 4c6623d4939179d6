"""Predict run times on datasheet-only GPUs."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    folder: Path,
    question: dict[str, Any],
    described: list[str],
    final: Path,
    gpus: list[str],
    profiles: list[Path],
    splits: Path,
    output: Path,
) -> None:
    """Predict the test problems of the first split.

    ``described``: GPUs to predict for.
    ``final``: facts of the study's product.
    ``gpus``, ``profiles``: of those and of the GPUs that were measured.
    """
    from launchwise.learning.features import read_domain
    from launchwise.learning.final import read_final
    from launchwise.learning.predicting import write_predictions
    from launchwise.learning.splits import read_folds

    product = read_final(final.parent, read_domain(folder, gpus, profiles, question))
    write_predictions(output, product, read_folds(splits), described)


if __name__ == "__main__":
    run(main)
