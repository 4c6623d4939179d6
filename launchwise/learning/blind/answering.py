"""Problems of a blind test, and their answers, recorded before the problems are measured."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from launchwise.base.errors import UserError
from launchwise.base.storage import digest, read_json, write_json
from launchwise.base.typed import Strict
from launchwise.experiment.study import Blind, Range, Study
from launchwise.learning.answering import answers
from launchwise.learning.answers import Answer
from launchwise.learning.features import Domain
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.workloads.checks.fitting_sizes import nearest_problem
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import Problem, gpu_facts
from launchwise.workloads.spec import Spec

LISTED = 20
"""Recorded configurations per problem, best first."""

MOST_DRAWS = 1000
"""Draws per problem before the range counts as used up."""

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
    blind: Blind, domain: Domain, gpu: str, measured: Iterable[pd.DataFrame], seed: int
) -> list[Problem]:
    """Draw the problems of a blind test: distinct, none of them measured before.

    Each has a feasible candidate on ``gpu``. ``measured``: tables with the problems' columns.
    Raises UserError when a parameter is missing, unknown or out of the workload's range, or when
    the ranges hold too few problems.
    """
    columns = domain.spec.problem_columns
    used = {
        problem
        for table in measured
        for problem in table[columns].drop_duplicates().itertuples(index=False, name=None)
    }
    drawn = distinct_problems(blind, domain, gpu, used, f"blind {seed}")
    found = list(itertools.islice(drawn, blind.problems))
    if len(found) < blind.problems:
        message = f"hold {len(found)} problems that were not measured, not {blind.problems}"
        raise UserError(domain.spec.workload, "blind.parameters", message)
    return found


def distinct_problems(
    blind: Blind, domain: Domain, gpu: str, used: set[tuple[Any, ...]], seed: str
) -> Iterator[Problem]:
    """Problems of the ranges of a blind test, each once, as long as draws find new ones.

    ``used``: values of problems that are left out; those that are drawn are added. Raises UserError
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
    for number in range(most + moved):
        problem = _problem(blind, spec, dice, move=number >= most)
        key = tuple((problem or {}).values())
        if problem is None or key in used:
            continue
        used.add(key)
        if Draws(domain.narrowed, problem, facts, 0).draw(dice, set()) is not None:
            yield problem


def _problem(blind: Blind, spec: Spec, dice: random.Random, move: bool) -> Problem | None:
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
    return nearest if nearest is not None and _within(blind, nearest) else None


def _within(blind: Blind, problem: Problem) -> bool:
    return all(
        values.minimum <= int(problem[name]) <= values.maximum
        if isinstance(values, Range)
        else problem[name] in values
        for name, values in blind.parameters.items()
    )


def _drawn(values: Range | Sequence[Value], dice: random.Random) -> Value:
    if not isinstance(values, Range):
        return dice.choice(list(values))
    if values.scale == "linear":
        return dice.randint(values.minimum, values.maximum)
    low, high = math.log(values.minimum), math.log(values.maximum)
    drawn = round(math.exp(dice.uniform(low, high)))
    return min(max(drawn, values.minimum), values.maximum)


def freeze(
    path: Path,
    name: str,
    gpu: str,
    final: Final,
    problems: Sequence[Problem],
    seed: int,
    commit: str,
    frozen_at: str,
) -> Frozen:
    """Answer the problems of a blind test and write the answers down.

    Raises UserError when one of the problems was measured on any GPU of the product.
    """
    spec = final.spec
    known = set(final.fastest[spec.problem_columns].itertuples(index=False, name=None))
    if seen := [each for each in problems if tuple(each.values()) in known]:
        raise UserError(path, "problems", f"{seen[0]} was measured: this is no blind test")
    found = answers(final, [Case(gpu, dict(each)) for each in problems], LISTED)
    content = {
        "study": name,
        "workload": spec.workload,
        "gpu": gpu,
        "seed": seed,
        "commit": commit,
        "frozen_at": frozen_at,
        "product": dict(final.facts),
        "answers": [_plain_answer(each) for each in found],
    }
    frozen = Frozen(**content, digest=digest(content))
    write_json(path, frozen.model_dump(mode="json"))
    return frozen


def _plain_answer(answer: Answer) -> dict[str, Any]:
    plain = asdict(answer)
    del plain["gpu"]
    plain["usual"] = dict(answer.usual)
    for suggestion in plain["suggestions"]:
        for name in ("interval_ms", "gain_interval", "improvement_interval"):
            if suggestion[name] is not None:
                suggestion[name] = list(suggestion[name])
    return plain


def read_frozen(path: str | Path) -> Frozen:
    """Read frozen answers.

    Raises UserError when the file is missing, holds something else, or was changed after it was
    written.
    """
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


def whole(configuration: Mapping[str, Value], spec: Spec) -> dict[str, Value]:
    """A configuration with every tunable in it, in the order of the spec."""
    neutral = spec.neutral
    found = {"variant": configuration["variant"], **neutral, **configuration}
    return {name: found[name] for name in spec.tunable_columns}


def problem_of(answer: Mapping[str, Any], spec: Spec) -> Problem:
    """Problem of an answer, in the order of the spec."""
    return {name: answer["problem"][name] for name in spec.problem_columns}


def blocks_of(frozen: Frozen, study: Study, spec: Spec) -> list[dict[str, Any]]:
    """Problem blocks that a sweep of the blind test measures: the study's candidates."""
    # What is not verified cannot be an answer.
    verified = [name for name, variant in spec.variants.items() if variant.verified]
    narrowed: dict[str, Any] = {"only": {"variant": verified, **study.candidates}}
    if study.constraints:
        narrowed["constraints"] = list(study.constraints)
    return [
        {**{name: [value] for name, value in problem_of(each, spec).items()}, **narrowed}
        for each in frozen.answers
    ]
