"""Contests as a measuring job needs them: ordered, with their builds and the times of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.experiment.confirmation import Contest, Entrant, peer_of, read_contests
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.builds import Build
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload


def contests_in_order(path: Path, spec: Spec, gpu: str) -> list[Contest]:
    """Contests of a file, their names in the order of the spec.

    Raises
    ------
    UserError
        When they are of another workload or GPU, or name what the workload does not have.
    """
    found = read_contests(path)
    if (found.workload, found.gpu) != (spec.workload, gpu):
        message = f"are of {found.workload} on {found.gpu}, not of {spec.workload} on {gpu}"
        raise UserError(path, "contests", message)
    ordered = []
    for contest in found.contests:
        try:
            problem = {name: contest.problem[name] for name in spec.problem_columns}
            entrants = [_in_order(each, spec) for each in contest.entrants]
        except KeyError as error:
            raise UserError(path, "contests", f"{error} is missing") from error
        ordered.append(Contest(problem=problem, entrants=entrants))
    return ordered


def _in_order(entrant: Entrant, spec: Spec) -> Entrant:
    given = entrant.configuration
    if peer_of(given) is not None:
        return entrant
    configuration = {name: given[name] for name in spec.tunable_columns}
    return entrant.model_copy(update={"configuration": configuration})


def builds_of(workload: Workload, contests: list[Contest]) -> list[Build]:
    """Every build that the contests need, once, in the order of need."""
    needed: dict[Build, None] = {}
    for contest in contests:
        needed |= dict.fromkeys(workload.check_builds(contest.problem))
        for entrant in contest.entrants:
            if peer_of(entrant.configuration) is not None:
                continue
            needed[workload.build(contest.problem, entrant.configuration)] = None
    return list(needed)


def times_of(sweep: Path, spec: Spec) -> dict[tuple[Any, ...], float]:
    """Values of problem and configuration to their time in a sweep, ms."""
    columns = [*spec.problem_columns, *spec.tunable_columns]
    rows = read_table(sweep, measurement_schema(spec), [*columns, "time_ms"]).dropna()
    keys = rows[columns].itertuples(index=False, name=None)
    return dict(zip(keys, rows["time_ms"].tolist(), strict=True))
