"""Answers where Triton kernels are launched: a file of answers in place of ``@triton.autotune``.

    @autotuned("matmul.json")
    @triton.jit
    def matmul(c, a, b, m, n, k, BLOCK_M: tl.constexpr, ...): ...

    matmul[lambda META: (triton.cdiv(m, META["BLOCK_M"]),)](c, a, b, m, n, k)

``launchwise export STUDY --format triton`` writes the file, and this module beside it as
``launchwise_triton.py``: it needs Python 3.10 and Triton, and nothing of launchwise. Nothing is
timed: a configuration follows from the file, the arguments and the name of the device, so all
ranks launch the same.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import index, itemgetter
from pathlib import Path
from typing import Any

FORMAT = "launchwise triton 1"
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Tunables that are options of Triton's compiler; the others are constexprs of the kernel."""

PLACE = re.compile(r"(\w+)(?:\.(dtype)|\.shape\[(\d+)\])?")
"""Where a launch states a parameter of the problem: ``m``, ``a.dtype`` or ``a.shape[0]``."""

TYPES = {
    **{"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Triton's names of types to those of answers, which are PyTorch's without ``torch.``."""

UNKNOWN = {"time_ms": None, "interval_ms": None, "gain": None, "gain_interval": None}
"""What is not known of a configuration at a size for which it is no listed answer."""

Source = str | Callable[[Mapping[str, Any]], Any]
"""Where a parameter of the problem stands: see :data:`PLACE`; or a function of all arguments."""


class AnswerError(ValueError):
    """A file of answers is broken, or does not fit a kernel or a launch: one line."""

    def __init__(self, path: str | Path, key: str, message: str) -> None:
        super().__init__(": ".join(part for part in (str(path), key, message) if part))


class Answers:
    """A file of answers.

    Parameters
    ----------
    path
        As ``launchwise export --format triton`` writes it.

    Raises
    ------
    AnswerError
        When it cannot be read, or is no such file.
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
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"
            raise AnswerError(path, "", f"is damaged ({said}): export it anew") from error

    def _read(self, content: Mapping[str, Any]) -> None:
        self.kernel = str(content["kernel"])
        self.problem: dict[str, str | None] = dict(content["problem"])
        self.texts = frozenset(content["texts"])
        self.tensors: dict[str, str] = dict(content["tensors"])
        self.tunables: list[str] = list(content["tunables"])
        self.fallback = _named(self.tunables, content["fallback"])
        self._devices: dict[str, str] = {}
        for device, facts in content["devices"].items():
            for name in (device, *facts["names"]):
                self._devices.setdefault(str(name), device)
        self._listed: dict[Any, list[tuple[tuple[int, ...], dict[str, Any]]]] = {}
        for one in content["answers"]:
            own = {"configuration": _named(self.tunables, one["configuration"])}
            problem = _named(self.problem, one["problem"])
            texts, sizes = self._parts(problem)
            listed = self._listed.setdefault((str(one["device"]), texts), [])
            listed.append((sizes, {**UNKNOWN, **one, **own, "problem": problem}))

    def _parts(self, problem: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Texts of a problem, such as types, and its sizes, in the order of the parameters."""
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

        Parameters
        ----------
        device
            What CUDA calls it, or its name in the settings.
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


def autotuned(
    file: str | Path,
    *,
    problem: Mapping[str, Source] | None = None,
    device: str | None = None,
) -> Callable[[Any], AutotunedKernel]:
    """Decorator of a Triton kernel that is launched with the configurations of a file of answers.

    Parameters
    ----------
    file
        The file; a relative path starts at the folder of the kernel's own file.
    problem
        Parameter of the problem to where a launch states it, in place of what the file says: an
        argument (``"m"``), the type or a dimension of a tensor (``"a.dtype"``, ``"a.shape[0]"``),
        or a function of the arguments by their names.
    device
        Name of the device in place of that of the current one.

    Raises
    ------
    AnswerError
        When the file is broken, or of another kernel.
    """

    def decorate(fn: Any) -> AutotunedKernel:
        path = Path(_function(fn).__code__.co_filename).parent / file
        return AutotunedKernel(fn, Answers(path), problem or {}, device)

    return decorate


def _function(fn: Any) -> Any:
    """The Python function below decorators of Triton."""
    while not hasattr(fn, "__code__"):
        fn = fn.fn
    return fn


class AutotunedKernel:
    """A kernel whose launches take their configurations from answers: see :func:`autotuned`.

    Parameters
    ----------
    fn
        What ``triton.jit`` or ``triton.heuristics`` returned.
    """

    def __init__(
        self, fn: Any, answers: Answers, problem: Mapping[str, Source], device: str | None
    ) -> None:
        check_kernel(fn, answers)
        self.fn, self.answers = fn, answers
        self.arg_names: list[str] = list(fn.arg_names)
        self.__name__ = _function(fn).__name__
        self._sources = self._checked({**answers.problem, **problem})
        self._named_device = device
        self._kept: dict[Any, dict[str, Any]] = {}
        self._key: Callable[[tuple[Any, ...]], Any] | None = None
        self._warned: set[tuple[Any, ...]] = set()
        self._launch = fn.run

    def _checked(self, sources: Mapping[str, Source | None]) -> dict[str, Source]:
        path, found = self.answers.path, {}
        for name, source in sources.items():
            key = f"problem.{name}"
            if name not in self.answers.problem:
                own = ", ".join(self.answers.problem)
                raise AnswerError(path, key, f"is no parameter of the file (its own: {own})")
            if source is None:
                message = f"no argument of {self.answers.kernel} states it: say where, such as"
                raise AnswerError(path, key, f'{message} problem={{"{name}": "a.shape[0]"}}')
            match = PLACE.fullmatch(source) if isinstance(source, str) else None
            if isinstance(source, str) and match is None:
                raise AnswerError(path, key, f"{source!r} is no argument, type or dimension")
            if match is not None and match[1] not in self.arg_names:
                own = ", ".join(self.arg_names)
                message = f"{self.__name__} has no argument {match[1]} (its own: {own})"
                raise AnswerError(path, key, message)
            found[name] = source
        return found

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A launch on a grid: a tuple, or a function of all arguments and tunables."""
        run = self.run

        def launch(*args: Any, **kwargs: Any) -> Any:
            return run(*args, grid=grid, warmup=False, **kwargs)

        return launch

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch with the configuration for these arguments, as ``JITFunction.run`` does.

        Raises
        ------
        AnswerError
            When the launch does not state the problem, or sets what the file sets.
        """
        try:
            found = self._kept[self._key(args)]  # type: ignore[misc]
        except (KeyError, IndexError, TypeError, AttributeError):
            found = self._configuration(args, kwargs)
        return self._launch(*args, grid=grid, warmup=warmup, **kwargs, **found)

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile what a launch would run, without running it."""
        return self.fn.warmup(*args, grid=grid, **kwargs, **self._configuration(args, kwargs))

    def answer(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The answer for a launch with these arguments, with its evidence.

        Returns
        -------
        dict
            ``configuration``, ``basis``, the ``problem`` that it was taken over from, ``time_ms``
            and ``gain`` over the ``usual`` configuration with intervals; None where unknown.
        """
        return self.answers.answer(self._device(), self._asked(args, kwargs))

    def _configuration(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        problem, device = self._asked(args, kwargs), self._device()
        found = self.answers.answer(device, problem)
        chosen: dict[str, Any] = found["configuration"]
        if clash := [name for name in chosen if name in kwargs]:
            message = "is set by the launch and by the file: leave it out of the launch"
            raise AnswerError(self.answers.path, clash[0], message)
        if found["basis"] == "default":
            self._warn(
                device, [str(problem[name]) for name in problem if name in self.answers.texts]
            )
        if self._key is None:
            self._key = self._key_function()
        # Numbers that are given by their names are looked up anew at each launch.
        if self._key is not None and not any(name in kwargs for name in self._read_names()):
            self._kept[self._key(args)] = chosen
        return chosen

    def _warn(self, device: str, texts: Sequence[str]) -> None:
        if (device, *texts) not in self._warned:
            self._warned.add((device, *texts))
            of = f" and {', '.join(texts)}" if texts else ""
            message = f"{self.__name__} has no answer for {device or 'this device'}{of}"
            text = f"{self.answers.path}: {message}: the fallback of the file is launched"
            warnings.warn(text, RuntimeWarning, stacklevel=5)

    def _asked(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The problem of a launch."""
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        found: dict[str, Any] = {}
        for name, source in self._sources.items():
            value = source(named) if callable(source) else self._stated(name, source, named)
            try:
                found[name] = _type_name(value) if name in self.answers.texts else index(value)
            except TypeError as error:
                message = f"{source} is {value!r} in this launch, which is no integer"
                raise AnswerError(self.answers.path, f"problem.{name}", message) from error
        return found

    def _stated(self, name: str, source: str, named: Mapping[str, Any]) -> Any:
        match = PLACE.fullmatch(source)
        assert match is not None
        try:
            value = named[match[1]]
            if match[2]:
                return value.dtype
            return value.shape[int(match[3])] if match[3] else value
        except (KeyError, AttributeError, IndexError) as error:
            message = f"this launch of {self.__name__} has no {source}"
            raise AnswerError(self.answers.path, f"problem.{name}", message) from error

    def _read_names(self) -> list[str]:
        return [str(one).partition(".")[0] for one in self._sources.values()]

    def _key_function(self) -> Callable[[tuple[Any, ...]], Any] | None:
        """What decides the configuration, from positional arguments; None where it has to be bound.

        A launch computes it, so it does no more than it has to.
        """
        places = [PLACE.fullmatch(each) for each in self._sources.values() if isinstance(each, str)]
        if len(places) < len(self._sources) or any(each is None or each[3] for each in places):
            return None
        types = [self.arg_names.index(each[1]) for each in places if each and each[2]]
        sizes = [self.arg_names.index(each[1]) for each in places if each and not each[2]]
        numbers = itemgetter(*sizes) if sizes else None
        current = None if self._named_device is not None else _current_device()
        if numbers is not None and not types and current is None:
            return numbers

        def key(args: tuple[Any, ...]) -> Any:
            found = [args[place].dtype for place in types]
            if current is not None:
                found.append(current())
            return (numbers(args) if numbers is not None else (), *found)

        return key

    def _device(self) -> str:
        return device_name() if self._named_device is None else self._named_device


def check_kernel(fn: Any, answers: Answers) -> None:
    """Insist that a file has values for constexprs of this kernel, and for no others.

    Raises
    ------
    AnswerError
        One line, with the kernel that the file is of.
    """
    own, below = _function(fn).__name__, fn
    while not hasattr(below, "params") and hasattr(below, "fn"):
        below = below.fn
    fixed = [one.name for one in getattr(below, "params", ()) if one.is_constexpr]
    fixed = fixed or list(fn.arg_names)  # Triton's interpreter does not tell them apart.
    for name in answers.tunables:
        if name not in OPTIONS and name not in fixed:
            message = f"is no constexpr of {own} (its own: {', '.join(fixed)})"
            raise AnswerError(answers.path, name, f"{message}; the file is of {answers.kernel}")


def device_name() -> str:
    """What CUDA calls the current device; empty where there is none."""
    try:
        import torch
    except ImportError:
        return ""
    return _name_of(torch.cuda.current_device()) if torch.cuda.is_available() else ""


@cache
def _name_of(number: int) -> str:
    import torch

    return str(torch.cuda.get_device_name(number))


def _current_device() -> Callable[[], int] | None:
    """Function that gives the number of the current device; None where there is one at most."""
    try:
        import torch
    except ImportError:
        return None
    current: Callable[[], int] = torch.cuda.current_device
    return current if torch.cuda.device_count() > 1 else None


def _type_name(value: Any) -> str:
    """A type's name without its library's: ``float16`` of ``torch.float16`` and of ``fp16``."""
    name = str(value).rpartition(".")[2]
    return TYPES.get(name, name)
