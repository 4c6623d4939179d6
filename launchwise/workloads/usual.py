"""``usual.yaml``: the choice of an experienced engineer for a problem without measuring.

The usual configuration is what a recommendation has to beat: a common block, a library's rule, a
published choice. The baseline of ``spec.yaml`` is where the history starts; beating it is easy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from launchwise.base.errors import Misfit, UserError, check_known
from launchwise.base.expressions import Expression, check_names
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.workloads.parts import Value
from launchwise.workloads.spec_fields import SpecFields

USUAL_FILE = "usual.yaml"


class Usual(Strict, title="usual configuration"):
    """A usual configuration and the problems that it is for."""

    when: Expression = "1 == 1"
    """condition on the problem; always when left out"""
    reason: str
    """why an experienced engineer takes it"""
    configuration: dict[str, Value]
    """variant and tunables; a text for a number is an expression over problem, derived names and
    the tunables before it; tunables left out are neutral"""


class UsualChoices(Strict, title="usual.yaml"):
    """Usual configurations of a workload."""

    choices: list[Usual] = Field(min_length=1)
    """usual configurations; the first whose condition holds is taken"""


def read_usual(path: Path, spec: SpecFields) -> tuple[Usual, ...]:
    """Usual configurations of a file that may be missing. Raises UserError when the file is broken
    or names what the workload does not have."""
    if not path.is_file():
        return ()
    choices = validated(UsualChoices, read_yaml(path), path).choices
    try:
        check_usual(choices, spec)
    except Misfit as error:
        raise UserError(path, error.key, error.message) from error
    return tuple(choices)


def check_usual(rules: Sequence[Usual], spec: SpecFields) -> None:
    """Check that rules name what the workload has. Raises Misfit with number and key of the rule,
    at the first mistake."""
    for number, rule in enumerate(rules):
        where = f"choices.{number}"
        check_names(f"{where}.when", rule.when, {*spec.problem, *spec.derived})
        chosen, own_key = rule.configuration, f"{where}.configuration"
        check_known(own_key, "variant", [chosen.get("variant")], spec.variants)
        tunables = spec.variants[str(chosen["variant"])].tunables
        check_known(own_key, "tunable", [name for name in chosen if name != "variant"], tunables)
        for name, value in chosen.items():
            if _is_expression(name, value, spec):
                known = {*spec.problem, *spec.derived, *spec.tunable_columns}
                check_names(f"{own_key}.{name}", str(value), known)
            elif value not in spec.values_of(name):
                raise Misfit(f"{own_key}.{name}", f"{value!r} is not a value of this tunable")


def usual_configuration(
    rules: Sequence[Usual], problem: Mapping[str, Any], spec: SpecFields
) -> dict[str, Value] | None:
    """Usual choice for a problem, by the first rule whose condition holds; None without one. Raises
    ValueError when an expression has no value for the problem, or one that the tunable does not
    have."""
    rule = next((each for each in rules if spec.value(each.when, problem)), None)
    if rule is None:
        return None
    found: dict[str, Value] = spec.neutral
    found = {"variant": rule.configuration["variant"], **found}
    for name, value in rule.configuration.items():
        if _is_expression(name, value, spec):
            value = spec.value(str(value), problem, found)
            if value not in spec.values_of(name):
                raise ValueError(f"usual: {name} = {value!r} is not a value of this tunable")
        found[name] = value
    return found


def _is_expression(name: str, value: Value, spec: SpecFields) -> bool:
    return (
        name != "variant"
        and isinstance(value, str)
        and not isinstance(spec.tunables[name].neutral, str)
    )
