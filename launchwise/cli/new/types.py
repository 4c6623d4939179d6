"""Types of C++ as types of ``spec.yaml``: numbers, vectors, aliases, structures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
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
        if token in ("struct", "class", "union") and tokens[place - 1 : place] != ("enum",):
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


_KINDS = ("struct", "class", "union", "enum")
_LAYOUT = ("alignas", "__align__", "__attribute__", "__declspec")
"""Words that change where fields lie."""


def _read_structure(tokens: tuple[str, ...], place: int, found: Names) -> None:
    """A structure with its name, or with the name that ``typedef`` gives it after its braces."""
    if "{" not in tokens[place : place + 24]:
        return
    start = tokens.index("{", place)
    head, end = _without_layout(tokens[place + 1 : start]), closing(tokens, start)
    derived = ":" in head
    own = head[: head.index(":")] if derived else head
    # `struct A f(int n) {` is a function, `class T> struct A {` the end of a template's head;
    # `struct A<float> {` says nothing of another A.
    if {*head} & {";", "(", ")", "="} or {*own} & {">", ",", "<"}:
        return
    named = [each for each in own if is_name(each) and each != "final"]
    after = tokens[end + 1 : end + 2]
    typedef = place > 0 and tokens[place - 1] == "typedef"
    names = [*named[-1:], *([after[0]] if typedef and after and is_name(after[0]) else [])]
    made = _structure(tokens[start + 1 : end], found, is_union=tokens[place] == "union")
    if derived or not _is_usual({*after}, tokens[place:start], made.size):
        made = Structure(is_function=made.is_function)
    for name in names:
        found.structures[name] = made


def _is_usual(after: Set[str], head: Sequence[str], size: int) -> bool:
    """Whether fields lie as usual in memory: ``alignas(16)`` of 16 bytes changes nothing."""
    asked = [place for place, token in enumerate(head) if token in _LAYOUT]
    numbers = [head[place + 2] for place in asked if len(head) > place + 3]
    plain = all(one.isdigit() and int(one) and size % int(one) == 0 for one in numbers)
    return not after & {*_LAYOUT} and len(numbers) == len(asked) and plain


def _without_layout(head: Sequence[str]) -> list[str]:
    """A head without ``alignas(16)`` and the like."""
    kept: list[str] = []
    place = 0
    while place < len(head):
        if head[place] in _LAYOUT and tuple(head[place + 1 : place + 2]) == ("(",):
            place = closing(head, place + 1)
        else:
            kept.append(head[place])
        place += 1
    return kept


def _members(body: Sequence[str]) -> Iterator[list[str]]:
    """Declarations in a structure; of functions and types inside with ``{`` for their braces."""
    member: list[str] = []
    place = 0
    while place < len(body):
        token = body[place]
        if token == ";":
            yield member
            member = []
        elif token == ":" and member[-1:] and member[-1] in ("public", "private", "protected"):
            member = []
        elif token == "{":
            place = closing(body, place)
            member.append(token)
            if _is_method(member):
                yield member
                member = []
        else:
            member.append(token)
        place += 1
    yield member


def _is_method(member: Sequence[str]) -> bool:
    """Whether a declaration is that of a function: brackets come before an initial value."""
    before = member[: member.index("=")] if "=" in member else member
    before = before[: before.index("{")] if "{" in before else before
    return "operator" in before or "(" in before


def _structure(body: Sequence[str], names: Names, is_union: bool) -> Structure:
    """Fields of a structure, by the rules of C for their places; none where one is no number."""
    function = any(pair == ("operator", "(") for pair in pairwise(body))
    fields: dict[str, str] = {}
    size, widest = 0, 1
    for member in _members(body):
        if not member or member[0] in ("static", "using", "typedef", "friend", "template"):
            continue
        found = _fields(member, names)
        if found is None or is_union:
            return Structure(is_function=function)
        for name, kind in found.items():
            item = BYTES[kind]
            fields[name] = kind
            size, widest = -(-size // item) * item + item, max(widest, item)
    if not fields:
        return Structure(is_function=function)
    return Structure(fields, -(-size // widest) * widest, function)


def _fields(member: Sequence[str], names: Names) -> dict[str, str] | None:
    """Fields of one declaration to their types; None where one is no plain number."""
    # A pointer to a function, a table of virtual functions, another layout.
    if ("(", "*") in pairwise(member) or {*member} & {"virtual", *_LAYOUT}:
        return None
    if _is_method(member):
        return {}
    if member[0] in _KINDS and (len(member) == 2 or member[-1] == "{"):
        # A type that is only declared; one without a name has fields of its own.
        is_enum = member[0] == "enum"
        return {} if is_enum or (len(member) > 1 and member[1] not in ("{", ":")) else None
    if "inline" in member or "constexpr" in member:
        return {}
    parts = at_commas([each for each in member if each not in {*QUALIFIERS, "mutable"}])
    kept = [_without_value(part) for part in parts]
    kind, width = type_of(kept[0][:-1], names.aliases) if kept else ("", 1)
    if not kind or width > 1:
        return None
    found: dict[str, str] = {}
    for part in (kept[0][-1:], *kept[1:]):
        if len(part) != 1 or not is_name(part[0]):
            return None
        found[part[0]] = kind
    return found


def _without_value(part: Sequence[str]) -> Sequence[str]:
    """A declaration without its initial value: ``float x = 1``, ``float x{1}``."""
    ends = [part.index(each) for each in ("=", "{") if each in part]
    return part[: min(ends)] if ends else part


def _read_enum(tokens: tuple[str, ...], place: int, found: Names) -> None:
    if "{" not in tokens[place : place + 8]:
        return
    start = tokens.index("{", place)
    head = [each for each in tokens[place + 1 : start] if each not in ("class", "struct")]
    if ";" in head or "(" in head:
        return
    head = head[: head.index(":")] if ":" in head else head
    after = tokens[closing(tokens, start) + 1 :][:1]
    if not head and tokens[max(place - 1, 0)] == "typedef" and after:
        head = [*after]
    prefix = f"{head[-1]}::" if "class" in tokens[place:start] and head else ""
    parts = at_commas(tokens[start + 1 : closing(tokens, start)])
    if head and is_name(head[-1]):
        found.enums[head[-1]] = [
            f"{prefix}{part[0]}" for part in parts if part and is_name(part[0])
        ]
