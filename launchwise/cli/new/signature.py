"""Kernels of a CUDA file: names, parameters, bodies, and arrays in constant memory.

A small parser for what kernels' declarations look like. It does not understand C++; it
reports what it cannot read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.cli.new.directives import directives
from launchwise.cli.new.headers import Header, with_headers
from launchwise.cli.new.pasting import without_pasting
from launchwise.cli.new.pieces import Piece, pieces_of, without_host_conditions
from launchwise.cli.new.templates import (
    TemplateParameter,
    names_of_types,
    template_parameters,
)
from launchwise.cli.new.tokens import Code, at_commas, closing, is_name
from launchwise.cli.new.types import QUALIFIERS, WORDS, Names, names_of, type_of
from launchwise.workloads.checks.spec_checks import MOST_NAMES

DEEPEST = 250
"""Most brackets of a kind that are open at once: compilers take 256."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, or an array in constant memory.

    Parameters
    ----------
    name
        As the file has it.
    written
        Its type as the file has it, without ``const`` and ``*``.
    type
        Element type of ``spec.yaml``; empty where the type is unknown, or a template's.
    width
        Elements of a vector type; 1 for others.
    pointer
        Whether it is an array.
    const
        Whether the kernel may not write what it points to.
    sizes
        Tokens between its brackets, per dimension.
    """

    name: str
    written: str
    type: str
    width: int
    pointer: bool
    const: bool
    sizes: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Parameters
    ----------
    name
        As the file has it.
    head
        Tokens before its parameters, such as ``__launch_bounds__``.
    parameters
        In order.
    body
        Tokens between its braces.
    refused
        Why no spec can be written for it; empty where one can.
    template
        Template parameters; none where it is no template.
    """

    name: str
    head: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: tuple[str, ...]
    refused: str = ""
    template: tuple[TemplateParameter, ...] = ()

    @property
    def types(self) -> Mapping[str, str]:
        """Type parameters of the template to the problem parameter that chooses their types."""
        return names_of_types(self.template, {one.written for one in self.parameters})


@dataclass(frozen=True)
class Source:
    """A CUDA file as ``launchwise new`` reads it.

    Parameters
    ----------
    code
        The file, split.
    kernels
        In the order of the file.
    constants
        Arrays in constant memory that the file does not fill itself.
    shared
        Tokens that every kernel may use: of the file's scope and of functions on the device.
    names
        Aliases, structures and enumerations.
    functions
        Functions on the device, by name: parameters and body.
    headers
        Local files that are included, directly or not.
    pieces
        Those of ``shared``, head and body.
    """

    code: Code
    kernels: tuple[Kernel, ...]
    constants: tuple[Parameter, ...]
    shared: tuple[str, ...]
    names: Names = field(default_factory=Names)
    functions: Mapping[str, Function] = field(default_factory=dict)
    headers: tuple[Header, ...] = ()
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Function:
    """A function on the device: names of its parameters, tokens of its body.

    ``changes`` are the places of the parameters that are references to what is not const.
    """

    parameters: tuple[str, ...]
    body: tuple[str, ...]
    changes: frozenset[int] = frozenset()


def read_source(path: Path, own: str | None = None) -> Source:
    """Kernels and constant memory of a CUDA file.

    What stands below ``#ifdef X`` is left out where the file does not define X, unless a kernel
    stands there.

    Parameters
    ----------
    own
        CUDA text that a file of another language holds; None where the file itself is one.

    Raises
    ------
    UserError
        When it cannot be read, has no kernel, or is nested too deep.
    """
    text, headers = with_headers(path, own)
    code = directives(text)
    _check_depth(code.tokens, path)
    whole = _read(code, headers)
    if not whole.kernels:
        raise UserError(path, "", "has no kernel: no function is __global__")
    plain = _read(directives(text, optional=False), headers)
    same = [one.name for one in plain.kernels] == [one.name for one in whole.kernels]
    return plain if same else whole


def _check_depth(tokens: Sequence[str], path: Path) -> None:
    """Insist that brackets are nested as compilers take them, since each is searched for its end.

    Raises
    ------
    UserError
        With the bracket that is open too often.
    """
    opened = {")": "(", "]": "[", "}": "{"}
    depth = dict.fromkeys(opened.values(), 0)
    for token in tokens:
        if token in depth:
            depth[token] += 1
            if depth[token] > DEEPEST:
                raise UserError(path, token, f"is nested more than {DEEPEST} levels deep")
        elif token in opened:
            depth[opened[token]] = max(0, depth[opened[token]] - 1)


