"""Arguments of a spec beside the parameters of its kernels: CUDA itself compares neither."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.cli.check.parameters import (
    CppType,
    Declared,
    Signature,
    aliases_of,
    cpp_type,
    signatures,
)
from launchwise.cli.new.directives import split
from launchwise.cli.new.tokens import is_name, tokenised
from launchwise.workloads.arguments import NULL, Argument, Step, parameters_of
from launchwise.workloads.builds import split_kernel
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import sources_text
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import CPP_TYPES, resolved_kernel, template_arguments

MAX_CHOICES = 64
"""Most combinations of types that are compared."""

PACK = ". . ."
"""Tokens of a pack of template parameters."""


@dataclass(frozen=True)
class Launched:
    """A kernel of a variant, and the arguments that it gets."""

    variant: str
    step: Step
    name: str
    signature: Signature
    given: tuple[str, ...]
    aliases: Mapping[str, Sequence[str]]
    words: frozenset[str]


def check_signatures(folder: Path, spec: Spec) -> None:
    """Compare number, kind and type of arguments with the kernels of each variant.

    Types are compared for each choice of listed problem values and of tunables that are types. What
    cannot be read off a file is taken to be right: structures, types that are unknown.

    Raises
    ------
    UserError
        At the first difference.
    """
    if not spec.arguments:
        return
    _check_constants(folder, spec)
    launched = list(_launched(folder, spec))
    writable = {
        (one.variant, argument)
        for one in launched
        for argument, parameter in zip(one.given, one.signature.parameters, strict=False)
        if not parameter.is_const
    }
    for one in launched:
        _check_template(folder, spec, one)
        takes = one.signature.parameters
        key = f"variants.{one.variant}.arguments"
        if len(one.given) != len(takes):
            listed = ", ".join(each.name or each.written for each in takes)
            message = f"{one.name} takes {len(takes)} ({listed}), {len(one.given)} are given"
            raise UserError(folder / SPEC_FILE, key, f"{message} ({', '.join(one.given)})")
        own = [each.name for each in takes]
        exchanged = [name for name, other in zip(one.given, own, strict=True) if name != other]
        if one.step.arguments is None and set(own) >= set(exchanged) and exchanged:
            message = f"{one.name} takes {', '.join(own)}, in this order; given are"
            raise UserError(folder / SPEC_FILE, "arguments", f"{message} {', '.join(one.given)}")
        for argument, parameter in zip(one.given, takes, strict=True):
            if argument == NULL:
                if parameter.is_pointer is False and not _may_be_pointer(spec, one, parameter):
                    message = f"nullptr is given, the kernel takes a number: {one.name}"
                    raise UserError(folder / SPEC_FILE, key, f"{message}({parameter.name})")
                continue
            # One of several kernels that writes it is enough.
            read_only = (one.variant, argument) not in writable
            if said := _difference(spec, one, argument, parameter, read_only):
                where = f"arguments.{argument}"
                raise UserError(folder / SPEC_FILE, where, f"{said}: {one.name}({parameter.name})")


def _check_constants(folder: Path, spec: Spec) -> None:
    """Insist that each ``__constant__`` array is named in some source, as it is by those that read
    it."""
    sources = {str(one.source) for one in spec.variants.values() if not one.is_triton}
    text = sources_text(folder, [*sorted(sources), *spec.headers])
    tokens = split(text).tokens
    for name, argument in spec.arguments.items():
        if argument.constant is None or argument.constant.split("::")[-1] in tokens:
            continue
        known = [
            next((each for each in reversed(tokens[place:end]) if is_name(each)), "")
            for place, token in enumerate(tokens)
            if token == "__constant__"
            for end in [_declarator(tokens, place)]
        ]
        message = unknown("__constant__ array", argument.constant, filter(None, known))
        raise UserError(folder / SPEC_FILE, f"arguments.{name}.constant", message)


def _declarator(tokens: Sequence[str], place: int) -> int:
    """Where the name of what a declaration declares ends."""
    ends = (number for number in range(place, len(tokens)) if tokens[number] in ("[", "=", ";"))
    return next(ends, len(tokens))


def _check_template(folder: Path, spec: Spec, launched: Launched) -> None:
    """Compare namespaces and template arguments of a kernel with its definition."""
    kernel = launched.step.kernel
    number = spec.variants[launched.variant].steps.index(launched.step)
    several = bool(spec.variants[launched.variant].kernels)
    key = f"variants.{launched.variant}.{f'kernels.{number}.' if several else ''}kernel"
    spaces = [each.strip() for each in split_kernel(kernel)[0].split("::")[:-1]]
    if strange := [each for each in spaces if each not in launched.words]:
        source = spec.variants[launched.variant].source
        raise UserError(folder / SPEC_FILE, key, f"{source} has no namespace {strange[0]}")
    template = launched.signature.template
    given, least = template_arguments(kernel), sum(not default for _, default in template)
    # Those of a pack are any number.
    if PACK in launched.words or not given or least <= len(given) <= len(template):
        return
    listed = ", ".join(name for name, _ in template)
    message = f"{launched.name} takes {len(template)} template arguments ({listed})"
    raise UserError(folder / SPEC_FILE, key, f"{message}, {len(given)} are given")


def _launched(folder: Path, spec: Spec) -> Iterator[Launched]:
    for variant, one in spec.variants.items():
        if one.is_triton:
            continue  # Types follow from the arguments.
        text = sources_text(folder, [str(one.source), *spec.headers])
        known, aliases = signatures(text), aliases_of(text)
        tokens = split(text).tokens
        words = frozenset([*tokens, *([PACK] if PACK in " ".join(tokens) else [])])
        for step in one.steps:
            name = split_kernel(step.kernel)[0].split("::")[-1]
            defined = known.get(name, [])
            # Several definitions belong to branches of #if, or are overloads.
            if len(defined) == 1:
                listed = parameters_of(step.arguments, spec.arguments)
                given = tuple(each for each in listed if each == NULL or each in spec.arguments)
                yield Launched(variant, step, name, defined[0], given, aliases, words)


def _difference(
    spec: Spec, launched: Launched, name: str, parameter: Declared, read_only: bool
) -> str:
    """Complaint about an argument; '' if it fits."""
    argument = spec.arguments[name]
    if parameter.is_pointer is None:
        return ""
    if argument.is_array != parameter.is_pointer:
        if argument.is_array and _may_be_pointer(spec, launched, parameter):
            return ""
        own, other = ("an array", "a number") if argument.is_array else ("a number", "an array")
        hint = "" if argument.is_array else ", or nullptr in the list of arguments"
        return f"is {own}, the kernel takes {other}{hint}"
    if argument.is_written and read_only:
        return f"is {argument.role}, the kernel takes it as const"
    for problem, configuration in _choices(spec, launched.variant):
        wanted = _parameter_type(spec, launched, parameter, problem, configuration)
        named = _type_name(argument, problem, configuration)
        given = None if named is None else _given_type(named)
        if wanted is None or given is None or _fits(given, wanted, argument.is_array):
            continue
        return f"is {named}, the kernel takes {parameter.written}"
    return ""


def _may_be_pointer(spec: Spec, launched: Launched, parameter: Declared) -> bool:
    """Whether a type without ``*`` may stand for a pointer: by an alias, a template or a macro."""
    named = {*spec.macros, *(name for name, _ in launched.signature.template)}
    aliased = [launched.aliases.get(word, ()) for word in parameter.words]
    return bool(named & set(parameter.words)) or any("*" in words for words in aliased)


def _fits(given: CppType, wanted: CppType, is_array: bool) -> bool:
    if is_array:
        # A kernel may read an array in vectors, or complex numbers as pairs.
        alike = given.nbytes == wanted.nbytes
    else:
        alike = (given.nbytes, given.width) == (wanted.nbytes, wanted.width)
    # A sign makes no difference to the bytes.
    return alike and (given.kind == wanted.kind or {given.kind, wanted.kind} <= {"i", "u"})


def _type_name(
    argument: Argument, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str | None:
    """Type of an argument by its name in ``spec.yaml``; None for a structure."""
    if not isinstance(argument.type, str):
        return None
    return str({**configuration, **problem}.get(argument.type, argument.type))


def _given_type(name: str) -> CppType | None:
    return cpp_type(tokenised(CPP_TYPES[name]), {}) if name in CPP_TYPES else None


def _choices(spec: Spec, variant: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Problems and configurations that differ in types: listed values and build tunables."""
    listed = {name: list(spec.problem[name].values or []) for name in spec.listed_columns}
    tunables = {
        name: list(one.values) if set(map(str, one.values)) <= set(CPP_TYPES) else [one.neutral]
        for name, one in spec.tunables.items()
    }
    columns = {**listed, **tunables}
    for values in itertools.islice(itertools.product(*columns.values()), MAX_CHOICES):
        chosen = dict(zip(columns, values, strict=True))
        problem = {name: chosen[name] for name in listed}
        yield problem, {"variant": variant, **{name: chosen[name] for name in tunables}}


def _parameter_type(
    spec: Spec,
    launched: Launched,
    parameter: Declared,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
) -> CppType | None:
    """Type of a parameter, with template arguments and macros of the spec in place."""
    aliases = {name: list(words) for name, words in launched.aliases.items()}
    variant = spec.variants[launched.variant]
    for name, value in _macros(spec, variant, problem, configuration).items():
        aliases[name] = tokenised(value)
    try:
        kernel = resolved_kernel(spec, launched.step.kernel, problem, configuration)
        given = template_arguments(kernel)
    except ValueError:
        return None  # It reads what no listed value is.
    for number, (name, default) in enumerate(launched.signature.template):
        text = given[number] if number < len(given) else default
        aliases.pop(name, None)
        if text and text != name:
            aliases[name] = tokenised(text)
    return cpp_type(parameter.words, aliases)


def _macros(
    spec: Spec, variant: Variant, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> dict[str, str]:
    """Macros of a build that may be types."""
    found = {name: str(configuration[name]) for name in variant.tunables}
    for name, text in spec.macros.items():
        try:
            found[name] = str(spec.value(text, problem, configuration))
        except ValueError:
            continue
    return {name: value for name, value in found.items() if value[:1].isalpha() or value[:1] == "_"}
