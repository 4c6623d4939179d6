"""Stand-ins for kernels of Triton, their decorators and launches, and what a run says of kernels.

The child writes :class:`Facts` as JSON, the parent reads them.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from launchwise.cli.new.python.values import RUNS, Base, Launched, NotKnown, Value, line_now
from launchwise.workloads.sources import NO_LIMIT

TYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64", "int1")
TYPES += ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of Triton's language."""

Literal = bool | int | float | str | None


@dataclass
class Draft:
    kernel: str
    kernels: list[str]  # No other one calls them; launched first.
    spec: str  # Content of ``spec.yaml``.
    notes: list[str]  # What a person must do.
    copied: str  # The part of the file that a build needs; '' for all of it,
    modules: list[str]  # and files beside it that must be copied.


@dataclass
class Code:
    """CUDA text of a call of ``cupy.RawKernel`` or ``cupy.RawModule``."""

    line: int
    text: str = ""
    names: list[str] = field(default_factory=list)  # The kernel, or name expressions.
    options: list[str] = field(default_factory=list)  # Of the compiler.
    refused: str = ""  # Why it cannot be taken.


@dataclass
class Facts:
    """What a file says: of its chosen kernel, or of those that it gives to CuPy."""

    draft: Draft | None = None
    codes: list[Code] = field(default_factory=list)


CONFIG_OPTIONS: Mapping[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
}
"""Options of ``triton.Config`` in their order, to what one that states none has."""

_PLACES = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook")
"""Parameters of ``triton.autotune`` in their order."""

_MOST_CONFIGS = 5_000
_MOST_LETTERS = 60  # Of a name that is told

_HOOK = (
    "is code of the host, which no launch runs: write what it sets as fill, value or inputs of "
    "the arguments"
)
_CODE = {
    "prune_configs_by": "is not read: write what it refuses as constraints of the variant",
    "pre_hook": _HOOK,
    "post_hook": _HOOK,
}


class Config:
    def __init__(self, kwargs: Any = None, *given: Any, **named: Any) -> None:
        if not isinstance(kwargs or {}, dict):
            raise NotKnown(line_now(), "triton.Config takes a dict of constexprs first")
        stated = dict(zip((*CONFIG_OPTIONS, "pre_hook"), given, strict=False)) | named
        self.line = line_now()
        self.kwargs = dict(kwargs or {})
        self.pre_hook = stated.pop("pre_hook", None)
        self.stated = {name: stated[name] for name in CONFIG_OPTIONS if name in stated}
        self.__dict__ |= {**CONFIG_OPTIONS, **self.stated}


class Launch:
    def __init__(self, kernel: Kernel, grid: Any, given: tuple[Any, ...], named: Any) -> None:
        self.kernel, self.line = kernel, line_now()
        self.given = dict(zip(kernel.parameters, given, strict=False)) | named
        self.derived: dict[str, Any] = {}  # Constexprs of heuristics.
        for name, rule in kernel.rules.items():
            try:
                own = {name: self.given[name]} if name in self.given else {}
                self.derived[name] = rule(self._meta() | own)
            except (Exception, SystemExit) as error:
                line = getattr(error, "line", 0) or rule.__code__.co_firstlineno
                why = f"the heuristic of {name}: {error or type(error).__name__}"
                kernel.note(line, f"{why}: write it under macros")
        self.given |= self.derived
        self.grid: list[Any] = []
        self.problem: NotKnown | None = None
        try:
            while callable(grid) and not isinstance(grid, Value):
                grid = grid(self._meta())
            self.grid = list(grid) if isinstance(grid, tuple | list) else [grid]
        except NotKnown as error:
            self.problem = error

    def _meta(self) -> dict[str, Any]:
        """What a grid and heuristics are given: names in the place of constexprs."""
        names = (*self.kernel.parameters, *CONFIG_OPTIONS)
        free = {name: Value(name, "param") for name in names}
        return free | {name: self.given[name] for name in self.kernel.given if name in self.given}


