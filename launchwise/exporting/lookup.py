"""Problems that exported files and the lookup hold answers to, and the answers of the lookup."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from launchwise.learning.answering import answers, why_none
from launchwise.learning.answers import Answer, Interval, Suggestion
from launchwise.learning.final import Final
from launchwise.learning.splits import Case
from launchwise.workloads.checks.fitting_sizes import nearest_problem
from launchwise.workloads.parts import Value
from launchwise.workloads.sampling import Draws
from launchwise.workloads.space import LENIENT_GPU, Problem, baseline, feasible
from launchwise.workloads.spec import Spec

UNMEASURED = 12
"""Most problems that are asked for on a GPU without measurements: a model has to answer each."""


def asked_cases(final: Final, gpus: Sequence[str]) -> list[Case]:
    """Problems that have answers in exported files and in the lookup, sorted. Those of
    :func:`asked_problems` on GPUs that the product learnt from, and those of blind tests on theirs;
    on any other GPU measured problems alone, at most :data:`UNMEASURED`."""
    columns = final.spec.problem_columns
    learnt = [gpu for gpu in gpus if gpu in final.facts["gpus"]]
    others = [gpu for gpu in gpus if gpu not in learnt]
    cases = answerable(final, learnt, asked_problems(final))
    cases += answerable(final, others, spread_problems(final) if others else [])
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
    """Measured problems, and a size between each two of them, their geometric mean, sorted. The
    size is the integer parameter with the most values; all others stay. A size between that breaks
    a constraint of the problem, or that nothing may run, is moved to the nearest that fits, if that
    lies between them, too."""
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
                row = (*rest[:place], round((low * high) ** 0.5), *rest[place:])
                fits = _fitting(spec, dict(zip(columns, row, strict=True)), size)
                if fits is not None and low < int(fits[size]) < high:
                    found.add(tuple(fits.values()))
    problems = [dict(zip(columns, row, strict=True)) for row in sorted(found, key=_sortable)]
    return [problem for problem in problems if spec.check_problem(problem) is None]


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
    rows = sorted(cards, key=_sortable)
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
    return [dict(zip(columns, row, strict=True)) for row in sorted(chosen, key=_sortable)]


def distance(asked: Sequence[Value], known: Sequence[Value]) -> float:
    """Distance of two problems: infinite where texts differ, 1 of equal ones. The product over
    integers of (larger + 1) / (smaller + 1). Divisions and products of doubles are rounded the same
    everywhere, logarithms are not."""
    found = 1.0
    for one, other in zip(asked, known, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            found = found if one == other else math.inf
        else:
            low, high = sorted((one, other))
            found *= (high + 1) / (low + 1)
    return found


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


SUGGESTIONS = 4  # Suggestions of an answer: the one to take, and those to try next


def _times(one: Suggestion) -> dict[str, float | None]:
    low, high = one.interval_ms or (None, None)
    return {"time_ms": one.expected_ms, "time_low_ms": low, "time_high_ms": high}


def _ratio(name: str, value: float | None, ends: Interval | None) -> dict[str, float | None]:
    low, high = ends or (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def lookup_entry(answer: Answer) -> dict[str, Any]:
    """An answer as JSON values.

    Returns ``gpu``, ``problem``, ``basis`` (a key of :data:`launchwise.learning.answers.BASES`),
    ``percent`` of its intervals, ``blind`` (a blind test alone measured it), ``alike`` (how many
    measured configurations cannot be told apart from it, itself among them); ``configuration`` (the
    variant and the tunables that it has), ``is_usual``, ``usual`` (that of the usual choice);
    ``time_ms``, ``gain`` over the usual choice and ``improvement`` over the baseline, each with
    ``_low`` and ``_high``, None where nothing is known; ``paired`` (the gains were measured in
    pairs); ``others``: configurations to try next, in order, with their times.
    """
    first, *rest = answer.suggestions
    return {
        **{
            name: getattr(answer, name)
            for name in ("gpu", "problem", "basis", "percent", "blind", "alike")
        },
        **{"configuration": first.configuration, "usual": answer.usual},
        **_times(first),
        **_ratio("gain", first.gain, first.gain_interval),
        **_ratio("improvement", first.improvement, first.improvement_interval),
        **{"is_usual": first.is_usual, "paired": first.paired},
        "others": [{"configuration": one.configuration, **_times(one)} for one in rest],
    }


def lookup_entries(
    final: Final,
    gpus: Iterable[str] = (),
    least_gain: float | None = None,
    processes: int = 1,
) -> list[dict[str, Any]]:
    """Answers (:func:`lookup_entry`) for what was measured, and for sizes between, on every GPU.

    ``gpus``: GPUs of the product's domain that it did not learn from, to be answered as well.
    ``least_gain``, ``processes``: as of :func:`launchwise.learning.answering.answers`.
    """
    names = list(dict.fromkeys([*final.facts["gpus"], *gpus]))
    cases = asked_cases(final, names)
    found = answers(final, cases, SUGGESTIONS, least_gain, processes)
    return [lookup_entry(each) for each in found]
