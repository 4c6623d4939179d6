"""List the configurations of a blind test to compare in pairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    folder: str,
    question: dict[str, Any],
    gpu: str,
    profile: str,
    frozen: str,
    sweep: str,
    how: dict[str, Any],
    output: str,
) -> None:
    """Write the contests of every problem that was measured."""
    from launchwise.experiment.confirmation import Confirmation, Contests, write_contests
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.blind.answering import read_frozen
    from launchwise.learning.blind.scoring import contests_of_blind
    from launchwise.learning.features import Domain
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec

    spec = load_spec(Path(folder))
    domain = Domain(spec, {gpu: read_profile(profile, gpu)}, **question)
    answers = read_frozen(frozen)
    rows = read_table(sweep, measurement_schema(spec), [*spec.key_columns, "status", "time_ms"])
    found = contests_of_blind(answers, domain, rows, Confirmation.model_validate(how))
    contests = Contests(study=answers.study, workload=spec.workload, gpu=gpu, contests=found)
    write_contests(output, contests)


if __name__ == "__main__":
    params, given = snakemake.params, snakemake.input
    run(
        main,
        snakemake,
        "tables",
        folder=params.folder,
        question=params.question,
        gpu=snakemake.wildcards.gpu,
        profile=given.profile,
        frozen=given.frozen,
        sweep=given.sweep,
        how=params.how,
        output=snakemake.output[0],
    )
