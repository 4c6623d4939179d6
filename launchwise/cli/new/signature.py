"""Kernels of a CUDA file: names, parameters, bodies, and arrays in constant memory.

A small parser for what kernels' declarations look like. It does not understand C++; it
reports what it cannot read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launchwise.base.errors import UserError, unknown
from launchwise.cli.new.tokens import Code, at_commas, closing, is_name, split
from launchwise.workloads.sources import source_text

_STRUCTURE = "struct"
"""Type that stands for a structure."""


def words(*lines: str) -> frozenset[str]:
    """Words of some lines."""
    return frozenset(word for line in lines for word in line.split())


TYPES: Mapping[str, str] = {
    **{"float": "float32", "double": "float64", "half": "float16", "__half": "float16"},
    **{"bool": "uint8", "char": "int8", "signed char": "int8", "unsigned char": "uint8"},
    **{"short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32"},
    **{"long": "int64", "unsigned long": "uint64"},
    **{"long long": "int64", "unsigned long long": "uint64"},
    **{"size_t": "uint64", "ptrdiff_t": "int64", "ssize_t": "int64"},
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Type of C (words in the order ``unsigned long long``) to that of ``spec.yaml``."""

VECTORS = {
    f"{prefix}{width}": (kind, width)
    for prefix, kind in (
        *(("float", "float32"), ("double", "float64"), ("half", "float16"), ("int", "int32")),
        *(("uint", "uint32"), ("char", "int8"), ("uchar", "uint8"), ("short", "int16")),
        *(("ushort", "uint16"), ("longlong", "int64"), ("ulonglong", "uint64")),
    )
    for width in (1, 2, 3, 4)
}
"""Vector type of CUDA to the type of its elements and their number."""
WORDS = words("signed unsigned char short int long float double bool void")
"""Words of which types of several words are made."""

QUALIFIERS = words(
    "std const volatile static extern inline constexpr struct register",
    "__restrict__ __restrict restrict __grid_constant__ __forceinline__",
    "__device__ __constant__ __shared__ __managed__ __host__ __noinline__",
)
"""Words of a declaration that are neither its type nor its name."""


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
        Element type of ``spec.yaml``; empty where the type is unknown.
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
    """

    name: str
    head: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    body: tuple[str, ...]
    refused: str = ""


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
    """

    code: Code
    kernels: tuple[Kernel, ...]
    constants: tuple[Parameter, ...]
    shared: tuple[str, ...]


def read_source(path: Path) -> Source:
    """Kernels and constant memory of a CUDA file.

    Raises
    ------
    UserError
        When it cannot be read or has no kernel.
    """
    try:
        code = split(source_text(path))
    except OSError as error:
        raise UserError(path, "", f"cannot be read: {error.strerror}") from error
    aliases = _aliases(code)
    kernels: list[Kernel] = []
    shared: list[str] = []
    for head, body in _pieces(code.tokens):
        defined = head[-1:] == ["{"]
        if "__global__" in head:
            kernels += [_kernel(head, body, aliases)] if defined else []
        elif not defined or "__device__" in head:
            shared += [*head, ";", *body]
    if not kernels:
        raise UserError(path, "", "has no kernel: no function is __global__")
    constants = tuple(_constants(code.tokens, aliases))
    return Source(code, tuple(_merged(kernels)), constants, tuple(shared))