class Kernel(Base):
    def __init__(self, fn: FunctionType) -> None:
        self.fn, self.line, self.__name__ = fn, fn.__code__.co_firstlineno, fn.__name__
        found = inspect.signature(fn).parameters
        self.parameters = list(found)
        self.defaults: dict[str, Literal] = {
            name: one.default if isinstance(one.default, bool | int | float | str) else None
            for name, one in found.items()
            if one.default is not one.empty
        }
        self.constexprs = [name for name, one in found.items() if _is_constexpr(one.annotation)]
        self.given = [name for name in self.parameters if name not in self.constexprs]
        self.ends_runs = False  # A launch of it is what runs are made for.
        # What its decorators say.
        self.configs: list[dict[str, int | str]] = []  # All have the same names.
        self.rules: dict[str, Any] = {}  # Constexprs to heuristics.
        self.key: list[str] = []  # Arguments whose change asks to tune anew,
        self.zeroed: list[str] = []  # that are set to zero before each run,
        self.restored: list[str] = []  # or put back.
        self.notes: dict[str, int] = {}  # What a person must do, to lines.

    def note(self, line: int, said: str) -> None:
        self.notes.setdefault(said, line)

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*given: Any, **named: Any) -> None:
            RUNS[-1].launches.append(Launch(self, grid, given, named))
            if self.ends_runs:
                raise Launched

        return launch

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.fn(*given, **named)

    def warmup(self, *given: Any, **named: Any) -> Kernel:
        return self  # What is compiled is launched like the function.

    @property
    def axes(self) -> dict[str, list[int | str]]:
        """Tunables to their values, ascending where they are numbers."""
        found: dict[str, list[int | str]] = {}
        for name in self.configs[0] if self.configs else ():
            values = list(dict.fromkeys(each[name] for each in self.configs))
            whole = all(isinstance(each, int) for each in values)
            found[name] = sorted(values, key=lambda one: one) if whole else values
        return found

    def tune(self, name: str, given: tuple[Any, ...], named: dict[str, Any], line: int) -> None:
        """What a decorator of Triton says, or one of a project that is given configurations."""
        places = {**dict(zip(_PLACES, given, strict=False)), **named}
        if name == "heuristics":
            with self._noting(f"@triton.{name}", "write macros by hand"):
                self.rules |= _checked(next(iter(places.values()), {}))
            return
        tuned = (one for one in places.values() if any(map(_is_config, _listed(one))))
        configs = next(tuned, places.get("configs"))
        if configs is None and name != "autotune":
            return
        with self._noting("configs of @triton.autotune", "write the values by hand under tunables"):
            self.configs = self._taken(_checked(configs), line)
        lists = {"key": self.key, "reset_to_zero": self.zeroed, "restore_value": self.restored}
        for key, own in lists.items():
            with self._noting(f"{key} of @triton.autotune", "it is ignored"):
                own += map(str, _checked(places.get(key)) or [])
        for key, said in _CODE.items():
            if places.get(key) is not None:
                self.note(line, f"{key} {said}")

    @contextmanager
    def _noting(self, what: str, left: str) -> Iterator[None]:
        try:
            yield
        except NotKnown as error:
            self.note(error.line, f"{what}: {error}: {left}")

    def _taken(self, given: Any, line: int) -> list[dict[str, int | str]]:
        """Configurations that give constexprs of the function, all the same ones. Raises NotKnown
        where one does not."""
        configs = _listed(given or [])
        if wrong := [one for one in configs if not _is_config(one)]:
            raise NotKnown(line, f"{wrong[0]!r:.40} is no triton.Config")
        if not 0 < len(configs) <= _MOST_CONFIGS:
            raise NotKnown(line, f"{len(configs):,} configurations")
        own = dict.fromkeys(itertools.chain(*(each.kwargs for each in configs)))
        stated = {name for each in configs for name in each.stated} - {*own}
        found: list[dict[str, int | str]] = []
        for each in configs:
            if strange := [name for name in each.kwargs if name not in self.parameters]:
                name = str(strange[0])[:_MOST_LETTERS]
                raise NotKnown(each.line, f"the kernel has no constexpr {name}")
            if lacks := [name for name in own if name not in each.kwargs]:
                raise NotKnown(each.line, f"a configuration does not give {lacks[0]}")
            options = {name: getattr(each, name) for name in CONFIG_OPTIONS if name in stated}
            config = {name: _value(one, each.line) for name, one in (each.kwargs | options).items()}
            found += [config] if config not in found else []
        for name in own:
            if len({type(each[name]) for each in found}) > 1:
                raise NotKnown(configs[0].line, f"the values of {name} mix numbers and texts")
        if hooks := [each for each in configs if each.pre_hook is not None]:
            self.note(hooks[0].line, f"pre_hook {_HOOK}")
        return found


def _is_constexpr(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "_name", "")
    return str(text).rpartition(".")[2] == "constexpr"


def _is_config(value: Any) -> bool:
    return isinstance(value, Config)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set | map | filter) else [value]


def _checked(value: Any) -> Any:
    if isinstance(value, NotKnown):
        raise value
    if isinstance(value, Value):
        raise value._unknown()
    return value


def _value(value: Any, line: int) -> int | str:
    if value is None:
        return NO_LIMIT
    if isinstance(value, Value) and value._name in TYPES:
        return f"tl.{value._name}"
    known = value._known if isinstance(value, Value) else value
    if isinstance(known, bool | int):
        return int(known)
    if isinstance(known, str) and known:
        return known
    raise NotKnown(line, f"{value!r:.40} is no whole number, text or type of Triton")
