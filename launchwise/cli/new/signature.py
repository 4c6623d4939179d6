"""Kernels of a CUDA file as a spec may hold them: parameters, templates, constant memory."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tree_sitter import Node

from launchwise.base.errors import UserError, unknown
from launchwise.cli.new.headers import Header, with_headers
from launchwise.cuda_text import declarations
from launchwise.cuda_text.declarations import Item, TemplateParameter, items, on_device
from launchwise.cuda_text.host_code import HostCode
from launchwise.cuda_text.preprocessor import Expanded, ExpandsTooFar, expanded
from launchwise.cuda_text.syntax import (
    child,
    declarators,
    excluded_by,
    has_word,
    parse,
    text_of,
    tokens_of,
    walk,
)
from launchwise.cuda_text.types import NUMBERS, TypeNames, type_names
from launchwise.workloads.checks.spec_checks import MOST_NAMES
from launchwise.workloads.sources import source_text

_MOST_TRIALS = 8  # Names that are tried for a kernel that stands below `#ifdef`


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, or an array in constant memory."""

    name: str
    written: str  # type as the file has it, without ``const`` and ``*``
    type: str  # of its elements in ``spec.yaml``; empty where unknown, or a template's
    width: int  # elements of a vector
    pointer: bool
    const: bool
    sizes: tuple[tuple[str, ...], ...] = ()  # tokens between its brackets, per dimension
    counts: bool = False  # whether it is an integer, also one of a template


@dataclass(frozen=True)
class Kernel:
    """A kernel with its definitions: one, or one per branch of an ``#if``."""

    name: str
    parameters: tuple[Parameter, ...]
    items: tuple[Item, ...]
    refused: str = ""  # why no spec can be written for it; empty where one can
    template: tuple[TemplateParameter, ...] = ()  # of kind type, integer, flag or enum
    integers: frozenset[str] = frozenset()  # types of the template that stand for integers

    @property
    def types(self) -> Mapping[str, str]:
        """Type parameters of the template to the problem parameter that chooses their types. A type
        that no parameter of the kernel has stands for no number."""
        used = {one.written for one in self.parameters}
        found: dict[str, str] = {}
        for one in self.template:
            if one.kind == "type" and one.name in used:
                found[one.name] = "dtype" if not found else f"dtype_{one.name.lower().strip('_')}"
        return found


@dataclass(frozen=True)
class Source:
    """A CUDA file as ``launchwise new`` reads it."""

    root: Node
    expanded: Expanded
    kernels: tuple[Kernel, ...]
    headers: tuple[Header, ...]
    defined: tuple[str, ...]  # names that must be defined for its kernels to be there
    items: tuple[Item, ...]
    names: TypeNames = field(default_factory=TypeNames)

    @cached_property
    def host(self) -> HostCode:
        return HostCode(self.root, self.items)

    @cached_property
    def constants(self) -> tuple[Parameter, ...]:
        """Arrays and numbers in constant memory that the file does not fill itself."""
        found = []
        for item in self.items:
            written = text_of(child(item.inner, "type"))
            kind, width = self.names.spec_type(written)
            nodes = item.inner.children_by_field_name("declarator")
            for node, one in zip(nodes, declarators(item.inner), strict=True):
                held = has_word(item.inner, "__constant__")
                if held and node.type != "init_declarator" and one.name:
                    sizes = tuple(tuple(tokens_of(size)) for size in one.sizes)
                    found.append(Parameter(one.name, written, kind, width, True, True, sizes))
        return tuple(found)

    @cached_property
    def functions(self) -> Mapping[str, tuple[Item, Node]]:
        return {
            item.declarator.name: (item, item.body)
            for item in self.items
            if item.is_function and item.body is not None and not item.is_kernel and on_device(item)
        }


def read_source(path: Path, own: str | None = None, wanted: str | None = None) -> Source:
    """Kernels and constant memory of a CUDA file. What stands below ``#ifdef X`` is left out where
    the file does not define X, unless the kernel that is ``wanted``, or any, stands there alone.
    ``own`` is the CUDA text that a file of another language holds. Raises UserError when it cannot
    be read or has no kernel."""
    text, headers = with_headers(path, own)
    if "__global__" not in text:
        raise UserError(path, "", "has no kernel: no function is __global__")
    first = _read(text, path, headers)
    tested = first.expanded.tested
    for defined in ((), *((name,) for name in tested[:_MOST_TRIALS]), tuple(tested)):
        made = _read(text, path, headers, defined) if defined else first
        if any(wanted in (None, kernel.name) for kernel in made.kernels):
            return made
    if wanted is not None and (reason := excluded_by(text, wanted)):
        raise UserError(path, "--kernel", f"{wanted} stands under {reason}")
    if not first.kernels:
        raise UserError(path, "", "has no kernel: no function is __global__")
    return first


def _read(
    text: str, path: Path, headers: Sequence[Header], defined: tuple[str, ...] = ()
) -> Source:
    try:
        made = expanded(text, {name: name for name in defined})
    except ExpandsTooFar as error:
        raise UserError(path, "", str(error)) from error
    root = parse(made.text)
    every, names = items(root), type_names(root, made.numbers)
    kernels = [
        _kernel(item, names)
        for item in every
        if item.is_kernel and item.body is not None and not item.instantiates
    ]
    known = tuple(one for one in headers if one.path or one.name.replace(" ", "_") in made.missing)
    return Source(root, made, tuple(_merged(kernels)), known, defined, tuple(every), names)


