"""Files of answers to launches of a Triton kernel. Programs without launchwise get this module and
:mod:`launchwise.base.triton_launches` as ``launchwise_triton.py``: they need Python 3.10 alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import prod
from operator import index
from pathlib import Path
from runpy import run_path
from typing import Any

FORMAT = "launchwise triton 2"
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Tunables that are options of Triton's compiler; the others are constexprs of the kernel."""

SAID = ("basis", "time_ms", "interval_ms", "gain", "gain_interval", "why")
"""What is said of a configuration."""

UNKNOWN = dict.fromkeys((*SAID[1:-1], "usual"))
"""What is not known of one at a size for which it is no answer."""


class AnswerError(ValueError):
    """A file of answers is broken, or does not fit a kernel or a launch: one line."""

    def __init__(self, path: str | Path, key: str, message: str) -> None:
        super().__init__(": ".join(part for part in (str(path), key, message) if part))


class Answers:
    """A file of answers, as ``launchwise export --format triton`` writes it. Raises AnswerError
    when it cannot be read, or is no such file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            if not isinstance(content, dict) or content.get("format") != FORMAT:
                raise self.error("format", f"must be {FORMAT!r}, as launchwise export writes it")
            self._read(content)
        except AnswerError:
            raise
        except OSError as error:
            raise self.error("", str(error.strerror)) from error
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise self.error("", f"is no JSON: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise self.error("", f"is damaged ({said}): export it anew") from error

    def error(self, key: str, message: str) -> AnswerError:
        """What is wrong at a key of the file."""
        return AnswerError(self.path, key, message)

    def _read(self, content: Mapping[str, Any]) -> None:
        self.kernel, self.variant = str(content["kernel"]), str(content["variant"])
        decision = self.path.with_name(Path(str(content["decision"])).name)
        if not decision.is_file():
            raise self.error("decision", f"{decision.name} is missing: copy it beside this file")
        self._decision = decision
        self.problem: dict[str, str | None] = dict(content["problem"])
        self.texts = frozenset(content["texts"])
        self.tensors: dict[str, str] = dict(content["tensors"])
        self.computed: dict[str, str] = dict(content.get("computed", {}))
        self.tunables: list[str] = list(content["tunables"])
        named = partial(zip, strict=True)
        self.fallback = dict(named(self.tunables, content["fallback"]))
        self._check_values("fallback", self.fallback)
        for name, source in self.problem.items():
            self._insist(isinstance(source, str | None), f"problem.{name}", source)
        self._devices: dict[str, str] = {}
        for device, facts in content["devices"].items():
            for name in (device, *facts["names"]):
                self._devices.setdefault(str(name), device)
        self._listed: dict[Any, list[tuple[tuple[int, ...], dict[str, Any]]]] = {}
        for place, one in enumerate(content["answers"]):
            key = f"answers[{place}]"
            own = {"configuration": dict(named(self.tunables, one["configuration"]))}
            self._check_values(f"{key}.configuration", own["configuration"])
            self._insist(one["device"] in content["devices"], f"{key}.device", one["device"])
            for name in ("time_ms", "gain"):
                known = one.get(name)
                self._insist(isinstance(known, int | float | None), f"{key}.{name}", known)
            problem = dict(named(self.problem, one["problem"]))
            texts, sizes = self._parts(problem)
            listed = self._listed.setdefault((str(one["device"]), texts), [])
            listed.append((sizes, {**UNKNOWN, **one, **own, "problem": problem}))

    def _check_values(self, key: str, configuration: Mapping[str, Any]) -> None:
        """Insist that options are whole numbers, and others numbers or texts as in the fallback."""
        for name, value in configuration.items():
            if name in OPTIONS:
                fits = type(value) is int and value >= 0
            else:
                is_text = isinstance(self.fallback[name], str)
                fits = isinstance(value, int | float | str) and isinstance(value, str) == is_text
            self._insist(fits, f"{key}.{name}", value)

    def _insist(self, fits: bool, key: str, value: Any) -> None:
        if not fits:
            raise self.error(key, f"is damaged, {value!r} cannot stand here: export it anew")

    def _parts(self, problem: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        texts = tuple(str(problem[name]) for name in self.problem if name in self.texts)
        return texts, tuple(index(problem[name]) for name in self.problem if name not in self.texts)

    def of(self, device: str) -> list[dict[str, Any]]:
        """Every listed answer of a device, by any of its names."""
        own = self._devices.get(device)
        return [one for (owner, _), some in self._listed.items() if owner == own for _, one in some]

    def answer(self, device: str, problem: Mapping[str, Any]) -> dict[str, Any]:
        """The answer for a problem on a device: a function of the files and of these alone.

        It is the listed one, else what the module beside the file decides: the answer of every
        other form. Where that is no configuration of this kernel, it is the listed answer of the
        device with the same texts that is nearest in size, the first of equal ones, with the basis
        ``nearest``, without time and gain; without any the fallback of the file, with the basis
        ``default``. ``why`` says so. A device is what CUDA calls it, or its name in the settings.
        """
        texts, asked = self._parts(problem)
        own = self._listed.get((self._devices.get(device), texts), ())
        for sizes, one in own:
            if sizes == asked:
                return one
        names = iter(texts), iter(asked)
        plain = {name: next(names[name not in self.texts]) for name in self.problem}
        decided = self._decided(device, plain)
        if not isinstance(decided, str):
            return {"device": self._devices.get(device), "usual": None, **decided}
        if own:
            _, best = min(own, key=lambda one: _distance(asked, one[0]))
            why = f"{decided}: the nearest listed one"
            return {**best, **UNKNOWN, "basis": "nearest", "why": why}
        fallback = {"device": None, "problem": plain, "configuration": self.fallback, **UNKNOWN}
        return {**fallback, "basis": "default", "why": f"{decided}: the fallback of the file"}

    @cached_property
    def _module(self) -> dict[str, Any]:
        """What decides at sizes that the file does not list."""
        try:
            return run_path(str(self._decision))
        except (OSError, SyntaxError, NameError) as error:
            raise self.error("decision", f"{self._decision.name} is broken: {error}") from error

    def _decided(self, device: str, problem: Mapping[str, Any]) -> dict[str, Any] | str:
        """What the module decides; a text that says why this kernel cannot run it."""
        said = self._module["recommend"](device, **problem)
        if said is None:
            return "no configuration may run this problem"
        if said["variant"] != self.variant:
            return f"{said['variant']} answers, which is another function"
        known = {**self._module["macros_of"](problem, said), **said}
        if unknown := [name for name in self.tunables if name not in known]:
            return f"{unknown[0]} of the answer is not computed here"
        own = {name: known[name] for name in self.tunables}
        return {"configuration": own, **{k: said[k] for k in (*SAID, "problem", "outside")}}


def _distance(asked: Sequence[int], known: Sequence[int]) -> float:
    """How far two problems are: the product of the ratios of their sizes, each plus 1."""
    pairs = (sorted(pair) for pair in zip(asked, known, strict=True))
    return prod((high + 1) / (low + 1) if low >= 0 else high - low + 1 for low, high in pairs)
