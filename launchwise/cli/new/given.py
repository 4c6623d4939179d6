"""Problem parameters, arguments and their shapes as a kernel proves them; its launch."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from launchwise.base.expressions import evaluate
from launchwise.cli.new.body import Polynomial, add, divided, length_of, multiply, names_of, written
from launchwise.cli.new.indices import AXES, Access, Accesses, Indices
from launchwise.cli.new.launches import Launch
from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cli.new.undeclared import needed_nodes, used_constants
from launchwise.cli.new.yaml_lines import Line
from launchwise.cuda_text.syntax import child, has_word, plain, text_of, walk
from launchwise.cuda_text.types import BYTES


def draft_sizes(
    kernel: Kernel, indices: Indices, taken: Collection[str], compiled: Collection[str]
) -> dict[str, str]:
    """Names in the kernel to those of problem parameters: integers, and fields of structures that
    bound indices. None may have a name in ``taken``. ``compiled`` are sizes among the parameters of
    its template."""
    sizes: dict[str, str] = {}
    values = [one for one in kernel.parameters if not one.pointer]
    for one in values:
        if one.counts and one.width == 1:
            name = one.name.strip("_")
            usable = name not in taken and name[:1].isalpha()
            sizes[one.name] = name if usable else f"{name}_size"
    sizes |= {name: name for name in compiled}
    owners = {one.name for one in values}
    for bound in sorted({name for one in indices.comparisons for name in names_of(one.bound)}):
        owner, _, member = bound.partition(".")
        if owner in owners and member.isidentifier():
            long = member in AXES or member in {*taken, *sizes.values()}
            name = f"{owner}_{member}" if long else member
            sizes |= {bound: name} if name[:1].isalpha() else {}
    return sizes


@dataclass(frozen=True)
class Reading:
    source: Source
    kernel: Kernel
    indices: Indices
    accesses: Accesses
    sizes: Mapping[str, str]
    launch: Launch
    fixed: Mapping[str, int]  # macros that the file itself sets to integers


def draft_shape(one: Parameter, reading: Reading) -> tuple[list[Any], str]:
    """Shape of an array argument, outermost first, and a question unless all indices that the
    kernel uses prove it by their guards."""
    found, is_sure = _by_index(one.name, reading)
    shape = _written(found, reading)
    question = "" if shape and is_sure else "shape"
    shape = shape or [next(iter(reading.sizes.values()), "n")]
    return [*shape, one.width] if one.width > 1 else shape, question


def _by_index(array: str, reading: Reading) -> tuple[list[Polynomial], bool]:
    """Lengths by the accesses of an array, none where they do not say; and whether they are proven:
    by each access, which all say the same but for constants."""
    if array in reading.accesses.recast:
        return [], False
    found = [_lengths(one, reading) for one in reading.accesses.of(array) if one.use]
    best = max((each for each, _ in found), key=_room, default=[])
    names = [*map(names_of, best)]
    is_sure = all(fits and [*map(names_of, each)] == names for each, fits in found)
    if any("gridDim" in name for each in names for name in each):
        is_sure &= not reading.launch.grid_question
    if not any(names):
        return (best if is_sure else []), is_sure
    # `i < n - 1` keeps a distance from the end of an array of n elements.
    last = {term: factor for term, factor in best[0].items() if term or factor > 0}
    return [last, *best[1:]], is_sure and last == best[0]


def _room(lengths: Sequence[Polynomial]) -> tuple[int, int]:
    return len(lengths), lengths[0].get((), 0) if lengths else 0


def _guarded(one: Access, reading: Reading) -> tuple[Polynomial, dict[str, Polynomial]]:
    """Index of an access with a name for each comparison that guards it, and what each name stays
    below."""
    limits: dict[str, Polynomial] = {}
    walks: dict[str, Polynomial] = {}
    guards = [(each.walking, each.limit) for each in reading.indices.guards(one.frame, one.pointer)]
    guards += [({(f"blockIdx.{each}",): 1}, {(f"gridDim.{each}",): 1}) for each in AXES]
    for walking, limit in sorted(guards, key=lambda guard: -len(guard[0])):
        name = f"below {written(walking)}"
        known = limits.setdefault(name, limit)
        # Of `i < n` and `i < n - 1` the lower one holds; of two sizes either does.
        if not names_of(add(limit, known, -1)) and limit.get((), 0) < known.get((), 0):
            limits[name] = limit
        walks[name] = walking
    index = reading.accesses.index(one, reading.indices.kept)
    if index is None:
        return {("?",): 1}, limits
    for name, walking in walks.items():
        lead = max(walking, key=len)
        for term, factor in [*index.items()]:
            stride = divided({term: factor}, {lead: walking[lead]})
            part = multiply(walking, stride) if stride is not None else {}
            if part and all(index.get(each) == own for each, own in part.items()):
                index = add(add(index, part, -1), multiply(stride or {}, {(name,): 1}))
    return index, limits


def _lengths(one: Access, reading: Reading) -> tuple[list[Polynomial], bool]:
    """Lengths that an index ``(z * h + y) * w + x`` walks through, with bounds of x, y and z; and
    whether it stays inside of them."""
    if one.use == "?":
        return [], False
    index, limits = _guarded(one, reading)
    sizes = reading.sizes.keys()
    parts: list[tuple[Polynomial, Polynomial]] = []
    further: Polynomial = {}
    for term, factor in index.items():
        walking = [name for name in term if name in limits]
        stride = {tuple(name for name in term if name not in walking[:1]): factor}
        if not names_of(stride) <= sizes or len(walking) > 1 or (walking and factor < 0):
            return [], False
        if walking:
            parts.append((stride, limits[walking[0]]))
        else:
            further[term] = factor
    if not parts:
        return ([{(): index.get((), 0) + 1}], True) if {*index} <= {()} else ([], False)
    parts.sort(key=lambda part: (len(next(iter(part[0]))), max(part[0].values())))
    if any(one[0] == other[0] for one, other in pairwise(parts)):
        return [], False
    if len(parts) == 1 and set(parts[0][0]) == {()}:
        # `x[2 * i]`
        parts = [({(): 1}, multiply(parts[0][1], parts[0][0]))]
    shape = [] if parts[0][0] == {(): 1} else [parts[0][0]]
    for (stride, _), (wider, _) in pairwise(parts):
        length = divided(wider, stride)
        if length is None:
            return [], False
        shape.append(length)
    stride, last = parts[-1]
    ((widest, factor),) = stride.items()
    last = add(last, {(): max(further.pop(widest, 0) // factor, 0)})
    # What is left of the largest stride: a neighbour stays below it, too.
    rest = add(add(stride, {(): 1}, -1), further, -1)
    for inner, limit in parts[:-1]:
        rest = add(rest, multiply(inner, add(limit, {(): 1}, -1)), -1)
    fits = all(n > 0 for term, n in rest.items() if term) and sum(rest.values()) >= 0
    return [last, *reversed(shape)], fits


# Polynomials as expressions of a spec


def _written(lengths: Sequence[Polynomial], reading: Reading) -> list[Any]:
    blocks = zip(AXES, reading.launch.grid, strict=False)
    names = {**{f"gridDim.{axis}": text for axis, text in blocks}, **reading.sizes}
    found = [one[()] if {*one} == {()} else length_of(one, names) for one in lengths]
    return found if all(one and one != 0 for one in found) else []


# Arguments

_UNKNOWN_BYTES = 16  # Bytes of a structure that the file does not show
_LONGEST_SAID = 80  # Most letters of an expression that a question says


def draft_arguments(reading: Reading) -> list[Line]:
    """One line per parameter of the kernel, then those in constant memory."""
    lines: list[Line] = []
    for one in reading.kernel.parameters:
        value, questions = _array(one, reading) if one.pointer else _number(one, reading)
        name = _argument_name(one.name, [line.key for line in lines])
        lines.append(Line(name, value, "; ".join(filter(None, questions))))
    for one in used_constants(reading.source, reading.kernel):
        shape, question = _constant_shape(one, reading.fixed)
        value = {"type": one.type or "float32", "shape": shape, "fill": _fill(one)}
        short = re.sub(r"^(d|c|dev|const)_(?=[A-Za-z])", "", one.name)
        name = _argument_name(short, [line.key for line in lines])
        lines.append(Line(name, {**value, "constant": one.name}, question))
    return lines


def _fill(one: Parameter, kind: Any = "", indexes: bool = False) -> str:
    if isinstance(kind, dict):
        return ""
    if kind != "uint8" and ("float" in one.type or not (one.type or one.counts)):
        return "normal"
    return "iota" if indexes else "uniform"


def _type(one: Parameter, reading: Reading) -> tuple[Any, str]:
    names, types = reading.source.names, reading.kernel.types
    if one.type or one.written in types:
        return one.type or types[one.written], ""
    structure = names.structure(one.written)
    if structure is not None and structure.fields:
        return dict(structure.fields), ""
    if names.resolved(one.written).rpartition("::")[2] in names.enums:
        return "int32", "an enumeration"
    opaque = structure is not None or one.written.startswith(("curand", "cuda"))
    return ("uint8" if opaque else "float32"), f"the file says {one.written}"


def _array(one: Parameter, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    kind, unclear = _type(one, reading)
    accesses = reading.accesses
    role, question = accesses.role(one)
    atomics = accesses.atomics(one.name) if role != "input" else []
    shape, ask = draft_shape(one, reading)
    fill = _fill(one, kind, one.name in accesses.indexing)
    if atomics:
        fill = "zeros"
        if any(re.search("min|cas|and", each.atomic.lower()) for each in atomics):
            question = "what does the array hold before an atomic operation?"
    elif role == "output" and {*shape} == {1}:
        question = "where not every launch writes it, it is inout"
    elif fill == "iota" and role != "output":
        question = "; ".join(filter(None, [question, "fill: what do the indices reach?"]))
    if kind == "uint8" and unclear:
        known = reading.source.names.structure(one.written)
        size = known.size if known is not None and known.size else _UNKNOWN_BYTES
        shape, unclear = [*shape, size], f"bytes: sizeof({one.written}) each"
    value: dict[str, Any] = {"type": kind, "shape": shape}
    if role != "input":
        value["role"] = role
    if role != "output" and fill:
        value["fill"] = fill
    return value, [unclear, ask, question]


def _number(one: Parameter, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    kind, unclear = _type(one, reading)
    sizes = reading.sizes
    if one.width > 1:
        # A vector by value is a structure with the fields x, y, z and w.
        kind = dict.fromkeys("xyzw"[: one.width], one.type)
    if isinstance(kind, dict):
        fields = {
            name: sizes.get(
                f"{one.name}.{name}", "1.0" if "float" in each or "complex" in each else "1"
            )
            for name, each in kind.items()
        }
        return {"type": kind, "value": fields}, [f"fields of {one.written}"]
    value: Any = sizes.get(one.name)
    if value is not None:
        return {"type": kind, "value": value}, [unclear]
    real = "float" in one.type or (kind in reading.kernel.types.values() and not one.counts)
    return {"type": kind, "value": 1.0 if real else 1}, [unclear, "value"]


def _argument_name(name: str, taken: Sequence[str]) -> str:
    """Name of an argument: the parameter's, changed where expressions could not read it."""
    name = name.strip("_") or "argument"
    if keyword.iskeyword(name) or not name[0].isalpha():
        name = f"{name}_array" if name[0].isalpha() else f"argument_{name}"
    while name in taken:
        name += "_"
    return name


