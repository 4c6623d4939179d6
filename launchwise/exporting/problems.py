"""Problems that exported files and the lookup of the report hold answers to."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from launchwise.learning.answering import why_none
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.workloads.fitting_sizes import nearest_problem
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import LENIENT_GPU, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

BETWEEN = 3
"""Sizes that are asked for between two measured ones, in equal ratios."""


def asked_cases(final: Final, gpus: Sequence[str]) -> list[Case]:
    """Problems of :func:`asked_problems` on GPUs, and those of blind tests on theirs, sorted."""
    columns = final.spec.problem_columns
    cases = answerable(final, gpus, asked_problems(final))
    known = {case.key for case in cases}
    for row in final.tested.to_dict("records"):
        case = Case(str(row["gpu"]), {name: _plain(row[name]) for name in columns})
        if case.gpu in gpus and case.key not in known:
            cases.append(case)
    places = {gpu: place for place, gpu in enumerate(gpus)}
    return sorted(cases, key=lambda case: (places[case.gpu], _sortable((*case.problem.values(),))))


def answerable(final: Final, gpus: Sequence[str], problems: Sequence[Problem]) -> list[Case]:
    """Each problem on each GPU that some configuration may run."""
    domain = final.domain
    cases = [Case(gpu, problem) for gpu in gpus for problem in problems]
    return [case for case in cases if why_none(domain, case) is None]


def asked_problems(final: Final) -> list[Problem]:
    """Measured problems, and :data:`BETWEEN` sizes between two of them, sorted.

    The size is the integer parameter with the most values; all others stay. A size between that
    breaks a constraint of the problem, or that nothing may run, is moved to the nearest that fits,
    if that lies between them, too.
    """
    spec = final.spec
    columns = spec.problem_columns
    known = list(dict.fromkeys(final.measured[columns].itertuples(index=False, name=None)))
    integers = [name for name in columns if spec.problem[name].values is None]
    found = {tuple(_plain(value) for value in values) for values in known}
    if integers:
        size = max(integers, key=lambda name: len({row[columns.index(name)] for row in known}))
        place = columns.index(size)
        by_rest: dict[tuple[Value, ...], list[int]] = {}
        for row in sorted(found, key=lambda row: int(row[place])):
            by_rest.setdefault((*row[:place], *row[place + 1 :]), []).append(int(row[place]))
        for rest, sizes in by_rest.items():
            for low, high in itertools.pairwise(sizes):
                for step in range(1, BETWEEN + 1):
                    value = round(low * (high / low) ** (step / (BETWEEN + 1)))
                    row = (*rest[:place], value, *rest[place:])
                    fits = _fitting(spec, dict(zip(columns, row, strict=True)), size)
                    if fits is not None and low < int(fits[size]) < high:
                        found.add(tuple(fits.values()))
    problems = [dict(zip(columns, row, strict=True)) for row in sorted(found, key=_sortable)]
    return [problem for problem in problems if spec.check_problem(problem) is None]


def _fitting(spec: Spec, wanted: Problem, size: str) -> Problem | None:
    """The wanted problem, or one near in ``size`` that is a problem and that something may run."""
    nearest = nearest_problem(spec, wanted, moving=[size])
    if nearest is None or feasible(spec, nearest, baseline(spec)):
        return nearest
    if Draws(spec, nearest, LENIENT_GPU, 0).any() is not None:
        return nearest
    return nearest_problem(spec, wanted, [baseline(spec)], moving=[size])


def _sortable(row: tuple[Value, ...]) -> list[tuple[bool, Value]]:
    return [(isinstance(value, str), value) for value in row]


def _plain(value: Any) -> Value:
    return value if isinstance(value, str) else int(value)
