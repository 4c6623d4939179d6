"""Contests of a study: configurations of its problems to compare in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.method import PEER, Confirmation, Contest, Entrant, Role
from launchwise.experiment.study import Design, Study
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.space import Configuration
from launchwise.workloads.workload import Workload


def contests_of_sweep(
    study: Study,
    domain: Domain,
    sweep: pd.DataFrame,
    how: Confirmation,
    answers: pd.DataFrame | None = None,
) -> list[Contest]:
    """Contests of every problem of a study that a sweep measured.

    Baseline, usual choice, the fastest, the fastest of each design, answers, and what lies within
    ``how.near_percent``, fastest first, until there are ``how.most``; only configurations that the
    sweep measured. The libraries of the study come last.

    Parameters
    ----------
    sweep
        Measurements of one GPU.
    answers
        Problem and configuration of what a model answers on this GPU.
    """
    rows = sweep[asked_about(study, sweep)]
    rows = rows[rows["status"].isin(MEASURED)]
    candidate = domain.is_candidate(rows)
    rows = rows.assign(
        is_baseline=domain.is_baseline(rows), is_usual=domain.is_usual(rows), candidate=candidate
    )
    columns = [*domain.spec.problem_columns, *domain.spec.tunable_columns]
    if answers is not None:
        asked = answers[columns].drop_duplicates().assign(is_answer=True)
        rows = rows.merge(asked, on=columns, how="left")
    else:
        rows = rows.assign(is_answer=False)
    found = []
    for _, members in rows.groupby(domain.spec.problem_columns, sort=False):
        choices = members[members["candidate"]].sort_values("time_ms", kind="stable")
        if not choices.empty:
            contest = _contest(members, choices, study.designs, domain, how)
            peers = [Entrant(configuration={PEER: name}, roles=["peer"]) for name in study.peers]
            found.append(contest.model_copy(update={"entrants": [*contest.entrants, *peers]}))
    return found


def _contest(
    members: pd.DataFrame,
    choices: pd.DataFrame,
    designs: Mapping[str, Design],
    domain: Domain,
    how: Confirmation,
) -> Contest:
    def own(design: Design) -> pd.DataFrame:
        return choices[domain.is_of(choices, design.candidates, design.constraints)]

    limit = float(choices["time_ms"].iloc[0]) * (1 + how.near_percent / 100)
    near = choices[choices["time_ms"] <= limit]
    picked: list[tuple[Role, pd.DataFrame]] = [
        ("baseline", members[members["is_baseline"]]),
        ("usual", members[members["is_usual"]]),
        ("best", choices.iloc[:1]),
        *(("design", own(each).iloc[:1]) for each in designs.values()),
        ("recommended", choices[choices["is_answer"].eq(True)]),
        ("near", near.iloc[1:]),
    ]
    listed = [
        (role, configuration)
        for role, rows in picked
        for configuration in configurations_in(rows, domain)
    ]
    problem = plain(members.iloc[0], domain.spec.problem_columns)
    return contest_of(problem, listed, how.most)


def contest_of(
    problem: Configuration, listed: Sequence[tuple[Role, Configuration]], most: int
) -> Contest:
    """Contest of configurations with their roles; of one that has several, they are joined.

    Parameters
    ----------
    most
        Entrants beyond this number are left out, the last first.
    """
    roles: dict[tuple[object, ...], list[Role]] = {}
    found: dict[tuple[object, ...], Configuration] = {}
    for role, configuration in listed:
        key = tuple(configuration.values())
        if key not in found and len(found) >= most:
            continue
        found.setdefault(key, configuration)
        if role not in roles.setdefault(key, []):
            roles[key].append(role)
    entrants = [Entrant(configuration=each, roles=roles[key]) for key, each in found.items()]
    return Contest(problem=problem, entrants=entrants)


def configurations_in(rows: pd.DataFrame, domain: Domain) -> list[Configuration]:
    """Configurations of rows, in order, as JSON holds them."""
    return [plain(row, domain.spec.tunable_columns) for _, row in rows.iterrows()]


def plain(row: pd.Series, columns: list[str]) -> Configuration:
    """Values of a row in ``columns``, as JSON holds them."""
    return {name: value if isinstance(value := row[name], str) else int(value) for name in columns}


def check_peers(study: str, peers: Sequence[str], workload: Workload) -> None:
    """Check that a study's libraries are its workload's; UserError for the first that is not."""
    for each in peers:
        if each not in workload.peers:
            others = ", ".join(workload.peers) or "it has none"
            message = f"{each!r} is no library of {workload.spec.workload}: {others}"
            raise UserError(f"study {study}", "peers", message)
