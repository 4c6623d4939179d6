"""Parameters of kernels as the files of a variant declare them, templates included.

What cannot be read off a declaration has no type: it is taken to be right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from launchwise.cli.new.directives import split
from launchwise.cli.new.tokens import is_name
from launchwise.workloads.definitions import without_bounds

_SCALARS: Mapping[str, tuple[str, int]] = {
    **{"float": ("f", 4), "double": ("f", 8), "bool": ("u", 1), "char": ("i", 1)},
    **{"signed char": ("i", 1), "unsigned char": ("u", 1)},
    **{"short": ("i", 2), "unsigned short": ("u", 2), "int": ("i", 4), "unsigned int": ("u", 4)},
    **{"long": ("i", 8), "unsigned long": ("u", 8)},
    **{"long long": ("i", 8), "unsigned long long": ("u", 8)},
    **{"size_t": ("u", 8), "ptrdiff_t": ("i", 8), "ssize_t": ("i", 8)},
    **{"intptr_t": ("i", 8), "uintptr_t": ("u", 8)},
    **{"uchar": ("u", 1), "ushort": ("u", 2), "uint": ("u", 4), "ulong": ("u", 8)},
    **{f"int{bits}_t": ("i", bits // 8) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": ("u", bits // 8) for bits in (8, 16, 32, 64)},
    **{"half": ("f", 2), "__half": ("f", 2)},
    **{"__nv_bfloat16": ("bf", 2), "nv_bfloat16": ("bf", 2)},
}
"""Type of C++ to its kind and size in bytes."""

_VECTORS: Mapping[str, tuple[str, int]] = {
    **{"float": ("f", 4), "double": ("f", 8), "char": ("i", 1), "uchar": ("u", 1)},
    **{"short": ("i", 2), "ushort": ("u", 2), "int": ("i", 4), "uint": ("u", 4)},
    **{"long": ("i", 8), "ulong": ("u", 8), "longlong": ("i", 8), "ulonglong": ("u", 8)},
    **{"half": ("f", 2), "__half": ("f", 2), "nv_bfloat16": ("bf", 2)},
    "__nv_bfloat16": ("bf", 2),
}
_COMPLEX = {"cuComplex": 4, "cuFloatComplex": 4, "cuDoubleComplex": 8}
_WORDS = frozenset(
    ("signed", "unsigned", "char", "short", "int", "long", "float", "double", "bool")
)
_QUALIFIERS = frozenset(
    (
        *("const", "volatile", "register", "struct", "class", "union", "typename"),
        *("__restrict__", "__restrict", "restrict", "__grid_constant__"),
    )
)


@dataclass(frozen=True)
class CppType:
    """A type of numbers.

    Parameters
    ----------
    kind
        ``f``, ``bf`` (bfloat16), ``i`` or ``u``, of an element.
    nbytes
        Size of an element.
    width
        Elements of a vector or complex number; 1 for others.
    """

    kind: str
    nbytes: int
    width: int = 1


@dataclass(frozen=True)
class Declared:
    """A parameter of a kernel.

    Parameters
    ----------
    name
        As the file has it; empty where it has none.
    words
        Its type, without qualifiers, ``*`` and ``&``.
    is_pointer
        Whether it points to elements; None where that cannot be told.
    is_const
        Whether the kernel may not write what it points to.
    """

    name: str
    words: tuple[str, ...]
    is_pointer: bool | None
    is_const: bool

    @property
    def written(self) -> str:
        """Its type as text."""
        return " ".join(self.words)


@dataclass(frozen=True)
class Signature:
    """Declaration of a kernel.

    Parameters
    ----------
    parameters
        In order.
    template
        Names of its template parameters, in order, with their defaults (empty for none).
    """

    parameters: tuple[Declared, ...]
    template: tuple[tuple[str, str], ...]


def signatures(text: str) -> dict[str, list[Signature]]:
    """Kernels of a text to their definitions; a name has several under ``#if`` and ``#else``."""
    tokens = split(without_bounds(text)).tokens
    found: dict[str, list[Signature]] = {}
    for place, token in enumerate(tokens):
        if token != "__global__":
            continue
        opening = next((n for n in range(place, len(tokens)) if tokens[n] in "(;{"), len(tokens))
        if opening == len(tokens) or tokens[opening] != "(" or not is_name(tokens[opening - 1]):
            continue
        end = _closing(tokens, opening)
        start = place
        while start and tokens[start - 1] not in (";", "}", "{"):
            start -= 1
        head = tokens[start:opening]
        if "template" in head and head[head.index("template") + 1] != "<":
            continue  # An explicit instantiation.
        parts = [part for part in _at_commas(tokens[opening + 1 : end]) if part != ["void"]]
        signature = Signature(tuple(map(_declared, parts)), tuple(_template(head)))
        if signature not in found.setdefault(tokens[opening - 1], []):
            found[tokens[opening - 1]].append(signature)
    return found