def _read(code: Code, headers: Sequence[Header]) -> Source:
    """What a file declares, by its tokens and macros."""
    code = without_pasting(without_host_conditions(code))
    names = names_of(code.tokens, {name: macro.value for name, macro in code.macros.items()})
    kernels: list[Kernel] = []
    pieces: list[Piece] = []
    functions: dict[str, Function] = {}
    for head, body in pieces_of(code.tokens):
        defined = head[-1:] == ["{"]
        if "__global__" in head:
            kernels += [_kernel(head, body, names)] if defined and not _special(head) else []
        elif not defined or "__device__" in head or "constexpr" in head:
            pieces.append((tuple(head), tuple(body)))
            if defined:
                functions |= _function(head, body)
    constants = tuple(_constants(code.tokens, names.aliases))
    merged = tuple(_merged(kernels))
    shared = tuple(token for head, body in pieces for token in (*head, ";", *body))
    return Source(code, merged, constants, shared, names, functions, tuple(headers), tuple(pieces))


def _special(head: Sequence[str]) -> bool:
    """Whether a head is that of a specialisation: ``template <> __global__ void k<float>(``."""
    return list(head[:3]) == ["template", "<", ">"]


def _function(head: Sequence[str], body: Sequence[str]) -> dict[str, Function]:
    """A function on the device by its name."""
    if head[-2:-1] != [")"]:
        return {}
    start = _opening(head, len(head) - 2)
    if start == 0 or not is_name(head[start - 1]):
        return {}
    parts = at_commas(head[start + 1 : -2])
    names = []
    for part in parts:
        part = part[: part.index("=")] if "=" in part else part
        part = part[: part.index("[")] if "[" in part else part
        named = [token for token in part if is_name(token)]
        names.append(named[-1] if named else "")
    changes = {place for place, part in enumerate(parts) if "&" in part and "const" not in part}
    return {head[start - 1]: Function(tuple(names), tuple(body), frozenset(changes))}


