"""Answers of a study for its Triton kernel: what ``launchwise.autotuned`` reads.

A Python module that decides, a file of JSON that says which argument of the kernel states what, and
the module that reads both, for programs without launchwise."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from inspect import getsource
from pathlib import Path
from typing import Any

from launchwise.base import triton_answers, triton_launches
from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.base.storage import write_text
from launchwise.workloads.arguments import Argument, parameters_of
from launchwise.workloads.parts import Variant
from launchwise.workloads.sources import OPTIONS, TritonFunction, triton_function
from launchwise.workloads.spec import Spec

MODULE = "launchwise_triton.py"

_STRIDE = re.compile(r"stride|pitch|^ld[a-z]?$|^ld_", re.IGNORECASE)
"""In the name of an argument that is a distance in memory."""

_NO_VALUE = re.compile(r"""['"](tl\.|None['"])""")
"""In a macro that may be a type or None, which JSON does not tell from a text."""


def write_triton(folder: Path, table: Mapping[str, Any], spec: Spec, decision: str) -> None:
    """Write a folder with the answers, ``<study>.py``, which argument of the kernel states what,
    ``<study>.json``, and the module that reads both.

    ``table``: as :meth:`launchwise.exporting.contents.Contents.plain` gives it; ``decision``: text
    of its Python module (:func:`launchwise.exporting.languages.python_module`).
    Raises UserError when the workload has no variant in Triton, several, or answers with another
    one.
    """
    content = triton_content(table, spec)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / f"{table['study']}.json", json.dumps(content, indent=2) + "\n")
    write_text(folder / str(content["decision"]), decision)
    reader, launcher = getsource(triton_answers), getsource(triton_launches)
    launcher = re.sub(r"^from (__future__|launchwise)\b.*\n", "", launcher, flags=re.MULTILINE)
    write_text(folder / MODULE, f"# Written by launchwise export.\n{reader}\n\n{launcher}")


def triton_content(table: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    """Content of the file; see :func:`write_triton`."""
    assert spec.folder is not None
    name, variant = _variant(table, spec, spec.folder)
    function = triton_function(spec.folder / str(variant.source), str(variant.kernel))
    named = parameters_of(variant.arguments, spec.arguments)
    # The kernel's own names: those of its launches.
    given = {
        parameter.name: spec.arguments.get(argument)
        for parameter, argument in zip(function.given, named, strict=True)
    }
    fixed = _macros(spec, function)
    default = dict(zip(table["tunables"], table["default"], strict=True))
    if default["variant"] != name:
        found = (tuple(entry["configuration"]) for entry in table["entries"])
        most, _ = Counter(found).most_common(1)[0]
        default = dict(zip(table["tunables"], most, strict=True))
    return {
        "format": triton_answers.FORMAT,
        **{key: table[key] for key in ("study", "workload", "version")},
        **{"source": variant.source, "kernel": variant.kernel, "variant": name},
        "decision": f"{table['study']}.py",
        "problem": {
            each: next(_places(each, spec, given, function), None) for each in table["parameters"]
        },
        "texts": [each for each in table["parameters"] if each in table["texts"]],
        "tensors": {each: str(one.type) for each, one in given.items() if one and one.is_array},
        "computed": {
            each.name: spec.macros[each.name]
            for each in function.constexprs
            if each.name in spec.macros and each.name not in fixed
        },
        "fallback": {
            each: default[each] if each in spec.tunables else spec.value(spec.macros[each], default)
            for each in (*variant.tunables, *fixed)
        },
    }


def _variant(table: Mapping[str, Any], spec: Spec, folder: Path) -> tuple[str, Variant]:
    """The variant in Triton that all answers are of."""
    answered = Counter(str(entry["configuration"][0]) for entry in table["entries"])
    known = {name: one for name, one in spec.variants.items() if one.is_triton}
    if len(answered) != 1 or not answered.keys() <= known.keys():
        listed = ", ".join(f"{name} {count} times" for name, count in sorted(answered.items()))
        message = f"{table['study']} answers with {listed or 'none'}: this format is of one"
        message += " function of Triton; candidates of the study can leave others out"
        raise UserError(folder / SPEC_FILE, "variants", message)
    (name,) = answered
    return name, known[name]


def _macros(spec: Spec, function: TritonFunction) -> list[str]:
    """Constexprs that are computed from tunables alone: an answer has them at any size."""
    found = []
    for each in function.constexprs:
        text = spec.macros.get(each.name, "")
        read = {*spec.formulas.raw_names(text)} if text else set()
        of_tunables = bool(read & {*spec.tunable_columns}) and not read & {*spec.problem}
        if of_tunables and not _NO_VALUE.search(text):
            found.append(each.name)
    return found


def _places(
    name: str, spec: Spec, given: Mapping[str, Argument | None], function: TritonFunction
) -> Iterator[str]:
    """Where a launch states a parameter of the problem, the best place first: a stride is another
    number where a launch gets a view of a tensor."""
    known = {each: argument for each, argument in given.items() if argument is not None}
    numbers = [each for each, argument in known.items() if argument.value == name]
    numbers.sort(key=lambda each: (each not in function.keys, each.lower() != name.lower()))
    yield from (each for each in numbers if not _STRIDE.search(each))
    fixed = [each.name for each in function.constexprs if each.name not in OPTIONS]
    yield from (each for each in fixed if spec.macros.get(each) == name)
    arrays = {each: argument for each, argument in known.items() if argument.is_array}
    yield from (f"{each}.dtype" for each, argument in arrays.items() if argument.type == name)
    for each, argument in arrays.items():
        if isinstance(argument.shape, list) and name in argument.shape:
            yield f"{each}.shape[{argument.shape.index(name)}]"
    yield from (each for each in numbers if _STRIDE.search(each))
