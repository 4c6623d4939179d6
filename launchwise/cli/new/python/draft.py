"""Decisions of a first spec for a kernel of Triton: arguments, constexprs, grid, sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import names_in, substituted
from launchwise.cli.new.python.host import Host
from launchwise.cli.new.python.interpreter import Trace, Use
from launchwise.cli.new.python.kernels import Kernel
from launchwise.cli.new.yaml_lines import REFERENCE, Line, head, spec_of
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

_CHANGES = "a problem parameter, where it changes the result"

_FIRST = {"num_ctas|split|unroll": (1, 1, 4), "warps": (4, 1, 8), "stages": (3, 1, 4)}
_FIRST |= {"group": (8, 1, 8)}
"""Names of tunables to the first choice, the least and the largest value."""

_WHOLE = re.compile(r"(\w+) // (\w+)")  # Blocks that the host takes for filled

_LARGEST = {1: 1 << 26, 2: 16_384, 3: 8_192}  # Number of sizes to the largest that a draft allows


class Decisions:
    def __init__(self, kernel: Kernel, trace: Trace, host: Host, taken: Collection[str]) -> None:
        self.kernel, self.trace, self.host, self.taken = kernel, trace, host, taken
        self.tunables: dict[str, Line] = {}
        self.starts: dict[str, Any] = {}  # Tunables to their first choice.
        self.macros: dict[str, Line] = {}
        self.values: dict[str, str] = {}  # Arguments to expressions.
        self.choices: dict[str, list[str]] = {}  # Problem parameters that are texts.
        self.arguments = [
            self._array(name) if name in self.roles else self._number(name) for name in kernel.given
        ]
        for name in kernel.constexprs:
            self._constexpr(name)
        for option in (one for one in OPTIONS if one not in kernel.constexprs):
            self._option(option)
        self.grid = [self._over_sizes(text) for text in host.grid]

    def spec(self, workload: str, file: str, others: list[str], notes: list[str]) -> str:
        """Content of ``spec.yaml`` in the folder ``workload``, which holds the Python file, with
        the names of its other kernels and what a person must do."""
        name = self.kernel.__name__
        variant = [
            *(Line("source", file), Line("kernel", name), Line("tunables", [*self.tunables])),
            Line("grid", self.grid, self.host.question),
        ]
        pairs = [found.groups() for text in self.grid if (found := _WHOLE.fullmatch(text))]
        if whole := [f"{size} % {block} == 0" for size, block in pairs]:
            said = "what the grid leaves out, no block computes"
            variant.append(Line("constraints", whole, said))
        reference = [REFERENCE]
        every = {line.value["type"] for line in self.arguments}
        written = {line.value["type"] for line in self.arguments if "role" in line.value}
        if "float32" in written and every & {"float16", "bfloat16"}:
            reference.append(Line("tolerance", {"float32": 1e-3}, "float32 of what has 16 bits"))
        constexprs = [*self.tunables.values()], "constexprs, and options of Triton's compiler"
        parts: dict[str, tuple[Sequence[Line], str]] = {
            "problem": (self._problem(), ""),
            "tunables": constexprs,
            "macros": ([*self.macros.values()], "constexprs that follow from others"),
            "arguments": (self.arguments, "in the order of the function's parameters"),
            "reference": (reference, ""),
        }
        said = f"Function {name} of {file}. Every value is a draft of a run with stand-ins."
        return spec_of(workload, name, head(said, others, notes), parts, variant, self.starts)

    # Arguments

    @cached_property
    def sizes(self) -> list[str]:
        """Numbers that the kernel compares, divides or counts to, and those that tune it anew."""
        found = {*self.trace.sizes, *self.kernel.key} - {*self.host.tensors}
        return [one for one in self.kernel.given if one in found and not _REAL.search(one.lower())]

    @cached_property
    def roles(self) -> dict[str, str]:
        """Roles of arrays; '' of the last one, an output, where no store was found."""
        tuned = {*self.kernel.zeroed, *self.kernel.restored}
        uses = {name: self.trace.uses.get(name, Use()) for name in self.host.tensors}
        found = {name: "inout" if name in tuned else use.role for name, use in uses.items()}
        if not found:
            line, name = self.kernel.line, self.kernel.__name__
            raise UserError("", f"line {line}", f"{name} loads and stores nothing")
        if {*found.values()} == {"input"}:
            found[[*found][-1]] = ""
        return found

    def _array(self, name: str) -> Line:
        use, given, role = self.trace.uses.get(name, Use()), self.host.of(name), self.roles[name]
        low = name.lower().removesuffix("_ptr")
        questions = [given.question]
        kind = use.stored_as.replace("int1", "bool") or given.kind
        if not kind:
            usual = "float16" if self.trace.has_dot else "float32"
            kind = "int32" if use.indexes or _INDEX.search(low) else usual
            kind = "bool" if "mask" in low else kind
            questions.append("type")
        fill: Any = "normal" if "float" in kind else "uniform"
        if target := next((one for one in use.indexes if one in self.roles), ""):
            fill = {"uniform": [0, self.host.of(target).shape[0]]}
            questions.append(f"fill: what do the indices reach in {target}?" * (role != "output"))
        elif name in self.kernel.zeroed or (use.atomics and name not in self.kernel.restored):
            fill = "zeros"
        elif kind == "bool":
            fill = {"uniform": [0, 2]}
        value: dict[str, Any] = {"type": kind, "shape": given.shape}
        if not role:
            question = f"role: no store of {self.kernel.__name__} was found"
            return Line(name, value | {"role": "output"}, question)
        value |= {"role": role} if role != "input" else {}
        value |= {"fill": fill} if role != "output" else {}
        return Line(name, value, "; ".join(filter(None, questions)))

    def _number(self, name: str) -> Line:
        given = self.host.of(name)
        real = isinstance(given.literal, float) or bool(_REAL.search(name.lower()))
        kind = "float32" if real else "int32"
        is_said = name in self.sizes or given.literal is not None or not given.is_own
        text, question = given.text, ""
        if given.problem:
            question = f"value: line {given.problem.line}: {given.problem}"
        if given.guessed:
            question = f"stride: the file does not say all sizes of {given.guessed}"
        if text is None or not is_said:
            text, question = "0.5" if real else "1", question or "value"
        if isinstance(value := _plain(text), int):
            bits = (value if value >= 0 else ~value).bit_length()
            kind = "int64" if bits > 31 and not real else kind
            if bits > 63:
                text, question = "1", f"value: {text:.40} fits no integer of 64 bits"
        self.values[name] = text
        return Line(name, {"type": kind, "value": _plain(text)}, question)

    # Constexprs

    def _constexpr(self, name: str) -> None:
        given = self.host.of(name)
        if name in self.kernel.axes:
            self._configured(name)
        elif given.is_macro and not given.is_choice and given.text is not None:
            self._macro(name, given.text, given.question)
        elif _TUNED.search(name) and isinstance(self._literal(name), int | None):
            self._tuned(name)
        else:
            self._fixed(name)

    def _tunable(self, name: str, values: list[Any], start: Any, question: str = "") -> None:
        self.tunables[name] = Line(name, {"kind": "build", "values": values}, question)
        self.starts[name] = start

    def _configured(self, name: str) -> None:
        self._tunable(name, self.kernel.axes[name], self.kernel.configs[0][name])

    def _literal(self, name: str) -> Any:
        """What the launch gives for a constexpr, else what the function has for it."""
        given = self.host.given.get(name)
        return given.literal if given is not None else self.kernel.defaults.get(name)

    def _tuned(self, name: str) -> None:
        literal, text = self._literal(name), self._text(name)
        held = [one for one in self.sizes if one in self.trace.held.get(name, ())]
        if text is not None and names_in(text) - {name}:
            question = "what the host takes; or a tunable, as the function loops"
            self._macro(name, text, question if self.trace.has_loop else "")
        elif literal is None and len(held) == 1:
            question = "a block holds all of it; or a tunable, where the function loops"
            self._macro(name, f"next_power_of_2({held[0]})", question)
        else:
            question = "the SMs of your card" if name.lower() == "num_sms" else "values"
            self._tunable(name, *_first_values(name, literal, self.trace), question)

    def _fixed(self, name: str) -> None:
        literal, text, low = self._literal(name), self._text(name), name.lower()
        has_default, is_size = name in self.kernel.defaults, name in self.trace.counted
        is_said = is_size or not self.host.of(name).is_choice
        if text is not None and names_in(text) - {name} and is_said:
            self._macro(name, text)
        elif literal is not None:
            if name in self.host.given or not has_default:
                shown = int(literal) if isinstance(literal, bool) else literal
                self._macro(name, repr(shown), f"or {_CHANGES}")
        elif texts := self.trace.texts.get(name):
            self.choices[f"{low}_choice"] = [*texts, *([] if len(texts) > 1 else ["other"])]
            self._macro(name, f"{low}_choice")
        elif is_size:
            self._macro(name, f"{low}_size" if low in self.taken else low)
        elif not has_default:
            start = "0.0" if _REAL.search(low) else "0"
            self._macro(name, start, f"a number, or {_CHANGES}")

    def _text(self, name: str) -> str | None:
        """What the host gives for a constexpr, over problem parameters."""
        given = self.host.of(name)
        if given.is_own and given.is_choice and _TUNED.search(name):
            return None
        if given.problem:
            said = f"{name} is {given.problem}: write it under macros, or as a tunable"
            self.kernel.note(given.problem.line, said)
        return given.text

    def _macro(self, name: str, text: str, question: str = "") -> None:
        if not question and (guessed := self.host.of(name).guessed):
            question = f"the file does not say all sizes of {guessed}"
        self.macros[name] = Line(name, self._over_sizes(text, name), question)

    def _over_sizes(self, text: str, name: str = "") -> str:
        """An expression over arguments and constexprs, as one over the problem and tunables."""
        known = {**self.values, **{one: line.value for one, line in self.macros.items()}}
        known = {one: f"({given})" for one, given in known.items() if one not in (name, given)}
        return substituted(text, known)

    def _option(self, name: str) -> None:
        literal = self.host.of(name).literal
        if name in self.kernel.axes:
            self._configured(name)
            return
        text = self._text(name) if not literal else None
        is_computed = text is not None and bool(names_in(text))
        is_usual = name == "num_warps" or (name == "num_stages" and self.trace.has_loop)
        is_given = is_computed or (isinstance(literal, int) and (name, literal) != ("num_ctas", 1))
        if is_given or (is_usual and not self.kernel.configs):
            taken = f"; the file takes {self._over_sizes(str(text))}" if is_computed else ""
            values, start = _first_values(name, None if is_computed else literal, self.trace)
            self._tunable(name, values, start, f"values{taken}")

    # Problem

    def _problem(self) -> list[Line]:
        macros = [line.value for line in self.macros.values()]
        texts = [*self.grid, *macros, *self.values.values()]
        texts += [text for line in self.arguments for text in line.value.get("shape", [])]
        own = {*self.tunables, *OPTIONS}
        names = [name for text in texts for name in sorted(names_in(text)) if name not in own]
        order = [*self.values.values(), *names]
        sizes = sorted(dict.fromkeys(names), key=lambda name: order.index(name))
        if not sizes:
            value = {"type": "integer", "minimum": 1024, "maximum": _LARGEST[1] // 4}
            return [Line("n", value, "which sizes?")]
        least, most = 1024 if len(sizes) == 1 else 16, _LARGEST[min(len(sizes), 3)]
        found = []
        for name in sizes:
            value = {
                "type": "integer",
                "minimum": 1 if name in self.grid else least,
                "maximum": most,
            }
            question = "range"
            if name in self.choices:
                value, question = {"type": "category", "values": self.choices[name]}, "which texts?"
            elif name in macros:
                question = "values: each has builds of its own"
                value = {"type": "integer", "values": [64, 128]}
            found.append(Line(name, value, question))
        return found


def _first_values(name: str, literal: Any, trace: Trace) -> tuple[list[Any], Any]:
    """Values of a tunable, and the first choice, around what the file gives."""
    low = name.lower()
    if low == "num_sms":
        return [literal or 132], literal or 132
    start, least, most = literal or 1024, (literal or 1024) // 4, (literal or 1024) * 4
    if known := next((one for pattern, one in _FIRST.items() if re.search(pattern, low)), None):
        start, least, most = known
        least *= 2 if "warps" in low and trace.has_dot else 1
    elif trace.has_dot or trace.has_tiles:
        start, least, most = 64, 32, 128
    values = {1 << place for place in range(20) if least <= 1 << place <= most}
    start = literal or start
    return sorted({start, *values, *([3] if "stages" in low else [])}), start


def _plain(text: str) -> Any:
    try:
        return float(text) if re.search(r"[.e]", text) else int(text)
    except ValueError:
        return text
