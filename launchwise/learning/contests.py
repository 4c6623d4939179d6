"""What is compared in pairs: contests of a study's problems, and answers measured again."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.experiment.method import PEER, Confirmation, Contest, Entrant, Role
from launchwise.experiment.study import Study
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer
from launchwise.learning.blind import Frozen, problem_of
from launchwise.learning.features import Domain
from launchwise.learning.final import Final
from launchwise.learning.row_arrays import records_of
from launchwise.learning.splits import Case, asked_about
from launchwise.tables.files import table_of
from launchwise.tables.measurements import RECHECK_ORIGIN, recheck_schema
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Configuration, baseline, plain, whole
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


WIDEST = 0.1  # Half the width of an interval, relative to its gain, above which it is inconclusive


def drawn_answers(
    final: Final, gpu: str, number: int, seed: str, least_gain: float | None = None
) -> list[Answer]:
    """Answers to measured problems, drawn at random: those that are not the usual choice first.

    Where the usual choice is recommended, there is no gain to lose. ``number``: most problems;
    ``seed``: the same seed draws the same problems from the same product; ``least_gain``: as in
    :func:`launchwise.learning.answering.answers`.
    """
    columns = final.spec.problem_columns
    measured = final.measured
    # A GPU that the product did not learn from is asked what others were asked.
    own = measured[measured["gpu"] == gpu]
    rows = own if len(own) else measured
    listed = sorted(set(rows[columns].itertuples(index=False, name=None)), key=str)
    random.Random(seed).shuffle(listed)
    asked = [Case(gpu, plain(dict(zip(columns, each, strict=True)), columns)) for each in listed]
    found = answers(final, asked, least_gain=least_gain)
    found.sort(key=lambda each: each.suggestions[0].is_usual)
    return found[:number]


def expectation(answer: Answer, spec: Spec) -> dict[str, Any]:
    """Expectation of an answer, as JSON holds it; see :func:`verdicts`."""
    first = answer.suggestions[0]
    gain = first.improvement if first.is_usual else first.gain
    expected = None if first.is_usual or answer.is_measured else first.gain_interval
    return {
        "gpu": answer.gpu,
        "problem": answer.problem,
        "configuration": whole(first.configuration, spec),
        "default": "baseline" if first.is_usual else "usual",
        "basis": answer.basis,
        "gain": gain,
        "interval": None if expected is None else list(expected),
    }


@dataclass(frozen=True)
class Gain:
    """Time of the default over that of the recommendation, and limits of its interval. NaN where
    nothing is known."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def is_narrow(self) -> bool:
        """Whether the interval is narrow enough for a verdict."""
        return (self.high - self.low) / 2 <= WIDEST * self.value


def verdict(now: Gain, before: Gain, paired: bool, precision: float) -> tuple[str, str]:
    """Verdict (see :data:`launchwise.tables.measurements.VERDICTS`) and reason.

    ``now``: measured in pairs.
    ``before``: measured in pairs earlier, or what the product expects.
    ``paired``: whether ``before`` was measured in pairs: a single row of a sweep, or an
        expectation, is no proof that something was lost.
    ``precision``: relative difference that pairs are not asked to tell.
    """
    if math.isnan(now.low):
        return "unknown", "fewer than six pairs of equal clocks"
    if now.high < 1:
        return "stale", "slower than the default"
    if paired and now.high < before.low * (1 - precision):
        return "stale", "gains less than in earlier pairs"
    if not now.is_narrow:
        return "unknown", "the interval is too wide: give it more seconds"
    if now.low > before.high * (1 + precision):
        return "better", "gains more than was known"
    return "holds", ""


def verdicts(
    expected: Sequence[Mapping[str, Any]],
    pairs: pd.DataFrame,
    earlier: pd.DataFrame | None,
    sweep: pd.DataFrame,
    spec: Spec,
    precision: float,
) -> pd.DataFrame:
    """A verdict per problem (:func:`launchwise.tables.measurements.recheck_schema`).

    ``expected``: of :func:`expectation`.
    ``pairs``, ``earlier``: pairs of now, and of before (None without any); see
        :func:`launchwise.tables.measurements.pairs_schema`.
    ``sweep``: key, card, driver and toolkit of the rows that the product learnt from.
    ``precision``: see :func:`verdict`.
    """
    by_key = {_key(row, spec): row for row in records_of(pairs)}
    before = [] if earlier is None else records_of(earlier)
    before_by_key = {_key(row, spec): row for row in before}
    origins = {_key(row, spec): row for row in records_of(sweep)}
    found = []
    for each in expected:
        names = {"gpu": each["gpu"], **each["problem"], **each["configuration"]}
        key = _key(names, spec)
        column = "gain" if each["default"] == "usual" else "improvement"
        own = by_key[key]
        old = before_by_key.get(key)
        now, known, known_by = _gain(own, column), _expected(each), str(each["basis"])
        if old is not None and math.isfinite(old[f"{column}_low"]):
            known, known_by = _gain(old, column), "pairs"
        said, reason = _judged(own, now, known, known_by == "pairs", precision)
        origin = old if known_by == "pairs" else origins.get(key)
        found.append(
            {
                **names,
                "workload": spec.workload,
                "verdict": said,
                "reason": reason,
                "default": each["default"],
                **_limits("gain", now),
                **_limits("known_gain", known),
                "known_by": known_by,
                **{name: str(own[name]) for name in RECHECK_ORIGIN},
                **{f"known_{name}": str(origin[name]) if origin else "" for name in RECHECK_ORIGIN},
            }
        )
    return table_of(found, recheck_schema(spec)).sort_values(
        spec.problem_columns, ignore_index=True
    )


def _judged(
    own: Mapping[str, Any], now: Gain, known: Gain, paired: bool, precision: float
) -> tuple[str, str]:
    is_default = {"recommended", "baseline"} <= set(str(own["roles"]).split("+"))
    if own["status"] == "wrong":
        return "stale", f"its result is wrong: {own['reason']}"
    if own["status"] != "ok":
        return "unknown", f"could not run: {own['reason']}"
    if is_default:
        return "holds", "the default is recommended"
    return verdict(now, known, paired, precision)


def _key(row: Mapping[str, Any], spec: Spec) -> tuple[Value, ...]:
    return tuple(row[name] for name in spec.key_columns)


def _gain(row: Mapping[str, Any], column: str) -> Gain:
    return Gain(*(float(row[column + suffix]) for suffix in ("", "_low", "_high")))


def _expected(each: Mapping[str, Any]) -> Gain:
    value = math.nan if each["gain"] is None else float(each["gain"])
    low, high = each["interval"] or (math.nan, math.nan)
    return Gain(value, float(low), float(high))


def _limits(name: str, gain: Gain) -> dict[str, float]:
    return {name: gain.value, f"{name}_low": gain.low, f"{name}_high": gain.high}
