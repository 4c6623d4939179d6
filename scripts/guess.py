"""Write recommendations of a fitted model for a sweep to measure first."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    folder: Path,
    gpu: str,
    guesses: dict[str, Any],
    profile: Path,
    problems: list[dict[str, Any]],
    output: Path,
) -> None:
    """Write some configurations per problem.

    ``guesses``: ``model``: folder of a fitted model, or of one of its splits and folds; ``count``:
        configurations per problem.
    """
    from launchwise.learning.features import read_domain
    from launchwise.learning.final import recommended_guesses
    from launchwise.measuring.earlier_rows import write_guesses

    model, count = guesses["model"], guesses["count"]
    domain = read_domain(folder, [gpu], [profile], {})
    found = [
        (problem, recommended_guesses(Path(model), domain, gpu, problem, count))
        for problem in problems
    ]
    write_guesses(output, model, found)
    log.info("%d problems, guesses of %s", len(found), model)


if __name__ == "__main__":
    run(main)
