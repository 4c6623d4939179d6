"""The text of a first ``spec.yaml``: one line per decision, questions as comments."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchwise.base.errors import UserError
from launchwise.base.expressions import FUNCTIONS
from launchwise.base.literals import whole
from launchwise.cli.new.body import Body, axes_in, names_of
from launchwise.cli.new.given import (
    Reading,
    draft_arguments,
    draft_sizes,
    host_launch,
    shared_bytes,
)
from launchwise.cli.new.headers import remarks
from launchwise.cli.new.indices import AXES, Accesses, Indices
from launchwise.cli.new.launches import draft_launch
from launchwise.cli.new.signature import Kernel, Source
from launchwise.cli.new.undeclared import (
    Need,
    compiled_in,
    draft_tunable,
    fixed_numbers,
    needed_items,
    needed_macros,
    needed_nodes,
)
from launchwise.cli.new.yaml_lines import QUESTION, REFERENCE, Line, head, spec_of
from launchwise.cuda_text.declarations import on_device
from launchwise.cuda_text.syntax import text_of, walk
from launchwise.workloads.parts import GPU_NAMES, LATER_COLUMNS, MEASURED_COLUMNS
from launchwise.workloads.templates import is_macro

RESERVED = {
    *(*MEASURED_COLUMNS, *LATER_COLUMNS, *GPU_NAMES, *FUNCTIONS),
    *("variant", "only", "constraints"),
}
"""Names that neither a problem parameter nor a tunable may have."""

_LARGEST = {1: 268_435_456, 2: 32_768, 3: 1_024}
"""Dimensions to the largest length that a draft allows."""


class _Draft:
    def __init__(self, source: Source, kernel: Kernel, needs: Sequence[Need]) -> None:
        numbers = fixed_numbers(source)
        no_tunables = compiled_in(needs, RESERVED)
        self.macros = no_tunables | _objects(source, kernel) | _switches(source, needs)
        given = {name: n for name, text in self.macros.items() if (n := whole(text)) is not None}
        fixed = numbers | given
        body = Body(source, kernel, numbers)
        indices, accesses = Indices(body), Accesses(body)
        # Sizes among the parameters of its template, to their values.
        self.compiled = _compiled_sizes(needs, indices)
        others = {**self.compiled, **no_tunables}
        free = [one for one in needs if one.name not in others and not one.only_tested]
        nodes = needed_nodes(source, kernel)
        axes = {name: axes_in(nodes, name) for name in ("blockIdx", "threadIdx", "blockDim")}
        sides, shared = host_launch(source, kernel, fixed)
        tunables = [*map(draft_tunable, free)]
        names = {one.name for one in tunables} | {f"block_size_{axis}" for axis in AXES}
        taken = {*RESERVED, *kernel.types.values(), *names}
        self.sizes = draft_sizes(kernel, indices, taken, self.compiled)
        self.launch = draft_launch(indices, axes, tunables, sides, self.sizes)
        reading = Reading(source, kernel, indices, accesses, self.sizes, self.launch, fixed)
        self.arguments = draft_arguments(reading)
        self.shared = shared_bytes(source, kernel, shared, self.launch.block)


def spec_text(
    workload: str, file: str, source: Source, kernel: Kernel, options: Sequence[str] = ()
) -> str:
    """Content of ``spec.yaml`` of a workload for a kernel of ``source``, which ``file`` holds.
    ``options`` are those of the compiler (:mod:`launchwise.workloads.parts`)."""
    every = needed_macros(source, kernel)
    needs = [one for one in every if not one.is_array]
    if strange := [one.name for one in needs if one.name[0] == "_" and not one.only_tested]:
        reason = "no name of a spec begins with an underscore: rename it"
        raise UserError(file, kernel.name, f"needs {strange[0]}, and {reason}")
    draft = _Draft(source, kernel, needs)
    tunables = draft.launch.tunables
    text = text_of(source.root)
    # A side of the block that the draft names itself may be a macro of another kernel of the file.
    kinds = ["build" if is_macro(one.name, text) else one.kind for one in tunables]
    values = [
        Line(one.name, {"kind": kind, "values": one.values}, one.question)
        for one, kind in zip(tunables, kinds, strict=True)
    ]
    macros = [
        Line(name, value, "compiled in: a number" if value.isdigit() else "compiled in: a type")
        for name, value in draft.macros.items()
    ]
    said = f"Kernel {kernel.name} of {file}. Every value is a draft, read from the kernel."
    others = [one.name for one in source.kernels if one.name != kernel.name]
    notes = head(said, others, remarks(source.headers, file, workload))
    asked = dict.fromkeys([*options, *_options(source, kernel, options)])
    parts: dict[str, tuple[Sequence[Line], str]] = {
        "problem": ([*_problem(draft), *_types(source, kernel)], ""),
        "tunables": (values, "build tunables become macros of the same name"),
        "macros": (macros, "of every build"),
        "arguments": (draft.arguments, "in the order of the kernel's parameters"),
        "reference": ([REFERENCE], ""),
    }
    return spec_of(
        workload,
        kernel.name,
        [*notes, *_undefined(every)],
        parts,
        _variant(file, kernel, draft),
        {one.name: one.start for one in tunables},
        list(asked),
    )


def _undefined(needs: Sequence[Need]) -> list[str]:
    """One line about names that ``#ifdef`` and ``defined()`` alone read, one about arrays."""
    tested = ", ".join(need.name for need in needs if need.only_tested)
    arrays = ", ".join(need.name for need in needs if need.is_array)
    lines = []
    if tested:
        said = f"Left undefined, as #ifdef alone reads it: {tested}."
        lines.append(f"{said} Define a name under macros.")
    if arrays:
        said = f"Nothing declares what is indexed: {arrays}."
        lines.append(f"{QUESTION[2:]}{said} Add the declaration, or the header that has it.")
    return lines


