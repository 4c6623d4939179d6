"""The text of a first ``spec.yaml``: one line per decision, questions as comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import FUNCTIONS
from launchwise.cli.new import draft
from launchwise.cli.new.accesses import Accesses
from launchwise.cli.new.arguments import Reading, draft_arguments
from launchwise.cli.new.body import Body, axes_in
from launchwise.cli.new.dynamic_shared import shared_bytes
from launchwise.cli.new.grids import draft_grid
from launchwise.cli.new.headers import remarks
from launchwise.cli.new.hints import left_undefined, tuning_hints
from launchwise.cli.new.hosts import host_launch
from launchwise.cli.new.indices import Indices
from launchwise.cli.new.launches import Launch, draft_launch
from launchwise.cli.new.macros import Need, fixed_numbers, needed_items, needed_macros, used_names
from launchwise.cli.new.polynomials import names_of
from launchwise.cli.new.problem import Sizes, draft_sizes
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.tunables import AXES, Tunable, compiled_in, draft_tunables
from launchwise.cli.new.yaml_lines import QUESTION, Line, lines_of, section
from launchwise.cuda_text.names import on_device
from launchwise.workloads.arguments import TOLERANCES
from launchwise.workloads.parts import GPU_NAMES, LATER_COLUMNS, MEASURED_COLUMNS

RESERVED = {
    *(*MEASURED_COLUMNS, *LATER_COLUMNS, *GPU_NAMES, *FUNCTIONS),
    *("variant", "only", "constraints"),
}
"""Names that neither a problem parameter nor a tunable may have."""

_LARGEST = {1: 268_435_456, 2: 32_768, 3: 1_024}
"""Dimensions to the largest length that a draft allows."""


def spec_text(
    workload: str, file: str, source: Source, kernel: Kernel, options: Sequence[str] = ()
) -> str:
    """Content of ``spec.yaml`` of a workload for a kernel of ``source``, which ``file`` holds.

    ``options`` are those of the compiler (:mod:`launchwise.workloads.parts`).
    """
    title = f"{Path(file).stem} {kernel.name}".lower()
    fixed = fixed_numbers(source)
    needs = needed_macros(source, kernel)
    if strange := [one.name for one in needs if one.name[0] == "_" and not one.only_tested]:
        reason = "no name of a spec begins with an underscore: rename it"
        raise UserError(file, kernel.name, f"needs {strange[0]}, and {reason}")
    macros = compiled_in(needs, RESERVED) | _objects(source, kernel) | _switches(source, needs)
    body = Body(source, kernel, fixed)
    indices, accesses = Indices(body), Accesses(body)
    fixed |= {name: int(value) for name, value in macros.items() if value.isdigit()}
    others = [node for item in needed_items(source, kernel) for node in on_device(item)]
    read = {name: axes_in(others, name) for name in indices.axes}
    host = host_launch(source, kernel, fixed)
    used = used_names(source, kernel)
    known = {name: number for name, number in fixed.items() if name in used}
    compiled = _compiled_sizes(needs, indices)
    tunables = draft_tunables([one for one in needs if one.name not in compiled], RESERVED)
    launch = draft_launch(indices, read, tunables, known, host)
    types = kernel.types
    taken = {*RESERVED, *types.values(), *(one.name for one in launch.tunables)}
    bounds = {name for one in indices.comparisons for name in names_of(one.bound)}
    pitches, loops = indices.pitches(), indices.loops()
    sizes = draft_sizes(
        kernel, launch.dimensions, taken, fixed, bounds | pitches, pitches, loops, compiled
    )
    grid = draft_grid(accesses, indices, launch, sizes, host)
    problem = _problem(sizes, launch.dimensions, compiled)
    blocks = {f"blockIdx.{axis}": text for axis, text in zip(AXES, grid[0], strict=False)}
    reading = Reading(
        source, kernel, indices, accesses, sizes, launch.dimensions, title, fixed, blocks
    )
    arguments = draft_arguments(reading)
    hints = tuning_hints(source, kernel, fixed)
    shared = shared_bytes(source, kernel, launch, sizes, host, fixed)
    lines = [
        *_notes(workload, file, source, kernel, [*left_undefined(needs), *hints]),
        *lines_of([Line("workload", workload), Line("title", workload.replace("_", " "))]),
        *section("problem", [*problem, *_types(source, kernel)]),
        *section("tunables", _tunables(launch.tunables), _COMMENT),
        *(section("macros", _macros(macros), "of every build") if macros else []),
        *lines_of([Line("compiler_options", [*options])] if options else []),
        *section("arguments", arguments, "in the order of the kernel's parameters"),
        *section("reference", _reference(title, arguments)),
        "variants:",
        *section(_variant_name(kernel), [*_variant(file, kernel, launch, grid), *shared], "", 2),
        *lines_of([Line("baseline", _baseline(kernel, launch.tunables))]),
    ]
    return "\n".join(lines) + "\n"


_COMMENT = "build tunables become macros of the same name"


# Sections


def _notes(
    workload: str, file: str, source: Source, kernel: Kernel, hints: Sequence[str]
) -> list[str]:
    """Comments at the top."""
    others = [one.name for one in source.kernels if one.name != kernel.name]
    notes = [
        f"Kernel {kernel.name} of {file}. Every value is a draft, read from names.",
        "A comment that begins with a question mark asks for a decision.",
    ]
    if others:
        notes.append(f"Other kernels of the file: {', '.join(others)}.")
    notes += [f"{QUESTION[2:]}{remark}" for remark in remarks(source.headers, file, workload)]
    return [f"# {note}" for note in (*notes, *hints)]


def _compiled_sizes(needs: Sequence[Need], indices: Indices) -> dict[str, list[int]]:
    """Parameters of the template that bound an index of the grid, to their values."""
    bounds = [
        one.bound
        for one in indices.comparisons
        if any(name.startswith("blockIdx") for name in names_of(one.index))
    ]
    values = {need.name: sorted(need.launched) or [1024] for need in needs if need.in_template}
    return {name: values[name] for name in values if {(name,): 1} in bounds}


def _problem(sizes: Sizes, dimensions: int, compiled: Mapping[str, list[int]]) -> list[Line]:
    if not sizes.renamed:
        question = "the kernel takes no size: what does the problem have?"
        lengths = [int(length) for length in sizes.axes.values() if length.isdigit()]
        if lengths:
            question = "the file itself sets the size"
            return [Line(sizes.names[0], {"type": "integer", "values": [max(lengths)]}, question)]
    count = min(max(dimensions, min(len(sizes.names), 2)), 3)
    limits = {"minimum": 16 if count > 1 else 1024, "maximum": _LARGEST[count]}
    ask = "range" if sizes.renamed else question
    return [
        Line(name, {"type": "integer", "values": compiled[name]}, "values")
        if name in compiled
        else Line(name, {"type": "integer", **limits}, ask)
        for name in sizes.names
    ]


def _tunables(tunables: Sequence[Tunable]) -> list[Line]:
    return [
        Line(one.name, {"kind": one.kind, "values": one.values}, one.question) for one in tunables
    ]


def _types(source: Source, kernel: Kernel) -> list[Line]:
    """Problem parameters that choose the types of a template, those of the file first."""
    given = source.host.template_arguments(kernel.name)
    lines = []
    for place, one in enumerate(kernel.template):
        if one.name in kernel.types:
            texts = [each[place] for each in given if place < len(each)]
            found = [source.names.spec_type(text) for text in texts]
            own = [kind for kind, width in found if kind and width == 1]
            usual = _INTEGERS if one.name in kernel.integers else _FLOATS
            usual = [] if own and not any("float" in kind for kind in own) else usual
            value = {"type": "category", "values": list(dict.fromkeys([*own, *usual]))}
            lines.append(Line(kernel.types[one.name], value, f"types of {one.name}"))
    return lines


_FLOATS, _INTEGERS = ["float32", "float64"], ["int32", "int64"]


def _macros(macros: Mapping[str, str]) -> list[Line]:
    return [
        Line(name, value, "compiled in: a number" if value.isdigit() else "compiled in: a type")
        for name, value in macros.items()
    ]


def _reference(title: str, arguments: Sequence[Line]) -> list[Line]:
    inputs = [line.key for line in arguments if "fill" in line.value]
    changed = any(line.value.get("role") == "inout" for line in arguments)
    outputs = [line.value["type"] for line in arguments if "role" in line.value]
    kind = outputs[0] if outputs and isinstance(outputs[0], str) else "float32"
    tolerance = [] if kind.startswith("dtype") else [Line("tolerance", TOLERANCE.get(kind, 0))]
    return [*reference_lines(draft.draft_reference(title, inputs, changed)), *tolerance]


def reference_lines(value: Mapping[str, Any]) -> list[Line]:
    """Lines of a drafted reference; the first one asks what is computed."""
    first, *rest = value
    others = "`variant: NAME`, or `call:` a function of NumPy or SciPy"
    if first == "call":
        others = "`file: reference.py:expected`, or `variant: NAME`"
    asked = Line(first, value[first], f"what is computed? Or {others}")
    return [asked, *(Line(key, value[key]) for key in rest)]


TOLERANCE = {"bfloat16": 3e-2, "complex64": 1e-5, **TOLERANCES}


def _variant_name(kernel: Kernel) -> str:
    return kernel.name.removesuffix("_kernel").strip("_") or kernel.name


def _variant(file: str, kernel: Kernel, launch: Launch, grid: tuple[list[str], str]) -> list[Line]:
    names = list(dict.fromkeys(name for name in launch.block if name.isidentifier()))
    lines = [
        Line("source", file),
        Line("kernel", *_launched(kernel)),
        Line("tunables", [one.name for one in launch.tunables]),
    ]
    if len(names) > 1 and all(map(str.isidentifier, launch.block)):
        lines.append(Line("constraints", [f"{' * '.join(launch.block)} >= 32"]))
    lines += [Line("grid", *grid), Line("block", launch.block, launch.question)]
    return lines


def _object(name: str) -> str:
    """Macro for a type that is none of numbers, such as that of a function object."""
    return f"{name}_type"


def _objects(source: Source, kernel: Kernel) -> dict[str, str]:
    """Macros for the types of a template that no parameter of the kernel has."""
    given = source.host.template_arguments(kernel.name)
    functions = [name for name, one in source.names.structures.items() if one.is_function]
    found = {}
    for place, one in enumerate(kernel.template):
        if one.kind == "type" and one.name not in kernel.types:
            text = given[0][place] if given and place < len(given[0]) else one.default
            found[_object(one.name)] = f"'{text or (functions or ['float'])[0]}'"
    return found


def _switches(source: Source, needs: Sequence[Need]) -> dict[str, str]:
    """Macros that must be there for the kernel, and the others of groups whose macros are tuned."""
    made, found = source.expanded, dict.fromkeys(source.defined, "1")
    if any(need.name in made.free for need in needs):
        found |= {
            name: (text if text.isdigit() else f"'{text}'") if text else "1"
            for name, text in made.beside.items()
            if "'" not in text
        }
    return found


def _launched(kernel: Kernel) -> tuple[str, str]:
    """A kernel as it is launched, with its template arguments, and a question."""
    if not kernel.template:
        return kernel.name, ""
    types = kernel.types
    given = [
        types.get(one.name) or (_object(one.name) if one.kind == "type" else one.name)
        for one in kernel.template
    ]
    return f"{kernel.name}<{', '.join(given)}>", ""


def _baseline(kernel: Kernel, tunables: Sequence[Tunable]) -> dict[str, Any]:
    return {"variant": _variant_name(kernel), **{one.name: one.start for one in tunables}}
