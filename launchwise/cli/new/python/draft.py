"""Decisions of a first spec for a kernel of Triton: arguments, constexprs, grid, sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import names_in, substituted
from launchwise.cli.new.python.facts import Given, Kernel, Tensor, Use
from launchwise.cli.new.python.layout import ROWS, Layout, is_stride
from launchwise.cli.new.python.names import (
    HEAD,
    INDEX,
    IS_GIVEN,
    REAL,
    SEED,
    STATISTIC,
    TUNED,
    first_values,
    limits,
    plain,
)
from launchwise.cli.new.writing import RESERVED
from launchwise.cli.new.yaml_lines import Line
from launchwise.workloads.parts import Value
from launchwise.workloads.triton_functions import OPTIONS

TAKEN = {*RESERVED, *OPTIONS}
"""Names that no problem parameter may have."""

_NOTHING = Given()


class Draft:
    """What is written.

    Parameters
    ----------
    kernels
        Those of the file that no other one calls.
    remarks
        What is said first.
    """

    def __init__(
        self, path: Path, kernels: Sequence[str], kernel: Kernel, remarks: Sequence[str]
    ) -> None:
        self.path, self.kernels, self.kernel = path, kernels, kernel
        self.reading, self.tuning, self.host = kernel.reading, kernel.tuning, kernel.host
        # Name to values, the first choice, and a question.
        self.tunables: dict[str, tuple[list[Value], Value, str]] = {}
        self.macros: dict[str, tuple[str, str]] = {}  # Constexpr to an expression and a question.
        self.usual: dict[str, str] = {}  # Option of the compiler to the host's expression.
        self.notes = [*remarks, *self.tuning.notes]  # What a person must do, with lines.
        self.grid: list[str] = []
        self.grid_question = ""
        self._values: dict[str, str] = {}
        self._heads: set[str] = set()
        self._choices: dict[str, list[str]] = {}
        if line := self.reading.scratch_line:
            needs = "a tensor descriptor made on the device needs scratch memory of Triton's"
            self.notes.append(
                f"line {line}: {needs} launcher, which there is none of: load by pointers"
            )
        if line := self.reading.descriptor_line:
            needs = "a tensor descriptor of the host, which no launch here makes: load by pointers"
            self.notes.append(f"line {line}: {needs}")
        self.arguments = [
            self._array(name) if name in self.pointers else self._number(name)
            for name in self.given
        ]
        self._insist_on_output()
        self._fill_indices()
        for name in self.kernel.constexprs:
            self._constexpr(name)
        self._options()
        self._grid()

    @cached_property
    def given(self) -> list[str]:
        """Parameters that a launch gives."""
        return [name for name in self.kernel.parameters if name not in self.kernel.constexprs]

    @property
    def _usual_type(self) -> str:
        return "float16" if self.reading.has_dot else "float32"

    @cached_property
    def pointers(self) -> list[str]:
        """Parameters that are arrays."""
        return [name for name in self.given if name in self.reading.uses or self._of(name).tensor]

    @cached_property
    def sizes(self) -> list[str]:
        """Numbers that the kernel compares, divides or counts to, and those that tune it anew."""
        return [
            name
            for name in self.given
            if name not in self.pointers and not is_stride(name)
            if name in self.reading.bounding or name in self.tuning.key
            if not REAL.search(name.lower()) and name not in RESERVED
        ]

    def _of(self, name: str) -> Given:
        return self.host.given.get(name, _NOTHING)

    def _tensor(self, name: str) -> Tensor:
        return self.host.tensors.get(self._of(name).tensor) or Tensor()

    @cached_property
    def layout(self) -> Layout:
        """Shapes that the kernel alone tells."""
        return Layout(self.reading, self.kernel.parameters, self.sizes, self.pointers)

    @property
    def problem(self) -> list[Line]:
        """Problem parameters: the names that expressions read."""
        texts = [*self.grid, *(text for text, _ in self.macros.values()), *self._values.values()]
        texts += [text for line in self.arguments for text in line.value.get("shape", [])]
        own = {*self.tunables, *OPTIONS}
        names = [name for text in texts for name in sorted(names_in(text)) if name not in own]
        order = [*self._values.values(), *names]
        sizes = sorted(dict.fromkeys(names), key=lambda name: order.index(name))
        lines = [
            Line(name, {"type": "category", "values": self._choices[name]}, "which texts?")
            if name in self._choices
            else Line(name, *limits(name, sizes, self._heads, self.grid))
            for name in sizes
        ]
        return lines or [
            Line("n", {"type": "integer", "minimum": 1024, "maximum": 1 << 24}, "which sizes?")
        ]

    # Arguments

    def _array(self, name: str) -> Line:
        use = self.reading.uses.get(name, Use(is_loaded=True))
        tensor = self._tensor(name)
        shape, question = [*tensor.shape], tensor.question
        if not shape or None in shape:
            shape, question = list(self._by_names(name)), "shape"
        kind = use.stored_as.replace("int1", "bool") or tensor.dtype
        low = name.lower().removesuffix("_ptr")
        whole = bool(use.indexes) or (INDEX.search(low) and not kind.startswith("float"))
        if not kind:
            usual = self._usual_type
            kind = "float32" if STATISTIC.search(low) else "int32" if whole else usual
            kind = "bool" if "mask" in low else kind
            question = f"{question}; type" if question else "type"
        role = use.role
        value: dict[str, Any] = {"type": kind, "shape": shape}
        fill: Any = "normal" if "float" in kind else "uniform"
        if kind == "bool":
            fill = {"uniform": [0, 2]}
        if name in (*self.tuning.zeroed, *self.tuning.restored) or use.atomics:
            role = "inout"
        if role != "input":
            value["role"] = role
        if name in self.tuning.zeroed or (use.atomics and name not in self.tuning.restored):
            fill = "zeros"
        if role != "output":
            value["fill"] = fill
        return Line(name, value, question)

    def _by_names(self, name: str) -> list[str]:
        """Shape by the names of the function, in the sizes that the host has."""
        shape = [self._of(one).text or one for one in self.layout.shape(name)]
        if shape[0] == ROWS and len(shape) > 1:
            others = (self._tensor(one).shape for one in self.pointers)
            rows = (str(one[0]) for one in others if one[0:1] != [None] and one[1:] == shape[1:])
            shape[0] = next(rows, ROWS)
        return shape

    def _insist_on_output(self) -> None:
        """The last array is an output where no store was found."""
        if any("role" in line.value for line in self.arguments):
            return
        line, name = self.kernel.line, self.kernel.name
        if not self.pointers:
            raise UserError(self.path, f"line {line}", f"{name} loads and stores nothing")
        place = self.given.index(self.pointers[-1])
        old = self.arguments[place]
        value = {key: one for key, one in old.value.items() if key != "fill"}
        question = f"role: no store of {name} was found"
        self.arguments[place] = Line(old.key, {**value, "role": "output"}, question)

    def _fill_indices(self) -> None:
        """Indices stay below the first size of what they reach into."""
        shapes = {line.key: line.value["shape"] for line in self.arguments if "shape" in line.value}
        for place, line in enumerate(self.arguments):
            use = self.reading.uses.get(line.key)
            if use is None or not use.indexes or "fill" not in line.value:
                continue
            target = next((one for one in use.indexes if one in shapes), "")
            if target:
                fill = {"uniform": [0, str(shapes[target][0])]}
                question = f"fill: what do the indices reach in {target}?"
                asked = f"{line.question}; {question}" if line.question else question
                self.arguments[place] = Line(line.key, {**line.value, "fill": fill}, asked)

    def _number(self, name: str) -> Line:
        given, is_size = self._of(name), name in self.sizes
        literal = given.literal
        text = given.text if is_size or literal is not None or not given.is_own else None
        question = f"value: {given.problem}" if given.problem else ""
        if given.guessed:
            question = f"stride: the file does not say all sizes of {given.guessed}"
        real = isinstance(literal, float) or bool(REAL.search(name.lower()))
        real = real and not SEED.search(name.lower())
        if text is None and is_stride(name):
            text = self._over_host(self.layout.stride(name))
            question = "stride"
        elif text is None and is_size and not question:
            text = name
        if text is None:
            text = "1.0" if real else "1"
            question = question or "value"
            if "eps" in name.lower():
                text, question = "1e-5", "value"
            elif real and re.search(r"(^|_)p(_|$)|prob", name.lower()):
                text = "0.5"
        self._values[name] = text
        kind = "float32" if real else "int32"
        return Line(name, {"type": kind, "value": plain(text)}, question)

    # Constexprs

    def _constexpr(self, name: str) -> None:
        axes, given = self.tuning.axes, self._of(name)
        if name in axes:
            self.tunables[name] = (axes[name], self.tuning.configs[0][name], "")
        elif name in self.tuning.macros:
            question = IS_GIVEN if name in self.tuning.given else ""
            self._macro(name, self._over_sizes(self.tuning.macros[name]), question)
        elif given.type:
            self._macro(name, repr(given.type), "")
        elif given.asks:
            self._macro(name, given.asks, IS_GIVEN)
        elif TUNED.search(name) and isinstance(self._literal(name), int | None):
            self._tuned(name)
        else:
            self._fixed(name)

    def _literal(self, name: str) -> Any:
        """What the launch gives for a constexpr, else what the function has for it."""
        given = self._of(name)
        is_given = name in self.host.given
        return given.literal if is_given else self.kernel.defaults.get(name)

    def _tuned(self, name: str) -> None:
        """A constexpr that is named as one that is tuned."""
        literal, text = self._literal(name), self._text(name)
        if text is not None and names_in(text) - {name}:
            question = "what the host takes; or a tunable, as the function loops"
            self._macro(name, text, question if self.reading.has_loop else "")
        elif literal is None and (size := self.layout.held(name)):
            question = "a block holds all of it; or a tunable, where the function loops"
            self._macro(name, f"next_power_of_2({size})", question)
        else:
            values, start = first_values(name, literal, self.reading.has_dot)
            question = "the SMs of your card" if name.lower() == "num_sms" else "values"
            self.tunables[name] = (values, start, question)

    def _fixed(self, name: str) -> None:
        """A constexpr that is no tunable."""
        literal, text = self._literal(name), self._text(name)
        has_default, is_sized = name in self.kernel.defaults, name in self.reading.counted
        is_said = is_sized or not self._of(name).is_free
        changes = "a problem parameter, where it changes the result"
        if text is not None and names_in(text) - {name} and is_said:
            if HEAD.search(text) and text.isidentifier():
                self._heads.add(text)
            self._macro(name, text, "")
        elif literal is not None:
            if name in self.host.given or not has_default:
                shown = int(literal) if isinstance(literal, bool) else literal
                self._macro(name, repr(shown), f"or {changes}")
        elif texts := self.reading.texts.get(name):
            choice = f"{name.lower()}_choice"
            self._choices[choice] = [*texts, *([] if len(texts) > 1 else ["other"])]
            self._macro(name, choice, "")
        elif re.search(r"d?type$", name.lower()):
            self._macro(name, repr(f"tl.{self._usual_type}"), "type")
        elif is_sized and re.search(r"dim|size|len|^[dnkmhc]$|cols|rows|heads", name.lower()):
            size = name.lower() if name.lower() not in RESERVED else f"{name.lower()}_size"
            self._heads.add(size)
            self._macro(name, size, "")
        elif not has_default:
            start = "0.0" if REAL.search(name.lower()) else "0"
            self._macro(name, start, f"a number, or {changes}")

    def _text(self, name: str) -> str | None:
        """What the host gives for a constexpr, over problem parameters."""
        given = self._of(name)
        if given.is_own and TUNED.search(name):
            return None
        if given.problem:
            problem = given.problem.replace(": ", f": {name} is ", 1)
            self.notes.append(f"{problem}: write it under macros, or as a tunable")
        return given.text

    def _over_host(self, text: str) -> str:
        """An expression over sizes of the function, in those that the host has."""
        known = {one: self._of(one).text for one in names_in(text) if one in self.sizes}
        return substituted(text, {one: f"({its})" for one, its in known.items() if its})

    def _macro(self, name: str, text: str, question: str) -> None:
        self.macros[name] = (self._over_sizes(text, name), question)

    def _over_sizes(self, text: str, name: str = "") -> str:
        """An expression over arguments and constexprs, as one over the problem and tunables."""
        known = {**self._values, **{one: given for one, (given, _) in self.macros.items()}}
        known = {one: f"({given})" for one, given in known.items() if one not in (name, given)}
        return substituted(text, known)

    def _options(self) -> None:
        axes = self.tuning.axes
        for option in (one for one in OPTIONS if one not in self.kernel.constexprs):
            if option in axes:
                self.tunables[option] = (axes[option], self.tuning.configs[0][option], "")
                continue
            literal = self._of(option).literal
            if option == "num_ctas" and literal == 1:
                continue
            text = self.tuning.macros.get(option) or (self._text(option) if not literal else None)
            if text is not None and names_in(text):
                self.usual[option] = self._over_sizes(text)
                numbers = [int(one) for one in re.findall(r"(?<![\w.])\d+\b", text)]
                values, start = first_values(option, None, self.reading.has_dot)
                warps = [one for one in numbers if one in (1, 2, 4, 8, 16, 32)]
                values = sorted({*values, *(warps if option == "num_warps" else [])})
                self.tunables[option] = (values, start, "values")
                continue
            is_usual = option == "num_warps" or (option == "num_stages" and self.reading.has_loop)
            if isinstance(literal, int) or (not self.tuning.configs and is_usual):
                values, start = first_values(option, literal, self.reading.has_dot)
                self.tunables[option] = (values, start, "values")

    def _grid(self) -> None:
        if self.host.grid:
            self.grid = [self._over_sizes(text) for text in self.host.grid]
            return
        grid, unclear = self.layout.grid()
        self.grid = [self._over_sizes(text) for text in grid]
        self.grid_question = self.host.problem
        if unclear or not self.host.is_there:
            self.grid_question = self.grid_question or "program instances"