def _merged(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """One kernel per name: those that ``#if`` and ``#else`` define alike are one."""
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        first, *others = [kernel for kernel in kernels if kernel.name == name]
        body = tuple(token for kernel in (first, *others) for token in kernel.body)
        refused = first.refused
        if any(other.parameters != first.parameters for other in others):
            many = "is defined several times, with different parameters"
            refused = f"{many}: give each one a name of its own"
        yield replace(first, body=body, refused=refused)


def _kernel(head: Sequence[str], body: Sequence[str], names: Names) -> Kernel:
    """Kernel of a head that ends with its parameters and a brace."""
    head = [*_until_parameters(head), "{"]
    start = _opening(head, len(head) - 2)
    name, before = head[start - 1], tuple(head[: start - 1])
    if not is_name(name):
        made = "".join(head[_opening(head, start - 1) - 1 : start])
        return Kernel(made, before, (), tuple(body), "its name is made by a macro")
    parts = at_commas(head[start + 1 : -2])
    if len(parts) > MOST_NAMES:
        reason = f"has {len(parts):,} parameters, more than {MOST_NAMES}"
        return Kernel(name, before, (), tuple(body), reason)
    try:
        template = template_parameters(head[: start - 1], names)
        types = {one.name for one in template if one.kind == "type"}
        parameters = tuple(
            _declared(part, place, names, types)
            for place, part in enumerate(parts)
            if part != ["void"]
        )
    except ValueError as error:
        return Kernel(name, before, (), tuple(body), str(error))
    called = {one.name for one in parameters if one.written in types and not one.pointer}
    for one, after in pairwise(body):
        if one in called and after == "(":
            reason = f"its parameter {one!r} is a function, given by value"
            return Kernel(name, before, (), tuple(body), reason)
    return Kernel(name, before, parameters, tuple(body), "", template)


def _until_parameters(head: Sequence[str]) -> list[str]:
    """A head without what may stand between its parameters and its body."""
    kept = list(head)
    while kept and kept[-1] in ("{", "noexcept", "const"):
        kept.pop()
    return kept


def _opening(tokens: Sequence[str], end: int) -> int:
    """Place of the bracket that the one at ``end`` closes; 0 where none is."""
    depth = 0
    for place in range(end, -1, -1):
        depth += (tokens[place] == ")") - (tokens[place] == "(")
        if depth == 0:
            return place
    return 0


def choose(source: Source, name: str | None, path: Path) -> Kernel:
    """The kernel of that name, or the first that a spec can be written for.

    Raises
    ------
    UserError
        When there is no such kernel, or no spec can be written for it.
    """
    known = {kernel.name: kernel for kernel in source.kernels}
    if name is not None and name not in known:
        raise UserError(path, "--kernel", unknown("kernel", name, known))
    usable = [kernel for kernel in source.kernels if not kernel.refused]
    chosen = known[name] if name is not None else (usable or list(source.kernels))[0]
    if chosen.refused:
        raise UserError(path, chosen.name, chosen.refused)
    return chosen


def _declared(tokens: Sequence[str], place: int, names: Names, types: Collection[str]) -> Parameter:
    """Parameter of one declaration, such as ``const float *__restrict__ a``.

    ``types`` are template parameters that stand for types. A parameter without a name is numbered.
    """
    if "=" in tokens:
        tokens = tokens[: list(tokens).index("=")]
    written = " ".join(tokens)
    if "&" in tokens or "&&" in tokens:
        raise ValueError(
            f"{written!r} is neither a number nor a pointer: a kernel takes no reference"
        )
    if ". . ." in written or "(" in tokens:
        raise ValueError(f"{written!r} is neither a number nor a pointer to numbers")
    if tokens.count("*") > 1:
        raise ValueError(f"{written!r} is a pointer to pointers")
    flat = list(tokens[: tokens.index("[")] if "[" in tokens else tokens)
    own = [token for token in flat if token not in QUALIFIERS and token != "*"]
    last = len(own) - 1
    if not own:
        raise ValueError(f"{written!r} has no type")
    typed = [each for each in own if is_name(each)]
    if last == 0 or not is_name(own[-1]) or own[-1] in WORDS or own[-2:-1] == ["::"]:
        own.append(f"unnamed_{place + 1}")
    type_words, name = _type_words(own[:-1]), own[-1]
    star = flat.index("*") if "*" in flat else len(flat)
    kind, width = type_of(type_words, names.aliases)
    if {*typed[:-1]} & {*types} and type_words[-1] in types:
        kind, width = "", 1
    pointer = "*" in flat or "[" in tokens
    if not pointer and not kind and type_words[-1] not in types:
        _check_value(written, type_words[-1], names)
    return Parameter(
        name=name,
        written=" ".join(type_words),
        type=kind,
        width=width,
        pointer=pointer,
        const="const" in flat[:star] or "__constant__" in flat,
        sizes=tuple(_sizes(tokens)),
    )


def _type_words(tokens: Sequence[str]) -> list[str]:
    """Words of a type: without namespaces, or one text where it has template arguments."""
    if "<" in tokens:
        return ["".join(tokens).lstrip(":")]
    return [
        token
        for place, token in enumerate(tokens)
        if is_name(token) and tuple(tokens[place + 1 : place + 2]) != ("::",)
    ] or [" ".join(tokens)]


def _check_value(written: str, name: str, names: Names) -> None:
    """Insist that what is passed by value is a number, or a structure of numbers."""
    structure = names.structure(name)
    if structure is not None and not structure.fields:
        raise ValueError(f"{written!r} is passed by value and not all its fields are numbers")
    if name.startswith("cuda") or "<" in name:
        raise ValueError(f"{written!r} is passed by value and is no number")


def _sizes(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    place = 0
    while place < len(tokens):
        if tokens[place] == "[":
            end = closing(tokens, place)
            yield tuple(tokens[place + 1 : end])
            place = end
        place += 1


def _constants(tokens: Sequence[str], aliases: Mapping[str, str]) -> Iterator[Parameter]:
    """Arrays and numbers in constant memory without values of their own."""
    for place, token in enumerate(tokens):
        if token != "__constant__" or ";" not in tokens[place:]:
            continue
        first, *others = at_commas(tokens[place : tokens.index(";", place)])
        flat = first[: first.index("[")] if "[" in first else first
        named = [each for each in flat if is_name(each) and each not in QUALIFIERS]
        if len(named) < 2:
            continue
        kind, width = type_of(named[:-1], aliases)
        for part in ([named[-1], *first[len(flat) :]], *others):
            if part and "=" not in part and "{" not in part and is_name(part[0]):
                written, sizes = " ".join(named[:-1]), tuple(_sizes(part))
                yield Parameter(part[0], written, kind, width, True, True, sizes)