def _closing(tokens: Sequence[str], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place] == "(") - (tokens[place] == ")")
        if depth == 0:
            return place
    return len(tokens)


def _at_commas(tokens: Iterable[str]) -> list[list[str]]:
    """Tokens between the commas that no bracket holds, angle brackets included."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += token in ("(", "[", "{", "<")
        depth -= token in (")", "]", "}", ">")
        if token == "," and depth <= 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts if parts != [[]] else []


def _template(head: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Names and defaults of the parameters in ``template <...>``."""
    if "template" not in head:
        return
    start = head.index("template") + 2
    depth, end = 1, start
    while end < len(head) and depth:
        depth += (head[end] == "<") - (head[end] == ">")
        end += 1
    for part in _at_commas(head[start : end - 1]):
        before = part[: part.index("=")] if "=" in part else part
        default = "".join(part[len(before) + 1 :])
        yield (before[-1] if before else "", default)


def _declared(tokens: list[str]) -> Declared:
    if "=" in tokens:
        tokens = tokens[: tokens.index("=")]
    flat: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token in ("<", "[")) - (token in (">", "]"))
        if depth == 0 and token not in (">", "]"):
            flat.append(token)
    star = flat.index("*") if "*" in flat else len(flat)
    names = [token for token in flat if is_name(token) and token not in _QUALIFIERS]
    has_name = len(names) > 1 and names[-1] not in _WORDS
    name = names[-1] if has_name else ""
    stops = [n for n, token in enumerate(tokens) if token in ("*", "&", "[")]
    if name in tokens:
        stops.append(len(tokens) - 1 - tokens[::-1].index(name))
    words = tokens[: min(stops)] if stops else tokens
    unknown = "&" in tokens or "(" in tokens or "..." in "".join(tokens) or flat.count("*") > 1
    return Declared(
        name=name,
        words=tuple(token for token in words if token not in _QUALIFIERS and token != "std"),
        is_pointer=None if unknown else "*" in flat or "[" in tokens,
        is_const="const" in flat[:star],
    )


def aliases_of(text: str) -> dict[str, list[str]]:
    """Names of types to the tokens that they stand for: ``typedef``, ``using``, ``#define``."""
    code = split(text)
    found = {name: list(macro.value) for name, macro in code.macros.items() if macro.value}
    plain = " ".join(code.tokens)
    for match in re.finditer(r"\btypedef ([^;{}()]+?) (\w+) ;", plain):
        found[match[2]] = match[1].split()
    for match in re.finditer(r"\busing (\w+) = ([^;{}()]+?) ;", plain):
        found[match[1]] = match[2].split()
    return found


def cpp_type(words: Sequence[str], aliases: Mapping[str, Sequence[str]]) -> CppType | None:
    """Type of numbers that some words of C++ name; None for a structure or an unknown type."""
    plain = [word for word in words if word not in _QUALIFIERS and word not in ("std", "::")]
    for _ in range(len(aliases) + 1):
        if len(plain) != 1 or plain[0] not in aliases:
            break
        plain = [
            word
            for word in aliases[plain[0]]
            if word not in _QUALIFIERS and word not in ("std", "::")
        ]
    if "complex" in plain and "<" in plain:
        element = cpp_type(plain[plain.index("<") + 1 : -1], aliases)
        return None if element is None else CppType(element.kind, element.nbytes, 2)
    if plain and set(plain) <= _WORDS:
        sign = "unsigned " if "unsigned" in plain else ""
        # `int` adds nothing to `long`, `short` and `unsigned`.
        rest = [word for word in plain if word not in ("signed", "unsigned", "int")]
        text = f"{sign}{' '.join(sorted(rest)) or 'int'}"
        return CppType(*_SCALARS[text]) if text in _SCALARS else None
    if len(plain) != 1:
        return None
    name = plain[0]
    if name in _SCALARS:
        return CppType(*_SCALARS[name])
    if name in _COMPLEX:
        return CppType("f", _COMPLEX[name], 2)
    if name[-1:] in "1234" and name[:-1] in _VECTORS:
        return CppType(*_VECTORS[name[:-1]], int(name[-1]))
    return None
