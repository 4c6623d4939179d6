"""Names that a kernel uses and its file does not declare: macros of a build, and tunables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tree_sitter import Node

from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cuda_text.declarations import (
    Item,
    declared_names,
    identifiers,
    on_device,
    reached,
    read_names,
)
from launchwise.cuda_text.syntax import child, declarator, text_of, walk
from launchwise.cuda_text.types import integer, is_type, word_list

_BUILT_IN = word_list(
    "dim3 threadIdx blockIdx blockDim gridDim warpSize NULL INFINITY NAN std this HUGE_VAL",
    "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON INT_MAX INT_MIN UINT_MAX LLONG_MAX",
    "LONG_MAX CHAR_BIT SIZE_MAX M_PI M_PI_2 M_SQRT2 M_E stdin stdout stderr and or not xor unroll",
    "bitand bitor compl HUGE_VALF",
)
FIXED = word_list("WARP_SIZE WARPSIZE WARP_SZ warp_size")  # Names that the hardware fixes
_TOOLKIT = (
    *("__", "cuda", "CUDART_", "nv", "cub", "curand", "cooperative_groups", "thrust", "wmma"),
    *("cuComplex", "cuFloat", "cuDouble", "cuC"),
)


@dataclass(frozen=True)
class Need:
    """A macro that the compilation must define, or a parameter of the kernel's template."""

    name: str
    default: int | None = None  # integer that the file itself would give it
    only_tested: bool = False  # whether the file only asks whether it is defined
    is_type: bool = False  # whether it stands where a type stands
    in_template: bool = False
    is_flag: bool = False  # also where only ``#if`` reads it
    is_size: bool = False  # whether it is the length of an array in constant memory
    is_array: bool = False  # whether it is indexed: no value of a macro is
    compared: tuple[int, ...] = ()  # integers with which ``#if`` compares it
    names: tuple[str, ...] = ()  # enumerators of an enumeration
    text: str = ""  # default of an enumeration
    launched: tuple[int, ...] = ()  # what the file itself gives a parameter of a template


def needed_macros(source: Source, kernel: Kernel) -> list[Need]:
    """Macros of a kernel that the compilation must or may define, in the order of their use.
    Parameters of the kernel's template that are no types come first: they are chosen like
    macros."""
    made = source.expanded
    templates = {
        name: [one.kind == "type" for one in item.template]
        for item in source.items
        for name in item.names
        if item.template
    }
    nodes = _compiled_with(source, kernel)
    used = read_names(nodes, templates)
    indexed = {
        text_of(child(each, "argument"))
        for node in nodes
        for each in walk(node, "subscript_expression")
    }
    known = declared_names([source.root]) | {one.name for one in kernel.template}
    known |= {*made.numbers, *source.defined}
    sizes = {
        token for one in used_constants(source, kernel) for size in one.sizes for token in size
    }
    conditions = [one for one in made.conditions if not _of_host(source, one.first, one.last)]
    asked = {name for one in conditions for name in one.names}
    unrolled = {
        name
        for line, names in made.unrolled.items()
        for name in names
        if not _of_host(source, line, line)
    }
    found = [*_template_needs(source, kernel)]
    for name in [*used, *sorted(({*asked, *unrolled, *made.tested}) - used.keys())]:
        if name in known | _BUILT_IN | FIXED or is_type(name) or name.startswith(_TOOLKIT):
            continue
        by_if = name not in used and name not in unrolled
        compared = {value for one in conditions for value in one.compared.get(name, ())}
        found.append(
            Need(
                name,
                made.free.get(name),
                only_tested=by_if and name not in asked,
                is_type=used.get(name, False),
                is_size=name in sizes,
                is_array=name in indexed,
                is_flag=by_if,
                compared=tuple(sorted(compared)),
            )
        )
    return found


def _of_host(source: Source, first: int, last: int) -> bool:
    """Whether lines hold nothing but functions of the host, or lie in one."""
    inside = []
    for item in source.items:
        start, end = item.node.start_point[0], item.node.end_point[0]
        is_host = item.is_function and not on_device(item) and item.body is not None
        if is_host and start <= first and last <= end:
            return True
        if first <= start < last:
            inside.append(is_host)
    return bool(inside) and all(inside)


def _template_needs(source: Source, kernel: Kernel) -> Iterator[Need]:
    """Parameters of a template that are no types, with what the file itself gives them."""
    named = source.host.template_values, source.host.specialised
    for place, one in enumerate(kernel.template):
        texts = [text for each in named for text in each(kernel.name, place)]
        launched = tuple(dict.fromkeys(n for n in map(_integer, texts) if n is not None))
        text = next(iter(texts), one.default)
        if one.kind != "type":
            yield Need(
                one.name,
                launched[0] if launched else _integer(text),
                in_template=True,
                is_flag=one.kind == "flag",
                names=tuple(source.names.enums[one.written]) if one.kind == "enum" else (),
                text="".join(text.split()),
                launched=launched,
            )


