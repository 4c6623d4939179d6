"""Types of C++ as types of ``spec.yaml``: numbers, vectors, structures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


def word_list(*lines: str) -> frozenset[str]:
    """Words of some lines."""
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

_ELEMENTS = {
    **{"float": "float32", "double": "float64", "half": "float16", "__half": "float16"},
    **{"nv_bfloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "char": "int8", "uchar": "uint8"},
    **{"short": "int16", "ushort": "uint16", "int": "int32", "uint": "uint32", "long": "int64"},
    **{"ulong": "uint64", "longlong": "int64", "ulonglong": "uint64"},
}
_COMPLEX = {"cuFloatComplex": "float32", "cuComplex": "float32", "cuDoubleComplex": "float64"}

BYTES: Mapping[str, int] = {
    **{"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "bool": 1},
    **{f"{sign}int{bits}": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True)
class Structure:
    """A structure: its fields to types of ``spec.yaml``, none where not all are numbers.

    ``size`` is in bytes, 0 where unknown. ``is_function`` says that it has ``operator()``.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    is_function: bool = False


@dataclass
class TypeNames:
    """Names of types that a file gives: aliases to what they stand for, structures, enumerators."""

    aliases: dict[str, str] = field(default_factory=dict)
    structures: dict[str, Structure] = field(default_factory=dict)
    enums: dict[str, list[str]] = field(default_factory=dict)

    def resolved(self, name: str) -> str:
        """What a name stands for in the end."""
        for _ in range(len(self.aliases)):
            name = self.aliases.get(name.rpartition("::")[2], name)
        return name

    def structure(self, name: str) -> Structure | None:
        """The structure of that name."""
        return self.structures.get(bare(self.resolved(name)).rpartition("::")[2])

    def spec_type(self, written: str) -> tuple[str, int]:
        """Type of ``spec.yaml`` and elements of a vector; ``("", 1)`` for an unknown type.

        A pair of floats is one complex number.
        """
        kind, width = self.elements(written)
        return ("complex64", 1) if (kind, width) == ("float32", 2) else (kind, width)

    def elements(self, written: str) -> tuple[str, int]:
        """Type of the elements and their number, of a complex number two."""
        return elements(written, self.aliases)


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
    if name[-1:] in ("1", "2", "3", "4") and name[:-1] in _ELEMENTS:
        return _ELEMENTS[name[:-1]], int(name[-1])
    return "", 1


def is_type(word: str) -> bool:
    """Whether CUDA or C++ itself has a type of that name."""
    return word in WORDS or word == "signed" or elements(word, {})[0] != ""
