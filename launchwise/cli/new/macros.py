"""Names that a kernel uses and its file does not declare: macros of the compilation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from launchwise.cli.new.declared import declared
from launchwise.cli.new.expansion import expanded
from launchwise.cli.new.pieces import is_of_the_device, reached
from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cli.new.templates import angle, launched_numbers, launched_with
from launchwise.cli.new.tokens import Code, Macro, at_commas, closing, is_name, tokenised
from launchwise.cli.new.types import QUALIFIERS, TYPES, VECTORS, WORDS, words

_KEYWORDS = words(
    "alignas alignof asm auto break case catch class continue",
    "decltype default delete do else enum explicit export false",
    "for friend goto if mutable namespace new noexcept nullptr",
    "operator private protected public return sizeof static_assert",
    "switch template this throw true try typedef typename union",
    "using virtual while const_cast static_cast reinterpret_cast",
    "nodiscard maybe_unused likely unlikely fallthrough co_return",
    "and or not xor pragma unroll std bitand bitor compl",
)
_BUILT_IN = words(
    "dim3 threadIdx blockIdx blockDim gridDim warpSize NULL INFINITY NAN",
    "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON M_PI",
    "INT_MAX INT_MIN UINT_MAX LLONG_MAX LONG_MAX CHAR_BIT SIZE_MAX",
    "HUGE_VAL HUGE_VALF M_PI_2 M_SQRT2 M_E stdin stdout stderr",
)
FIXED = words("WARP_SIZE WARPSIZE WARP_SZ warp_size")
"""Names that the hardware fixes."""


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
    in_template
        Whether it is a parameter of the kernel's template, no macro.
    is_flag
        Whether it is of type bool.
    is_size
        Whether it is the length of an array in constant memory.
    only_read_by_if
        Whether only directives such as ``#if`` read it.
    compared
        Integers with which ``#if`` compares it.
    names, text
        Of an enumeration: enumerators, and the default's text.
    launched
        Integers that the file itself gives a parameter of a template, in their order.
    switch
        Whether defining it means that a group of macros is defined, too.
    """

    name: str
    default: int | None = None
    only_tested: bool = False
    is_type: bool = False
    in_template: bool = False
    is_flag: bool = False
    is_size: bool = False
    only_read_by_if: bool = False
    compared: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    text: str = ""
    launched: tuple[int, ...] = ()
    switch: bool = False


def needed_macros(source: Source, kernel: Kernel) -> list[Need]:
    """Macros of a kernel that the compilation must or may define, in the order of their use.

    Parameters of the kernel's template that are no types come first: they are chosen like macros.
    """
    code = source.code
    constants = used_constants(source, kernel)
    sizes = [token for each in constants for size in each.sizes for token in (*size, ";")]
    own = [*kernel.head, ";", *kernel.body]
    tokens = [*sizes, *compiled_with(source, kernel), ";", *own]
    known = _declared_names(source, kernel, [*source.shared, ";", *own])
    used = list(dict.fromkeys(_read([*kernel.head, ";", *kernel.body, ";", *tokens], code)))
    # The text of a macro may need others: `#define tile (block_size_x * 2)`.
    for name in used:
        macro = code.macros.get(name)
        if macro is not None and not macro.replaceable:
            used += [each for each in _read(macro.value, code) if each not in used]
    asked = {name for name in code.conditions if code.macros.get(name, _FREE).replaceable}
    used += sorted((asked | code.tested - code.macros.keys()) - {*used})
    types = {one for one, after in pairwise(tokens) if is_name(after)}
    plain = {*_used(tokens)} | {each for one in code.macros.values() for each in one.value}
    found = [*_template_needs(source, kernel)]
    for name in used:
        macro = code.macros.get(name)
        if _is_known(name) or name in known or (macro is not None and not macro.replaceable):
            continue
        default = _integer(macro.value) if macro else None
        if macro is not None and default is None:
            continue  # Its own text is no number: the file knows better.
        by_if = name in code.conditions | code.tested and name not in plain | code.unrolled
        if by_if and macro is None and _is_of_the_platform(name):
            continue
        need = Need(name, default, is_type=name in types and not by_if, is_size=name in sizes)
        tested = by_if and name in code.tested and macro is None
        numbers = tuple(sorted(code.compared.get(name, ())))
        found.append(replace(need, only_read_by_if=by_if, only_tested=tested, compared=numbers))
    if any(code.macros.get(need.name, _FREE).replaceable for need in found):
        found += [Need(name, switch=True) for name in code.switches if name not in used]
    return found


_FREE = Macro((), True)


def _declared_names(source: Source, kernel: Kernel, tokens: Sequence[str]) -> set[str]:
    """Names that a file declares: they are no macros."""
    names = source.names
    parameters = {token for each in source.functions.values() for token in each.parameters}
    templates = {after for one, after in pairwise(tokens) if one in ("typename", "class")}
    types = {
        *names.aliases,
        *names.structures,
        *names.enums,
        *templates,
    } - source.code.macros.keys()
    types |= {one.name for one in kernel.template if one.kind == "type"}
    return {
        *declared(tokens, frozenset(types)),
        *declared(expanded(source, kernel, {}), frozenset(types)),
        *(each.name for each in (*kernel.parameters, *source.constants)),
        *(each.name for each in kernel.template),
        *(each.name for each in source.kernels),
        *(parameters | types | source.functions.keys()),
    }


def _template_needs(source: Source, kernel: Kernel) -> Iterator[Need]:
    """Parameters of a template that are no types, with what the file itself gives them."""
    given = launched_with(source.code.tokens, kernel.name)
    for place, one in enumerate(kernel.template):
        if one.kind == "type":
            continue
        text = given[0][place] if given and place < len(given[0]) else one.default
        flags = {"true": 1, "false": 0}
        default = flags.get(text, _integer([text])) if text else None
        launched = launched_numbers(source.code.tokens, kernel.name, place)
        if default is None and launched:
            default = launched[0]
        yield Need(
            one.name,
            default,
            in_template=True,
            is_flag=one.kind == "flag",
            names=one.values,
            text=text,
            launched=tuple(launched),
        )


