"""Names that a kernel uses and its file does not declare: macros of the compilation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cuda_text.declarations import Item
from launchwise.cuda_text.names import declared_names, identifiers, on_device, reached, read_names
from launchwise.cuda_text.syntax import child, declarator, text_of, walk
from launchwise.cuda_text.types import is_type, word_list

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
    is_flag: bool = False
    is_size: bool = False  # whether it is the length of an array in constant memory
    is_array: bool = False  # whether it is indexed: no value of a macro is
    only_read_by_if: bool = False
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
    nodes = [*(item.node for item in kernel.items), *compiled_with(source, kernel)]
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
                only_read_by_if=by_if,
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
    given = source.host.template_arguments(kernel.name)
    for place, one in enumerate(kernel.template):
        text = given[0][place] if given and place < len(given[0]) else one.default
        values = map(_integer, source.host.template_values(kernel.name, place))
        launched = tuple(dict.fromkeys(number for number in values if number is not None))
        default = _integer(text)
        if one.kind != "type":
            yield Need(
                one.name,
                launched[0] if default is None and launched else default,
                in_template=True,
                is_flag=one.kind == "flag",
                names=one.values,
                text="".join(text.split()),
                launched=launched,
            )


def needed_items(source: Source, kernel: Kernel) -> list[Item]:
    """Functions, types and variables that a kernel needs."""
    return reached([item.node for item in kernel.items], source.items)


def used_names(source: Source, kernel: Kernel) -> set[str]:
    """Names in a kernel and in what it needs."""
    items = (*kernel.items, *needed_items(source, kernel))
    return identifiers(node for item in items for node in on_device(item))


def compiled_with(source: Source, kernel: Kernel) -> list[Node]:
    """What a kernel needs, and device functions and constants that no kernel needs. nvcc compiles
    these all the same, so their macros must be defined."""
    needed = needed_items(source, kernel)
    others = [
        item
        for item in source.items
        if item not in needed
        and not item.is_kernel
        and item.structure is None
        and (item.of_device or (item.is_constant and not item.is_function))
    ]
    return [node for item in (*needed, *others) for node in on_device(item)]


def used_constants(source: Source, kernel: Kernel) -> list[Parameter]:
    """Arrays in constant memory that the kernel, or a function that it may call, reads."""
    used = used_names(source, kernel)
    return [one for one in source.constants if one.name in used]


def fixed_numbers(source: Source) -> dict[str, int]:
    """Macros that the file sets to an integer without ``#ifndef``, and constants of its scope. Of
    enumerators, those in capitals: others may be short, and variables may hide them."""
    named = {
        name: one
        for name, (one, is_variable) in constants(source).items()
        if is_variable or name.isupper()
    }
    return {**named, **source.expanded.numbers}


def constants(source: Source) -> dict[str, tuple[int, bool]]:
    """Constants of integers in the scope of a file, and whether each is a variable. Those are
    ``const`` and ``constexpr``; others are enumerators."""
    found: dict[str, tuple[int, bool]] = {}
    for item in source.items:
        if not item.is_constant or item.is_function:
            continue
        # An enumerator of a class has another name: `Kind::A`.
        scoped = any(each.type in ("class", "struct") for each in item.inner.children)
        for node in walk(item.inner, "init_declarator", *([] if scoped else ["enumerator"])):
            number = _integer(text_of(child(node, "value")))
            name = declarator(node).name or text_of(child(node, "name"))
            if number is not None:
                found.setdefault(name, (number, node.type == "init_declarator"))
    return found


def _integer(text: str) -> int | None:
    text = text.strip("(){} ").rstrip("uUlL")
    return int(text) if text.isdigit() else {"true": 1, "false": 0}.get(text)
