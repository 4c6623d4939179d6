"""Decisions of a first spec for a function of Triton: arguments, constexprs, grid, sizes."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import names_in, substituted
from launchwise.cli.new.constant_names import Dotted, NotConstant
from launchwise.cli.new.triton_files import TritonFile
from launchwise.cli.new.triton_hosts import Host
from launchwise.cli.new.triton_names import (
    HEAD,
    INDEX,
    IS_GIVEN,
    REAL,
    SEED,
    STATISTIC,
    TUNED,
    Constexpr,
    bounding,
    constexprs_of,
    first_values,
    given_or_not,
    limits,
    plain,
)
from launchwise.cli.new.triton_pointers import Flow, Use
from launchwise.cli.new.triton_shapes import ROWS, Layout, is_stride
from launchwise.cli.new.triton_tensors import guessed_stride
from launchwise.cli.new.triton_tuning import Tuning, read_tuning
from launchwise.cli.new.writing import RESERVED
from launchwise.cli.new.yaml_lines import Line
from launchwise.workloads.parts import Value
from launchwise.workloads.triton_functions import OPTIONS


@dataclass
class Draft:
    """What is written.

    Parameters
    ----------
    tunables
        Name to values, the first choice, and a question.
    macros
        Constexpr to an expression and a question.
    usual
        Option of the compiler to the expression by which the host chooses it.
    notes
        What a person must do, with lines of the file.
    """

    file: TritonFile
    function: ast.FunctionDef
    tunables: dict[str, tuple[list[Value], Value, str]] = field(default_factory=dict)
    macros: dict[str, tuple[str, str]] = field(default_factory=dict)
    arguments: list[Line] = field(default_factory=list)
    usual: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    grid: list[str] = field(default_factory=list)
    grid_question: str = ""
    _values: dict[str, str] = field(default_factory=dict)
    _heads: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for stride, size in self.layout.by_strides():
            if text := self._of_host(size):
                self.host.give_size(stride, text)
        self._tensor_questions = self.host.complete()
        self.notes += self.tuning.notes
        if line := self.flow.reading.scratch_line:
            needs = (
                "a tensor descriptor made on the device needs scratch memory of Triton's launcher"
            )
            self.notes.append(f"line {line}: {needs}, which there is none of: load by pointers")
        if line := self.flow.reading.descriptor_line:
            needs = "a tensor descriptor of the host, which no launch here makes: load by pointers"
            self.notes.append(f"line {line}: {needs}")
        self.arguments = [
            self._array(name) if name in self.pointers else self._number(name)
            for name in self.given
        ]
        self._insist_on_output()
        self._fill_indices()
        for each in self.constexprs:
            self._constexpr(each)
        self._options()
        self._grid()

    @cached_property
    def flow(self) -> Flow:
        """Pointers and loaded values of the function."""
        return Flow(self.function, self.file.functions)

    @cached_property
    def tuning(self) -> Tuning:
        """What its decorators say."""
        names = self.flow.parameters
        return read_tuning(self.function, self.file.constants, names, self.host.gives_none)

    @cached_property
    def constexprs(self) -> list[Constexpr]:
        """Parameters that a build fixes."""
        return constexprs_of(self.function)

    @cached_property
    def given(self) -> list[str]:
        """Parameters that a launch gives."""
        fixed = {one.name for one in self.constexprs}
        return [name for name in self.flow.parameters if name not in fixed]

    @cached_property
    def host(self) -> Host:
        """The launch in the file."""
        taken = {*RESERVED, *OPTIONS, *(one.name for one in self.constexprs)}
        return Host(self.file, self.function.name, self.flow.parameters, taken, self._usual_type)

    @property
    def _usual_type(self) -> str:
        return "float16" if self.flow.reading.has_dot else "float32"

    @cached_property
    def pointers(self) -> list[str]:
        """Parameters that are arrays."""
        uses = self.flow.reading.uses
        return [name for name in self.given if name in uses or self.host.tensor(name) is not None]

    @cached_property
    def sizes(self) -> list[str]:
        """Numbers that the function compares, divides or counts to, and those that tune it anew."""
        bounded = {
            name.id
            for node in ast.walk(self.function)
            for part in bounding(node)
            for name in ast.walk(part)
            if isinstance(name, ast.Name)
        }
        return [
            name
            for name in self.given
            if name not in self.pointers and not is_stride(name)
            if name in bounded or name in self.tuning.key
            if not REAL.search(name.lower()) and name not in RESERVED
        ]

    def _of_host(self, size: str) -> str | None:
        try:
            return self.host.value(size)
        except NotConstant:
            return None

    @cached_property
    def layout(self) -> Layout:
        """Shapes that the function alone tells."""
        return Layout(self.function, self.flow, self.sizes, self.pointers)

    @property
    def problem(self) -> list[Line]:
        """Problem parameters: the names that expressions read."""
        texts = [*self.grid, *(text for text, _ in self.macros.values()), *self._values.values()]
        texts += [text for line in self.arguments for text in line.value.get("shape", [])]
        own = {*self.tunables, *OPTIONS}
        names = [name for text in texts for name in sorted(names_in(text)) if name not in own]
        order = [*self._values.values(), *names]
        sizes = sorted(dict.fromkeys(names), key=lambda name: order.index(name))
        return [Line(name, *limits(name, sizes, self._heads, self.grid)) for name in sizes] or [
            Line("n", {"type": "integer", "minimum": 1024, "maximum": 1 << 24}, "which sizes?")
        ]

    # Arguments

    def _array(self, name: str) -> Line:
        use = self.flow.reading.uses.get(name, Use(is_loaded=True))
        shape: list[str | None] = list(self.host.shape(name))
        question = ""
        if not shape or None in shape:
            shape, question = list(self._by_names(name)), "shape"
        elif self._owner(name) in self._tensor_questions:
            question = self._tensor_questions[self._owner(name)]
        kind = use.stored_as.replace("int1", "bool") or self.host.dtype(name)
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
        shape = [self._of_host(one) or one for one in self.layout.shape(name)]
        if shape[0] == ROWS and len(shape) > 1:
            others = (self.host.shape(one) for one in self.pointers)
            rows = (str(one[0]) for one in others if one[0:1] != [None] and one[1:] == shape[1:])
            shape[0] = next(rows, ROWS)
        return shape

    def _owner(self, name: str) -> str:
        node = self.host.given.get(name)
        return node.id if isinstance(node, ast.Name) else ""

    def _insist_on_output(self) -> None:
        """The last array is an output where no store was found."""
        if any("role" in line.value for line in self.arguments):
            return
        line, name = self.function.lineno, self.function.name
        if not self.pointers:
            raise UserError(self.file.path, f"line {line}", f"{name} loads and stores nothing")
        place = self.given.index(self.pointers[-1])
        old = self.arguments[place]
        value = {key: one for key, one in old.value.items() if key != "fill"}
        question = f"role: no store of {name} was found"
        self.arguments[place] = Line(old.key, {**value, "role": "output"}, question)

    def _fill_indices(self) -> None:
        """Indices stay below the first size of what they reach into."""
        shapes = {line.key: line.value["shape"] for line in self.arguments if "shape" in line.value}
        for place, line in enumerate(self.arguments):
            use = self.flow.reading.uses.get(line.key)
            if use is None or not use.indexes or "fill" not in line.value:
                continue
            target = next((one for one in use.indexes if one in shapes), "")
            if target:
                fill = {"uniform": [0, str(shapes[target][0])]}
                question = f"fill: what do the indices reach in {target}?"
                asked = f"{line.question}; {question}" if line.question else question
                self.arguments[place] = Line(line.key, {**line.value, "fill": fill}, asked)

    def _number(self, name: str) -> Line:
        node, text, question = self.host.given.get(name), None, ""
        literal = self.host.constant(node) if node is not None else None
        free = self.host.is_own(node) and literal is None
        is_size = name in self.sizes
        try:
            text = None if free and not is_size else self.host.value(name)
        except NotConstant as error:
            question = f"value: line {error.line}: {error}"
        if text is not None and node is not None:
            question = guessed_stride(node, self._tensor_questions)
        real = isinstance(literal, float) or bool(REAL.search(name.lower()))
        if SEED.search(name.lower()):
            real = False
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

    def _constexpr(self, each: Constexpr) -> None:
        name, axes = each.name, self.tuning.axes
        if name in axes:
            self.tunables[name] = (axes[name], self.tuning.configs[0][name], "")
            return
        if name in self.tuning.macros:
            question = IS_GIVEN if name in self.tuning.given else ""
            self._macro(name, self._over_sizes(self.tuning.macros[name]), question)
            return
        node = self.host.given.get(name, each.default)
        literal = self.host.constant(node) if node is not None else None
        if isinstance(literal, Dotted) and literal.name.startswith("triton.language."):
            self._macro(name, repr(f"tl.{literal.last}"), "")
            return
        if (is_given := given_or_not(node)) is not None:
            self._macro(name, is_given, IS_GIVEN)
            return
        if TUNED.search(name) and (literal is None or isinstance(literal, int)):
            text = self._text(name)
            if text is not None and names_in(text) - {name}:
                question = "what the host takes; or a tunable, as the function loops"
                self._macro(name, text, question if self.flow.reading.has_loop else "")
                return
            if literal is None and (size := self.layout.held(name)):
                question = "a block holds all of it; or a tunable, where the function loops"
                self._macro(name, f"next_power_of_2({size})", question)
                return
            values, start = first_values(name, literal, self.flow.reading.has_dot)
            question = "the SMs of your card" if name.lower() == "num_sms" else "values"
            self.tunables[name] = (values, start, question)
            return
        text = self._text(name)
        if text is not None and names_in(text) - {name}:
            if HEAD.search(text) and text.isidentifier():
                self._heads.add(text)
            self._macro(name, text, "")
        elif literal is not None and isinstance(literal, bool | int | float | str):
            if name in self.host.given or each.default is None:
                shown = int(literal) if isinstance(literal, bool) else literal
                self._macro(
                    name, repr(shown), "or a problem parameter, where it changes the result"
                )
        elif re.search(r"d?type$", name.lower()):
            self._macro(name, repr(f"tl.{self._usual_type}"), "type")
        elif re.search(r"dim|size|len|^[dnkmhc]$|cols|rows|heads", name.lower()):
            size = name.lower() if name.lower() not in RESERVED else f"{name.lower()}_size"
            self._heads.add(size)
            self._macro(name, size, "")
        elif each.default is None:
            self._macro(name, "0", "a number, or a problem parameter where it changes the result")

    def _text(self, name: str) -> str | None:
        """What the host gives for a constexpr, over problem parameters."""
        if name not in self.host.given:
            return None
        node = self.host.given[name]
        if self.host.is_own(node) and TUNED.search(name):
            return None
        try:
            return self.host.value(name)
        except NotConstant as error:
            self.notes.append(
                f"line {error.line}: {name} is {error}: write it under macros, or as a tunable"
            )
            return None

    def _over_host(self, text: str) -> str:
        """An expression over sizes of the function, in those that the host has."""
        known = {one: self._of_host(one) for one in names_in(text) if one in self.sizes}
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
        for option in OPTIONS:
            if option in axes:
                self.tunables[option] = (axes[option], self.tuning.configs[0][option], "")
                continue
            literal = self.host.constant(self.host.given.get(option))
            if option == "num_ctas" and literal == 1:
                continue
            text = self.tuning.macros.get(option) or (self._text(option) if not literal else None)
            if text is not None and names_in(text):
                self.usual[option] = self._over_sizes(text)
                numbers = [int(one) for one in re.findall(r"(?<![\w.])\d+\b", text)]
                values, start = first_values(option, None, self.flow.reading.has_dot)
                warps = [one for one in numbers if one in (1, 2, 4, 8, 16, 32)]
                values = sorted({*values, *(warps if option == "num_warps" else [])})
                self.tunables[option] = (values, start, "values")
                continue
            is_usual = option == "num_warps" or (
                option == "num_stages" and self.flow.reading.has_loop
            )
            if isinstance(literal, int) or (not self.tuning.configs and is_usual):
                values, start = first_values(option, literal, self.flow.reading.has_dot)
                self.tunables[option] = (values, start, "values")

    def _grid(self) -> None:
        if self.host.is_there:
            try:
                self.grid = [self._over_sizes(text) for text in self.host.grid()]
                return
            except NotConstant as error:
                self.grid_question = f"line {error.line}: {error}"
        grid, unclear = self.layout.grid()
        self.grid = [self._over_sizes(text) for text in grid]
        if unclear or not self.host.is_there:
            self.grid_question = self.grid_question or "program instances"