def _is_of_the_platform(name: str) -> bool:
    """Whether compilers or systems define a name."""
    return name.isupper() and name.startswith(
        ("CUDA", "NV", "WIN", "_", "NDEBUG", "HIP", "GLIBC", "UNIX", "LINUX", "APPLE", "MSC")
    )


def reached_by(source: Source, kernel: Kernel) -> tuple[str, ...]:
    """Tokens of the functions, types and variables that a kernel needs."""
    types = [token for one in kernel.parameters for token in tokenised(one.written)]
    start = [*kernel.head, *types, *kernel.body]
    return reached(start, source.pieces, source.code.macros)


def compiled_with(source: Source, kernel: Kernel) -> tuple[str, ...]:
    """Tokens of :func:`reached_by`, and of device functions and constants that no kernel needs.

    nvcc compiles these all the same, so their macros must be defined.
    """
    needed = reached_by(source, kernel)
    known = {*needed}
    others = [
        piece
        for piece in source.pieces
        if is_of_the_device(piece[0]) and not {*piece[0], *piece[1]} <= known
    ]
    return (*needed, *(token for head, body in others for token in (*head, ";", *body)))


def used_constants(source: Source, kernel: Kernel) -> list[Parameter]:
    """Arrays in constant memory that the kernel, or a function that it may call, reads."""
    tokens = {*reached_by(source, kernel), *kernel.body}
    return [one for one in source.constants if one.name in tokens]


def fixed_numbers(source: Source) -> dict[str, int]:
    """Macros that the file sets to an integer without ``#ifndef``, and constants of its scope."""
    values = {
        name: _integer(macro.value)
        for name, macro in source.code.macros.items()
        if not macro.replaceable
    }
    found = {name: value for name, value in values.items() if value is not None}
    tokens = source.shared
    for place, token in enumerate(tokens):
        # constexpr int BLOCK = 256;
        if token == "=" and place > 1 and tokens[place + 2 : place + 3] == (";",):
            start = max((at for at in range(place) if tokens[at] == ";"), default=-1)
            number = _integer(tokens[place + 1 : place + 2])
            if {*tokens[start:place]} & {"const", "constexpr"} and number is not None:
                found.setdefault(tokens[place - 1], number)
    # Enumerators may be short, and variables of a kernel may hide them.
    return {**{name: one for name, one in constants(source).items() if name.isupper()}, **found}


def constants(source: Source) -> dict[str, int]:
    """Constants of integers in the scope of a file: ``const``, ``constexpr`` and enumerators."""
    found: dict[str, int] = {}
    for head, _ in source.pieces:
        if "enum" in head and "{" in head:
            start = head.index("{")
            # An enumerator of a class has another name: `Kind::A`.
            scoped = {*head[:start]} & {"class", "struct"}
            parts = [] if scoped else at_commas(head[start + 1 : closing(head, start)])
        elif {*head} & {"const", "constexpr"} and "(" not in head:
            parts = [part[-4:] for part in at_commas(head)]
        else:
            continue
        for part in parts:
            for place, token in enumerate(part[1:], 1):
                number = _integer(part[place + 1 : place + 2]) if token in ("=", "{") else None
                if number is not None and part[place + 2 :] in ([], ["}"]):
                    found.setdefault(part[place - 1], number)
    return found


def _integer(tokens: Sequence[str]) -> int | None:
    text = "".join(tokens).strip("()").rstrip("uUlL")
    return int(text) if text.isdigit() else None


def _is_known(name: str) -> bool:
    known = _KEYWORDS | _BUILT_IN | WORDS | QUALIFIERS | TYPES.keys() | VECTORS.keys()
    return name in known | FIXED or name.startswith(_TOOLKIT)


_TOOLKIT = (
    *("__", "cuda", "CUDART_", "nv", "cub", "curand", "cooperative_groups", "thrust", "wmma"),
    *("cuComplex", "cuFloat", "cuDouble", "cuC"),
)


def _read(tokens: Sequence[str], code: Code) -> Iterator[str]:
    """Names that are read as values, and macros with parameters."""
    yield from _used(tokens)
    yield from (token for token in tokens if token in code.macros)


def _used(tokens: Sequence[str]) -> Iterator[str]:
    """Names that are read as values: no members, no functions, nothing of a namespace."""
    skipped = 0
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else ";"
        after = tokens[place + 1] if place + 1 < len(tokens) else ";"
        if token in ("using", "typedef") or (token == "namespace" and after != "{"):
            skipped = _statement_end(tokens, place)
        label = after == ":" and before in (";", "}", "{")
        if (
            is_name(token)
            and place >= skipped
            and not label
            and before not in (".", "->", "::", "goto", "struct", "class", "enum", "namespace")
            and after not in ("(", "::")
            and not (after == "<" and (before == "::" or _is_call(tokens, place + 1)))
        ):
            yield token


def _statement_end(tokens: Sequence[str], start: int) -> int:
    """Place of the next semicolon or brace."""
    place = start
    while place < len(tokens) and tokens[place] not in (";", "{"):
        place += 1
    return place


def _is_call(tokens: Sequence[str], start: int) -> bool:
    """Whether template arguments and a call begin: ``f<2>(x)``."""
    end = angle(tokens[: start + 24], start)
    inside = {*tokens[start:end]}
    return tuple(tokens[end + 1 : end + 2]) == ("(",) and not inside & {";", "&&", "||", "{"}
