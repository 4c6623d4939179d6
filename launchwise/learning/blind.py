"""Blind tests: problems are drawn and answered first, then measured, then scored.

The answers are written with a digest and the commit before anything of these problems is measured,
so no model, no feature and no constant can have been chosen by them.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.storage import digest, read_json, write_json
from launchwise.base.typed import Strict
from launchwise.experiment.load import Load
from launchwise.experiment.study import Blind, Range, Study
from launchwise.experiment.study_checks import measured_part, size_at
from launchwise.learning import merit
from launchwise.learning.answers import Answer
from launchwise.learning.evaluation import HARMFUL_BELOW, quality, without_nan
from launchwise.learning.features import Domain
from launchwise.learning.final import Final
from launchwise.learning.merit import resampled_means
from launchwise.learning.splits import Case
from launchwise.workloads.checks.fitting_sizes import nearest_problem
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import Problem, gpu_facts, whole
from launchwise.workloads.spec import Spec

LISTED = 20  # Recorded configurations per problem, best first
MOST_DRAWS = 1000  # Draws per problem before the range counts as used up

MOST_MOVED = 10
"""Further draws per problem, moved to the nearest sizes that meet constraints of the problem."""


class Frozen(Strict, title="frozen answers"):
    """Answers of a study's product to a blind test, written before it was measured."""

    study: str
    workload: str
    gpu: str
    seed: int
    commit: str = Field(description="commit of the code that answered")
    frozen_at: str = Field(description="UTC, ISO 8601")
    product: dict[str, Any] = Field(description="facts of the fitted model")
    answers: list[dict[str, Any]]
    digest: str = Field(description="SHA-256 (16 characters) of everything else")


def draw_problems(
    blind: Blind,
    domain: Domain,
    gpu: str,
    measured: Iterable[pd.DataFrame],
    seed: str,
    load: Load | None = None,
) -> list[Problem]:
    """Draw the problems of a blind test: no two of the same sizes, none of sizes that were measured
    before. Each has a feasible candidate on ``gpu``. ``measured``: tables with the problems'
    columns. ``load``: problems that are drawn before others, by their launches. Raises
    UserError when a parameter is missing, unknown or out of the workload's range, or when the
    ranges hold too few problems."""
    columns = blind.sizes or domain.spec.problem_columns
    used = {
        problem
        for table in measured
        for problem in table[columns].drop_duplicates().itertuples(index=False, name=None)
    }
    drawn = distinct_problems(blind, domain, gpu, used, f"blind {seed}", load)
    found = list(itertools.islice(drawn, blind.problems))
    if len(found) < blind.problems:
        message = f"hold {len(found)} problems that were not measured, not {blind.problems}"
        raise UserError(domain.spec.workload, "blind.parameters", message)
    return found


def distinct_problems(
    blind: Blind,
    domain: Domain,
    gpu: str,
    used: set[tuple[Any, ...]],
    seed: str,
    load: Load | None = None,
) -> Iterator[Problem]:
    """Problems of the ranges of a blind test, of new sizes each, as long as draws find some.

    ``used``: sizes that are left out; those that are drawn are added. Raises UserError
    when a parameter is missing, unknown or out of the workload's range.
    """
    spec = domain.spec
    facts = gpu_facts(domain.profiles[gpu].model_dump())
    strange = [name for name in blind.parameters if name not in spec.problem]
    missing = [name for name in spec.problem if name not in blind.parameters]
    if strange or missing:
        what = f"has no {missing[0]}" if missing else f"{strange[0]} is no problem parameter"
        raise UserError(spec.workload, "blind.parameters", what)
    dice = random.Random(seed)
    most = MOST_DRAWS * blind.problems
    moved = MOST_MOVED * blind.problems if spec.problem_constraints else 0
    loaded = load.drawn(dice) if load else []
    others = (drawn_problem(blind, spec, dice, move=n >= most) for n in range(most + moved))
    for problem in itertools.chain(loaded, others):
        if problem is None:
            continue
        key = tuple(problem[name] for name in blind.sizes or problem)
        if key in used:
            continue
        used.add(key)
        if Draws(domain.narrowed, problem, facts, 0).draw(dice, set()) is not None:
            yield problem


def drawn_problem(blind: Blind, spec: Spec, dice: random.Random, move: bool) -> Problem | None:
    """A drawn problem; None for one that breaks a constraint of the problem.

    ``move``: whether the nearest problem that fits stands for one that breaks a constraint. Raises
    UserError when a value is not one of the workload's.
    """
    problem = {name: _drawn(blind.parameters[name], dice) for name in spec.problem}
    for name, value in problem.items():
        if complaint := spec.problem[name].check(value):
            raise UserError(spec.workload, "blind.parameters", f"{name}: {complaint}")
    if spec.broken(problem) is None:
        return problem
    nearest = nearest_problem(spec, problem) if move else None
    return nearest if nearest is not None and blind.holds(nearest) else None


