"""Arguments of a first spec: types, shapes, roles and values of a kernel's parameters."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.base.expressions import evaluate
from launchwise.cli.new import draft
from launchwise.cli.new.accesses import Accesses
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.macros import used_constants
from launchwise.cli.new.problem import Sizes
from launchwise.cli.new.shapes import draft_shape, shape_at, shape_of_atomics
from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cli.new.yaml_lines import Line

UNKNOWN_BYTES = 16
"""Bytes of a structure that the file does not show."""


@dataclass(frozen=True)
class Reading:
    """What was read of a kernel before its arguments are drafted."""

    source: Source
    kernel: Kernel
    indices: Indices
    accesses: Accesses
    sizes: Sizes
    dimensions: int  # of the grid
    title: str  # names of file and kernel, lower case
    fixed: Mapping[str, int]  # macros that the file itself sets to integers
    blocks: Mapping[str, str]  # ``blockIdx.x`` and the like to the number of blocks


def draft_arguments(reading: Reading) -> list[Line]:
    """One line per parameter of the kernel, then those in constant memory."""
    lines: list[Line] = []
    for one in reading.kernel.parameters:
        value, questions = _array(one, reading) if one.pointer else _number(one, reading)
        name = _argument_name(one.name, [line.key for line in lines])
        lines.append(Line(name, value, "; ".join(filter(None, questions))))
    for one in used_constants(reading.source, reading.kernel):
        shape, question = _constant_shape(one, reading.fixed)
        value = {"type": one.type or "float32", "shape": shape, "fill": draft.draft_fill(one)}
        short = re.sub(r"^(d|c|dev|const)_(?=[A-Za-z])", "", one.name)
        name = _argument_name(short, [line.key for line in lines])
        lines.append(Line(name, {**value, "constant": one.name}, question))
    return lines


def _type(one: Parameter, reading: Reading) -> tuple[Any, str]:
    """Type of a parameter, and a question where the file does not say it."""
    types = reading.kernel.types
    if not one.type and one.written in types:
        return types[one.written], ""
    if one.type:
        return one.type, ""
    structure = reading.source.names.structure(one.written)
    if structure is not None and structure.fields:
        return dict(structure.fields), ""
    if reading.source.names.resolved(one.written).rpartition("::")[2] in reading.source.names.enums:
        return "int32", "an enumeration"
    opaque = structure is not None or one.written.startswith(("curand", "cuda"))
    return ("uint8" if opaque else "float32"), f"the file says {one.written}"


def _array(one: Parameter, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    kind, unclear = _type(one, reading)
    accesses, sizes, blocks = reading.accesses, reading.sizes, reading.blocks
    role, question = accesses.role(one)
    atomics = accesses.atomics(one.name)
    ask = "shape"
    if atomics and not one.const:
        shape, ask = shape_of_atomics(accesses, one.name, sizes, reading.fixed)
        if known_shape := shape_at(atomics[0], accesses, reading.indices, sizes, blocks):
            shape, ask = known_shape, "shape"
        fill = "zeros"
        if any(re.search("min|cas|and", each.atomic.lower()) for each in atomics):
            question = "what does the array hold before an atomic operation?"
    else:
        title, dimensions = reading.title, reading.dimensions
        shape = draft_shape(one, role, title, sizes, dimensions, accesses, reading.indices, blocks)
        fill = draft.draft_fill(one) if isinstance(kind, str) else ""
        fill = "uniform" if kind == "uint8" else fill
        if accesses.is_single(one.name):
            shape, ask = [one.width] if one.width > 1 else [1], "shape: one element?"
            if role == "output":
                ask = f"{ask} Where not every launch writes it, it is inout"
        if fill == "iota" and role != "output":
            ask = f"{ask}; fill: what do the indices reach?"
        if role != "input" and accesses.is_counted(one.name):
            ask = f"{ask}; a counter gives the places: length: data, and compare in any order?"
    if kind == "uint8" and unclear:
        known = reading.source.names.structure(one.written)
        size = known.size if known is not None and known.size else UNKNOWN_BYTES
        shape, unclear = [*shape, size], f"bytes: sizeof({one.written}) each"
    value: dict[str, Any] = {"type": kind, "shape": shape}
    if role != "input":
        value["role"] = role
    if role != "output" and fill:
        value["fill"] = fill
    return value, [unclear, ask, question]


def _number(one: Parameter, reading: Reading) -> tuple[dict[str, Any], list[str]]:
    kind, unclear = _type(one, reading)
    if one.width > 1:
        # A vector by value is a structure with the fields x, y, z and w.
        kind = dict.fromkeys("xyzw"[: one.width], one.type)
        unclear = ""
    if isinstance(kind, dict):
        fields = {name: _field(one.name, name, each, reading.sizes) for name, each in kind.items()}
        return {"type": kind, "value": fields}, [f"fields of {one.written}"]
    value, question = draft.draft_scalar(one, reading.sizes)
    if kind in reading.kernel.types.values() and question and not one.counts:
        value = 1.0
    return {"type": kind, "value": value}, [unclear, question]


def _field(owner: str, name: str, kind: str, sizes: Sizes) -> str:
    """Value of a field: a problem parameter of that name, or 1."""
    if f"{owner}.{name}" in sizes.renamed:
        return sizes.renamed[f"{owner}.{name}"]
    same = {each.lower(): each for each in sizes.names}
    if name.lower() in same and "int" in kind:
        return same[name.lower()]
    return "1.0" if "float" in kind or "complex" in kind else "1"


def _argument_name(name: str, taken: Sequence[str]) -> str:
    """Name of an argument: the parameter's, changed where expressions could not read it."""
    name = name.strip("_") or "argument"
    if keyword.iskeyword(name) or not name[0].isalpha():
        name = f"{name}_array" if name[0].isalpha() else f"argument_{name}"
    while name in taken:
        name += "_"
    return name


def _constant_shape(one: Parameter, fixed: Mapping[str, int]) -> tuple[list[Any], str]:
    """Shape of an array in constant memory, and a question where its size is no number.

    An array of ``A * B`` elements is one of A rows and B columns: its layout is the same.
    """
    factors: list[list[str]] = []
    for size in one.sizes or (("1",),):
        factors.append([])
        for token in size:
            if token == "*" and not {*size} & {*"+-/%("}:
                factors.append([])
            else:
                factors[-1].append(token)
    shape: list[Any] = []
    unclear = not one.type
    for tokens in factors:
        text = " ".join(str(fixed.get(token, token)) for token in tokens)
        text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text).replace("/", "//")
        try:
            shape.append(int(evaluate(text, {})))
        except ValueError:
            shape.append(1)
            unclear = True
    shape += [one.width] if one.width > 1 else []
    return shape, "shape" if unclear else ""
