"""Draw problems whose answers are measured again, and list the default and each answer."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    study: str,
    folder: Path,
    question: dict[str, Any],
    gpu: str,
    final: Path,
    gpus: list[str],
    profiles: list[Path],
    problems: int,
    seed: int,
    least_gain: float | None,
    contests: Path,
    expected: Path,
) -> None:
    """Write the contests, and what the product expects of each answer.

    ``final``: facts of the study's product.
    ``problems``: most problems.
    ``least_gain``: see ``least_gain`` of the settings.
    """
    from launchwise.base.storage import write_json
    from launchwise.experiment.method import Contests, write_contests
    from launchwise.learning.contests import contests_of_answers, drawn_answers, expectation
    from launchwise.learning.features import read_domain
    from launchwise.learning.final import read_final

    domain = read_domain(folder, gpus, profiles, question)
    spec, product = domain.spec, read_final(final.parent, domain)
    answers = drawn_answers(product, gpu, problems, f"recheck {seed} {study} {gpu}", least_gain)
    found = contests_of_answers(answers, spec)
    write_contests(contests, Contests(study=study, workload=spec.workload, gpu=gpu, contests=found))
    write_json(expected, [expectation(each, spec) for each in answers])
    log.info("%d problems", len(found))


if __name__ == "__main__":
    run(main)
