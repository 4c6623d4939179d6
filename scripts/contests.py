"""List the configurations of a study to compare in pairs on one GPU."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.forking import run
from launchwise.base.scripting import log

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(
    name: str,
    study: dict[str, Any],
    folder: str,
    question: dict[str, Any],
    gpu: str,
    profile: str,
    sweep: str,
    how: dict[str, Any],
    answers: str | None,
    model: str,
    output: str,
) -> None:
    """Write the contests of every problem of the study that the sweep measured.

    What ``model`` recommends first in the table ``answers`` takes part.

    Raises
    ------
    UserError
        When the study names a library that the workload does not have.
    """
    from launchwise.base.errors import UserError
    from launchwise.experiment.confirmation import Confirmation, Contests, write_contests
    from launchwise.experiment.study import Study
    from launchwise.gpus.profile import read_profile
    from launchwise.learning.contests import contests_of_sweep
    from launchwise.learning.features import Domain
    from launchwise.tables.files import read_table
    from launchwise.tables.learning import recommendation_schema
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.spec import load_spec
    from launchwise.workloads.workload import load_workload

    spec = load_spec(Path(folder))
    if peers := study["peers"]:
        known = load_workload(Path(folder), spec).peers
        if unknown := [each for each in peers if each not in known]:
            others = ", ".join(known) or "it has none"
            message = f"{unknown[0]!r} is no library of {spec.workload}: {others}"
            raise UserError(f"study {name}", "peers", message)
    domain = Domain(spec, {gpu: read_profile(profile, gpu)}, **question)
    rows = read_table(sweep, measurement_schema(spec), [*spec.key_columns, "status", "time_ms"])
    first = None
    if answers is not None:
        # Those of all GPUs and models are many.
        own = {"model": model, "gpu": gpu}
        ranked = read_table(answers, recommendation_schema(spec), only=own)
        first = ranked[ranked["rank"] == 1]
    found = contests_of_sweep(
        Study.model_validate(study), domain, rows, Confirmation.model_validate(how), first
    )
    contests = Contests(study=name, workload=spec.workload, gpu=gpu, contests=found)
    write_contests(output, contests)
    entrants = sum(len(each.entrants) for each in found)
    log.info("%d configurations of %d problems", entrants, len(found))


if __name__ == "__main__":
    params = snakemake.params
    run(
        main,
        snakemake,
        "tables",
        name=snakemake.wildcards.study,
        study=params.study,
        folder=params.folder,
        question=params.question,
        gpu=snakemake.wildcards.gpu,
        profile=snakemake.input.profile,
        sweep=snakemake.input.sweep,
        how=params.how,
        answers=snakemake.input.get("answers"),
        model=params.model,
        output=snakemake.output[0],
    )
