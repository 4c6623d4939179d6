"""Types of C++ as types of ``spec.yaml``: numbers, vectors, aliases, structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from launchwise.cli.new.tokens import at_commas, closing, is_name


def words(*lines: str) -> frozenset[str]:
    """Words of some lines."""
    return frozenset(word for line in lines for word in line.split())


TYPES: Mapping[str, str] = {
    **{"float": "float32", "double": "float64", "half": "float16", "__half": "float16"},
    **{"nv_bfloat16": "bfloat16", "__nv_bfloat16": "bfloat16"},
    **{"cuFloatComplex": "complex64", "cuComplex": "complex64", "float2": "complex64"},
    **{"complex<float>": "complex64", "thrust::complex<float>": "complex64"},
    **{"cuda::std::complex<float>": "complex64", "std::complex<float>": "complex64"},
    **{"bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8"},
    **{"short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32"},
    **{"long": "int64", "unsigned long": "uint64"},
    **{"long long": "int64", "unsigned long long": "uint64"},
    **{"size_t": "uint64", "ptrdiff_t": "int64", "ssize_t": "int64", "byte": "uint8"},
    **{"uint": "uint32", "uchar": "uint8", "ushort": "uint16", "ulong": "uint64"},
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Type of C (words in the order ``unsigned long long``) to that of ``spec.yaml``."""

VECTORS = {
    f"{prefix}{width}": (kind, width)
    for prefix, kind in (
        *(("float", "float32"), ("double", "float64"), ("half", "float16"), ("int", "int32")),
        *(("uint", "uint32"), ("char", "int8"), ("uchar", "uint8"), ("short", "int16")),
        *(("ushort", "uint16"), ("longlong", "int64"), ("ulonglong", "uint64")),
        *(("long", "int64"), ("ulong", "uint64"), ("__half", "float16")),
        *(("nv_bfloat16", "bfloat16"), ("__nv_bfloat16", "bfloat16")),
    )
    for width in (1, 2, 3, 4)
    if (prefix, width) != ("float", 2)
} | {
    **{"nv_bfloat162": ("bfloat16", 2), "__nv_bfloat162": ("bfloat16", 2)},
    **{"cuDoubleComplex": ("float64", 2), "complex<double>": ("float64", 2)},
    **{"thrust::complex<double>": ("float64", 2), "cuda::std::complex<double>": ("float64", 2)},
}
"""Vector type of CUDA to the type of its elements and their number."""
WORDS = words("signed unsigned char short int long float double bool void")
"""Words of which types of several words are made."""

QUALIFIERS = words(
    "std const volatile static extern inline constexpr struct register typename class enum union",
    "__restrict__ __restrict restrict __grid_constant__ __forceinline__ __align__ alignas",
    "__device__ __constant__ __shared__ __managed__ __host__ __noinline__",
)
"""Words of a declaration that are neither its type nor its name."""

