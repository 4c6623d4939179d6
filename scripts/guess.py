"""Write recommendations of a fitted model for a sweep to measure first."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: str,
    gpu: str,
    model: str,
    count: int,
    profile: str,
    problems: list[dict[str, Any]],
    output: str,
) -> None:
    """Write ``count`` configurations per problem.

    Parameters
    ----------
    model
        Folder of a fitted model, or of one of its splits and folds.
    """
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.guesses import recommended_guesses
    from launchwise.measuring.guesses import write_guesses
    from launchwise.workloads.spec import load_spec

    domain = Domain(load_spec(Path(folder)), {gpu: read_profile(profile, gpu)})
    found = [
        (problem, recommended_guesses(Path(model), domain, gpu, problem, count))
        for problem in problems
    ]
    write_guesses(output, model, found)
    log.info("%d problems, guesses of %s", len(found), model)


if __name__ == "__main__":
    run(
        main,
        snakemake,
        "models",
        folder=snakemake.params.folder,
        gpu=snakemake.wildcards.gpu,
        model=snakemake.params.guesses["model"],
        count=snakemake.params.guesses["count"],
        profile=snakemake.input.profile,
        problems=snakemake.params.problems,
        output=snakemake.output[0],
    )
