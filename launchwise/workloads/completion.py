"""Derived parts of a spec with ``arguments``: work, limits of the GPU and features.

Everything here is an expression text that a spec could have had itself; what a spec does have is
never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from launchwise.workloads.arguments import TYPES, Argument

if TYPE_CHECKING:
    from launchwise.workloads.spec import Spec

THREADS_LIMIT = "gpu_max_threads_per_block"
SHARED_LIMIT = "gpu_shared_per_block_bytes"
RESIDENT_THREADS = 2048
"""Threads that an SM holds at once, for the number of rounds of a grid."""

_NO_NAME = re.compile(r"\W")

NOTHING = {"items": "1", "item": "runs", "bytes": "0", "flop": "0", "footprint_bytes": "0"}
"""Work if arguments cannot be read: the error in the arguments is reported instead."""


def completed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as read from its file, with what follows from its ``arguments``.

    Parameters
    ----------
    raw
        Content of ``spec.yaml``, not checked yet. Without ``arguments`` it is returned as it is.
    """
    found = dict(raw)
    if not isinstance(raw.get("arguments"), Mapping) or not raw["arguments"]:
        return found
    if "work" not in raw:
        found["work"] = _work(raw)
    if isinstance(raw.get("variants"), Mapping):
        found["variants"] = {name: _variant(each) for name, each in raw["variants"].items()}
    return found


def _work(raw: Mapping[str, Any]) -> dict[str, str]:
    """Least traffic (inputs once, outputs once), footprint and items of a problem."""
    try:
        arguments = {name: Argument.model_validate(each) for name, each in raw["arguments"].items()}
        problem = dict(raw.get("problem") or {})
        bytes_of = {
            name: f"{_itemsize(each, problem)} * {_elements(each)}"
            for name, each in arguments.items()
            if each.is_array
        }
    except (ValidationError, KeyError, AttributeError, TypeError):
        return NOTHING
    read = [text for name, text in bytes_of.items() if arguments[name].is_read]
    written = [text for name, text in bytes_of.items() if arguments[name].is_written]
    outputs = [each for each in arguments.values() if each.is_written]
    floats = [each.type for each in outputs if _is_float(each, problem)]
    return {
        "items": _elements(outputs[0]) if outputs else "1",
        "item": "elements",
        "bytes": " + ".join([*read, *written]) or "0",
        "flop": "0",
        "footprint_bytes": " + ".join(bytes_of.values()) or "0",
        "precision": _precision(floats[0]) if floats else "'float32'",
    }


def _elements(argument: Argument) -> str:
    return " * ".join(f"({size})" for size in argument.shape or [])


def _itemsize(argument: Argument, problem: Mapping[str, Any]) -> str:
    """Bytes of an element, as an expression over the problem."""
    sizes = {each: np.dtype(each).itemsize for each in _types(argument, problem)}
    *others, (_, text) = [(name, str(size)) for name, size in sizes.items()]
    for name, size in reversed(others):
        text = f"{size} if {argument.type} == '{name}' else {text}"
    return f"({text})" if others else text


def _types(argument: Argument, problem: Mapping[str, Any]) -> list[str]:
    if argument.type in TYPES:
        return [argument.type]
    return [str(each) for each in problem[argument.type]["values"] if each in TYPES] or ["float32"]


def _is_float(argument: Argument, problem: Mapping[str, Any]) -> bool:
    return set(_types(argument, problem)) <= {"float32", "float64"}


def _precision(named: str) -> str:
    return f"'{named}'" if named in TYPES else named


def _variant(raw: Any) -> Any:
    """A variant with the GPU's limits of threads and dynamic shared memory, and its main kernel."""
    if not isinstance(raw, Mapping):
        return raw
    found = dict(raw)
    steps = raw.get("kernels")
    if isinstance(steps, list) and steps and all(isinstance(step, Mapping) for step in steps):
        main = next((step for step in steps if step.get("main")), steps[0])
        for key in ("block", "grid"):
            if key in main:
                found.setdefault(key, main[key])
    else:
        steps = [raw]
    limits: list[str] = []
    for step in steps:
        block = step.get("block")
        if isinstance(block, list) and block:
            limits.append(f"{' * '.join(f'({size})' for size in block)} <= {THREADS_LIMIT}")
        if "shared_bytes" in step:
            limits.append(f"({step['shared_bytes']}) <= {SHARED_LIMIT}")
    given = list(raw.get("constraints") or [])
    found["constraints"] = [*given, *(each for each in dict.fromkeys(limits) if each not in given)]
    return found


def derived_features(spec: Spec) -> dict[str, str]:
    """Features of a spec that names none.

    Logarithms of integer sizes, categories, tunables (their logarithms where all are positive),
    threads per block, rounds of the grid and what the last one fills, bytes of the problem over L2.
    """
    found: dict[str, str] = {}
    for name, parameter in spec.problem.items():
        if parameter.type == "integer":
            found[f"log_{name}"] = f"log2(max({name}, 1))"
        else:
            found |= _one_of(name, parameter.values or [])
    found |= _one_of("variant", spec.variants)
    for name in spec.tunables:
        every = spec.values_of(name)
        if all(isinstance(value, str) for value in every):
            found |= _one_of(name, every)
        elif all(isinstance(value, int) and value > 0 for value in every):
            found[f"log_{name}"] = f"log2({name})"
        else:
            found[name] = name
    threads = _by_variant(spec, "block")
    blocks = _by_variant(spec, "grid")
    found["log_threads_per_block"] = f"log2(max({threads}, 1))"
    rounds = f"({threads}) * ({blocks}) / {RESIDENT_THREADS} / gpu_sms"
    found["log_rounds"] = f"log2(max({rounds}, 0.0001))"
    found["last_round"] = f"({rounds}) / max(1, -(-({rounds}) // 1))"
    found["log_bytes_over_l2"] = f"log2(max(({spec.work.bytes}) / gpu_l2_bytes, 0.0001))"
    return found


def _one_of(name: str, values: Iterable[Any]) -> dict[str, str]:
    """One feature per value but the first: whether it is this one."""
    _, *others = list(values)
    return {
        f"is_{name}_{_NO_NAME.sub('_', str(value))}": f"1 if {name} == '{value}' else 0"
        for value in others
    }


def _by_variant(spec: Spec, key: str) -> str:
    """Product of the sizes of a variant's block or grid, whichever variant it is."""
    products = {
        name: " * ".join(f"({size})" for size in getattr(variant, key))
        for name, variant in spec.variants.items()
    }
    *others, (_, text) = products.items()
    for name, product in reversed(others):
        text = f"({product}) if variant == '{name}' else ({text})"
    return f"({text})"
