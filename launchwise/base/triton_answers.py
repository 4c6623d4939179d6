"""A file of answers for a Triton kernel, and its lookup.

``launchwise export --format triton`` writes the file, and one module beside it,
``launchwise_triton.py``: :mod:`launchwise.base.triton_launches` and this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any

FORMAT = "launchwise triton 1"
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Tunables that are options of Triton's compiler; the others are constexprs of the kernel."""

TYPES = {
    **{"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Triton's names of types to those of answers, which are PyTorch's without ``torch.``."""

_TYPE = re.compile(r"(b?float|u?int|complex)\d\w*|bool")
"""Name of a type in answers."""

UNKNOWN = {"time_ms": None, "interval_ms": None, "gain": None, "gain_interval": None}
"""What is not known of a configuration at a size for which it is no listed answer."""


class AnswerError(ValueError):
    """A file of answers is broken, or does not fit a kernel or a launch: one line."""

    def __init__(self, path: str | Path, key: str, message: str) -> None:
        super().__init__(": ".join(part for part in (str(path), key, message) if part))


class StackingError(AnswerError, AttributeError):
    """Decorators of a kernel in a wrong order."""


class Answers:
    """A file of answers.

    ``path``: as ``launchwise export --format triton`` writes it.
    Raises AnswerError when it cannot be read, or is no such file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise AnswerError(path, "", str(error.strerror)) from error
        except ValueError as error:
            raise AnswerError(path, "", f"is no JSON: {error}") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise AnswerError(path, "format", f"must be {FORMAT!r}, as launchwise export writes it")
        try:
            self._read(content)
        except AnswerError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise AnswerError(path, "", f"is damaged ({said}): export it anew") from error

    def _read(self, content: Mapping[str, Any]) -> None:
        self.kernel = str(content["kernel"])
        self.problem: dict[str, str | None] = dict(content["problem"])
        self.texts = frozenset(content["texts"])
        self.tensors: dict[str, str] = dict(content["tensors"])
        self.computed: dict[str, str] = dict(content.get("computed", {}))
        self.tunables: list[str] = list(content["tunables"])
        self.fallback = _named(self.tunables, content["fallback"])
        self._check_values("fallback", self.fallback)
        for name, source in self.problem.items():
            if source is not None and not isinstance(source, str):
                raise self._damaged(f"problem.{name}", source)
        self._devices: dict[str, str] = {}
        for device, facts in content["devices"].items():
            for name in (device, *facts["names"]):
                self._devices.setdefault(str(name), device)
        self._listed: dict[Any, list[tuple[tuple[int, ...], dict[str, Any]]]] = {}
        for place, one in enumerate(content["answers"]):
            own = {"configuration": _named(self.tunables, one["configuration"])}
            self._check_values(f"answers[{place}].configuration", own["configuration"])
            if one["device"] not in content["devices"]:
                raise self._damaged(f"answers[{place}].device", one["device"])
            for name in ("time_ms", "gain"):
                if not isinstance(one.get(name), int | float | None):
                    raise self._damaged(f"answers[{place}].{name}", one[name])
            problem = _named(self.problem, one["problem"])
            texts, sizes = self._parts(problem)
            listed = self._listed.setdefault((str(one["device"]), texts), [])
            listed.append((sizes, {**UNKNOWN, **one, **own, "problem": problem}))

    def _check_values(self, key: str, configuration: Mapping[str, Any]) -> None:
        """Insist that options are whole numbers, and others numbers or texts as in the fallback."""
        for name, value in configuration.items():
            if name in OPTIONS:
                fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            else:
                is_text = isinstance(self.fallback[name], str)
                fits = isinstance(value, int | float | str) and isinstance(value, str) == is_text
            if not fits:
                raise self._damaged(f"{key}.{name}", value)

    def _damaged(self, key: str, value: Any) -> AnswerError:
        return AnswerError(
            self.path, key, f"is damaged, {value!r} cannot stand here: export it anew"
        )

    def is_type(self, name: str) -> bool:
        """Whether a parameter of the problem holds types of tensors."""
        found = (one["problem"][name] for some in self._listed.values() for _, one in some)
        return name in self.texts and all(_TYPE.fullmatch(str(each)) for each in found)

    def _parts(self, problem: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        texts = tuple(str(problem[name]) for name in self.problem if name in self.texts)
        return texts, tuple(index(problem[name]) for name in self.problem if name not in self.texts)

    def of(self, device: str) -> list[dict[str, Any]]:
        """Every listed answer of a device, by any of its names."""
        own = self._devices.get(device)
        return [one for (owner, _), some in self._listed.items() if owner == own for _, one in some]

    def answer(self, device: str, problem: Mapping[str, Any]) -> dict[str, Any]:
        """The answer for a problem on a device: a function of the file and of these alone.

        Of the answers of the device with the same texts it is the one nearest in size, the first
        of equal ones; its ``basis`` is ``nearest`` and it has no time and no gain where the size is
        another. Without any it is the fallback of the file, with the basis ``default``.

        ``device``: what CUDA calls it, or its name in the settings.
        """
        texts, asked = self._parts(problem)
        best, least = None, float("inf")
        for sizes, one in self._listed.get((self._devices.get(device), texts), ()):
            far = _distance(asked, sizes)
            if far < least:
                best, least = one, far
        if best is None:
            own = {"problem": dict(problem), "configuration": self.fallback}
            return {"device": None, **own, "basis": "default", "usual": None, **UNKNOWN}
        return best if least == 1 else {**best, "basis": "nearest", "usual": None, **UNKNOWN}


def _named(names: Sequence[str] | Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(names, values, strict=True))


def _distance(asked: Sequence[int], known: Sequence[int]) -> float:
    """Product over sizes of (larger + 1) / (smaller + 1): 1 of equal problems."""
    found = 1.0
    for one, other in zip(asked, known, strict=True):
        low, high = sorted((one, other))
        found *= (high + 1) / (low + 1)
    return found


def type_name(value: Any) -> str:
    """A type's name without its library's: ``float16`` of ``torch.float16`` and of ``fp16``."""
    name = str(value).rpartition(".")[2]
    return TYPES.get(name, name)
