"""Problems that meet the listed values of problem parameters at a size beyond the smallest.

A mistake for one value, ``causal=0`` or a type, may show in no problem that one block covers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from launchwise.workloads.drawn_problems import is_small
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem, baseline
from launchwise.workloads.spec import Spec

MOST_PROBLEMS = 4
MOST_COMBINED = 128
"""Most combinations of listed values that are looked at."""

Pair = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Listed:
    """Problems to run, and what is left out, in words; '' for nothing."""

    problems: list[Problem] = field(default_factory=list)
    left_out: str = ""


def listed_problems(spec: Spec, drawn: Sequence[Problem]) -> Listed:
    """Few problems with the values that no one of ``drawn`` has but the smallest.

    Each value of a single parameter, each pair of values of several, as far as
    :data:`MOST_PROBLEMS` allow. Their other sizes are those of the problem with several blocks.

    Parameters
    ----------
    drawn
        The smallest problem, then larger ones.
    """
    names = [name for name in spec.listed_columns if len(spec.problem[name].values or []) > 1]
    if not names or not drawn:
        return Listed()
    free = [name for name in spec.problem if name not in names]
    larger = [each for each in drawn if any(each[name] != drawn[0][name] for name in free)]
    known = larger or ([] if free else list(drawn))
    covered = {pair for each in known for pair in _pairs(each, names)}
    candidates = list(_candidates(spec, names, drawn))
    missing = {pair: None for each in candidates for pair in _pairs(each, names)}
    missing = dict.fromkeys(pair for pair in missing if pair not in covered)
    found: list[Problem] = []
    runnable = [each for each in candidates if is_small(spec, each)]
    while missing and len(found) < MOST_PROBLEMS:
        best = max(runnable, key=lambda each: _count(each, names, missing), default=None)
        if best is None or not _count(best, names, missing):
            break
        found.append(best)
        missing = dict.fromkeys(pair for pair in missing if pair not in _pairs(best, names))
    return Listed(found, _left_out(missing))


def _left_out(missing: Iterable[Pair]) -> str:
    pairs = list(missing)
    if not pairs:
        return ""
    first = " with ".join(f"{name}={value}" for name, value in pairs[0])
    others = f" and {len(pairs) - 1} more" if len(pairs) > 1 else ""
    return f"{first}{others} were not run beyond the smallest size"


def _pairs(problem: Problem, names: Sequence[str]) -> list[Pair]:
    """Listed values of a problem, two at a time; of a single parameter, alone."""
    values = [(name, problem[name]) for name in names]
    return list(itertools.combinations(values, min(2, len(names))))


def _count(problem: Problem, names: Sequence[str], missing: Iterable[Pair]) -> int:
    return len({*_pairs(problem, names)} & {*missing})


def _candidates(spec: Spec, names: Sequence[str], drawn: Sequence[Problem]) -> Iterable[Problem]:
    """Combinations of listed values, each at the largest size that the baseline runs."""
    listed = [spec.problem[name].values or [] for name in names]
    sizes = list({id(each): each for each in (*drawn[2::-1], drawn[0])}.values())
    for values in itertools.islice(itertools.product(*listed), MOST_COMBINED):
        chosen = dict(zip(names, values, strict=True))
        moving = [name for name in spec.problem if name not in names]
        for size in sizes:
            near = nearest_problem(spec, {**size, **chosen}, [baseline(spec)], moving=moving)
            if near is not None and is_small(spec, near):
                yield near
                break
        else:
            if near is not None:
                yield near