def _drawn(values: Range | Sequence[Value], dice: random.Random) -> Value:
    if not isinstance(values, Range):
        return dice.choice(list(values))
    if values.scale == "linear":
        return dice.randint(values.minimum, values.maximum)
    return size_at(values, dice.random())


def freeze(
    path: Path,
    name: str,
    gpu: str,
    final: Final,
    problems: Sequence[Problem],
    seed: int,
    commit: str,
    frozen_at: str,
    answered: Callable[[Case], Answer],
) -> Frozen:
    """Answer the problems of a blind test and write the answers down. Raises UserError when one of
    the problems was measured on any GPU of the product.

    ``answered``: function that answers, :data:`LISTED` suggestions each.
    """
    spec = final.spec
    known = set(final.fastest[spec.problem_columns].itertuples(index=False, name=None))
    if seen := [each for each in problems if tuple(each.values()) in known]:
        raise UserError(path, "problems", f"{seen[0]} was measured: this is no blind test")
    found = [asdict(answered(Case(gpu, dict(each)))) for each in problems]
    content = {
        "study": name,
        "workload": spec.workload,
        "gpu": gpu,
        "seed": seed,
        "commit": commit,
        "frozen_at": frozen_at,
        "product": dict(final.facts),
        "answers": [{key: each[key] for key in each if key != "gpu"} for each in found],
    }
    frozen = Frozen(**content, digest=digest(content))
    write_json(path, frozen.model_dump(mode="json"))
    return frozen


def read_frozen(path: str | Path) -> Frozen:
    """Read frozen answers. Raises UserError when the file is missing, holds something else, or was
    changed after it was written."""
    content = read_json(path)
    try:
        frozen = Frozen.model_validate(content)
    except ValueError as error:
        raise UserError(path, "", "holds no frozen answers") from error
    if digest({name: value for name, value in content.items() if name != "digest"}) != (
        frozen.digest
    ):
        raise UserError(path, "digest", "does not fit the content: the answers were changed")
    return frozen


def problem_of(answer: Mapping[str, Any], spec: Spec) -> Problem:
    """Problem of an answer, in the order of the spec."""
    return {name: answer["problem"][name] for name in spec.problem_columns}


def blocks_of(frozen: Frozen, study: Study, spec: Spec) -> list[dict[str, Any]]:
    """Problem blocks that a sweep of the blind test measures: the study's candidates."""
    part = measured_part(study, spec)
    problems = (problem_of(each, spec) for each in frozen.answers)
    return [{**{name: [value] for name, value in one.items()}, **part} for one in problems]