BYTES = {
    **{"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "bool": 1},
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def fits(declared: str, given: str) -> bool:
    """Whether an array or number of type ``given`` may be passed where a kernel declares a type.

    A sign makes no difference to the bytes. Complex numbers are pairs of ``float32``.
    """
    if declared == given or {declared, given} <= {"bool", "uint8", "int8"}:
        return True
    if declared == "complex64":
        return given == "float32"
    same = BYTES.get(declared) == BYTES.get(given)
    return same and "int" in declared and "int" in given


@dataclass(frozen=True)
class Structure:
    """A structure that the file defines.

    Parameters
    ----------
    fields
        Field to type of ``spec.yaml``; empty where not all fields are numbers.
    size
        Bytes; 0 where unknown.
    is_function
        Whether it can be called: it has ``operator()``.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    is_function: bool = False


@dataclass
class Names:
    """Names of types that a file gives: aliases to what they stand for, and structures."""

    aliases: dict[str, str] = field(default_factory=dict)
    structures: dict[str, Structure] = field(default_factory=dict)
    enums: dict[str, list[str]] = field(default_factory=dict)

    def resolved(self, name: str) -> str:
        """What a name stands for in the end."""
        for _ in range(len(self.aliases)):
            name = self.aliases.get(name, name)
        return name

    def structure(self, name: str) -> Structure | None:
        """The structure of that name."""
        return self.structures.get(self.resolved(name).removeprefix("struct "))


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
    name = name.replace(" ", "") if "<" in name or "::" in name else name
    name = name if name in TYPES or name in VECTORS else name.rsplit("::", 1)[-1]
    if name in VECTORS:
        return VECTORS[name]
    return TYPES.get(name, ""), 1


def names_of(tokens: Sequence[str], macros: Mapping[str, Sequence[str]]) -> Names:
    """Aliases (``typedef``, ``using``, ``#define``), structures and enumerations of a file."""
    found = Names({name: " ".join(value) for name, value in macros.items() if value})
    tokens = tuple(tokens)
    for place, token in enumerate(tokens):
        if token in ("struct", "class", "union"):
            _read_structure(tokens, place, found)
        elif token == "enum":
            _read_enum(tokens, place, found)
        elif token in ("typedef", "using") and ";" in tokens[place:]:
            _read_alias(tokens, place, found)
    return found


def _read_alias(tokens: tuple[str, ...], place: int, found: Names) -> None:
    rest = tokens[place + 1 : tokens.index(";", place)]
    if tokens[place] == "typedef" and len(rest) > 1 and _is_type(rest):
        found.aliases[rest[-1]] = " ".join(each for each in rest[:-1] if each not in QUALIFIERS)
    elif tokens[place] == "using" and rest[1:2] == ("=",) and _is_type(rest[2:]):
        found.aliases[rest[0]] = " ".join(each for each in rest[2:] if each not in QUALIFIERS)


def _is_type(tokens: Sequence[str]) -> bool:
    return bool(tokens) and all(is_name(each) or each in ("::", "<", ">") for each in tokens)


def _read_structure(tokens: tuple[str, ...], place: int, found: Names) -> None:
    """A structure with its name, or with the name that ``typedef`` gives it after its braces."""
    if "{" not in tokens[place : place + 16]:
        return
    start = tokens.index("{", place)
    head, end = tokens[place + 1 : start], closing(tokens, start)
    if {*head} & {";", ")", "=", ">", ","} - ({")"} if "(" in head else set()):
        return
    before = head[: head.index(":")] if ":" in head else head
    named = [each for each in before if is_name(each) and each not in ("final", "alignas")]
    after = tokens[end + 1 : end + 2]
    typedef = place > 0 and tokens[place - 1] == "typedef"
    names = [*named[-1:], *([after[0]] if typedef and after and is_name(after[0]) else [])]
    made = _structure(tokens[start + 1 : end], found, is_union=tokens[place] == "union")
    for name in names:
        found.structures[name] = made if ":" not in head else Structure(size=made.size)


def _structure(body: Sequence[str], names: Names, is_union: bool) -> Structure:
    """Fields of a structure, by the rules of C for their places."""
    fields: dict[str, str] = {}
    size, widest, sure = 0, 1, not is_union
    place = 0
    while place < len(body):
        end = place
        while end < len(body) and body[end] not in (";", "{"):
            end += 1
        tokens = list(body[place:end])
        if end < len(body) and body[end] == "{":
            end = closing(body, end)  # A function, or a structure inside.
            sure = sure and "(" in tokens
        place = end + 1
        while tokens[:1] and tokens[0] in ("public", "private", "protected", ":"):
            tokens = tokens[1:]
        if not tokens or "(" in tokens or tokens[0] in ("static", "using", "typedef", "friend"):
            continue
        tokens = tokens[: tokens.index("=")] if "=" in tokens and "," not in tokens else tokens
        first, *others = at_commas([each for each in tokens if each not in QUALIFIERS])
        flat = first[: first.index("[")] if "[" in first else first
        kind, width = type_of(flat[:-1], names.aliases)
        for part in (first[len(flat[:-1]) :], *others):
            plain = len(part) == 1 or (len(part) > 2 and part[1] == "=")
            sure = sure and bool(kind) and width == 1 and plain and is_name(part[0])
            if not sure:
                continue
            item = BYTES[kind]
            fields[part[0]] = kind
            size, widest = -(-size // item) * item + item, max(widest, item)
    function = any(pair == ("operator", "(") for pair in pairwise(body))
    if not sure or not fields:
        return Structure(is_function=function)
    return Structure(fields, -(-size // widest) * widest, function)


def _read_enum(tokens: tuple[str, ...], place: int, found: Names) -> None:
    if "{" not in tokens[place : place + 8]:
        return
    start = tokens.index("{", place)
    head = [each for each in tokens[place + 1 : start] if each not in ("class", "struct")]
    head = head[: head.index(":")] if ":" in head else head
    prefix = f"{head[-1]}::" if "class" in tokens[place:start] and head else ""
    parts = at_commas(tokens[start + 1 : closing(tokens, start)])
    if head and is_name(head[-1]):
        found.enums[head[-1]] = [
            f"{prefix}{part[0]}" for part in parts if part and is_name(part[0])
        ]
