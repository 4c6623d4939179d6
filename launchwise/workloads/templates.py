"""What a CUDA text defines, and templates by name: ``kernel: gemm<BM, BN, dtype>`` in a spec.

The text is read as it stands, all branches of ``#if`` included; what macros make is not found.
Template arguments are build tunables, listed problem values, macros of the spec, expressions over
these, literals and types of C++. They are resolved to C++ text for every configuration."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tree_sitter import Node

from launchwise.base.expressions import FUNCTIONS, names_in
from launchwise.cuda_text.declarations import Item, declared_names, items
from launchwise.cuda_text.syntax import (
    above,
    child,
    condition_of,
    declarators,
    has_word,
    missing_in,
    parse,
    spans_of,
    text_of,
    walk,
    without_comments,
    without_directives,
)
from launchwise.cuda_text.types import CPP_TYPES, is_type, word_list
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import included_files, source_text
from launchwise.workloads.spec_fields import SpecFields


@dataclass(frozen=True)
class Definition:
    """A kernel in a CUDA text. ``name`` has its namespaces, ``mine::axpy``, but for anonymous ones;
    ``line`` is that of its name, from 1. ``is_local`` says that it is ``static`` or in an anonymous
    namespace: nvcc drops it unless it is used."""

    name: str
    line: int
    is_template: bool
    is_local: bool


@lru_cache(maxsize=64)
def _root(text: str) -> Node:
    return parse(without_directives(text))


def definitions(text: str, kernel: str | None = None) -> list[Definition]:
    """Kernels that a text without comments defines or declares; those of one name only.

    ``kernel``: name, with or without namespaces; all kernels when left out.
    """
    found = [
        _definition(item)
        for item in items(_root(text))
        if item.is_kernel and item.is_function and item.inner.type != "template_instantiation"
    ]
    if kernel is None:
        return found
    return [each for each in found if each.name == kernel or each.name.endswith(f"::{kernel}")]


def _definition(item: Item) -> Definition:
    named = item.declarator
    node = named.node or item.node
    return Definition(
        name="::".join([*filter(None, item.scope), named.name]),
        line=node.start_point[0] + 1,
        is_template=item.node.type == "template_declaration",
        is_local="" in item.scope or has_word(item.inner, "static"),
    )


def functions_of_c(text: str) -> set[str]:
    """Functions that a text without comments declares as ``extern "C"``."""
    return {
        item.declarator.name
        for item in items(_root(text))
        if item.is_function and any(one.type == "linkage_specification" for one in above(item.node))
    }


def declares(text: str, name: str) -> bool:
    """Whether a text declares a type, a constant or a macro of that name outside of functions."""
    if re.search(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", text, re.MULTILINE):
        return True
    every = items(_root(text), members=True)
    named = any(name in item.names for item in every if not item.is_function or item.is_constant)
    return named or any(name in item.scope for item in every)


@lru_cache(maxsize=64)
def _variables(text: str) -> frozenset[str]:
    return frozenset(declared_names([_root(text)]))


def is_macro(name: str, text: str) -> bool:
    """Whether a C++ text uses a name without declaring it as a variable or parameter."""
    return re.search(rf"\b{name}\b", text) is not None and name not in _variables(text)


def overriding_line(name: str, text: str, macros: Collection[str] = ()) -> int:
    """Line that defines or undefines a macro under no condition; 0 where none does. A guard of the
    file (``#ifndef FILE_H``, then ``#define FILE_H``) is no condition, unless it is one of the
    ``macros`` that the build defines: then what it guards is left out."""
    for number, line in enumerate(_unconditional(text, macros), 1):
        word, rest = condition_of(line)
        if word in ("define", "undef") and re.match(rf"{re.escape(name)}\b", rest):
            return number
    return 0


def declaring_line(name: str, text: str, macros: Collection[str] = ()) -> int:
    """Line that declares a name as a constant or an enumerator under no condition; 0 for none. A
    macro of that name would stand in its declaration: ``const int 64 = 128;``. Conditions are those
    of :func:`overriding_line`."""
    if name not in text:
        return 0
    root = _root("\n".join(_unconditional(text, macros)))
    named = [child(each, "name") for each in walk(root, "enumerator")]
    for each in walk(root, "declaration", "field_declaration"):
        if has_word(each, "const", "constexpr", "constinit"):
            named += [one.node for one in declarators(each) if one.arguments is None]
    lines = [node.start_point[0] + 1 for node in named if node and text_of(node) == name]
    return min(lines, default=0)


def _unconditional(text: str, macros: Collection[str]) -> list[str]:
    """Lines of a text; those under a condition are empty."""
    lines = text.splitlines()
    for start, branches in spans_of(lines).items():
        guard = missing_in(*condition_of(lines[start]))
        # The name of a guard has no value.
        if guard in macros or lines[start + 1].split() != ["#define", guard]:
            lines[start : branches[-1]] = [""] * (branches[-1] - start)
    return lines


_TOKEN = re.compile(r"'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.']*|::|\S")
_CPP_WORDS = word_list(
    "const volatile sizeof alignof true false nullptr typename struct class enum",
    "std cuda thrust cub nvcuda dim3",
)


@lru_cache(maxsize=1024)
def template_arguments(text: str) -> list[str]:
    """Template arguments of a kernel as a spec names it; empty for a kernel that is no template.
    Raises ValueError when brackets are missing or an argument is empty."""
    if "<" not in text:
        return []
    name, _, rest = text.strip().partition("<")
    if not re.fullmatch(r"\s*\w+(?:\s*::\s*\w+)*\s*", name) or not rest.endswith(">"):
        raise ValueError(f"{text!r} is no name with template arguments, such as gemm<64, float>")
    if re.search(r"^\s*,|,\s*[,>]", rest):
        raise ValueError(f"{text!r}: a template argument is empty")
    root = parse(f"auto kernel = {text};")
    listed = next(walk(root, "template_argument_list"), None)
    if listed is None or root.has_error:
        raise ValueError(f"{text!r}: brackets do not match; put a comparison in parentheses")
    return [text_of(each).strip() for each in listed.named_children]


def _names(argument: str) -> Iterator[str]:
    """Identifiers of a template argument that stand for themselves: not ``b`` in ``A::b``."""
    before = ""
    for token in _TOKEN.findall(argument):
        if (token[0].isalpha() or token[0] == "_") and before != "::":
            yield token
        before = token


def template_names(text: str) -> list[str]:
    """Names in the template arguments of a kernel, each once, in their order."""
    return list(dict.fromkeys(name for each in template_arguments(text) for name in _names(each)))


def cpp_text(value: Any) -> str:
    """A value of a tunable, of a problem parameter or of an expression as C++ text. Raises
    ValueError for a number that is not whole."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError(f"is {value:g}, not a whole number")
        value = int(value)
    return CPP_TYPES.get(value, value) if isinstance(value, str) else str(value)


def resolved_kernel(
    spec: SpecFields, text: str, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str:
    """A kernel as it is launched: template arguments as C++ text, ``gemm<64, 8, float>``.

    ``text``: as ``variants.<name>.kernel`` names it.
    Raises ValueError when an argument has no value that C++ can take, or brackets do not match.
    """
    if "<" not in text:
        return text
    base = "".join(text.partition("<")[0].split())
    resolved = (
        _resolved(spec, argument, problem, configuration) for argument in template_arguments(text)
    )
    return f"{base}<{', '.join(resolved)}>"


def _resolved(
    spec: SpecFields, argument: str, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str:
    known = {*spec.build_tunables, *spec.listed_columns, *spec.macros}
    names = set(_names(argument))
    if argument in spec.macros:
        return cpp_text(spec.value(spec.macros[argument], problem, configuration))
    if names & known or names & set(spec.derived):
        given: dict[str, Any] = {**configuration, **problem}
        for name in names & set(spec.macros):
            given[name] = spec.value(spec.macros[name], problem, configuration)
        if _is_expression(argument, {*known, *spec.derived}):
            try:
                return cpp_text(spec.formulas.value(argument, given))
            except ValueError as error:
                raise ValueError(f"{argument!r} {error}") from error
        for name in names & set(spec.derived):
            given[name] = spec.value(name, problem, configuration)
    else:
        given = {}
    # A type or a constant of C++ around values: `Vector<T, 4>`, `BM * sizeof(T)`.
    parts = [
        cpp_text(given[part]) if part in given else CPP_TYPES.get(part, part)
        for part in re.split(r"((?<!:)\b[A-Za-z_]\w*)", argument)
    ]
    return "".join(parts)


def _is_expression(argument: str, known: set[str]) -> bool:
    try:
        return names_in(argument) <= known
    except ValueError:
        return False


def check_kernel_text(spec: SpecFields, variant: Variant, kernel: str, source: str) -> None:
    """Insist that the template arguments of a variant's kernel can be resolved.

    ``source``: text of the variant's source and of the headers beside it, without comments.
    Raises ValueError with the first argument that is none of those allowed, and what is allowed.
    """
    values = [*own_names(spec, variant), *spec.listed_columns, *spec.macros]
    for argument in template_arguments(kernel):
        for name in _names(argument):
            if complaint := _complaint(spec, variant, name, values, source):
                raise ValueError(f"{kernel}: {complaint}")


def _complaint(
    spec: SpecFields, variant: Variant, name: str, values: list[str], source: str
) -> str:
    if name in values:
        return ""
    if name in spec.tunables:
        if spec.tunables[name].kind == "launch":
            return f"{name} is a launch tunable; a template argument needs kind: build"
        return f"{name} is no tunable of this variant: add it to its tunables"
    if name in spec.problem:
        return f"{name} has no listed values, and each value needs a compilation: list them"
    if name in spec.derived:
        raw = spec.formulas.raw_names(name)
        strange = [each for each in raw if each not in values]
        return f"{name} reads {strange[0]}, which is not fixed by a build" if strange else ""
    known = name in CPP_TYPES or name in FUNCTIONS or name in _CPP_WORDS or is_type(name)
    if known or name.startswith("__") or declares(source, name):
        return ""
    allowed = {
        "build tunables": own_names(spec, variant),
        "listed problem values": spec.listed_columns,
        "macros": list(spec.macros),
    }
    said = [f"{kind} ({', '.join(names)})" for kind, names in allowed.items() if names]
    also = [*said, "numbers", "true, false", "characters", "types of C++"]
    return f"unknown template argument {name!r}; allowed: {', '.join(also)}"


def own_names(spec: SpecFields, variant: Variant) -> list[str]:
    return [name for name in variant.tunables if spec.tunables[name].kind == "build"]


def macro_names(folder: Path, spec: SpecFields, variant: Variant) -> list[str]:
    """Build tunables of a variant, and macros of the spec, that become macros of a build. All of
    them, except template arguments whose name the source declares as a variable or as a parameter
    (``template <int BM>``): a macro would replace the name there."""
    own = [*own_names(spec, variant), *spec.macros]
    named = {name for text in variant.kernel_names for name in template_names(text)}
    if not named or variant.source is None:
        return own
    path = folder / variant.source
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    listed = (variant.source, *spec.headers)
    return [
        name for name in own if name not in named or _reads_macro(folder, listed, changed, name)
    ]


@lru_cache(maxsize=1024)
def _reads_macro(folder: Path, sources: tuple[str, ...], changed: int, name: str) -> bool:
    for path in included_files(folder, sources):
        text = without_comments(source_text(path))
        if re.search(rf"^[ \t]*#[ \t]*(?:el)?if[^\n]*\b{name}\b", text, re.MULTILINE):
            return True
        heads = walk(_root(text), "template_parameter_list")
        if name not in declared_names(list(heads)) and is_macro(name, text):
            return True
    return False


def is_template(source: str, kernel: str) -> bool | None:
    """Whether every kernel of that name is a template; None where they differ or none is found."""
    kinds = {each.is_template for each in definitions(source, kernel)}
    return kinds.pop() if len(kinds) == 1 else None
