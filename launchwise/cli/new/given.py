"""What a kernel is given: its arguments in a first spec, and its launch in the host code."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.base.expressions import evaluate
from launchwise.cli.new.shapes import Reading, draft_shape
from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cli.new.undeclared import needed_nodes, used_constants
from launchwise.cli.new.yaml_lines import Line
from launchwise.cuda_text.syntax import child, has_word, plain, text_of, walk
from launchwise.cuda_text.types import BYTES

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