def needed_items(source: Source, kernel: Kernel) -> list[Item]:
    return reached([item.node for item in kernel.items], source.items)


def needed_nodes(source: Source, kernel: Kernel, others: Sequence[Item] = ()) -> list[Node]:
    """Device code of a kernel, of what it needs, and of others."""
    items = (*kernel.items, *needed_items(source, kernel), *others)
    return [node for item in items for node in on_device(item)]


def _compiled_with(source: Source, kernel: Kernel) -> list[Node]:
    """A kernel, what it needs, and device functions and constants that no kernel needs. nvcc
    compiles these all the same, so their macros must be defined."""
    needed = needed_items(source, kernel)
    others = [
        item
        for item in source.items
        if item not in needed
        and not item.is_kernel
        and item.structure is None
        and (item.of_device or (item.is_constant and not item.is_function))
    ]
    return needed_nodes(source, kernel, others)


def used_constants(source: Source, kernel: Kernel) -> list[Parameter]:
    """Arrays in constant memory that the kernel, or a function that it may call, reads."""
    used = identifiers(needed_nodes(source, kernel))
    return [one for one in source.constants if one.name in used]


def fixed_numbers(source: Source) -> dict[str, int]:
    """Macros that the file sets to an integer without ``#ifndef``, and constants of its scope. Of
    enumerators, those in capitals: others may be short, and variables may hide them."""
    found: dict[str, int] = {}
    for item in source.items:
        if not item.is_constant or item.is_function:
            continue
        # An enumerator of a class has another name: `Kind::A`.
        scoped = any(each.type in ("class", "struct") for each in item.inner.children)
        for node in walk(item.inner, "init_declarator", *([] if scoped else ["enumerator"])):
            number = _integer(text_of(child(node, "value")))
            name = declarator(node).name or text_of(child(node, "name"))
            if number is not None and (node.type == "init_declarator" or name.isupper()):
                found.setdefault(name, number)
    return {**found, **source.expanded.numbers}


def _integer(text: str) -> int | None:
    return {"true": 1, "false": 0}.get(text.strip("(){} "), integer(text))


_CHANGES = "tunes nothing if it changes the result: then make it a problem parameter with values"


@dataclass(frozen=True)
class Tunable:
    name: str
    kind: str  # ``build`` or ``launch``
    values: list[Any]  # from which launchwise chooses
    start: Any  # value of the baseline
    question: str = ""  # what a person must decide; empty for nothing
    given: bool = False  # whether the file itself gives ``start``


def compiled_in(needs: Sequence[Need], reserved: Collection[str]) -> dict[str, str]:
    """Macros that are no tunables, lengths of constant memory and types, to their values.
    ``reserved`` are names that no tunable may have."""
    found = {need.name: "'float'" for need in needs if need.is_type}
    for need in needs:
        no_tunable = need.is_size or need.name in reserved
        if no_tunable and not (need.in_template or need.is_type or need.only_tested):
            found[need.name] = str(5 if need.default is None else need.default)
    return found


VALUES = "values; or a side of the block; or under macros, where it changes the result"
_FEW = (1, 2, 4)


def draft_tunable(need: Need) -> Tunable:
    """Build tunable for a macro of a kernel, as the file uses it."""
    own, compared = need.default, need.compared
    start: Any
    if need.names:
        start = need.text if need.text in need.names else need.names[0]
        return Tunable(need.name, "build", [*need.names], start, _CHANGES, True)
    if need.is_flag:
        usual = (0, 1) if len(compared) < 2 else ()
        values, first = sorted({*compared, *usual}), min((*compared, *usual))
        question = _CHANGES
    elif len(need.launched) > 1:
        own, values, first = need.launched[0], [*need.launched], need.launched[0]
        question = _CHANGES
    else:
        around = [max(own // 4, 1), max(own // 2, 1), own, 2 * own] if own is not None else []
        values, first = (around if own is not None and own > max(_FEW) else [*_FEW]), _FEW[0]
        question = VALUES
    values = sorted({*values, *compared, *([] if own is None else [own])})
    start = first if own is None else own
    return Tunable(need.name, "build", values, start, question, own is not None)


def block_values(axis: str, several: bool) -> tuple[list[Any], Any]:
    """Values of a side of the block, and the baseline's."""
    if axis == "y":
        return [1, 2, 4, 8, 16, 32], 8
    if axis == "z":
        return [1, 2, 4, 8], 1
    return ([16, 32, 64, 128], 32) if several else ([32, 64, 128, 256, 512, 1024], 256)


def as_block(one: Tunable, axis: str, several: bool, square: bool = False) -> Tunable:
    """A tunable as a side of the block, or as all sides of a square."""
    values, start = ([8, 16, 32], 16) if square else block_values(axis, several)
    if one.given:
        values, start = sorted({*values, one.start}), one.start
    return replace(one, values=values, start=start, question="")
