"""The text of a first ``spec.yaml``: one line per decision, questions as comments."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import FUNCTIONS, evaluate
from launchwise.cli.new import guesses
from launchwise.cli.new.macros import fixed_numbers, needed_macros, used_constants
from launchwise.cli.new.signature import Kernel, Parameter, Source
from launchwise.cli.new.tokens import is_name
from launchwise.cli.new.tunables import (
    AXES,
    Launch,
    Tunable,
    compiled_in,
    guess_launch,
    guess_tunables,
    role_of,
)
from launchwise.workloads.arguments import TOLERANCES
from launchwise.workloads.parts import GPU_NAMES, LATER_COLUMNS, MEASURED_COLUMNS

QUESTION = "# ? "
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_NOT_TEXT = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
_LARGEST = {1: 268_435_456, 2: 32_768, 3: 1_024}
"""Dimensions to the largest length that a guess allows."""


@dataclass(frozen=True)
class Line:
    """A key, its value and a question."""

    key: str
    value: Any
    question: str = ""


def spec_text(workload: str, file: str, source: Source, kernel: Kernel) -> str:
    """Content of ``spec.yaml``.

    Parameters
    ----------
    workload
        Name of the folder.
    file
        Name of the CUDA file in that folder.
    kernel
        Of ``source``.
    """
    title = f"{Path(file).stem} {kernel.name}".lower()
    fixed = fixed_numbers(source)
    tokens = [*source.shared, *kernel.head, *kernel.body]
    tokens += [token for macro in source.code.macros.values() for token in macro.value]
    needs = needed_macros(source, kernel)
    macros = compiled_in(needs)
    fixed |= {name: int(value) for name, value in macros.items() if value.isdigit()}
    launch = guess_launch(tokens, guess_tunables(needs), fixed)
    tunables = launch.tunables
    taken = {*MEASURED_COLUMNS, *LATER_COLUMNS, *GPU_NAMES, *FUNCTIONS, "variant", "only"}
    taken |= {"constraints", *(one.name for one in tunables)}
    sizes = guesses.guess_sizes(kernel, launch.dimensions, taken, fixed)
    roles = {
        one.name: guesses.role_in(kernel.body, one) for one in kernel.parameters if one.pointer
    }
    arguments = _arguments(source, kernel, roles, sizes, launch, title, fixed)
    lines = [
        *_notes(file, source, kernel, fixed),
        *_lines([Line("workload", workload), Line("title", workload.replace("_", " "))]),
        *_section("problem", _problem(sizes, launch.dimensions)),
        *_section("tunables", _tunables(tunables), "build tunables become macros of the same name"),
        *(_section("macros", _macros(macros), "of every build") if macros else []),
        *_section("arguments", arguments, "in the order of the kernel's parameters"),
        *_section("reference", _reference(title, kernel, arguments)),
        "variants:",
        *_section(_variant_name(kernel), _variant(file, kernel, tunables, launch, sizes), "", 2),
        *_lines([Line("baseline", _baseline(kernel, tunables))]),
    ]
    return "\n".join(lines) + "\n"


# Sections


def _notes(file: str, source: Source, kernel: Kernel, fixed: Mapping[str, int]) -> list[str]:
    """Comments at the top."""
    others = [one.name for one in source.kernels if one.name != kernel.name]
    notes = [
        f"Kernel {kernel.name} of {file}. Every value is a guess from names.",
        "A comment that begins with a question mark asks for a decision.",
    ]
    if others:
        notes.append(f"Other kernels of the file: {', '.join(others)}.")
    notes += [
        f"{QUESTION[2:]}{file} includes {name}: copy it here" for name in source.code.includes
    ]
    notes += [
        f"To tune {name}, write #ifndef {name} before its #define."
        for name in fixed
        if role_of(name) in ("block", "tile") and name in {*kernel.head, *kernel.body}
    ]
    return [f"# {note}" for note in notes]


def _problem(sizes: guesses.Sizes, dimensions: int) -> list[Line]:
    if not sizes.renamed:
        question = "the kernel takes no size: what does the problem have?"
        lengths = [int(length) for length in sizes.axes.values() if length.isdigit()]
        if lengths:
            question = "the file itself sets the size"
            return [Line(sizes.names[0], {"type": "integer", "values": [max(lengths)]}, question)]
    count = min(max(dimensions, min(len(sizes.names), 2)), 3)
    limits = {"minimum": 16 if count > 1 else 1024, "maximum": _LARGEST[count]}
    ask = "range" if sizes.renamed else question
    return [Line(name, {"type": "integer", **limits}, ask) for name in sizes.names]


def _tunables(tunables: Sequence[Tunable]) -> list[Line]:
    return [
        Line(one.name, {"kind": one.kind, "values": one.values}, one.question) for one in tunables
    ]


def _macros(macros: Mapping[str, str]) -> list[Line]:
    return [
        Line(name, value, "compiled in: a number" if value.isdigit() else "compiled in: a type")
        for name, value in macros.items()
    ]


def _arguments(
    source: Source,
    kernel: Kernel,
    roles: Mapping[str, tuple[str, str]],
    sizes: guesses.Sizes,
    launch: Launch,
    title: str,
    fixed: Mapping[str, int],
) -> list[Line]:
    lines: list[Line] = []
    for one in kernel.parameters:
        value: dict[str, Any] = {"type": one.type or "float32"}
        questions = [] if one.type else [f"the file says {one.written}"]
        if one.pointer:
            role, question = roles[one.name]
            value["shape"] = guesses.guess_shape(one, role, title, sizes, launch.dimensions)
            questions += ["shape", *([question] if question else [])]
            if role != "input":
                value["role"] = role
            if role != "output":
                value["fill"] = guesses.guess_fill(one)
        else:
            value["value"], question = guesses.guess_scalar(one, sizes)
            questions += [question] if question else []
            questions += [f"{one.written} by value"] if one.width > 1 else []
        name = _argument_name(one.name, [line.key for line in lines])
        lines.append(Line(name, value, "; ".join(questions)))
    for one in used_constants(source, kernel):
        shape, question = _constant_shape(one, fixed)
        kind = one.type or "float32"
        value = {"type": kind, "shape": shape, "fill": guesses.guess_fill(one)}
        short = re.sub(r"^(d|c|dev|const)_(?=[A-Za-z])", "", one.name)
        name = _argument_name(short, [line.key for line in lines])
        lines.append(Line(name, {**value, "constant": one.name}, question))
    return lines


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


def _reference(title: str, kernel: Kernel, arguments: Sequence[Line]) -> list[Line]:
    inputs = [line.key for line in arguments if "fill" in line.value]
    outputs = [line.value["type"] for line in arguments if "role" in line.value]
    value = guesses.guess_reference(title, inputs)
    first, *rest = value
    others = "`variant: NAME`, or `call:` a function of NumPy or SciPy"
    if first == "call":
        others = "`file: reference.py:expected`, or `variant: NAME`"
    return [
        Line(first, value[first], f"what is computed? Or {others}"),
        *(Line(key, value[key]) for key in rest),
        Line("tolerance", TOLERANCES.get(outputs[0] if outputs else "float32", 0)),
    ]


def _variant_name(kernel: Kernel) -> str:
    return kernel.name.removesuffix("_kernel").strip("_") or kernel.name


def _variant(
    file: str,
    kernel: Kernel,
    tunables: Sequence[Tunable],
    launch: Launch,
    sizes: guesses.Sizes,
) -> list[Line]:
    lengths = [sizes.axes[axis] for axis in AXES[: launch.dimensions]]
    if launch.dimensions == 1 and len(sizes.axes) > 1:
        lengths = [" * ".join(sizes.axes.values())]
    grid = [
        length if step == "1" else f"ceil_div({length}, {step})"
        for length, step in zip(lengths, launch.extent, strict=True)
    ]
    grids = [one.name for one in tunables if one.role == "grid"]
    grid[0] = grids[0] if grids else grid[0]
    names = list(dict.fromkeys(name for name in launch.block if is_name(name)))
    lines = [
        Line("source", file),
        Line("kernel", kernel.name),
        Line("tunables", [one.name for one in tunables]),
    ]
    if len(names) > 1:
        lines.append(Line("constraints", [f"{' * '.join(launch.block)} >= 32"]))
    lines += [Line("grid", grid), Line("block", launch.block)]
    if _has_dynamic_shared_memory(kernel.body):
        threads = " * ".join(launch.block)
        size = _item_bytes(kernel.body)
        question = "bytes of the extern __shared__ array"
        lines.append(Line("shared_bytes", f"{size} * {threads}", question))
    return lines


def _has_dynamic_shared_memory(body: Sequence[str]) -> bool:
    return any(
        token == "extern" and "__shared__" in body[place : place + 4]
        for place, token in enumerate(body)
    )


def _item_bytes(body: Sequence[str]) -> int:
    """Bytes of an element of the ``extern __shared__`` array, by its type; 4 where that is none."""
    place = body.index("__shared__")
    words = body[place + 1 : place + 4]
    if "double" in words or list(words[:2]) == ["long", "long"]:
        return 8
    sizes = {"char": 1, "short": 2, "half": 2, "__half": 2}
    return next((sizes[word] for word in words if word in sizes), 4)


def _baseline(kernel: Kernel, tunables: Sequence[Tunable]) -> dict[str, Any]:
    return {"variant": _variant_name(kernel), **{one.name: one.start for one in tunables}}


# YAML


def _section(key: str, lines: Sequence[Line], comment: str = "", indent: int = 0) -> list[str]:
    """A mapping with one line per key; ``{}`` where there is none."""
    before = " " * indent
    head = f"{before}{_written(key)}:{'' if lines else ' {}'}"
    return [f"{head}  # {comment}" if comment else head, *_lines(lines, indent + 2)]


def _lines(lines: Sequence[Line], indent: int = 0) -> list[str]:
    return [
        f"{' ' * indent}{_written(line.key)}: {_written(line.value)}"
        + (f"  {QUESTION}{line.question}" if line.question else "")
        for line in lines
    ]


def _written(value: Any) -> str:
    """A value in one line of YAML."""
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_written(key)}: {_written(one)}" for key, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, float):
        # YAML reads 1e-05 as a text.
        return f"{value:.1e}".replace("e-0", "e-") if 0 < value < 1e-3 else str(value)
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and (value.lower() not in _NOT_TEXT or value in ("n", "y")):
        return str(value)
    return json.dumps(value)


def check_name(folder: Path) -> str:
    """Name of the workload: that of the folder.

    Raises
    ------
    UserError
        When a workload cannot have that name.
    """
    name = folder.resolve().name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        near = re.sub(r"[^a-z0-9_]", "_", name.lower()).lstrip("0123456789_") or "kernel"
        message = "names the workload: lower-case letters, digits and _, a letter first"
        raise UserError(folder, "", f"{message}; such as {near}")
    return name
