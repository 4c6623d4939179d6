"""Files of answers to launches of a Triton kernel. Programs without launchwise get this module and
:mod:`launchwise.base.triton_launches` as ``launchwise_triton.py``: they need Python 3.10 alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import index
from pathlib import Path
from runpy import run_path
from typing import Any

FORMAT = "launchwise triton 3"
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Tunables that are options of Triton's compiler; the others are constexprs of the kernel."""

SAID = ("basis", "time_ms", "interval_ms", "gain", "gain_interval", "why")
"""What is said of a configuration."""


class AnswerError(ValueError):
    """A file of answers is broken, or does not fit a kernel or a launch: one line."""

    def __init__(self, path: str | Path, key: str, message: str) -> None:
        super().__init__(": ".join(part for part in (str(path), key, message) if part))


class Answers:
    """What ``launchwise export --format triton`` writes: which argument of a kernel states what,
    and beside it the Python module that decides. Raises AnswerError when it cannot be read, or is
    no such file."""

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
        self._decision = self.path.with_name(Path(str(content["decision"])).name)
        if not self._decision.is_file():
            name = self._decision.name
            raise self.error("decision", f"{name} is missing: copy it beside this file")
        self.problem: dict[str, str | None] = dict(content["problem"])
        self.texts = frozenset(content["texts"])
        self.tensors: dict[str, str] = dict(content["tensors"])
        self.computed: dict[str, str] = dict(content["computed"])
        self.fallback: dict[str, Any] = dict(content["fallback"])
        for name, source in self.problem.items():
            self._insist(isinstance(source, str | None), f"problem.{name}", source)
        for name, value in self.fallback.items():
            is_whole = type(value) is int and value >= 0
            fits = is_whole if name in OPTIONS else isinstance(value, int | float | str)
            self._insist(fits, f"fallback.{name}", value)

    def _insist(self, fits: bool, key: str, value: Any) -> None:
        if not fits:
            raise self.error(key, f"is damaged, {value!r} cannot stand here: export it anew")

    @cached_property
    def _module(self) -> dict[str, Any]:
        try:
            return run_path(str(self._decision))
        except (OSError, SyntaxError, NameError) as error:
            raise self.error("decision", f"{self._decision.name} is broken: {error}") from error

    def listed(self, device: str) -> Iterator[dict[str, Any]]:
        """The answer to every listed problem of a device, by any of its names."""
        for number, problem, *_ in self._module["ENTRIES"]:
            if device in self._module["DEVICES"][number]:
                yield self.answer(device, dict(zip(self.problem, problem, strict=True)))

    def answer(self, device: str, problem: Mapping[str, Any]) -> dict[str, Any]:
        """The answer for a problem on a device: a function of the files and of these alone.

        It is what the module decides: the answer of every other form. Where that is no
        configuration of this kernel, it is the fallback of the file with the basis ``default``,
        without time and gain; ``why`` says so. A device is what CUDA calls it, or its name in the
        settings.
        """
        plain = {
            name: str(problem[name]) if name in self.texts else index(problem[name])
            for name in self.problem
        }
        decided = self._decided(device, plain)
        if not isinstance(decided, str):
            return decided
        said = {**dict.fromkeys(SAID), "basis": "default"}
        said["why"] = f"{decided}: the fallback of the file"
        return {"configuration": self.fallback, **said, "problem": plain}

    def _decided(self, device: str, problem: Mapping[str, Any]) -> dict[str, Any] | str:
        """What the module decides; a text that says why this kernel cannot run it."""
        said = self._module["recommend"](device, **problem)
        if said is None:
            return "no configuration may run this problem"
        if said["variant"] != self.variant:
            return f"{said['variant']} answers, which is another function"
        known = {**self._module["macros_of"](problem, said), **said}
        if unknown := [name for name in self.fallback if name not in known]:
            return f"{unknown[0]} of the answer is not computed here"
        own = {name: known[name] for name in self.fallback}
        return {"configuration": own, **{k: said[k] for k in (*SAID, "problem", "outside")}}