def score(frozen: Frozen, domain: Domain, sweep: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Score of the answers: one row per problem.

    Returns the problem; ``is_usual`` whether the answer was the usual choice; ``status`` of what it
    named, by configuration, as contests may give later answers the same role; ``fraction`` time of
    the fastest of the contest over that of the answer, in pairs; ``best_of_5`` and ``best_of_20``:
    time of the fastest of the sweep over the fastest of so many answers, by the sweep; ``gain``,
    ``gain_low``, ``gain_high`` over the usual choice and ``improvement`` over the baseline, in
    pairs; ``best_gain`` of the fastest over the usual choice; ``expected_ms`` and its interval,
    ``measured_ms`` (of the sweep, where the answer ran alone); ``expected_gain`` and its interval.
    An answer without a time has fraction, gain and improvement 0.
    """
    spec = domain.spec
    columns = [*spec.problem_columns, *spec.tunable_columns]
    measured = sweep[sweep["status"].isin(MEASURED)]
    times = dict(
        zip(measured[columns].itertuples(index=False, name=None), measured["time_ms"], strict=True)
    )
    candidates = measured[domain.is_candidate(measured)]
    least = candidates.groupby(spec.problem_columns)["time_ms"].min()
    by_problem = dict(list(pairs.groupby(spec.problem_columns, sort=False)))
    rows = []
    for answer in frozen.answers:
        problem = problem_of(answer, spec)
        key = tuple(problem.values())
        rows.append({**problem, **_scored(answer, key, by_problem.get(key), times, least, spec)})
    return pd.DataFrame(rows)


def _scored(
    answer: Mapping[str, Any],
    key: tuple[Value, ...],
    members: pd.DataFrame | None,
    times: Mapping[tuple[Value, ...], float],
    least: pd.Series[float],
    spec: Spec,
) -> dict[str, Any]:
    first = answer["suggestions"][0]
    found: dict[str, Any] = {
        "is_usual": bool(first["is_usual"]),
        "basis": answer["basis"],
        "status": "not measured",
        **dict.fromkeys(("fraction", "gain", "improvement", "best_of_5", "best_of_20"), 0.0),
        **dict.fromkeys(("gain_low", "gain_high", "best_gain", "measured_ms"), np.nan),
        **_expected(first, "expected_ms", "interval_ms", "expected_ms"),
        **_expected(first, "gain", "gain_interval", "expected_gain"),
    }
    best_ms = float(least.get(key, np.nan))
    listed = [times.get(_key(key, each, spec), np.inf) for each in answer["suggestions"]]
    for count in (5, 20):
        found[f"best_of_{count}"] = float(best_ms / min(listed[:count]))
    if members is None:
        return found
    answered = _key((), first, spec)
    named = members[spec.tunable_columns].itertuples(index=False, name=None)
    own = members[[each == answered for each in named]]
    ran = members[members["time_ms"].notna()]
    if own.empty:
        return found
    row = own.iloc[0]
    found["status"] = row["status"]
    if len(members) == 1:
        # Answer, usual choice and fastest are one and the same: nothing ran beside it.
        alone = dict.fromkeys(("fraction", "gain", "improvement", "best_gain"), 1.0)
        return found | alone | {"measured_ms": times.get(_key(key, first, spec), np.nan)}
    if row["status"] != "ok" or ran.empty:
        return found
    return found | {
        "fraction": float(row["gain"] / ran["gain"].max()),
        "best_gain": float(ran["gain"].max()),
        "measured_ms": float(row["time_ms"]),
        **{name: float(row[name]) for name in ("gain", "gain_low", "gain_high", "improvement")},
    }


def _key(
    problem: tuple[Value, ...], suggestion: Mapping[str, Any], spec: Spec
) -> tuple[Value, ...]:
    return (*problem, *whole(suggestion["configuration"], spec).values())


def _expected(
    suggestion: Mapping[str, Any], value: str, interval: str, name: str
) -> dict[str, float]:
    """An expectation and its interval as three columns; NaN where there is none."""
    low, high = suggestion[interval] or (np.nan, np.nan)
    known = suggestion[value]
    return {
        name: np.nan if known is None else float(known),
        f"{name}_low": float(low),
        f"{name}_high": float(high),
    }


def check_measured_after(frozen: Frozen, tables: Mapping[str, pd.DataFrame]) -> None:
    """Check that nothing was measured before the answers were written down.

    ``tables``: path to its rows, with ``measured_at``. Raises UserError when a row is older than
    the answers.
    """
    for path, table in tables.items():
        early = table.loc[table["measured_at"] < frozen.frozen_at, "measured_at"]
        if len(early):
            message = f"{early.iloc[0]} is before the answers were frozen ({frozen.frozen_at})"
            raise UserError(path, "measured_at", message)


def summarise(frozen: Frozen, rows: pd.DataFrame) -> dict[str, Any]:
    """Figures of a blind test.

    Returns what was asked and when; ``new_gpu``: whether the product had no row of the GPU;
    ``problems``; what :func:`launchwise.learning.evaluation.quality` gives; ``fraction_interval``,
    95 % (bootstrap over problems); ``improvement_geometric_mean`` over the baseline; ``slower``:
    harmed answers whose interval of the gain lies below 1 as well; ``times_covered`` of ``times``:
    expected times, and ``time_error_percent``, their median error. ``rows``: what :func:`score`
    gives.
    """
    low, high = (rows[f"expected_ms_{side}"] for side in ("low", "high"))
    timed = (low.notna() & rows["measured_ms"].notna()).to_numpy()
    inside = rows["measured_ms"].between(low, high).to_numpy()[timed]
    slower = (rows["gain"] < HARMFUL_BELOW) & ~(rows["gain_high"] >= 1)
    error = 100 * (rows["expected_ms"] / rows["measured_ms"] - 1).abs()
    names = {"expected_gain_low": "least_gain", "expected_gain_high": "most_gain"}
    asked = ("study", "workload", "gpu", "seed", "commit", "frozen_at", "digest")
    found = {
        **{name: getattr(frozen, name) for name in asked},
        "model": frozen.product.get("model", ""),
        "new_gpu": frozen.gpu not in frozen.product.get("gpus", {}),
        "problems": len(rows),
        **quality(rows.rename(columns=names)),
        "fraction_interval": _interval(frozen, rows),
        "improvement_geometric_mean": merit.geometric_mean(rows["improvement"].to_numpy()),
        "slower": int(slower.sum()),
        "times": len(inside),
        "times_covered": float(inside.mean()) if len(inside) else np.nan,
        "time_error_percent": float(error.median()),
    }
    return dict(without_nan(found))


def _interval(frozen: Frozen, rows: pd.DataFrame) -> list[float] | None:
    columns = list(frozen.answers[0]["problem"])
    table = rows[[*columns, "fraction"]].assign(model="answers", gpu=frozen.gpu)
    interval = resampled_means(table, columns, frozen.seed).interval("answers")
    return None if interval is None else list(interval)
