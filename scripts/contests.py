"""List the configurations of a study, or of its blind test, to compare in pairs on one GPU."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    study: str,
    entry: dict[str, Any],
    folder: Path,
    question: dict[str, Any],
    gpu: str,
    profile: Path,
    sweep: Path,
    how: dict[str, Any],
    model: str,
    output: Path,
    answers: Path | None = None,
    frozen: Path | None = None,
) -> None:
    """Write the contests of every problem that the sweep measured: of the study, or of the answers
    of a blind test (``frozen``). What ``model`` recommends first of the candidates ``answers``
    takes part. Raises UserError when the study names a library that the workload does not have."""
    from launchwise.experiment.method import Confirmation, Contests, write_contests
    from launchwise.experiment.study import Study
    from launchwise.learning.blind import read_frozen
    from launchwise.learning.contests import check_peers, contests_of_blind, contests_of_sweep
    from launchwise.learning.features import read_domain
    from launchwise.learning.truth import read_learnt
    from launchwise.tables.files import read_table
    from launchwise.tables.measurements import measurement_schema
    from launchwise.workloads.declared.declared_workload import load_workload

    domain, confirmation = read_domain(folder, [gpu], [profile], question), Confirmation(**how)
    spec = domain.spec
    rows = read_table(sweep, measurement_schema(spec), [*spec.key_columns, "status", "time_ms"])
    if frozen is not None:
        found = contests_of_blind(read_frozen(frozen), domain, rows, confirmation)
    else:
        if entry["peers"]:
            check_peers(study, entry["peers"], load_workload(folder, spec))
        first = None
        if answers is not None:
            ranked = read_learnt(answers.parent, [model], spec).recommended(model, 1)
            first = ranked[ranked["gpu"] == gpu]
        found = contests_of_sweep(Study.model_validate(entry), domain, rows, confirmation, first)
    contests = Contests(study=study, workload=spec.workload, gpu=gpu, contests=found)
    write_contests(output, contests)
    entrants = sum(len(each.entrants) for each in found)
    log.info("%d configurations of %d problems", entrants, len(found))


if __name__ == "__main__":
    run(main)