def _merged(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """One kernel per name: those that ``#if`` and ``#else`` define alike are one."""
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        first, *others = [kernel for kernel in kernels if kernel.name == name]
        refused = first.refused
        if any(other.parameters != first.parameters for other in others):
            many = "is defined several times, with different parameters"
            refused = f"{many}: give each one a name of its own"
        every = tuple(item for kernel in (first, *others) for item in kernel.items)
        yield replace(first, items=every, refused=refused)


def _kernel(item: Item, names: TypeNames) -> Kernel:
    name, given = " ".join(item.declarator.name.split()), item.parameters
    try:
        if " " in name:
            raise ValueError("its name is more than a name")
        if made := item.made_by_macro:
            name = made
            raise ValueError("its name is made by a macro")
        if not given:
            raise ValueError("has no parameters, so that nothing comes in or goes out")
        if len(given) > MOST_NAMES:
            raise ValueError(f"has {len(given):,} parameters, more than {MOST_NAMES}")
        found = (_template_parameter(one, at, names) for at, one in enumerate(item.template))
        template = tuple(one for one in found if one is not None)
        types = {one.name for one in template if one.kind == "type"}
        integers = frozenset(name for name in types if _is_index(name, item))
        parameters = tuple(
            _parameter(one, at, names, types, integers) for at, one in enumerate(given)
        )
        values = {one.name for one in parameters if one.written in types and not one.pointer}
        for call in walk(item.inner, "call_expression"):
            if (one := text_of(child(call, "function"))) in values:
                raise ValueError(f"its parameter {one!r} is a function, given by value")
    except ValueError as error:
        return Kernel(name, (), (item,), str(error))
    return Kernel(name, parameters, (item,), "", template, integers)


_OF_INTEGERS = ("%", "<<", ">>", "&", "|", "^")


def _is_index(name: str, item: Item) -> bool:
    """Whether variables of a type of a template index arrays, or count from ``blockIdx``."""
    declared: set[str] = set()
    for node in walk(item.inner, "declaration", "parameter_declaration"):
        if text_of(child(node, "type")) == name:
            declared |= {one.name for one in declarators(node)}
            if re.search(r"\b(blockIdx|threadIdx)\b", text_of(node)):
                return True
    for node in walk(item.inner, "subscript_argument_list", "binary_expression"):
        operator = text_of(child(node, "operator"))
        counts = node.type == "subscript_argument_list" or operator in _OF_INTEGERS
        if counts and any(text_of(each) in declared for each in walk(node, "identifier")):
            return True
    return False


def choose(source: Source, name: str | None, path: Path) -> Kernel:
    """The kernel of that name, or the first that a spec can be written for, those of headers last.
    Raises UserError when there is no such kernel, or no spec can be written for it."""
    known = {kernel.name: kernel for kernel in source.kernels}
    if name is not None and name not in known:
        raise UserError(path, "--kernel", unknown("kernel", name, known))
    usable = [kernel for kernel in source.kernels if not kernel.refused]
    own = source_text(path)
    usable.sort(key=lambda kernel: not re.search(rf"\b{kernel.name}\s*\(", own))
    chosen = known[name] if name is not None else (usable or list(source.kernels))[0]
    if chosen.refused:
        raise UserError(path, chosen.name, chosen.refused)
    return chosen


def _parameter(
    one: declarations.Parameter,
    place: int,
    names: TypeNames,
    types: Collection[str],
    integers: Collection[str],
) -> Parameter:
    """A parameter of a kernel; one without a name is numbered. ``types`` are template parameters
    that stand for types, ``integers`` those for integers."""
    structure, complaint = names.structure(one.written), ""
    of_template = one.written in types
    kind, width = ("", 1) if of_template else names.spec_type(one.written)
    by_value = not one.pointers and not kind and not of_template
    if one.is_other or "..." in one.text:
        complaint = "is neither a number nor a pointer to numbers"
    elif one.is_reference:
        complaint = "is neither a number nor a pointer: a kernel takes no reference"
    elif one.pointers > 1:
        complaint = "is a pointer to pointers"
    elif not one.written:
        complaint = "has no type"
    elif by_value and structure is not None and not structure.fields:
        complaint = "is passed by value and not all its fields are numbers or arrays of them"
    elif by_value and (one.written.startswith("cuda") or "<" in one.written):
        complaint = "is passed by value and is no number"
    if complaint:
        raise ValueError(f"{one.text!r} {complaint}")
    written = one.written if "<" in one.written else one.written.rpartition("::")[2]
    return Parameter(
        one.name or f"unnamed_{place + 1}",
        written,
        kind,
        width,
        bool(one.pointers),
        one.is_const,
        counts="int" in kind or written in integers,
    )


def _template_parameter(
    one: TemplateParameter, place: int, names: TypeNames
) -> TemplateParameter | None:
    """A parameter of a template as a spec takes it; None for one without a name that only restricts
    the others."""
    if one.kind in ("pack", "template"):
        raise ValueError(f"its template parameter {one.text!r} stands for no single type or number")
    default = "".join(tokens_of(one.default))
    if not one.name and (default or "enable_if" in one.written):
        return None
    kind, written = one.kind, one.written.rpartition("::")[2]
    if kind == "value":
        known = names.spec_type(one.written)[0]
        counts = "int" in known or one.written == "auto" or written in NUMBERS
        kind = "flag" if known == "bool" else "integer" if counts else kind
        kind = "enum" if written in names.enums else kind
    if kind in ("value", "other"):
        raise ValueError(f"its template parameter {one.text!r} is neither a type nor a number")
    name = one.name or f"{'type' if kind == 'type' else 'argument'}_{place + 1}"
    return replace(one, name=name, kind=kind, written=written, default=default)
