"""Draw problems whose answers are measured again, and list the default and each answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    folder: str,
    question: dict[str, Any],
    gpu: str,
    final: str,
    profiles: dict[str, str],
    problems: int,
    seed: int,
    least_gain: float | None,
    contests: str,
    expected: str,
) -> None:
    """Write the contests, and what the product expects of each answer.

    Parameters
    ----------
    final
        Folder of the study's product.
    problems
        Most problems.
    least_gain
        See ``least_gain`` of the settings.
    """
    from launchwise.base.storage import write_json
    from launchwise.experiment.confirmation import Contests, write_contests
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.features import Domain
    from launchwise.learning.final import read_final
    from launchwise.learning.rechecking import contests_of_answers, drawn_answers, expectation
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    described = {each: read_profile(path, each) for each, path in profiles.items()}
    product = read_final(Path(final), Domain(spec, described, **question))
    answers = drawn_answers(product, gpu, problems, f"recheck {seed} {name} {gpu}", least_gain)
    found = contests_of_answers(answers, spec)
    write_contests(contests, Contests(study=name, workload=spec.workload, gpu=gpu, contests=found))
    write_json(expected, [expectation(each, spec) for each in answers])
    log.info("%d problems", len(found))


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "models",
        name=snakemake.wildcards.study,
        folder=params.folder,
        question=params.question,
        gpu=snakemake.wildcards.gpu,
        final=given.final,
        profiles=dict(zip(params.gpus, given.profiles, strict=True)),
        problems=params.problems,
        seed=params.seed,
        least_gain=params.least_gain,
        contests=snakemake.output.contests,
        expected=snakemake.output.expected,
    )
