"""Text of ``spec.yaml`` and ``usual.yaml`` for a function of Triton."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from launchwise.cli.new import draft as drafts
from launchwise.cli.new.python.draft import Draft
from launchwise.cli.new.writing import TOLERANCE, reference_lines
from launchwise.cli.new.yaml_lines import QUESTION, Line, lines_of, section, written_as
from launchwise.workloads.parts import Value

_MOST_LISTED = 100
"""Most configurations that a comment lists."""


def spec_of_triton(workload: str, file: str, draft: Draft) -> str:
    """Content of ``spec.yaml``.

    Parameters
    ----------
    workload
        Name of the folder.
    file
        Name of the Python file in that folder.
    """
    title = f"{Path(file).stem} {draft.kernel.name}".lower()
    variant = [
        Line("source", file),
        Line("kernel", draft.kernel.name),
        Line("tunables", [*draft.tunables]),
        Line("grid", draft.grid, draft.grid_question),
    ]
    tunables = [
        Line(name, {"kind": "build", "values": values}, question)
        for name, (values, _, question) in draft.tunables.items()
    ]
    macros = [Line(name, text, question) for name, (text, question) in draft.macros.items()]
    starts = {name: start for name, (_, start, _) in draft.tunables.items()}
    lines = [
        *(f"# {note}" for note in _notes(file, draft)),
        *lines_of([Line("workload", workload), Line("title", workload.replace("_", " "))]),
        *section("problem", draft.problem),
        *section("tunables", tunables, "constexprs, and options of Triton's compiler"),
        *(section("macros", macros, "constexprs that follow from others") if macros else []),
        *section("arguments", draft.arguments, "in the order of the function's parameters"),
        *section("reference", _reference(title, draft)),
        "variants:",
        *section(variant_name(draft), variant, "", 2),
        *_listed(draft),
        *lines_of([Line("baseline", {"variant": variant_name(draft), **starts})]),
    ]
    return "\n".join(lines) + "\n"


def usual_of_triton(draft: Draft) -> str:
    """Content of ``usual.yaml``; '' where the file lists no configurations.

    The first configuration whose blocks the problem fills is taken, else the one with the smallest
    blocks: whoever does not measure takes the first that is listed, but no block that is mostly
    masked.
    """
    configs = draft.tuning.configs
    if not configs:
        reason = f"what {draft.path.name} takes"
        rule = _rule(draft, {}, reason)
        return "\n".join(["choices:", *rule]) + "\n" if draft.usual else ""
    blocks = _blocks(draft)
    rules: list[str] = []
    name = draft.path.name
    taken: list[dict[str, int]] = []
    for config in configs if blocks else []:
        own: dict[str, int] = {}
        for block, size in blocks.items():
            own[size] = max(own.get(size, 0), int(config[block]))
        if any(all(each[size] <= own[size] for size in own) for each in taken):
            continue  # One before it is taken wherever this one could be.
        taken.append(own)
        when = " and ".join(f"{size} >= {number}" for size, number in own.items())
        reason = f"the first of {name} whose blocks the problem fills"
        rules += _rule(draft, config, reason, when)
    last = configs[0]
    reason = f"the first configuration of {name}"
    if blocks:
        last = min(configs, key=lambda one: sum(int(one[block]) for block in blocks))
        reason = f"the smallest blocks of {name}: no block is filled"
    if len(taken) == 1:
        rules, reason = [], f"the first configuration of {name}"
    return "\n".join(["choices:", *rules, *_rule(draft, last, reason)]) + "\n"


def _rule(draft: Draft, config: Mapping[str, Value], reason: str, when: str = "") -> Iterator[str]:
    first = f"when: {written_as(when)}" if when else f"reason: {written_as(reason)}"
    yield f"  - {first}"
    if when:
        yield f"    reason: {written_as(reason)}"
    # What a configuration leaves out has the function's default, as the baseline has.
    starts = {name: start for name, (_, start, _) in draft.tunables.items()}
    values = {"variant": variant_name(draft), **starts, **config, **draft.usual}
    yield f"    configuration: {written_as(values)}"


def _blocks(draft: Draft) -> dict[str, str]:
    """Tunables to the sizes that the grid divides by them."""
    found = {}
    for text in draft.grid:
        for size, block in re.findall(r"ceil_div\((\w+), (\w+)\)", text):
            numbers = [each.get(block) for each in draft.tuning.configs]
            if numbers and all(isinstance(one, int) for one in numbers):
                found[block] = size
    sizes = {line.key for line in draft.problem}
    return {block: size for block, size in found.items() if size in sizes}


def variant_name(draft: Draft) -> str:
    """Name of the variant: the function's, without ``_kernel``."""
    name = draft.kernel.name.removesuffix("_kernel").strip("_")
    return name or draft.kernel.name.strip("_") or "triton"


def _notes(file: str, draft: Draft) -> list[str]:
    """Comments at the top."""
    others = [name for name in draft.kernels if name != draft.kernel.name]
    notes = [
        f"Function {draft.kernel.name} of {file}. Every value is a draft of a run with stand-ins.",
        "A comment that begins with a question mark asks for a decision.",
    ]
    if others:
        notes.append(f"Other kernels of the file: {', '.join(others)}.")
    return [*notes, *(f"{QUESTION[2:]}{each}" for each in remarks(draft))]


def remarks(draft: Draft) -> list[str]:
    """What the file says and the draft does not, one line each with file and line."""
    return [f"{draft.path.name}: {note}" for note in draft.notes]


def _listed(draft: Draft) -> list[str]:
    """A comment that limits the space to the configurations of the file."""
    tuning = draft.tuning
    if not tuning.configs or len(tuning.configs) == tuning.combinations:
        return []
    number = f"{len(tuning.configs)} configurations of the file"
    known = f"    # The space has {tuning.combinations:,}: all combinations of their values."
    if len(tuning.configs) > _MOST_LISTED:
        return [known]
    names = [*tuning.axes]
    rows = ", ".join(f"({', '.join(map(repr, one.values()))})" for one in tuning.configs)
    inside = f"({rows},)" if len(tuning.configs) == 1 else f"({rows})"
    condition = f"({', '.join(names)}) in {inside}"
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
