"""Arguments of a spec beside the parameters of its kernels: CUDA itself compares neither."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import SPEC_FILE
from launchwise.cuda_text.declarations import Item, Parameter, items
from launchwise.cuda_text.preprocessor import ExpandsTooFar, expanded
from launchwise.cuda_text.syntax import declarators, has_word, parse, tokens_of, without_comments
from launchwise.cuda_text.types import BYTES, CPP_TYPES, elements, type_names
from launchwise.workloads.arguments import NULL, Argument, Step, parameters_of
from launchwise.workloads.builds import split_kernel
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import sources_text
from launchwise.workloads.spec import Spec
from launchwise.workloads.templates import resolved_kernel, template_arguments

MAX_CHOICES = 64  # Most combinations of types that are compared


@dataclass(frozen=True)
class Launched:
    variant: str
    step: Step
    name: str
    item: Item
    given: tuple[str, ...]
    aliases: Mapping[str, str]
    spaces: frozenset[str]


def check_signatures(folder: Path, spec: Spec) -> None:
    """Compare number, kind and type of arguments with the kernels of each variant. Types are
    compared for each choice of listed problem values and of tunables that are types. What cannot be
    read off a file is taken to be right: structures, types that are unknown. Raises UserError at
    the first difference."""
    for key, message in _complaints(folder, spec) if spec.arguments else ():
        raise UserError(folder / SPEC_FILE, key, message)


def _complaints(folder: Path, spec: Spec) -> Iterator[tuple[str, str]]:
    """Keys with what is wrong; what follows the first one need not be."""
    yield from _of_constants(folder, spec)
    launched = list(_launched(folder, spec))
    writable = {
        (one.variant, argument)
        for one in launched
        for argument, parameter in zip(one.given, one.item.parameters, strict=False)
        if not parameter.is_const
    }
    for one in launched:
        yield from _of_template(spec, one)
        key, takes = f"variants.{one.variant}.arguments", one.item.parameters
        given, own = ", ".join(one.given), [each.name for each in takes]
        if len(one.given) != len(takes):
            listed = ", ".join(each.name or each.written for each in takes)
            yield (
                key,
                f"{one.name} takes {len(takes)} ({listed}), {len(one.given)} are given ({given})",
            )
        exchanged = [name for name, other in zip(one.given, own, strict=True) if name != other]
        if one.step.arguments is None and set(own) >= set(exchanged) and exchanged:
            yield (
                "arguments",
                f"{one.name} takes {', '.join(own)}, in this order; given are {given}",
            )
        for argument, parameter in zip(one.given, takes, strict=True):
            place = f"{one.name}({parameter.name})"
            # One of several kernels that writes it is enough.
            read_only = (one.variant, argument) not in writable
            if argument == NULL:
                if is_pointer(parameter) is False and not _may_be_pointer(spec, one, parameter):
                    yield key, f"nullptr is given, the kernel takes a number: {place}"
            elif said := _difference(spec, one, argument, parameter, read_only):
                yield f"arguments.{argument}", f"{said}: {place}"


def _of_constants(folder: Path, spec: Spec) -> Iterator[tuple[str, str]]:
    """Arrays of ``__constant__`` memory that no source names."""
    asked = {name: one.constant for name, one in spec.arguments.items() if one.constant is not None}
    sources = {str(one.source) for one in spec.variants.values() if not one.is_triton}
    declared = _declared(folder, [*sorted(sources), *spec.headers], spec) if asked else []
    constant = [item for item in declared if has_word(item.inner, "__constant__")]
    known = [each.name for item in constant for each in declarators(item.inner)]
    for name, array in asked.items():
        if array.split("::")[-1] not in known:
            yield f"arguments.{name}.constant", unknown("__constant__ array", array, known)


def _declared(folder: Path, files: Sequence[str], spec: Spec) -> list[Item]:
    """Declarations of files; what a build sets stands for itself."""
    try:
        return _items(sources_text(folder, files), (*spec.tunables, *spec.macros))
    except ExpandsTooFar as error:
        raise UserError(folder / files[0], "", str(error)) from error


@lru_cache(maxsize=32)
def _items(text: str, names: tuple[str, ...]) -> list[Item]:
    macros = {"KERNEL(name)": "name", **{name: name for name in names}}
    return items(parse(expanded(without_comments(text), macros).text))


def is_pointer(parameter: Parameter) -> bool | None:
    """Whether a parameter points to elements; None where that cannot be told."""
    unknown_kind = parameter.is_reference or parameter.is_other or "..." in parameter.text
    return None if unknown_kind or parameter.pointers > 1 else parameter.pointers > 0


def _of_template(spec: Spec, launched: Launched) -> Iterator[tuple[str, str]]:
    kernel, variant = launched.step.kernel, spec.variants[launched.variant]
    place = f"kernels.{variant.steps.index(launched.step)}." if variant.kernels else ""
    key = f"variants.{launched.variant}.{place}kernel"
    spaces = [each.strip() for each in split_kernel(kernel)[0].split("::")[:-1]]
    if strange := [each for each in spaces if each not in launched.spaces]:
        yield key, f"{variant.source} has no namespace {strange[0]}"
    template, given = launched.item.template, template_arguments(kernel)
    least = sum(not one.default for one in template)
    # Those of a pack are any number.
    pack = any(one.kind == "pack" for one in template)
    if given and not pack and not least <= len(given) <= len(template):
        listed = ", ".join(one.name for one in template)
        message = f"{launched.name} takes {len(template)} template arguments ({listed})"
        yield key, f"{message}, {len(given)} are given"


def _launched(folder: Path, spec: Spec) -> Iterator[Launched]:
    for variant, one in spec.variants.items():
        if one.is_triton:
            continue  # Types follow from the arguments.
        declared = _declared(folder, [str(one.source), *spec.headers], spec)
        kernels: dict[str, dict[tuple[object, ...], Item]] = {}
        for item in declared:
            if item.is_kernel and not item.instantiates and item.is_function:
                same = kernels.setdefault(item.declarator.name, {})
                same.setdefault((item.parameters, item.template), item)
        root = declared[0].node.parent if declared else None
        aliases = type_names(root).aliases if root is not None else {}
        spaces = frozenset(name for item in declared for name in item.scope)
        for step in one.steps:
            name = split_kernel(step.kernel)[0].split("::")[-1]
            defined = list(kernels.get(name, {}).values())
            # Several definitions belong to branches of #if, or are overloads.
            if len(defined) == 1:
                listed = parameters_of(step.arguments, spec.arguments)
                given = tuple(each for each in listed if each == NULL or each in spec.arguments)
                yield Launched(variant, step, name, defined[0], given, aliases, spaces)


def _difference(
    spec: Spec, launched: Launched, name: str, parameter: Parameter, read_only: bool
) -> str:
    argument = spec.arguments[name]
    pointer = is_pointer(parameter)
    if pointer is None:
        return ""
    if argument.is_array != pointer:
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
        given = elements(CPP_TYPES.get(named or "", ""), {})
        if not wanted[0] or not given[0] or _fits(given, wanted, argument.is_array):
            continue
        return f"is {named}, the kernel takes {parameter.written}"
    return ""


def _may_be_pointer(spec: Spec, launched: Launched, parameter: Parameter) -> bool:
    """Whether a type without ``*`` may stand for a pointer: by an alias, a template or a macro."""
    words = tokens_of(parameter.written)
    named = {*spec.macros, *(one.name for one in launched.item.template)}
    aliased = [launched.aliases.get(word, "") for word in words]
    return bool(named & {*words}) or any("*" in text for text in aliased)


def _fits(given: tuple[str, int], wanted: tuple[str, int], is_array: bool) -> bool:
    """Whether elements of a type, and of a number their width, are those of another."""
    # A kernel may read an array in vectors, or complex numbers as pairs.
    widths_agree = is_array or given[1] == wanted[1]
    kinds = {_kind(given[0]), _kind(wanted[0])}
    return BYTES[given[0]] == BYTES[wanted[0]] and widths_agree and len(kinds) == 1


def _kind(element: str) -> str:
    """Kind of a number; a sign makes no difference to the bytes."""
    return "integer" if "int" in element or element == "bool" else element.rstrip("0123456789")


def _type_name(
    argument: Argument, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str | None:
    if not isinstance(argument.type, str):
        return None
    return str({**configuration, **problem}.get(argument.type, argument.type))


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
    parameter: Parameter,
    problem: Mapping[str, Any],
    configuration: Mapping[str, Any],
) -> tuple[str, int]:
    """Elements of a parameter and their number, with template arguments and macros in place."""
    aliases = dict(launched.aliases)
    variant = spec.variants[launched.variant]
    aliases |= _macros(spec, variant, problem, configuration)
    try:
        kernel = resolved_kernel(spec, launched.step.kernel, problem, configuration)
        given = template_arguments(kernel)
    except ValueError:
        return "", 1  # It reads what no listed value is.
    for number, one in enumerate(launched.item.template):
        text = given[number] if number < len(given) else one.default
        aliases.pop(one.name, None)
        if text and text != one.name:
            aliases[one.name] = text
    return elements(parameter.written, aliases)


def _macros(
    spec: Spec, variant: Variant, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> dict[str, str]:
    found = {name: str(configuration[name]) for name in variant.tunables}
    for name, text in spec.macros.items():
        try:
            found[name] = str(spec.value(text, problem, configuration))
        except ValueError:
            continue
    return {name: value for name, value in found.items() if value[:1].isalpha() or value[:1] == "_"}
