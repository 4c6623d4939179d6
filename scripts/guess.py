"""Write recommendations of a fitted model for a sweep to measure first."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.scripting import log, running
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.features import Domain
from launchwise.learning.guesses import recommended_guesses
from launchwise.measuring.guesses import write_guesses
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: Path,
    model: str,
    count: int,
    profile: GpuProfile,
    problems: list[dict[str, Any]],
    output: str,
) -> None:
    """Write ``count`` configurations per problem.

    Parameters
    ----------
    model
        Folder of a fitted model, or of one of its splits and folds.
    """
    domain = Domain(load_spec(folder), {profile.name: profile})
    found = [
        (problem, recommended_guesses(Path(model), domain, profile.name, problem, count))
        for problem in problems
    ]
    write_guesses(output, model, found)
    log.info("%d problems, guesses of %s", len(found), model)


if __name__ == "__main__":
    with running(snakemake):
        main(
            Path(snakemake.params.folder),
            snakemake.params.guesses["model"],
            snakemake.params.guesses["count"],
            read_profile(snakemake.input.profile, snakemake.wildcards.gpu),
            snakemake.params.problems,
            snakemake.output[0],
        )
