"""Types of C++ as types of ``spec.yaml``: numbers, vectors, structures, and the names for them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from launchwise.cuda_text.syntax import child, declarator, declarators, has_word, text_of, walk


def word_list(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


WORDS = word_list("signed unsigned char short int long float double bool void")
"""Words of which types of several words are made."""

_QUALIFIERS = re.compile(
    r"\b(const|volatile|register|struct|class|union|enum|typename|static|extern|inline|constexpr|"
    r"__restrict__|__restrict|restrict|__grid_constant__|__device__|__constant__|__shared__)\b"
)

NUMBERS: Mapping[str, str] = {
    **{"float": "float32", "double": "float64", "half": "float16", "__half": "float16"},
    **{"nv_bfloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "bool": "bool", "byte": "uint8"},
    **{"char": "int8", "signed char": "int8", "unsigned char": "uint8", "char8_t": "uint8"},
    **{"short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned": "uint32"},
    **{"long": "int64", "unsigned long": "uint64"},
    **{"long long": "int64", "unsigned long long": "uint64"},
    **{"uchar": "uint8", "ushort": "uint16", "uint": "uint32", "ulong": "uint64"},
    **{"size_t": "uint64", "uintptr_t": "uint64", "uintmax_t": "uint64"},
    **{"longlong": "int64", "ulonglong": "uint64"},
    **{"ptrdiff_t": "int64", "ssize_t": "int64", "intptr_t": "int64", "intmax_t": "int64"},
    **{"clock_t": "int64", "time_t": "int64", "char16_t": "uint16", "char32_t": "uint32"},
    **{"wchar_t": "int32"},
    **{
        f"{sign}int{kind}{bits}_t": f"{sign}int{bits if kind != '_fast' or bits == 8 else 64}"
        for sign in ("", "u")
        for kind in ("", "_least", "_fast")
        for bits in (8, 16, 32, 64)
    },
}
"""Type of C++, words in the order ``unsigned long long``, to that of ``spec.yaml``."""

CPP_TYPES: Mapping[str, str] = {
    **{"float16": "__half", "float32": "float", "float64": "double", "bfloat16": "__nv_bfloat16"},
    **{"int8": "signed char", "uint8": "unsigned char", "int16": "short"},
    **{"uint16": "unsigned short", "int32": "int", "uint32": "unsigned int"},
    **{"int64": "long long", "uint64": "unsigned long long", "bool": "bool"},
    **{"complex64": "float2", "complex128": "double2"},
}
"""Type of ``spec.yaml`` (NumPy's name) to that of C++."""

_COMPLEX = {"cuFloatComplex": "float32", "cuComplex": "float32", "cuDoubleComplex": "float64"}

BYTES: Mapping[str, int] = {
    **{"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "bool": 1},
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Structure:
    # to types of ``spec.yaml``, none where not all are numbers
    fields: Mapping[str, str] = field(default_factory=dict)
    size: int = 0  # bytes, 0 where unknown
    is_function: bool = False  # whether it has ``operator()``


@dataclass
class TypeNames:
    """Names of types that a file gives."""

    aliases: dict[str, str] = field(default_factory=dict)  # to what they stand for
    structures: dict[str, Structure] = field(default_factory=dict)
    enums: dict[str, list[str]] = field(default_factory=dict)  # to their enumerators
    numbers: Mapping[str, int] = field(default_factory=dict)  # of macros

    def resolved(self, name: str) -> str:
        """What a name stands for in the end."""
        for _ in range(len(self.aliases)):
            name = self.aliases.get(name.rpartition("::")[2], name)
        return name

    def structure(self, name: str) -> Structure | None:
        return self.structures.get(bare(self.resolved(name)).rpartition("::")[2])

    def spec_type(self, written: str) -> tuple[str, int]:
        """Type of ``spec.yaml`` and elements of a vector; ``("", 1)`` for an unknown type. A pair
        of floats is one complex number."""
        found = elements(written, self.aliases)
        return ("complex64", 1) if found == ("float32", 2) else found


def bare(written: str) -> str:
    """A type without qualifiers and needless spaces."""
    text = re.sub(r"\s+", " ", _QUALIFIERS.sub(" ", written)).strip()
    return re.sub(r" ?(::|[<>,*&]) ?", r"\1", text)


def elements(written: str, aliases: Mapping[str, str]) -> tuple[str, int]:
    """Type of ``spec.yaml`` of the elements of a type and their number; ``("", 1)`` if unknown."""
    name = bare(written)
    for _ in range(len(aliases) + 1):
        last = name.rpartition("::")[2] if "<" not in name else name
        if last not in aliases or bare(aliases[last]) == name:
            break
        name = bare(aliases[last])
    parts = name.split()
    if parts and {*parts} <= WORDS:
        # `int` adds nothing to `long`, `short` and `unsigned`.
        rest = sorted(part for part in parts if part not in ("signed", "unsigned", "int"))
        sign = ["unsigned"] if "unsigned" in parts else []
        signed_char = ["signed"] if rest == ["char"] and "signed" in parts else []
        name = " ".join([*sign, *signed_char, *rest]) or "int"
        return NUMBERS.get(name, ""), 1
    if inner := re.fullmatch(r"(?:\w*::)*complex<(.+)>", name):
        kind, _ = elements(inner[1], aliases)
        return (kind, 2) if kind else ("", 1)
    name = name.rpartition("::")[2] if "<" not in name else name
    if name in NUMBERS:
        return NUMBERS[name], 1
    if name in _COMPLEX:
        return _COMPLEX[name], 2
    if name[-1:] in ("1", "2", "3", "4") and name[:-1] in NUMBERS:
        return NUMBERS[name[:-1]], int(name[-1])
    return "", 1


def integer(text: str) -> int | None:
    """The integer that a text of C++ is, in brackets or not; None where it is none."""
    found = re.fullmatch(r"[(){ ]*([+-]?\d[\d']{0,400})[uUlL]*[(){} ]*", text, re.ASCII)
    return int(found[1].replace("'", "")) if found else None


def is_type(word: str) -> bool:
    """Whether CUDA or C++ itself has a type of that name."""
    return word in WORDS or word == "signed" or elements(word, {})[0] != ""


_STRUCTURES = ("struct_specifier", "class_specifier", "union_specifier")
MOST_FIELDS = 256  # Of an array in a structure

_LAYOUT = ("alignas_qualifier", "attribute_specifier", "ms_declspec_modifier")


def type_names(root: Node, numbers: Mapping[str, int] | None = None) -> TypeNames:
    """Names of types that a text gives, also inside of functions. ``numbers``: macros' integers."""
    found = TypeNames(numbers=numbers or {})
    for node in walk(root, *_STRUCTURES, "enum_specifier", "type_definition", "alias_declaration"):
        kind, name = child(node, "type"), text_of(child(node, "name"))
        if node.type == "alias_declaration":
            found.aliases[name] = bare(text_of(kind))
        elif node.type == "type_definition":
            for each in declarators(node) if child(kind, "body") is None else ():
                if not (each.sizes or each.arguments):
                    found.aliases[each.name] = bare(text_of(kind)) + "*" * each.pointers
        elif child(node, "body") is not None:
            typedef = node.parent if node.parent and node.parent.type == "type_definition" else None
            named = [each.name for each in declarators(typedef)] if typedef else []
            for own in [*([name] if name.isidentifier() else []), *named]:
                if node.type == "enum_specifier":
                    scope = f"{own}::" if has_word(node, "class", "struct") else ""
                    values = [text_of(child(one, "name")) for one in walk(node, "enumerator")]
                    found.enums[own] = [f"{scope}{value}" for value in values]
                else:
                    found.structures[own] = _structure(node, found)
    return found


def _structure(node: Node, names: TypeNames) -> Structure:
    """Fields of a structure, by the rules of C for their places; none where one is no number."""
    body = child(node, "body")
    is_function = any("operator()" in text_of(each) for each in walk(node, "operator_name"))
    opaque = Structure(is_function=is_function)
    derived = any(each.type == "base_class_clause" for each in node.children)
    if body is None or derived or node.type == "union_specifier":
        return opaque
    fields: dict[str, str] = {}
    size, widest = 0, 1
    for member in body.named_children:
        found = _fields(member, names)
        if found is None:
            return opaque
        for name, kind in found.items():
            item = BYTES[kind]
            fields[name] = kind
            size, widest = -(-size // item) * item + item, max(widest, item)
    size = -(-size // widest) * widest
    return Structure(fields, size, is_function) if fields and _is_usual(node, size) else opaque


def _is_usual(node: Node, size: int) -> bool:
    """Whether fields lie as usual in memory: ``alignas(16)`` of 16 bytes changes nothing."""
    layout = [each for each in node.children if each.type in _LAYOUT]
    following = node.next_sibling
    asked = [text_of(each.named_children[0]) for each in layout if each.named_children]
    plain = all(each.isdecimal() and int(each) and size % int(each) == 0 for each in asked)
    return plain and len(asked) == len(layout) and getattr(following, "type", "") not in _LAYOUT


def _fields(member: Node, names: TypeNames) -> dict[str, str] | None:
    """Fields of one member to their types; None where one is no plain number."""
    if any(each.type == "virtual" or text_of(each) == "virtual" for each in member.children):
        return None
    if member.type != "field_declaration":
        return None if member.type == "ERROR" else {}
    if has_word(member, "static", "constexpr", "friend"):
        return {}
    kind = child(member, "type")
    declared = declarators(member)
    if kind is not None and kind.type in (*_STRUCTURES, "enum_specifier") and not declared:
        # A type that is only declared; one without a name has fields of its own.
        own = child(kind, "name") is not None or kind.type == "enum_specifier"
        return {} if own else None
    if any(each.type in ("bitfield_clause", *_LAYOUT) for each in member.children):
        return None
    found: dict[str, str] = {}
    for node, each in zip(member.children_by_field_name("declarator"), declared, strict=True):
        if each.arguments is not None:
            if each.pointers or "parenthesized" in str(node):
                return None  # A pointer to a function.
            continue
        element, width = names.spec_type(text_of(kind))
        sizes = [names.numbers.get(size) or integer(size) or 0 for size in each.sizes]
        is_number = element and width == 1 and not (each.pointers or each.is_reference)
        if not is_number or not 0 < math.prod(sizes) <= MOST_FIELDS:
            return None
        # An array is a field per element: `a[2][2]` is a_0_0, a_0_1, a_1_0, a_1_1.
        for place in itertools.product(*map(range, sizes)):
            found["_".join(map(str, [declarator(node).name, *place]))] = element
    return found
