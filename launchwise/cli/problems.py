"""Problems that the words of a command line name, and configurations in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import assigned, named_values
from launchwise.experiment.discovery import problems_in
from launchwise.workloads.checks.fitting_sizes import nearest_value
from launchwise.workloads.spec import Spec


def block_of(spec: Spec, words: Sequence[str], command: str = "tune") -> dict[str, list[Any]]:
    """Problems from words such as ``n=512,1024`` of a command. Parameters without a word have their
    only value, if they have but one. Raises UserError when a word is none of these, or a parameter
    has no value."""
    given: dict[str, list[Any]] = {}
    for name, values in named_values(words, command).items():
        word = f"{name}={values}"
        if name not in spec.problem:
            raise UserError(command, word, unknown("problem parameter", name, spec.problem))
        given[name] = [_value(spec, name, value, word, command) for value in values.split(",")]
    for name, parameter in spec.problem.items():
        if name not in given:
            if parameter.values is None or len(parameter.values) != 1:
                raise UserError(
                    command, name, f"needs a value, such as {name}={_example(spec, name)}"
                )
            given[name] = list(parameter.values)
    block: dict[str, Any] = {name: given[name] for name in spec.problem}
    for problem in problems_in([block]):
        if said := spec.check_problem(problem):
            raise UserError(command, "problem", said)
    return block


def problems_of(spec: Spec, words: Sequence[str], command: str) -> list[dict[str, Any]]:
    """Every problem that words such as ``n=512,1024`` name; see :func:`block_of`."""
    block: dict[str, Any] = dict(block_of(spec, words, command))
    return problems_in([block])


def problem_of(spec: Spec, words: Sequence[str], command: str) -> dict[str, Any]:
    """The one problem that words such as ``n=512`` name; see :func:`block_of`. Raises UserError
    also when they name several."""
    found = problems_of(spec, words, command)
    if len(found) > 1:
        raise UserError(command, "problem", f"{len(found)} are named: give one value each")
    return found[0]


def named(configuration: Mapping[str, Any]) -> str:
    """``tiled: block_size_x=32, block_size_y=8``: every value with its name."""
    tunables = {name: value for name, value in configuration.items() if name != "variant"}
    return ": ".join(filter(None, (str(configuration["variant"]), assigned(tunables))))


def _value(spec: Spec, name: str, text: str, word: str, command: str) -> Any:
    parameter = spec.problem[name]
    value: Any = text
    if parameter.type == "integer":
        try:
            value = int(text)
        except ValueError:
            raise UserError(command, word, f"{text!r} is not an integer") from None
    if said := spec.check_value(name, value):
        raise UserError(command, word, said)
    return value


def _example(spec: Spec, name: str) -> Any:
    parameter = spec.problem[name]
    example = parameter.values[0] if parameter.values else parameter.maximum or 1024
    return nearest_value(spec, name, example) or example
