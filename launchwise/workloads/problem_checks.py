"""Is this a problem of the workload? Names, types, limits, and constraints of the problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from launchwise.base.errors import unknown
from launchwise.base.names import assigned
from launchwise.workloads.fitting_sizes import nearest_problem, nearest_value

if TYPE_CHECKING:
    from launchwise.workloads.spec import Spec


def problem_constraints(spec: Spec) -> list[str]:
    """Constraints that read problem parameters only, themselves or through derived names."""
    found = []
    for text in spec.constraints:
        raw = spec.formulas.raw_names(text)
        if raw and spec.problem.keys() >= set(raw):
            found.append(text)
    return found


def broken(
    spec: Spec, problem: Mapping[str, Any], only: str | None = None
) -> tuple[str, str] | None:
    """First constraint of the problem that does not hold, and what is said of it, or None.

    Parameters
    ----------
    only
        A parameter: constraints that read something else are left out.
    """
    for text in problem_constraints(spec):
        if only is None or spec.formulas.raw_names(text) == (only,):
            try:
                if not spec.formulas.value(text, problem):
                    return text, f"{text} does not hold"
            except ValueError as error:
                return text, str(error)
    return None


def check_value(spec: Spec, name: str, value: Any) -> str | None:
    """Complaint about a value of a problem parameter, whatever the others are, or None."""
    if complaint := spec.problem[name].check(value):
        return complaint
    if found := broken(spec, {name: value}, only=name):
        nearest = nearest_value(spec, name, value)
        return _with_nearest(found[1], None if nearest is None else {name: nearest})
    return None


def check_problem(spec: Spec, problem: Mapping[str, Any]) -> str | None:
    """Complaint about a problem (see :meth:`Spec.check_problem`), or None."""
    for name in problem:
        if name not in spec.problem:
            return unknown("problem parameter", name, spec.problem)
    for name, parameter in spec.problem.items():
        if name not in problem:
            return f"{name} is missing"
        if complaint := parameter.check(problem[name]):
            return f"{name}: {complaint}"
    if found := broken(spec, problem):
        text, why = found
        read = [name for name in spec.problem if name in spec.formulas.raw_names(text)]
        said = ", ".join(f"{name}={problem[name]}" for name in read)
        nearest = nearest_problem(spec, problem)
        if nearest is not None:
            nearest = {
                name: value
                for name, value in nearest.items()
                if name in read or value != problem[name]
            }
        return f"{said}: {_with_nearest(why, nearest)}"
    return None


def _with_nearest(why: str, nearest: Mapping[str, Any] | None) -> str:
    """What is said of a problem that breaks a constraint, and the nearest that does not."""
    if nearest is None:
        return f"{why}, and no size near meets the constraints"
    return f"{why}; the nearest size that fits is {assigned(nearest)}"
