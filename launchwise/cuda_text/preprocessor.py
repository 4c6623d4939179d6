"""CUDA C++ after the preprocessor, with the macros that a build may set left as names.

g++ expands macros and takes branches. Names that stand for themselves stay: those that a file
defines only where nothing else did (``#ifndef``), and integers. Of an ``#if`` that reads a name
which the file does not define, every branch stays, since each belongs to a value of that name.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from launchwise.cuda_text.syntax import (
    INTEGER,
    condition_of,
    guarded,
    is_balanced,
    joined,
    missing_in,
    spans_of,
)

_DEFINED = re.compile(r"\bdefined\s*\(?\s*(\w+)\s*\)?")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_PLATFORM = re.compile(r"_|(CUDA|NV|WIN|NDEBUG|HIP|GLIBC|UNIX|LINUX|APPLE|MSC)[A-Z\d_]*$")
"""Names that compilers and systems define."""

PRELUDE = Path(__file__).with_name("prelude.h").read_text()
MOST_BYTES, MOST_SECONDS, MOST_MEMORY = 8 << 20, 5, 1 << 30
"""Most that macros may expand to, and what g++ may take for it."""


class ExpandsTooFar(ValueError):
    """A text whose macros expand to more than any kernel has."""


_MARK, _VALUE = "#pragma launchwise", "launchwise_value_of_"
MISSING = f"{_MARK} missing"  # What stands for a header that is not there, before its name


@dataclass(frozen=True)
class Condition:
    """An ``#if`` that reads names which the file does not define."""

    names: set[str]
    compared: Mapping[str, set[int]]  # names to the integers that they are compared with
    first: int = 0  # lines of :attr:`Expanded.text` between it and its ``#endif``, from 0
    last: int = 0


@dataclass
class Expanded:
    """A CUDA text without directives, its macros expanded."""

    text: str = ""
    numbers: dict[str, int] = field(default_factory=dict)  # macros that it sets to an integer
    # macros that a build may set, to the integer which the text sets otherwise
    free: dict[str, int] = field(default_factory=dict)
    # other macros of their groups, to their texts: whoever sets one sets all
    beside: dict[str, str] = field(default_factory=dict)
    conditions: list[Condition] = field(default_factory=list)
    # undefined names that ``#ifdef`` and ``defined()`` alone read
    tested: list[str] = field(default_factory=list)
    # lines with ``#pragma unroll`` to the names there
    unrolled: dict[int, list[str]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)  # headers that are not there


def expanded(text: str, macros: Mapping[str, str] | None = None) -> Expanded:
    """A CUDA text without comments as g++ preprocesses it, without any header. ``macros`` are what
    a build defines, such as ``SIDE`` or ``KERNEL(name)``, to its text; a name that stands for
    itself may have any value."""
    return _Marked(joined(text), macros or {}).expanded()


