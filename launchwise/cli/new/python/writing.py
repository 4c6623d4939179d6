"""Text of ``spec.yaml`` and ``usual.yaml`` for a function of Triton."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.expressions import names_in
from launchwise.cli.new import writing as drafts
from launchwise.cli.new.python.draft import Draft
from launchwise.cli.new.writing import TOLERANCE, reference_lines
from launchwise.cli.new.yaml_lines import Line, head, lines_of, spec_of, written_as
from launchwise.workloads.parts import Value
from launchwise.workloads.triton_functions import OPTIONS

_MOST_LISTED = 100  # Most configurations that a comment lists

_FEW = re.compile(
    r"^(z|h|b|bs|bsz|batch\w*|(n|num|n_|num_)?heads?\w*|num_experts|e|experts)$", re.I
)

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
    reference = _reference(f"{Path(file).stem} {kernel}".lower(), draft)
    parts: dict[str, tuple[Sequence[Line], str]] = {
        "problem": (_problem(draft), ""),
        "tunables": (tunables, "constexprs, and options of Triton's compiler"),
        "macros": (macros, "constexprs that follow from others"),
        "arguments": (draft.arguments, "in the order of the function's parameters"),
        "reference": (reference, ""),
    }
    notes = head(said, [name for name in draft.kernels if name != kernel], remarks(draft))
    own = Line(_variant_name(draft), variant)
    return spec_of(workload, notes, parts, own, _starts(draft), _listed(draft))


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
    if _FEW.match(name) and number > 1:
        least, most = 1, 64
    elif name in draft.grid:
        least = 1
    return Line(name, {"type": "integer", "minimum": least, "maximum": most}, "range")


def usual_of_triton(draft: Draft) -> str:
    """Content of ``usual.yaml``; '' where the file lists no configurations. The first configuration
    whose blocks the problem fills is taken, else the one with the smallest blocks: whoever does not
    measure takes the first that is listed, but no block that is mostly masked."""
    configs, name = draft.tuning.configs, draft.path.name
    blocks = _blocks(draft)
    filled: list[tuple[dict[str, int], Mapping[str, Value]]] = []
    for config in configs if blocks else []:
        own: dict[str, int] = {}
        for block, size in blocks.items():
            own[size] = max(own.get(size, 0), int(config[block]))
        # One before it is taken wherever it is as large in nothing.
        if not any(all(each[size] <= own[size] for size in own) for each, _ in filled):
            filled.append((own, config))
    rules: list[str] = []
    for own, chosen in filled if len(filled) > 1 else []:
        when = " and ".join(f"{size} >= {number}" for size, number in own.items())
        rules += _rule(draft, chosen, f"the first of {name} whose blocks the problem fills", when)
    if rules:
        least = min(configs, key=lambda one: sum(int(one[block]) for block in blocks))
        rules += _rule(draft, least, f"the smallest blocks of {name}: no block is filled")
    elif configs:
        rules += _rule(draft, configs[0], f"the first configuration of {name}")
    elif draft.usual:
        rules += _rule(draft, {}, f"what {name} takes")
    return "\n".join(["choices:", *rules]) + "\n" if rules else ""


def _rule(draft: Draft, config: Mapping[str, Value], reason: str, when: str = "") -> Iterator[str]:
    first, *rest = [*([Line("when", when)] if when else []), Line("reason", reason)]
    # What a configuration leaves out has the function's default, as the baseline has.
    values = {"variant": _variant_name(draft), **_starts(draft), **config, **draft.usual}
    yield f"  - {first.key}: {written_as(first.value)}"
    yield from lines_of([*rest, Line("configuration", values)], 4)


def _blocks(draft: Draft) -> dict[str, str]:
    """Tunables to the sizes that the grid divides by them."""
    sizes = {line.key for line in _problem(draft)}
    pairs = [pair for text in draft.grid for pair in re.findall(r"ceil_div\((\w+), (\w+)\)", text)]
    return {
        block: size
        for size, block in pairs
        if size in sizes and all(isinstance(one.get(block), int) for one in draft.tuning.configs)
    }


def _starts(draft: Draft) -> dict[str, Value]:
    return {name: start for name, (_, start, _) in draft.tunables.items()}


def _variant_name(draft: Draft) -> str:
    """Name of the variant: the function's, without ``_kernel``."""
    name = draft.kernel.name.removesuffix("_kernel").strip("_")
    return name or draft.kernel.name.strip("_") or "triton"


def remarks(draft: Draft) -> list[str]:
    """What the file says and the draft does not, one line each with file and line."""
    return [f"{draft.path.name}: {note}" for note in draft.notes]


def _listed(draft: Draft) -> list[str]:
    """A comment that limits the space to the configurations of the file."""
    tuning = draft.tuning
    if len(tuning.configs) == tuning.combinations or not tuning.configs:
        return []
    known = f"    # The space has {tuning.combinations:,}: all combinations of their values."
    if len(tuning.configs) > _MOST_LISTED:
        return [known]
    rows = "".join(f"({', '.join(map(repr, one.values()))}), " for one in tuning.configs)
    rows = rows if len(tuning.configs) == 1 else rows.removesuffix(", ")
    condition = f"({', '.join(tuning.axes)}) in ({rows.strip()})"
    number = f"{len(tuning.configs)} configurations of the file"
    return [f"{known} To measure only the {number}:", f'    # constraints: ["{condition}"]']


def _reference(title: str, draft: Draft) -> list[Line]:
    inputs = [line.key for line in draft.arguments if "fill" in line.value]
    outputs = [line for line in draft.arguments if "role" in line.value]
    indexed = any(use.indexes for use in draft.reading.uses.values())
    changed = any(line.value["role"] == "inout" for line in outputs)
    if indexed or changed or len(outputs) != 1:
        value: dict[str, Any] = {"file": "reference.py:expected"}
    elif "softmax" in title and len(inputs) == 1:
        value = {"call": "scipy.special.softmax", "given": [*inputs, "-1"]}
    else:
        value = drafts.draft_reference(title, inputs)
    kinds = [line.value["type"] for line in outputs]
    tolerance = max((TOLERANCE.get(kind, 0) for kind in kinds), default=0)
    return [*reference_lines(value), Line("tolerance", tolerance)]
