"""Contests of a study: configurations of its problems to compare in pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.method import PEER, Confirmation, Contest, Entrant, Role
from launchwise.experiment.study import Study
from launchwise.learning.answers import Answer
from launchwise.learning.blind import Frozen, problem_of, whole
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.space import Configuration, baseline, plain
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

Listed = Sequence[tuple[Role, Sequence[Configuration]]]
"""Roles, and the configurations that have each."""


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
    sweep measured. The libraries of the study come last. ``sweep``: measurements of one GPU;
    ``answers``: problem and configuration of what a model answers on this GPU.
    """
    rows = sweep[asked_about(study, sweep)]
    columns = [*domain.spec.problem_columns, *domain.spec.tunable_columns]
    asked = rows[columns].iloc[:0] if answers is None else answers[columns].drop_duplicates()
    rows = rows.merge(asked.assign(is_answer=True), on=columns, how="left")

    def own(members: pd.DataFrame, choices: pd.DataFrame) -> tuple[Sequence[Configuration], Listed]:
        designs = [
            choices[domain.is_of(choices, each.candidates, each.constraints)].iloc[:1]
            for each in study.designs.values()
        ]
        more: Listed = [
            *(("design", configurations_in(each, domain)) for each in designs),
            ("recommended", configurations_in(choices[choices["is_answer"].eq(True)], domain)),
        ]
        return configurations_in(members[domain.is_usual(members)], domain), more

    peers = [Entrant(configuration={PEER: name}, roles=["peer"]) for name in study.peers]
    return [
        each.model_copy(update={"entrants": [*each.entrants, *peers]})
        for each in _contests(domain, rows, how, own)
    ]


def contests_of_blind(
    frozen: Frozen, domain: Domain, sweep: pd.DataFrame, how: Confirmation
) -> list[Contest]:
    """Contests of a blind test: the answer beside baseline, usual choice and the fastest."""
    spec = domain.spec
    answers = {tuple(problem_of(each, spec).values()): each for each in frozen.answers}

    def own(members: pd.DataFrame, choices: pd.DataFrame) -> tuple[Sequence[Configuration], Listed]:
        answer = answers[tuple(plain(members.iloc[0], spec.problem_columns).values())]
        first = whole(answer["suggestions"][0]["configuration"], spec)
        return [whole(answer["usual"], spec)], [("recommended", [first])]

    return _contests(domain, sweep, how, own)


def contests_of_answers(found: Sequence[Answer], spec: Spec) -> list[Contest]:
    """Baseline, usual choice and recommendation of each answer."""
    return [
        contest_of(
            each.problem,
            [
                ("baseline", [baseline(spec)]),
                ("usual", [whole(each.usual, spec)]),
                ("recommended", [whole(each.suggestions[0].configuration, spec)]),
            ],
            3,
        )
        for each in found
    ]


def _contests(
    domain: Domain,
    sweep: pd.DataFrame,
    how: Confirmation,
    own: Callable[[pd.DataFrame, pd.DataFrame], tuple[Sequence[Configuration], Listed]],
) -> list[Contest]:
    """Contests of the problems of a sweep that measured a candidate.

    ``own``: usual choices and what takes part beside the fastest, of the rows of a problem and of
    its candidates, the fastest first.
    """
    rows = sweep[sweep["status"].isin(MEASURED)]
    found = []
    for _, members in rows.groupby(domain.spec.problem_columns, sort=False):
        choices = members[domain.is_candidate(members)].sort_values("time_ms", kind="stable")
        if choices.empty:
            continue
        limit = float(choices["time_ms"].iloc[0]) * (1 + how.near_percent / 100)
        near = choices[choices["time_ms"] <= limit]
        usual, more = own(members, choices)
        listed: Listed = [
            ("baseline", configurations_in(members[domain.is_baseline(members)], domain)),
            ("usual", usual),
            ("best", configurations_in(choices.iloc[:1], domain)),
            *more,
            ("near", configurations_in(near.iloc[1:], domain)),
        ]
        problem = plain(members.iloc[0], domain.spec.problem_columns)
        found.append(contest_of(problem, listed, how.most))
    return found


def contest_of(problem: Configuration, listed: Listed, most: int) -> Contest:
    """Contest of configurations with their roles; of one that has several, they are joined.

    ``most``: entrants beyond this number are left out, the last first.
    """
    roles: dict[tuple[object, ...], list[Role]] = {}
    found: dict[tuple[object, ...], Configuration] = {}
    for role, configuration in ((role, each) for role, some in listed for each in some):
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


def check_peers(study: str, peers: Sequence[str], workload: Workload) -> None:
    """Check that a study's libraries are its workload's; UserError for the first that is not."""
    for each in peers:
        if each not in workload.peers:
            others = ", ".join(workload.peers) or "it has none"
            message = f"{each!r} is no library of {workload.spec.workload}: {others}"
            raise UserError(f"study {study}", "peers", message)