class _Marked:
    """A text with marks for g++, by which its output says what is live."""

    def __init__(self, lines: list[str], macros: Mapping[str, str]) -> None:
        self._lines, self._macros = lines, macros
        self._defined = {name.partition("(")[0] for name in macros}
        self._free, self._groups, self._within = guarded(lines)
        # Macros that are not free to the texts that the file gives them.
        self._plain: dict[str, list[str]] = {}
        for number, line in enumerate(lines):
            word, rest = condition_of(line)
            name = _NAME.match(rest)
            if word == "define" and name and number not in self._within:
                self._plain.setdefault(name[0], []).append(rest[name.end() :].strip())
        self._settable = {*self._free, *(group.guard for group in self._groups.values())}
        self._conditions: list[Condition] = []

    def expanded(self) -> Expanded:
        names = self._settable - self._defined
        head = [PRELUDE, *(f"#define {name} {name}" for name in names)]
        head += [f"#define {name} {text}" for name, text in self._macros.items()]
        made = "\n".join([*head, f"{_MARK} text", *self._marked()]) + "\n"
        return self._read(_preprocessed(made))

    def _marked(self) -> Iterator[str]:
        spans = spans_of(self._lines)
        ends: dict[int, int] = {}
        dropped: set[int] = set()
        for number, line in enumerate(self._lines):
            word, rest = condition_of(line)
            if not word and not line.lstrip().startswith("#"):
                yield line
                continue
            if branches := spans.get(number):
                yield from self._asked(branches)
                condition = self._read_values(branches)
                if condition.names:
                    yield f"{_MARK} if {len(self._conditions)}"
                    ends[branches[-1]] = len(self._conditions)
                    self._conditions.append(condition)
                    if is_balanced(self._lines, branches):
                        dropped |= {*branches}
            if number in dropped:
                yield ""
            elif word == "define":
                yield from self._define(line, rest)
            elif word in ("if", "elif"):
                yield self._with_values(line)
            elif word in ("ifdef", "ifndef", "else", "endif", "undef", "pragma"):
                yield line
            else:
                yield ""
            if number in ends:
                yield f"{_MARK} end {ends[number]}"

    def _define(self, line: str, rest: str) -> Iterator[str]:
        name = _NAME.match(rest)
        value = INTEGER.fullmatch(rest[name.end() :].strip()) if name else None
        if name is None or value is None or name[0] in self._defined:
            yield line
        elif name[0] not in self._free:
            yield f"#define {name[0]} {name[0]}"
            yield f"#define {_VALUE}{name[0]} {value[1]}"

    def _asked(self, branches: list[int]) -> Iterator[str]:
        """Marks for names that an ``#ifndef`` guards, and that need not be defined."""
        name = missing_in(*condition_of(self._lines[branches[0]]))
        group = self._groups.get(branches[0])
        for each in group.members if group else [name]:
            if each in self._free or group:
                yield f"{_MARK} free {each}"
        if group:
            texts = {each: text for each, text in group.members.items() if each not in self._free}
            yield from (f"#define {each} {text}" for each, text in texts.items() if text)
        for number in branches:
            word, condition = condition_of(self._lines[number])
            asked = [condition] if word in ("ifdef", "ifndef") else _DEFINED.findall(condition)
            for each in asked:
                if each and self._is_unset(each):
                    yield f"{_MARK} tested {each}"

    def _is_unset(self, name: str) -> bool:
        known = any(name in names for names in (self._plain, self._settable, self._defined))
        of_platform = _PLATFORM.match(name) and (name.startswith("__") or name.isupper())
        return not known and not of_platform

    def _read_values(self, branches: list[int]) -> Condition:
        """Names without a value that conditions read, and the integers beside them."""
        names: set[str] = set()
        compared: dict[str, set[int]] = {}
        for number in branches:
            word, condition = condition_of(self._lines[number])
            asked = re.match(r"defined\s*\(?\s*(\w+)", condition)
            never = asked and "||" not in condition and self._is_unset(asked[1])
            if word not in ("if", "elif") or never:
                continue
            found = set(_NAME.findall(_DEFINED.sub(" ", condition))) - {"true", "false"}
            own = {name for name in self._defined if self._macros.get(name) == name}
            unknown = {name for name in found if name in self._free or self._is_unset(name)}
            unknown |= found & own
            names |= unknown
            for name, value in re.findall(r"\b([A-Za-z_]\w*)\s*[=!]=\s*(\d+)", condition):
                if name in unknown:
                    compared.setdefault(name, set()).add(int(value))
        return Condition(names, compared)

    def _with_values(self, line: str) -> str:
        """A condition over the values of integers that stand for themselves elsewhere."""
        asked = {match.start(1) for match in _DEFINED.finditer(line)}

        def value(match: re.Match[str]) -> str:
            texts = self._plain.get(match[0], []) if match[0] not in self._defined else []
            whole = match.start() not in asked and any(map(INTEGER.fullmatch, texts))
            return f"{_VALUE}{match[0]}" if whole else match[0]

        return _NAME.sub(value, line)

    def _read(self, output: str) -> Expanded:
        """What the output of g++ says behind the mark where the text begins."""
        found, lines, begun = Expanded(), list[str](), dict[str, int]()
        live: set[str] = set()
        for line in output.partition(f"{_MARK} text\n")[2].split("\n"):
            words = line.split()
            if not line.startswith("#"):
                lines.append(line)
            elif line.startswith(f"#define {_VALUE}"):
                found.numbers.setdefault(words[1].removeprefix(_VALUE), int(words[2]))
            elif words[:2] == ["#pragma", "unroll"]:
                found.unrolled[len(lines)] = _NAME.findall(line)[2:]
            elif line.startswith(_MARK):
                kind, said = words[2:]
                if kind == "if":
                    begun[said] = len(lines)
                elif kind == "end" and said in begun:
                    one = self._conditions[int(said)]
                    found.conditions.append(replace(one, first=begun[said], last=len(lines)))
                elif kind == "missing":
                    found.missing.add(said)
                elif kind == "free" and said not in found.numbers:
                    live.add(said)
                elif kind == "tested" and said not in found.tested:
                    found.tested.append(said)
        found.text = "\n".join(lines)
        found.free = {name: value for name, value in self._free.items() if name in live}
        for group in self._groups.values():
            for name, text in group.members.items():
                if name in live and name not in self._free:
                    found.beside[name] = text
        return found


def _preprocessed(text: str) -> str:
    """Output of g++, under limits of time and memory; the text itself where there is no g++."""
    path = shutil.which("g++")
    if path is None:
        return text
    command = [path, "-E", "-dD", "-undef", "-nostdinc", "-w", "-x", "c++", "-"]
    with tempfile.TemporaryFile() as output:
        made = subprocess.run(
            command,
            input=text.encode("utf-8", "replace"),
            stdout=output,
            stderr=subprocess.DEVNULL,
            preexec_fn=_limited,
            check=False,
        )
        size = output.seek(0, os.SEEK_END)
        if size >= MOST_BYTES or (made.returncode < 0 and not size):
            raise ExpandsTooFar(f"its macros expand to more than {MOST_BYTES:,} bytes")
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def _limited() -> None:
    limits = {resource.RLIMIT_CPU: MOST_SECONDS, resource.RLIMIT_AS: MOST_MEMORY}
    for which, most in {**limits, resource.RLIMIT_FSIZE: MOST_BYTES}.items():
        # The user's own may be lower; infinity is -1.
        least = min(most, resource.getrlimit(which)[1] % (1 << 64))
        resource.setrlimit(which, (least, least))