# Problem and types


def _compiled_sizes(needs: Sequence[Need], indices: Indices) -> dict[str, list[int]]:
    """Parameters of the template that bound an index of the grid, to their values."""
    bounds = [
        one.bound
        for one in indices.comparisons
        if any(name.startswith("blockIdx") for name in names_of(one.index))
    ]
    values = {need.name: sorted(need.launched) or [1024] for need in needs if need.in_template}
    return {name: values[name] for name in values if {(name,): 1} in bounds}


def _problem(draft: _Draft) -> list[Line]:
    sizes, compiled = draft.sizes, draft.compiled
    question = "range" if sizes else "the kernel takes no size: what does the problem have?"
    names = [*sizes.values()] or ["n"]
    count = min(max(len(draft.launch.grid), min(len(names), 2)), 3)
    limits = {"minimum": 16 if count > 1 else 1024, "maximum": _LARGEST[count]}
    return [
        Line(name, {"type": "integer", "values": compiled[name]}, "values")
        if name in compiled
        else Line(name, {"type": "integer", **limits}, question)
        for name in names
    ]


def _types(source: Source, kernel: Kernel) -> list[Line]:
    """Problem parameters that choose the types of a template: those that the host code gives it, or
    usual ones, and those with a specialisation."""
    lines = []
    for place, one in enumerate(kernel.template):
        if one.name in kernel.types:
            usual = ["int32", "int64"] if one.name in kernel.integers else ["float32", "float64"]
            named = source.host.template_values, source.host.specialised
            given = (map(source.names.spec_type, each(kernel.name, place)) for each in named)
            own, special = ([kind for kind, width in each if kind and width == 1] for each in given)
            value = {"type": "category", "values": list(dict.fromkeys([*(own or usual), *special]))}
            lines.append(Line(kernel.types[one.name], value, f"types of {one.name}"))
    return lines


# Macros


def _objects(source: Source, kernel: Kernel) -> dict[str, str]:
    """Macros for the types of a template that no parameter of the kernel has: no numbers."""
    functions = [name for name, one in source.names.structures.items() if one.is_function]
    found = {}
    for place, one in enumerate(kernel.template):
        if one.kind == "type" and one.name not in kernel.types:
            text = next(iter(source.host.template_values(kernel.name, place)), one.default)
            found[f"{one.name}_type"] = f"'{text or (functions or ['float'])[0]}'"
    return found


def _switches(source: Source, needs: Sequence[Need]) -> dict[str, str]:
    """Macros that must be there for the kernel, and the others of groups whose macros are tuned."""
    made, found = source.expanded, dict.fromkeys(source.defined, "1")
    if any(need.name in made.free for need in needs):
        for name, text in made.beside.items():
            if "'" not in text:
                found[name] = text if text.isdigit() else f"'{text}'" if text else "1"
    return found


_CONSTEXPR = re.compile(r"\bstd\s*::\s*(min|max|clamp|numeric_limits|array|gcd|lcm)\b")
"""What the standard library has for the host alone, and nvcc takes as constexpr."""


def _options(source: Source, kernel: Kernel, given: Sequence[str]) -> list[str]:
    """Options that nvcc needs beside those that are given, by what a kernel reads."""
    items = [item for item in needed_items(source, kernel) if on_device(item)]
    text = "\n".join(text_of(item.node) for item in (*kernel.items, *items))
    of_host = any(item.is_function and not item.of_device for item in items)
    found = []
    concepts = any(True for _ in walk(source.root, "concept_definition", "requires_clause"))
    if concepts and not any("std=" in each for each in given):
        found.append("--std=c++20")
    if of_host or _CONSTEXPR.search(text):
        found.append("--expt-relaxed-constexpr")
    if re.search(r"\]\s*(__host__\s*)?__device__\b", text):
        found.append("--extended-lambda")
    return found


# Variant


def _variant(file: str, kernel: Kernel, draft: _Draft) -> list[Line]:
    launch = draft.launch
    block = launch.block
    given = [
        kernel.types.get(one.name) or f"{one.name}{'_type' if one.kind == 'type' else ''}"
        for one in kernel.template
    ]
    names = {name for name in block if name.isidentifier()}
    lines = [
        Line("source", file),
        Line("kernel", f"{kernel.name}<{', '.join(given)}>" if given else kernel.name),
        Line("tunables", [one.name for one in launch.tunables]),
    ]
    if len(names) > 1 and all(map(str.isidentifier, block)):
        lines.append(Line("constraints", [f"{' * '.join(block)} >= 32"]))
    asked = Line("block", block, draft.launch.question)
    return [
        *lines,
        Line("grid", draft.launch.grid, draft.launch.grid_question),
        asked,
        *draft.shared,
    ]