def _constant_shape(one: Parameter, fixed: Mapping[str, int]) -> tuple[list[Any], str]:
    """Shape of an array in constant memory, and a question where its size is no number. An array of
    ``A * B`` elements is one of A rows and B columns: its layout is the same."""
    shape: list[Any] = []
    unclear = not one.type
    for size in one.sizes or (("1",),):
        text = " ".join(str(fixed.get(token, token)) for token in size)
        text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
        for factor in text.split(" * ") if re.fullmatch(r"[\w *]+", text) else [text]:
            try:
                shape.append(int(evaluate(factor, {})))
            except ValueError:
                shape.append(1)
                unclear = True
    return [*shape, *([one.width] if one.width > 1 else [])], "shape" if unclear else ""


HostLaunch = tuple[list[str], str]
"""Sides of a block, numbers where they are known, and the bytes of dynamic shared memory."""


def host_launch(source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> HostLaunch:
    """How a file launches a kernel first; an empty launch where it does not, or in other words.
    ``fixed`` is what the file sets to integers."""
    host = source.host
    named = [one for one in host.launches if one.kernel == kernel.name]
    one = next((one for one in named if len(one.configuration) > 1), None)
    if one is None:
        return [], ""
    place = one.node.start_byte
    _, block, *more = one.configuration

    def value(text: str) -> str:
        return next(iter(host.value(text, place)), text)

    sides = [str(fixed.get(side, side)) for side in map(value, host.sides(block, place))]
    return sides, value(plain(more[0]))[:_LONGEST_SAID] if more else ""


def shared_bytes(source: Source, kernel: Kernel, given: str, block: Sequence[str]) -> list[Line]:
    """Bytes of the ``extern __shared__`` array, an element per thread of the block, with a
    question; none where the kernel has no such array. ``given``: those of the launch in the file.
    """
    for node in needed_nodes(source, kernel):
        for each in walk(node, "declaration"):
            if has_word(each, "extern") and has_word(each, "__shared__"):
                kind, width = source.names.spec_type(text_of(child(each, "type")))
                text = " * ".join([str(BYTES.get(kind, 8) * width), *block])
                has = f"; the file has {given}" if given not in ("", "0") else ""
                question = f"bytes of the extern __shared__ array{has}"
                return [Line("shared_bytes", text, question)]
    return []
