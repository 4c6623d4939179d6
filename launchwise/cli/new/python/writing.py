"""Text of ``spec.yaml`` for a function of Triton."""

from __future__ import annotations

import re
from collections.abc import Sequence

from launchwise.base.expressions import names_in
from launchwise.cli.new.python.draft import Draft
from launchwise.cli.new.writing import reference_lines
from launchwise.cli.new.yaml_lines import Line, head, spec_of
from launchwise.workloads.sources import OPTIONS

_WHOLE = re.compile(r"(\w+) // (\w+)")  # Blocks that the host takes for filled

_LARGEST = {1: 1 << 26, 2: 16_384, 3: 8_192}  # Number of sizes to the largest that a draft allows


def spec_of_triton(workload: str, file: str, draft: Draft) -> str:
    """Content of ``spec.yaml`` in the folder ``workload``, which holds the Python file."""
    kernel = draft.kernel.name
    said = f"Function {kernel} of {file}. Every value is a draft of a run with stand-ins."
    variant = [
        Line("source", file),
        Line("kernel", kernel),
        Line("tunables", [*draft.tunables]),
        Line("grid", draft.grid, draft.grid_question),
    ]
    pairs = [found.groups() for text in draft.grid if (found := _WHOLE.fullmatch(text))]
    if whole := [f"{size} % {block} == 0" for size, block in pairs]:
        variant.append(Line("constraints", whole, "what the grid leaves out, no block computes"))
    tunables = [
        Line(name, {"kind": "build", "values": values}, question)
        for name, (values, _, question) in draft.tunables.items()
    ]
    macros = [Line(name, text, question) for name, (text, question) in draft.macros.items()]
    parts: dict[str, tuple[Sequence[Line], str]] = {
        "problem": (_problem(draft), ""),
        "tunables": (tunables, "constexprs, and options of Triton's compiler"),
        "macros": (macros, "constexprs that follow from others"),
        "arguments": (draft.arguments, "in the order of the function's parameters"),
        "reference": (reference_lines(draft.arguments), ""),
    }
    notes = head(said, [name for name in draft.kernels if name != kernel], remarks(draft))
    starts = {name: start for name, (_, start, _) in draft.tunables.items()}
    return spec_of(workload, kernel, notes, parts, variant, starts)


def _problem(draft: Draft) -> list[Line]:
    texts = [*draft.grid, *(text for text, _ in draft.macros.values()), *draft.values.values()]
    texts += [text for line in draft.arguments for text in line.value.get("shape", [])]
    own = {*draft.tunables, *OPTIONS}
    names = [name for text in texts for name in sorted(names_in(text)) if name not in own]
    order = [*draft.values.values(), *names]
    sizes = sorted(dict.fromkeys(names), key=lambda name: order.index(name))
    if not sizes:
        value = {"type": "integer", "minimum": 1024, "maximum": _LARGEST[1] // 4}
        return [Line("n", value, "which sizes?")]
    return [_size(name, draft, len(sizes)) for name in sizes]


def _size(name: str, draft: Draft, number: int) -> Line:
    """A problem parameter, one of a number of them, with its values."""
    if name in draft.choices:
        return Line(name, {"type": "category", "values": draft.choices[name]}, "which texts?")
    if name in draft.heads:
        question = "values: each has builds of its own"
        return Line(name, {"type": "integer", "values": [64, 128]}, question)
    least, most = 1024 if number == 1 else 16, _LARGEST[min(number, 3)]
    if name in draft.grid:
        least = 1
    return Line(name, {"type": "integer", "minimum": least, "maximum": most}, "range")


def remarks(draft: Draft) -> list[str]:
    """What the file says and the draft does not, one line each with file and line."""
    return [f"{draft.path.name}: {note}" for note in draft.notes]
