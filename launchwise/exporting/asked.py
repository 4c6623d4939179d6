"""Problems that a study has answers to before anybody asks."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.experiment.study import Blind, Range
from launchwise.exporting.lookup import distance, sortable
from launchwise.learning.answering import why_none
from launchwise.learning.blind import drawn_problem
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem

UNMEASURED = 12
"""Most problems that are asked for on a GPU without measurements: a model has to answer each."""

DRAWN = 16  # Drawn problems of a kind, for each fourfold of another size that varies
TRIES = 4  # Draws for each problem that is wanted
MOST_DRAWN = 256  # Most drawn problems a GPU

Declared = Mapping[str, Range | list[Value]]
"""Parameter of a problem to its range, or its values."""


def known_cases(final: Final) -> list[Case]:
    """Measured problems on every GPU that the product learnt from, and those of blind tests on
    theirs."""
    columns, gpus = final.spec.problem_columns, list(final.facts["gpus"])
    cases = answerable(final, gpus, measured_problems(final))
    known = {case.key for case in cases}
    for row in final.tested.to_dict("records"):
        case = Case(str(row["gpu"]), {name: _plain(row[name]) for name in columns})
        if case.gpu in gpus and case.key not in known:
            cases.append(case)
    return cases


def answerable(final: Final, gpus: Sequence[str], problems: Sequence[Problem]) -> list[Case]:
    """Each problem on each GPU that some configuration may run."""
    domain = final.domain
    cases = [Case(gpu, problem) for gpu in gpus for problem in problems]
    return [case for case in cases if why_none(domain, case) is None]


def measured_problems(final: Final) -> list[Problem]:
    """Measured problems that are still problems of the workload, sorted."""
    columns = final.spec.problem_columns
    rows = final.measured[columns].drop_duplicates().itertuples(index=False, name=None)
    values = sorted((tuple(map(_plain, row)) for row in rows), key=sortable)
    problems = [dict(zip(columns, row, strict=True)) for row in values]
    return [problem for problem in problems if final.spec.check_problem(problem) is None]


def drawn_problems(final: Final, declared: Declared | None) -> list[Problem]:
    """Problems that nobody measured, drawn from the declared ranges: the more sizes vary and the
    more kinds there are, the more of them. Always the same.

    ``declared``: values or range of each parameter; by default those that were measured.
    """
    parameters = dict(declared or measured_ranges(final))
    sizes = [one for one in parameters.values() if isinstance(one, Range)]
    kinds = math.prod(len(one) for one in parameters.values() if not isinstance(one, Range))
    if not sizes:
        return []
    count = min(MOST_DRAWN, DRAWN * kinds * 4 ** len(sizes))
    known = {tuple(problem.values()) for problem in measured_problems(final)}
    found: dict[tuple[Value, ...], Problem] = {}
    dice = random.Random(f"between {final.spec.workload}")
    asked = Blind(parameters=parameters)
    for _ in range(TRIES * count):
        problem = drawn_problem(asked, final.spec, dice, move=True)
        if problem is not None and tuple(problem.values()) not in known:
            found.setdefault(tuple(problem.values()), problem)
        if len(found) == count:
            break
    return list(found.values())


def measured_ranges(final: Final) -> Declared:
    """The measured values of each parameter, or their range."""
    found: dict[str, Range | list[Value]] = {}
    for name, one in final.spec.problem.items():
        values = sorted({_plain(value) for value in final.measured[name]})
        free = one.values is None and 0 < int(values[0]) < int(values[-1])
        logarithmic = {"minimum": values[0], "maximum": values[-1], "scale": "logarithmic"}
        found[name] = Range.model_validate(logarithmic) if free else values
    return found


def spread_problems(final: Final) -> list[Problem]:
    """Measured problems, at most :data:`UNMEASURED`, as far from each other as they can be. Far is
    what the lookup of an unlisted size means by it (:func:`distance`): each further one is the
    farthest from those before. Problems that all whole cards measured come first: on these,
    predictions stand beside the times of every card."""
    spec, columns = final.spec, final.spec.problem_columns
    names = {gpu for gpu, one in final.domain.profiles.items() if not one.is_slice}
    known = final.measured[[*columns, "gpu"]].drop_duplicates()
    cards: dict[tuple[Value, ...], set[str]] = {}
    for *values, gpu in known.itertuples(index=False, name=None):
        cards.setdefault(tuple(_plain(value) for value in values), set()).update(names & {gpu})
    rows = sorted(cards, key=sortable)
    rows = [row for row in rows if spec.check_problem(dict(zip(columns, row, strict=True))) is None]
    most = max((len(cards[row]) for row in rows), default=0)
    chosen: list[tuple[Value, ...]] = []
    for least in (most, 0):
        allowed = [row for row in rows if len(cards[row]) >= least]
        while len(chosen) < UNMEASURED:
            far = [min((distance(row, one) for one in chosen), default=math.inf) for row in allowed]
            if max(far, default=1.0) <= 1:
                break
            chosen.append(allowed[far.index(max(far))])
    return [dict(zip(columns, row, strict=True)) for row in sorted(chosen, key=sortable)]


def _plain(value: Any) -> Value:
    return value if isinstance(value, str) else int(value)
