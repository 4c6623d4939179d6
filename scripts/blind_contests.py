"""List the configurations of a blind test to compare in pairs."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run


def main(
    folder: Path,
    question: dict[str, Any],
    gpu: str,
    profile: Path,
    frozen: Path,
    sweep: Path,
    how: dict[str, Any],
    output: Path,
) -> None:
    """Write the contests of every problem that was measured."""
    from launchwise.experiment.method import Confirmation, Contests, write_contests
    from launchwise.learning.blind import read_frozen
    from launchwise.learning.contests import contests_of_blind
    from launchwise.learning.features import read_domain
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema

    domain = read_domain(folder, [gpu], [profile], question)
    spec = domain.spec
    answers = read_frozen(frozen)
    rows = read_table(sweep, measurement_schema(spec), [*spec.key_columns, "status", "time_ms"])
    found = contests_of_blind(answers, domain, rows, Confirmation.model_validate(how))
    contests = Contests(study=answers.study, workload=spec.workload, gpu=gpu, contests=found)
    write_contests(output, contests)


if __name__ == "__main__":
    run(main)
