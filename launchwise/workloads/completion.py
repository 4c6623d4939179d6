"""Derived parts of a spec with ``arguments``: work, limits of the GPU and features.

Everything here is an expression text that a spec could have had itself; what a spec does have is
never changed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from launchwise.base.arrays import TYPES, element_type, struct_type
from launchwise.base.expressions import inlined, names_in, substituted
from launchwise.workloads.arguments import Argument
from launchwise.workloads.parts import threads_of_triton
from launchwise.workloads.sources import TRITON
from launchwise.workloads.spec_fields import SpecFields

THREADS_LIMIT = "gpu_max_threads_per_block"
SHARED_LIMIT = "gpu_shared_per_block_bytes"
RESIDENT_THREADS = 2048  # Threads that an SM holds at once, for the number of rounds of a grid

MOST_ENDS = 16
"""Most combinations of extreme values of tunables that a size of an array is taken at."""

_NO_NAME = re.compile(r"\W")

NOTHING = {"items": "1", "item": "runs", "bytes": "0", "flop": "0", "footprint_bytes": "0"}
"""Work if arguments cannot be read: the error in the arguments is reported instead."""


def completed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A spec as read from its file, with what follows from its ``arguments``.

    ``raw``: content of ``spec.yaml``, not checked yet. Without ``arguments`` it is returned as it
        is.
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
    """Least traffic (inputs once, outputs once), footprint and items of a problem. What tunables
    decide counts least in the traffic and most in the footprint; what a function of the user's own
    decides counts as nothing."""
    try:
        sizing = _Sizing(raw)
        arguments = sizing.arguments
        least = {name: sizing.bytes(name, min) for name in sizing.arrays}
        most = {name: sizing.bytes(name, max) for name in sizing.arrays}
    except (ValidationError, KeyError, AttributeError, TypeError, ValueError):
        return NOTHING
    own = [name for name in sizing.arrays if arguments[name].role != "scratch"]
    read = [least[name] for name in own if arguments[name].is_read]
    written = [least[name] for name in own if arguments[name].is_written]
    # What is put back before a launch is kept twice.
    kept = [most[name] for name in sizing.arrays if arguments[name].is_restored]
    outputs = [name for name in own if arguments[name].is_written and not arguments[name].is_data]
    floats = [str(arguments[name].type) for name in outputs if sizing.is_float(name)]
    precision = floats[0] if floats else "float32"
    return {
        "items": sizing.elements(outputs[0], min) if outputs else "1",
        "item": "elements",
        "bytes": " + ".join([*read, *written]) or "0",
        "flop": "0",
        "footprint_bytes": " + ".join([*most.values(), *kept]) or "0",
        "precision": f"'{precision}'" if precision in TYPES else precision,
    }


class _Sizing:
    """Sizes of arrays as expressions over the problem alone. A name that is none of the problem's
    is replaced by the smallest or largest value that it may have: a tunable's first and last, and 0
    or 1 for what ``inputs`` gives."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.arguments = {
            name: Argument.model_validate(each) for name, each in raw["arguments"].items()
        }
        self.arrays = [name for name, each in self.arguments.items() if each.is_array]
        self._problem = dict(raw.get("problem") or {})
        self._derived = dict(raw.get("derived") or {})
        self._tunables = dict(raw.get("tunables") or {})

    def bytes(self, name: str, choose: Callable[[Iterable[int]], int]) -> str:
        """Bytes of an array; ``choose`` takes the least or the most of what tunables decide."""
        return f"{self._itemsize(self.arguments[name], choose)} * {self.elements(name, choose)}"

    def elements(self, name: str, choose: Callable[[Iterable[int]], int]) -> str:
        argument = self.arguments[name]
        if argument.is_data:
            return "(0)"
        plain = " * ".join(f"({size})" for size in argument.sizes)
        whole = inlined(plain, self._derived)
        read = sorted(names_in(whole) - {*self._problem})
        if not read:
            return plain
        ends = [self._ends(each) for each in read]
        texts = [
            substituted(whole, dict(zip(read, values, strict=True)))
            for values in itertools.islice(itertools.product(*ends), MOST_ENDS)
        ]
        bare = list(dict.fromkeys(texts))
        return f"{choose.__name__}({', '.join(bare)})" if len(bare) > 1 else f"({bare[0]})"

    def is_float(self, name: str) -> bool:
        """Whether an array holds numbers that a roofline knows: float32 or float64."""
        kind = self.arguments[name].type
        return (
            isinstance(kind, str)
            and kind not in self._tunables
            and (set(self._types(kind)) <= {"float32", "float64"})
        )

    def _ends(self, name: str) -> list[str]:
        if name in self._tunables:
            values = self._tunables[name]["values"]
            numbers = all(isinstance(each, int) for each in values)
            ends = [min(values), max(values)] if numbers else [values[0]]
            return list(dict.fromkeys(map(repr, ends)))
        return ["0"]

    def _types(self, kind: str) -> list[str]:
        if kind in TYPES:
            return [kind]
        named = self._problem.get(kind) or self._tunables[kind]
        return [str(each) for each in named["values"] if each in TYPES] or ["float32"]

    def _itemsize(self, argument: Argument, choose: Callable[[Iterable[int]], int]) -> str:
        if isinstance(argument.type, dict):
            return str(struct_type(argument.type).itemsize)
        sizes = {each: element_type(each).itemsize for each in self._types(argument.type)}
        if argument.type in self._tunables:
            return str(choose(sizes.values()))
        *others, (_, text) = [(name, str(size)) for name, size in sizes.items()]
        for name, size in reversed(others):
            text = f"{size} if {argument.type} == '{name}' else {text}"
        return f"({text})" if others else text


