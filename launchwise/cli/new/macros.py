"""Names that a kernel uses and its file does not declare: macros of the compilation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from launchwise.cli.new.signature import (
    QUALIFIERS,
    TYPES,
    VECTORS,
    WORDS,
    Kernel,
    Parameter,
    Source,
    words,
)
from launchwise.cli.new.tokens import Code, closing, is_name

_KEYWORDS = words(
    "alignas alignof asm auto break case catch class continue",
    "decltype default delete do else enum explicit export false",
    "for friend goto if mutable namespace new noexcept nullptr",
    "operator private protected public return sizeof static_assert",
    "switch template this throw true try typedef typename union",
    "using virtual while const_cast static_cast reinterpret_cast",
    "and or not xor pragma unroll std bitand bitor compl",
)
_BUILT_IN = words(
    "dim3 threadIdx blockIdx blockDim gridDim warpSize NULL INFINITY NAN",
    "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON M_PI",
    "INT_MAX INT_MIN UINT_MAX LLONG_MAX LONG_MAX CHAR_BIT SIZE_MAX",
    "HUGE_VAL HUGE_VALF M_PI_2 M_SQRT2 M_E stdin stdout stderr",
)
_NO_TYPE = words("return else case goto new delete do throw sizeof")
_BEFORE_A_DECLARATION = frozenset(";{}(),<")
_AFTER_A_NAME = frozenset("=;,[({:)>")


@dataclass(frozen=True)
class Need:
    """A macro that the compilation must define.

    Parameters
    ----------
    name
        As the file has it.
    default
        Integer that the file itself would give it; None where it gives none.
    only_tested
        Whether the file only asks whether it is defined, so that 0 switches it on, too.
    is_type
        Whether it stands where a type stands: ``real x = 0;``.
    """

    name: str
    default: int | None = None
    only_tested: bool = False
    is_type: bool = False


def needed_macros(source: Source, kernel: Kernel) -> list[Need]:
    """Macros of a kernel that the compilation must or may define, in the order of their use."""
    code = source.code
    sizes = [token for each in source.constants for size in each.sizes for token in size]
    tokens = [*sizes, *source.shared, ";", *kernel.head, ";", *kernel.body]
    declared = set(_declared(tokens)) | {each.name for each in kernel.parameters}
    declared |= {each.name for each in source.constants}
    used = list(dict.fromkeys(_read([*kernel.head, ";", *kernel.body, ";", *tokens], code)))
    # The text of a macro may need others: `#define tile (block_size_x * 2)`.
    for name in used:
        macro = code.macros.get(name)
        if macro is not None and not macro.replaceable:
            used += [each for each in _read(macro.value, code) if each not in used]
    used += sorted((code.conditions | code.tested) - {*used, *code.macros})
    types = {one for one, after in pairwise(tokens) if is_name(after)}
    found = []
    for name in used:
        macro = code.macros.get(name)
        if _is_known(name) or name in declared or (macro is not None and not macro.replaceable):
            continue
        default = _integer(macro.value) if macro else None
        if macro is not None and default is None:
            continue  # Its own text is no number: the file knows better.
        if name in code.tested and macro is None and name not in _used(tokens):
            if name.isupper() and name.startswith(("CUDA", "NV", "WIN", "_")):
                continue
            found.append(Need(name, only_tested=True))
        else:
            found.append(Need(name, default, is_type=name in types))
    return found


def used_constants(source: Source, kernel: Kernel) -> list[Parameter]:
    """Arrays in constant memory that the kernel, or a function that it may call, reads."""
    return [
        one
        for one in source.constants
        # Once among the shared tokens is its declaration.
        if one.name in kernel.body or source.shared.count(one.name) > 1
    ]


def fixed_numbers(source: Source) -> dict[str, int]:
    """Macros that the file sets to an integer without ``#ifndef``."""
    values = {
        name: _integer(macro.value)
        for name, macro in source.code.macros.items()
        if not macro.replaceable
    }
    return {name: value for name, value in values.items() if value is not None}


def _integer(tokens: Sequence[str]) -> int | None:
    text = "".join(tokens).strip("()").rstrip("uUlL")
    return int(text) if text.isdigit() else None


def _is_known(name: str) -> bool:
    known = _KEYWORDS | _BUILT_IN | WORDS | QUALIFIERS | TYPES.keys() | VECTORS.keys()
    return name in known or name.startswith(("__", "cuda", "CUDART_", "nv", "cub"))


def _read(tokens: Sequence[str], code: Code) -> Iterator[str]:
    """Names that are read as values, and macros with parameters."""
    yield from _used(tokens)
    yield from (token for token in tokens if token in code.macros)


def _used(tokens: Sequence[str]) -> Iterator[str]:
    """Names that are read as values: no members, no functions, nothing of a namespace."""
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ";"
        after = tokens[place + 1] if place + 1 < len(tokens) else ";"
        if (
            is_name(token)
            and before not in (".", "->", "::", "goto", "struct", "class", "enum", "namespace")
            and after not in ("(", "::")
            and not (after == "<" and before == "::")
        ):
            yield token


def _declared(tokens: Sequence[str]) -> Iterator[str]:
    """Names of variables, parameters, types and enumerators that the tokens declare."""
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ";"
        if token in ("struct", "class", "union", "enum", "typename", "using", "namespace"):
            yield from (each for each in tokens[place + 1 : place + 3] if is_name(each))
            if token == "enum" and "{" in tokens[place : place + 6]:
                start = tokens.index("{", place)
                yield from filter(is_name, tokens[start : closing(tokens, start)])
        elif token == "typedef" and ";" in tokens[place:]:
            yield tokens[tokens.index(";", place) - 1]
        if before in _BEFORE_A_DECLARATION and is_name(token):
            yield from _declarators(tokens, place, before)


def _declarators(tokens: Sequence[str], start: int, before: str) -> Iterator[str]:
    """Names that a declaration at ``start`` declares, if one begins there."""
    place, parts, sure = start, 0, False
    while place < len(tokens) and is_name(tokens[place]):
        token = tokens[place]
        if token in _NO_TYPE:
            return
        after = tokens[place + 1] if place + 1 < len(tokens) else ";"
        if token in QUALIFIERS or token in WORDS or token in TYPES or token == "auto":
            sure = sure or token not in QUALIFIERS
        elif parts and after in _AFTER_A_NAME:
            break
        elif after == "::":
            place += 1
        elif after == "<" and ">" in tokens[place : place + 12]:
            place = tokens.index(">", place)
        parts += 1
        place += 1
        # A product is no declaration: `f(a * b)`. At the beginning of a statement it may be one.
        while place < len(tokens) and tokens[place] in "*&" and (sure or before in ";{}"):
            place += 1
    if not parts or place >= len(tokens) or not is_name(tokens[place]):
        return
    if place + 1 < len(tokens) and tokens[place + 1] not in _AFTER_A_NAME:
        return
    yield tokens[place]
    yield from _further(tokens, place + 1)


def _further(tokens: Sequence[str], place: int) -> Iterator[str]:
    """Names after the commas of a declaration: ``a = f(x, y), b[3], *c;``."""
    while place < len(tokens) and tokens[place] not in ";)}":
        if tokens[place] in "([{":
            place = closing(tokens, place)
        elif tokens[place] == ",":
            while place + 1 < len(tokens) and tokens[place + 1] in "*&":
                place += 1
            if place + 1 < len(tokens) and is_name(tokens[place + 1]):
                yield tokens[place + 1]
        place += 1