def _merged(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    """One kernel per name: those that ``#if`` and ``#else`` define alike are one."""
    for name in dict.fromkeys(kernel.name for kernel in kernels):
        first, *others = [kernel for kernel in kernels if kernel.name == name]
        body = tuple(token for kernel in (first, *others) for token in kernel.body)
        refused = first.refused
        if any(other.parameters != first.parameters for other in others):
            refused = "is defined several times, with different parameters"
        yield replace(first, body=body, refused=refused)


def _pieces(tokens: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Declarations and functions: head and body; functions of the host without their body.

    Namespaces and ``extern "C" {`` are entered. A head that has a body ends with ``{``.
    """
    head: list[str] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token == "{" and _is_function(head):
            end = closing(tokens, place)
            device = "__global__" in head or "__device__" in head
            yield [*head, "{"], list(tokens[place + 1 : end]) if device else []
            head, place = [], end
        elif token == "{" and ("namespace" in head or head[:1] == ["extern"]) and "=" not in head:
            head = []
        elif token == "{":
            end = closing(tokens, place)
            head += tokens[place : end + 1]
            place = end
        elif token == "}":
            head = []
        elif token == ";":
            yield head, []
            head = []
        else:
            head.append(token)
        place += 1
    if head:
        yield head, []


def _is_function(head: Sequence[str]) -> bool:
    """Whether a body may follow: the head ends with parameters, and is no initial value."""
    outside: list[str] = []
    depth = 0
    for token in head:
        depth += (token == "(") - (token == ")")
        if depth == 0 and token not in ("const", "noexcept"):
            outside.append(token)
    return outside[-1:] == [")"] and "=" not in outside


def _kernel(head: Sequence[str], body: Sequence[str], aliases: Mapping[str, str]) -> Kernel:
    """Kernel of a head that ends with its parameters and a brace."""
    start = _opening(head, len(head) - 2)
    name, before = head[start - 1], tuple(head[: start - 1])
    if not is_name(name):
        made = "".join(head[_opening(head, start - 1) - 1 : start])
        return Kernel(made, before, (), tuple(body), "its name is made by a macro")
    if "template" in head:
        reason = "is a template; add a kernel to the file that is none and holds the same code"
        return Kernel(name, before, (), tuple(body), reason)
    parts = at_commas(head[start + 1 : -2])
    try:
        parameters = tuple(_declared(part, aliases) for part in parts if part != ["void"])
    except ValueError as error:
        return Kernel(name, before, (), tuple(body), str(error))
    return Kernel(name, before, parameters, tuple(body))


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


def _declared(tokens: Sequence[str], aliases: Mapping[str, str]) -> Parameter:
    """Parameter of one declaration, such as ``const float *__restrict__ a``."""
    if "=" in tokens:
        tokens = tokens[: list(tokens).index("=")]
    written = " ".join(tokens)
    if "&" in tokens or "..." in written or "(" in tokens or "<" in tokens:
        raise ValueError(f"{written!r} is neither a number nor a pointer to numbers")
    if tokens.count("*") > 1:
        raise ValueError(f"{written!r} is a pointer to pointers")
    flat = list(tokens[: tokens.index("[")] if "[" in tokens else tokens)
    named = [token for token in flat if is_name(token) and token not in QUALIFIERS]
    if len(named) < 2 or named[-1] in WORDS:
        raise ValueError(f"{written!r} has no name")
    star = flat.index("*") if "*" in flat else len(flat)
    type_words, name = named[:-1], named[-1]
    kind, width = type_of(type_words, aliases)
    pointer = "*" in flat or "[" in tokens
    if not pointer and not kind and _is_opaque(type_words[-1], aliases):
        raise ValueError(f"{written!r} is passed by value and is no number")
    return Parameter(
        name=name,
        written=" ".join(type_words),
        type=kind,
        width=width,
        pointer=pointer,
        const="const" in flat[:star] or "__constant__" in flat,
        sizes=tuple(_sizes(tokens)),
    )


def _is_opaque(name: str, aliases: Mapping[str, str]) -> bool:
    """Whether a type is a structure of the file or an object of CUDA, such as a texture."""
    return aliases.get(name) == _STRUCTURE or name.startswith("cuda")


def _sizes(tokens: Sequence[str]) -> Iterator[tuple[str, ...]]:
    place = 0
    while place < len(tokens):
        if tokens[place] == "[":
            end = closing(tokens, place)
            yield tuple(tokens[place + 1 : end])
            place = end
        place += 1


def type_of(written: Sequence[str], aliases: Mapping[str, str]) -> tuple[str, int]:
    """Type of ``spec.yaml`` and elements of a vector; ``("", 1)`` for an unknown type."""
    name = " ".join(written)
    for _ in range(len(aliases)):
        name = aliases.get(name, name)
    parts = name.split()
    if {*parts} <= WORDS and parts:
        sign = "unsigned " if "unsigned" in parts else ""
        # `int` adds nothing to `long`, `short` and `unsigned`.
        rest = [part for part in parts if part not in ("signed", "unsigned", "int")]
        signed_char = rest == ["char"] and "signed" in parts
        name = "signed char" if signed_char else sign + (" ".join(rest) or "int")
    if name in VECTORS:
        return VECTORS[name]
    return TYPES.get(name, ""), 1


def _aliases(code: Code) -> dict[str, str]:
    """Names of types to others: ``typedef``, ``using``, ``#define``; structures of the file."""
    found = {name: " ".join(macro.value) for name, macro in code.macros.items() if macro.value}
    tokens = code.tokens
    for place, token in enumerate(tokens):
        if token in ("struct", "class", "union") and tokens[place + 2 : place + 3] == ("{",):
            found[tokens[place + 1]] = _STRUCTURE
        if token not in ("typedef", "using") or ";" not in tokens[place:]:
            continue
        rest = tokens[place + 1 : tokens.index(";", place)]
        if token == "typedef" and len(rest) > 1 and all(map(is_name, rest)):
            found[rest[-1]] = " ".join(rest[:-1])
        elif token == "using" and rest[1:2] == ("=",) and all(map(is_name, rest[2:])):
            found[rest[0]] = " ".join(rest[2:])
    return found


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
            if "=" not in part and "{" not in part and is_name(part[0]):
                written, sizes = " ".join(named[:-1]), tuple(_sizes(part))
                yield Parameter(part[0], written, kind, width, True, True, sizes)