def _variant(raw: Any) -> Any:
    """A variant with the GPU's limits of threads and dynamic shared memory, and its main kernel."""
    if not isinstance(raw, Mapping):
        return raw
    found = dict(raw)
    if str(raw.get("source", "")).endswith(TRITON):
        found.setdefault("block", list(threads_of_triton(raw.get("tunables") or ())))
    steps = raw.get("kernels")
    if isinstance(steps, list) and steps and all(isinstance(step, Mapping) for step in steps):
        main = next((step for step in steps if step.get("main")), steps[0])
        found = {**{key: main[key] for key in ("block", "grid") if key in main}, **found}
    else:
        steps = [found]
    limits: list[str] = []
    repeats = [part.get("repeat") for part in (raw, *steps)]
    counters = {str(n): "0" for each in repeats if isinstance(each, Mapping) for n in each}
    for step in steps:
        if isinstance(step.get("block"), list) and step["block"]:
            sizes = [f"({_at_start(size, counters)})" for size in step["block"]]
            limits.append(f"{' * '.join(sizes)} <= {THREADS_LIMIT}")
        if "shared_bytes" in step:
            limits.append(f"({step['shared_bytes']}) <= {SHARED_LIMIT}")
    for key in ("block", "grid"):
        if isinstance(found.get(key), list):
            found[key] = [_at_start(size, counters) for size in found[key]]
    given = list(raw.get("constraints") or [])
    found["constraints"] = [*given, *(each for each in dict.fromkeys(limits) if each not in given)]
    return found


def _at_start(size: Any, counters: Mapping[str, str]) -> Any:
    try:
        return substituted(str(size), counters) if counters else size
    except ValueError:
        return size  # The expression is at fault, and is reported as such.


def derived_features(spec: SpecFields) -> dict[str, str]:
    """Features of a spec that names none. Logarithms of integer sizes, categories, tunables (their
    logarithms where all are positive), threads per block, rounds of the grid and what the last one
    fills, bytes of the problem over L2."""
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


def _by_variant(spec: SpecFields, key: str) -> str:
    """Product of the sizes of a variant's block or grid, whichever variant it is; 1 without one."""
    products = {
        name: " * ".join(f"({size})" for size in getattr(variant, key) or ("1",))
        for name, variant in spec.variants.items()
    }
    *others, (_, text) = products.items()
    for name, product in reversed(others):
        text = f"({product}) if variant == '{name}' else ({text})"
    return f"({text})"
