"""Choices without measuring: ``usual.yaml``, and configuration files of kernel libraries.

The usual configuration is an experienced engineer's: a common block, a library's rule, a published
choice. It is what a recommendation has to beat; the baseline of ``spec.yaml``, where the history
starts, is beaten easily. Kernel libraries look files up by device and size, such as fused-MoE
files. A mapping says which numbers of a problem make the name of a file, which one is the key
inside, and what the library calls the tunables. Answers become such files
(:mod:`launchwise.exporting.exports`), and files that a library ships become usual choices
(:mod:`launchwise.importing.shipped`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from launchwise.base.errors import Misfit, UserError, check_known, raising
from launchwise.base.expressions import Expression, check_names, parsed
from launchwise.base.typed import Strict, read_yaml, validated
from launchwise.workloads.parts import Value, Variant
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
    with raising(partial(UserError, path)):
        check_usual(choices, spec)
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


DEVICE = "device"  # Stands in the name of a file for that of the device

_PART = re.compile(r"\{([^{}]*)\}")


class ConfigFiles(Strict, title="mapping of configuration files"):
    """How a library names its configuration files, and what they hold."""

    file: str
    """name of a file, with expressions over the problem in braces, and {device}: the device's name
    with underscores for spaces"""
    key: Expression
    """whole number over the problem, by which a file is read"""
    nearest: Literal["linear", "logarithmic"] = "linear"
    """how the library measures which key is nearest to a size"""
    tunables: dict[str, str | None] = Field({})
    """tunable to the library's name for it; without a name it is left out"""
    constants: dict[str, Value] = Field({})
    """what each configuration holds beside the tunables, the same everywhere"""
    head: dict[str, Value] = Field({})
    """what a file holds beside the configurations, such as triton_version"""
    where: Expression = "1 == 1"
    """condition on the problem: which problems the files are of"""
    devices: dict[str, str] = Field({})
    """GPU of the settings to the library's name of its device"""

    @field_validator("file")
    @classmethod
    def _a_file_per_device(cls, text: str) -> str:
        if f"{{{DEVICE}}}" not in text:
            raise ValueError("needs {device}: an answer is for one device")
        if {*_PART.sub("", text)} & {*"{}"}:
            raise ValueError("has a brace without its other one")
        return text

    @model_validator(mode="after")
    def _no_name_twice(self) -> ConfigFiles:
        named = [name for name in self.tunables.values() if name is not None] + [*self.constants]
        if twice := [name for name in named if named.count(name) > 1]:
            raise ValueError(f"tunables: {twice[0]} is named twice")
        return self

    @cached_property
    def parts(self) -> list[str]:
        """Expressions in the name of a file, in their order, the device's included."""
        return [text for text in _PART.findall(self.file)]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Name of a file without its folder, with a group for each expression in it."""
        # A slash in braces divides numbers.
        outside = _PART.sub(lambda part: "_" * len(part[0]), self.file)
        pieces = _PART.split(self.file[outside.rfind("/") + 1 :])
        return re.compile(
            "".join(
                _group(each) if place % 2 else re.escape(each) for place, each in enumerate(pieces)
            )
        )

    def named(self, name: str) -> str | None:
        """The library's name of a tunable; None where its files do not hold it."""
        return self.tunables.get(name, name)

    def renamed(self, variant: Variant) -> dict[str, str]:
        """Tunables of a variant to the library's names for those that its files hold."""
        pairs = ((name, self.named(name)) for name in variant.tunables)
        return {name: other for name, other in pairs if other is not None}

    def expressions(self) -> Iterator[tuple[str, str]]:
        """Keys and expressions over the problem."""
        yield from (("file", text) for text in self.parts if text != DEVICE)
        yield from (("key", self.key), ("where", self.where))


def _group(text: str) -> str:
    """Group of a regular expression for what an expression may be in the name of a file."""
    try:
        known = _texts(parsed(text))
    except (SyntaxError, ValueError):
        known = []
    return f"({'|'.join(map(re.escape, known))})" if known else "(.+?)"


def _texts(node: ast.expr) -> list[str]:
    """Values of a text that conditions choose; none where it is anything else."""
    match node:
        case ast.IfExp(body=first, orelse=second):
            found = [_texts(first), _texts(second)]
            return found[0] + found[1] if all(found) else []
        case ast.Constant(value=str(value)):
            return [value]
    return []


def read_config_files(path: Path, spec: SpecFields) -> ConfigFiles:
    """Mapping of a file, checked against a workload. Raises UserError: one line: the key, and what
    is allowed."""
    mapping = validated(ConfigFiles, read_yaml(path), path)
    with raising(partial(UserError, path)):
        for key, text in mapping.expressions():
            check_names(key, text, {*spec.problem, *spec.derived})
            raw = spec.formulas.raw_names(text)
            if strange := [name for name in raw if name not in spec.problem]:
                raise Misfit(key, f"reads {strange[0]}, which is none of the problem")
        check_known("tunables", "tunable", mapping.tunables, spec.tunables)
    return mapping
