"""Decisions of a first spec for a kernel of Triton: arguments, constexprs, grid, sizes."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import names_in, substituted
from launchwise.cli.new.python.facts import Facts, Given, Kernel, Reading, Use
from launchwise.cli.new.writing import RESERVED
from launchwise.cli.new.yaml_lines import Line
from launchwise.workloads.parts import Value
from launchwise.workloads.sources import OPTIONS

# Names of parameters, lower case but for those that ignore case.
_TUNED = re.compile(
    r"block|tile|chunk|group_?(size)?_?m$|split|unroll|warps|stages|num_sms|^b[mnkdtc]$", re.I
)
_REAL = re.compile(
    r"(^|_)(eps|epsilon|alpha|beta|gamma|scale|lr|momentum|p|prob|temperature|slope|value|decay"
    r"|limit|cap)(_|$)"
)
_INDEX = re.compile(
    r"(^|_)(ids?|idx|index|indices|indptr|offsets|seqlens?|lens|lengths|counts?|counters?"
    r"|hist\w*|bins|table|locks?|labels|targets)(_|$)"
)
_HEAD = re.compile(r"dim|head_?size|^d$", re.I)

_ROWS = "rows"  # Problem parameter for sizes that nothing says

_IS_GIVEN = "the array is given; else nullptr among the arguments"
_CHANGES = "a problem parameter, where it changes the result"

_FIRST = {"num_ctas|split|unroll": (1, 1, 4), "warps": (4, 1, 8), "stages": (3, 1, 4)}
_FIRST |= {"group": (8, 1, 8)}
"""Names of tunables to the first choice, the least and the largest value."""


class Draft:
    def __init__(self, path: Path, facts: Facts, kernel: Kernel) -> None:
        self.path, self.kernels, self.kernel = path, facts.kernels, kernel
        self.reading, self.tuning, self.host = kernel.reading, kernel.tuning, kernel.host
        # Name to values, the first choice, and a question.
        self.tunables: dict[str, tuple[list[Value], Value, str]] = {}
        self.macros: dict[str, tuple[str, str]] = {}  # Constexpr to an expression and a question.
        # What a person must do, with lines.
        self.notes = [f"line {line}: {note}" for note, line in self.reading.notes.items()]
        self.notes += self.tuning.notes
        if facts.missing:
            missing = "; ".join(facts.missing)
            self.notes.insert(0, f"{kernel.name} reads what is not copied: {missing}")
        self.values: dict[str, str] = {}  # Arguments to expressions.
        self.heads: set[str] = set()  # Problem parameters that have builds of their own,
        self.choices: dict[str, list[str]] = {}  # and those that are texts.
        self.arguments = [
            self._array(name) if name in self.roles else self._number(name) for name in self.given
        ]
        for name in self.kernel.constexprs:
            self._constexpr(name)
        for option in (one for one in OPTIONS if one not in self.kernel.constexprs):
            self._option(option)
        grid, self.grid_question = self._grid()
        self.grid = [self._over_sizes(text) for text in grid]

    @cached_property
    def given(self) -> list[str]:
        """Parameters that a launch gives."""
        return [name for name in self.kernel.parameters if name not in self.kernel.constexprs]

    @cached_property
    def pointers(self) -> list[str]:
        """Parameters that are arrays."""
        return [
            name for name in self.given if name in self.reading.uses or self._of(name).is_tensor
        ]

    @cached_property
    def sizes(self) -> list[str]:
        """Numbers that the kernel compares, divides or counts to, and those that tune it anew."""
        return [
            name
            for name in self.given
            if name not in self.pointers and name not in RESERVED
            if name in self.reading.bounding or name in self.tuning.key
            if not _REAL.search(name.lower())
        ]

    def _of(self, name: str) -> Given:
        return self.host.given.get(name, Given())

    def _use(self, name: str) -> Use:
        return self.reading.uses.get(name, Use())

    # Arguments

    @cached_property
    def roles(self) -> dict[str, str]:
        """Roles of arrays; '' of the last one, an output, where no store was found."""
        tuned = {*self.tuning.zeroed, *self.tuning.restored}
        found = {name: "inout" if name in tuned else self._use(name).role for name in self.pointers}
        if not found:
            line, name = self.kernel.line, self.kernel.name
            raise UserError(self.path, f"line {line}", f"{name} loads and stores nothing")
        if {*found.values()} == {"input"}:
            found[self.pointers[-1]] = ""
        return found

    def _array(self, name: str) -> Line:
        use, role, low = self._use(name), self.roles[name], name.lower().removesuffix("_ptr")
        shape, question = self._shape(name)
        questions = [question]
        kind = use.stored_as.replace("int1", "bool") or self._of(name).dtype
        if not kind:
            usual = "float16" if self.reading.has_dot else "float32"
            kind = "int32" if use.indexes or _INDEX.search(low) else usual
            kind = "bool" if "mask" in low else kind
            questions.append("type")
        fill: Any = "normal" if "float" in kind else "uniform"
        if target := next((one for one in use.indexes if one in self.pointers), ""):
            fill = {"uniform": [0, str(self._shape(target)[0][0])]}
            questions.append(f"fill: what do the indices reach in {target}?" * (role != "output"))
        elif name in self.tuning.zeroed or (use.atomics and name not in self.tuning.restored):
            fill = "zeros"
        elif kind == "bool":
            fill = {"uniform": [0, 2]}
        value: dict[str, Any] = {"type": kind, "shape": shape}
        if not role:
            question = f"role: no store of {self.kernel.name} was found"
            return Line(name, value | {"role": "output"}, question)
        value |= {"role": role} if role != "input" else {}
        value |= {"fill": fill} if role != "output" else {}
        return Line(name, value, "; ".join(filter(None, questions)))

    def _shape(self, name: str) -> tuple[list[str], str]:
        """Sizes of an array, and a question."""
        given = self._of(name)
        known = [one for one in given.shape if one is not None]
        if known and len(known) == len(given.shape):
            return known, given.question
        return [self._of(one).text or one for one in self._by_kernel(name)], "shape"

    def _by_kernel(self, name: str) -> list[str]:
        """Sizes of an array by the masks of the kernel alone."""
        use = self._use(name)
        if use.is_bare and not use.indexes:
            return ["1"]
        sizes = [size if size in self.sizes else "" for size in use.sizes or [""]]
        names = [self._rows(sizes), *(f"{name}_{place}".lower() for place in range(1, len(sizes)))]
        return [size or own for size, own in zip(sizes, names, strict=True)]

    def _rows(self, bounds: Collection[str]) -> str:
        known = [one for one in self.sizes if re.search(r"rows?$|^m$", one.lower())]
        return next((one for one in known if one not in bounds), _ROWS)

    def _number(self, name: str) -> Line:
        given, is_size, low = self._of(name), name in self.sizes, name.lower()
        literal = given.literal
        text = given.text if is_size or literal is not None or not given.is_own else None
        question = f"value: {given.problem}" if given.problem else ""
        if given.guessed:
            question = f"stride: the file does not say all sizes of {given.guessed}"
        real = isinstance(literal, float) or bool(_REAL.search(low))
        real = real and not re.search("seed|philox", low)
        if text is None and (stride := self._stride(name)):
            text, question = stride, "stride"
        elif text is None and is_size and not question:
            text = name
        if text is None:
            text, question = "1.0" if real else "1", question or "value"
            if "eps" in low:
                text, question = "1e-5", "value"
            elif real and re.search(r"(^|_)p(_|$)|prob", low):
                text = "0.5"
        kind = "float32" if real else "int32"
        if not real and isinstance(value := _plain(text), int):
            bits = (value if value >= 0 else ~value).bit_length()
            kind = "int64" if bits > 31 else kind
            if bits > 63:
                text, question = "1", f"value: {text:.40} fits no integer of 64 bits"
        self.values[name] = text
        return Line(name, {"type": kind, "value": _plain(text)}, question)

    def _stride(self, name: str) -> str:
        """What indices of an array are multiplied by, in elements; '' for other numbers."""
        for pointer in self.pointers if name not in self.sizes else ():
            use, shape = self._use(pointer), self._of(pointer).shape
            if name in use.strides:
                is_said = None not in shape and len(shape) == len(use.sizes)
                sizes = [*map(str, shape)] if is_said else self._by_kernel(pointer)
                known = {one: f"({self._of(one).text or one})" for one in self.sizes}
                return substituted(" * ".join(sizes[use.strides[name] + 1 :]) or "1", known)
        return ""

    # Constexprs

    def _constexpr(self, name: str) -> None:
        axes, given = self.tuning.axes, self._of(name)
        heuristic = self.tuning.macros.get(name, name)
        if name in axes:
            self.tunables[name] = (axes[name], self.tuning.configs[0][name], "")
        elif name not in names_in(heuristic):
            question = _IS_GIVEN if name in self.tuning.given else ""
            self.macros[name] = (self._over_sizes(heuristic), question)
        elif given.type:
            self._macro(name, repr(given.type), "")
        elif given.asks:
            self._macro(name, given.asks, _IS_GIVEN)
        elif _TUNED.search(name) and isinstance(self._literal(name), int | None):
            self._tuned(name)
        else:
            self._fixed(name)

    def _literal(self, name: str) -> Any:
        """What the launch gives for a constexpr, else what the function has for it."""
        given = self.host.given.get(name)
        return given.literal if given is not None else self.kernel.defaults.get(name)

    def _tuned(self, name: str) -> None:
        literal, text = self._literal(name), self._text(name)
        held = [one for one in self.reading.held.get(name, ()) if one in self.sizes]
        if text is not None and names_in(text) - {name}:
            question = "what the host takes; or a tunable, as the function loops"
            self._macro(name, text, question if self.reading.has_loop else "")
        elif literal is None and len(held) == 1:
            question = "a block holds all of it; or a tunable, where the function loops"
            self._macro(name, f"next_power_of_2({held[0]})", question)
        else:
            values, start = _first_values(name, literal, self.reading)
            question = "the SMs of your card" if name.lower() == "num_sms" else "values"
            self.tunables[name] = (values, start, question)

    def _fixed(self, name: str) -> None:
        literal, text, low = self._literal(name), self._text(name), name.lower()
        has_default, is_sized = name in self.kernel.defaults, name in self.reading.counted
        if text is not None and names_in(text) - {name} and self._is_said(name, text):
            if _HEAD.search(text) and text.isidentifier():
                self.heads.add(text)
            self._macro(name, text, "")
        elif literal is not None:
            if name in self.host.given or not has_default:
                shown = int(literal) if isinstance(literal, bool) else literal
                self._macro(name, repr(shown), f"or {_CHANGES}")
        elif texts := self.reading.texts.get(name):
            choice = f"{low}_choice"
            self.choices[choice] = [*texts, *([] if len(texts) > 1 else ["other"])]
            self._macro(name, choice, "")
        elif re.search(r"d?type$", low):
            usual = "float16" if self.reading.has_dot else "float32"
            self._macro(name, repr(f"tl.{usual}"), "type")
        elif is_sized and re.search(r"dim|size|len|^[dnkmhc]$|cols|rows|heads", low):
            size = low if low not in RESERVED else f"{low}_size"
            self.heads.add(size)
            self._macro(name, size, "")
        elif not has_default:
            start = "0.0" if _REAL.search(low) else "0"
            self._macro(name, start, f"a number, or {_CHANGES}")

    def _is_said(self, name: str, text: str) -> bool:
        """Whether what the host gives for a constexpr is a size, and no choice of its caller."""
        is_size = name in self.reading.counted or not self._of(name).is_free
        return is_size or names_in(text) <= self._sized

    @cached_property
    def _sized(self) -> set[str]:
        """Names that the host has in its grid, and in shapes."""
        shapes = [one for each in self.host.given.values() for one in each.shape if one]
        return {name for one in (*self.host.grid, *shapes) for name in names_in(one)}

    def _text(self, name: str) -> str | None:
        """What the host gives for a constexpr, over problem parameters."""
        given = self._of(name)
        if given.is_own and _TUNED.search(name) and not names_in(given.text or "0") & self._sized:
            return None
        if given.problem:
            problem = given.problem.replace(": ", f": {name} is ", 1)
            self.notes.append(f"{problem}: write it under macros, or as a tunable")
        return given.text

    def _macro(self, name: str, text: str, question: str) -> None:
        if not question and (guessed := self._of(name).guessed):
            question = f"the file does not say all sizes of {guessed}"
        self.macros[name] = (self._over_sizes(text, name), question)

    def _over_sizes(self, text: str, name: str = "") -> str:
        """An expression over arguments and constexprs, as one over the problem and tunables."""
        known = {**self.values, **{one: given for one, (given, _) in self.macros.items()}}
        known = {one: f"({given})" for one, given in known.items() if one not in (name, given)}
        return substituted(text, known)

    def _option(self, option: str) -> None:
        axes, literal = self.tuning.axes, self._of(option).literal
        if option in axes:
            self.tunables[option] = (axes[option], self.tuning.configs[0][option], "")
            return
        if option == "num_ctas" and literal == 1:
            return
        text = self.tuning.macros.get(option) or (self._text(option) if not literal else None)
        is_computed = text is not None and bool(names_in(text))
        is_usual = option == "num_warps" or (option == "num_stages" and self.reading.has_loop)
        if is_computed or isinstance(literal, int) or (is_usual and not self.tuning.configs):
            known = None if is_computed else literal
            values, start = _first_values(option, known, self.reading)
            question = "values"
            if is_computed:
                question = f"values; the file takes {self._over_sizes(str(text))}"
                numbers = [int(one) for one in re.findall(r"(?<![\w.])\d+\b", str(text))]
                warps = [one for one in numbers if one in (1, 2, 4, 8, 16, 32)]
                values = sorted({*values, *(warps if option == "num_warps" else [])})
            self.tunables[option] = (values, start, question)

    def _grid(self) -> tuple[list[str], str]:
        """Program instances per axis, and a question."""
        if self.host.grid:
            return self.host.grid, ""
        reading = self.reading
        found, is_clear = [], self.host.is_there
        for bounds, steps in zip(reading.bounds, reading.steps, strict=True):
            bound = next((one for one in bounds if one in self.sizes), "")
            blocks = [one for one in steps if one in self.kernel.constexprs]
            is_clear &= bool(bound)
            text = f"ceil_div({bound}, {blocks[0]})" if bound and blocks else bound
            found.append(text or self._rows([]))
        return found, self.host.problem or ("" if is_clear else "program instances")


def _first_values(name: str, literal: Any, reading: Reading) -> tuple[list[Value], Value]:
    """Values of a tunable, and the first choice, around what the file gives."""
    low = name.lower()
    if low == "num_sms":
        return [literal or 132], literal or 132
    start, least, most = literal or 1024, (literal or 1024) // 4, (literal or 1024) * 4
    if known := next((one for pattern, one in _FIRST.items() if re.search(pattern, low)), None):
        start, least, most = known
        least *= 2 if "warps" in low and reading.has_dot else 1
    elif reading.has_dot or reading.has_tiles:
        start, least, most = 64, 32, 128
    values = {1 << place for place in range(20) if least <= 1 << place <= most}
    start = literal or start
    return sorted({start, *values, *([3] if "stages" in low else [])}), start


def _plain(text: str) -> Any:
    try:
        return float(text) if re.search(r"[.e]", text) else int(text)
    except ValueError:
        return text
