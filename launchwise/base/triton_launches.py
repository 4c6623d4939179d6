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

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from operator import index
from pathlib import Path
from typing import Any

from launchwise.base.triton_answers import OPTIONS, AnswerError, Answers, StackingError, type_name

PLACE = re.compile(r"(\w+)(?:\.(dtype)|\.shape\[(\d+)\])?")
"""Where a launch states a parameter of the problem: ``m``, ``a.dtype`` or ``a.shape[0]``."""

Source = str | Callable[[Mapping[str, Any]], Any]
"""Where a parameter of the problem stands: see :data:`PLACE`; or a function of all arguments."""

Reader = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
"""Function of a launch's arguments, by place and by name."""


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
        When the file is broken, or of another kernel; when another decorator stands above this
        one, or ``triton.autotune`` below it.
    """

    def decorate(fn: Any) -> AutotunedKernel:
        path = Path(_function(fn).__code__.co_filename).parent / file
        return AutotunedKernel(fn, Answers(path), problem or {}, device)

    return decorate


def _layers(fn: Any) -> Iterator[Any]:
    """What decorators of Triton made, the outermost first, without the Python function."""
    while not hasattr(fn, "__code__"):
        yield fn
        fn = fn.fn


def _function(fn: Any) -> Any:
    """The Python function below decorators of Triton."""
    return [*_layers(fn)][-1].fn if not hasattr(fn, "__code__") else fn


class AutotunedKernel:
    """A kernel whose launches take their configurations from answers: see :func:`autotuned`.

    ``fn``: what ``triton.jit`` or ``triton.heuristics`` returned.
    """

    def __init__(
        self, fn: Any, answers: Answers, problem: Mapping[str, Source], device: str | None
    ) -> None:
        check_kernel(fn, answers)
        self.fn, self.answers = fn, answers
        self._names: list[str] = list(fn.arg_names)
        self._unset = unset_constexprs(fn, answers)
        self.__name__ = _function(fn).__name__
        self._sources = {**answers.problem, **problem}
        self._readers = [self._reader(name, one) for name, one in self._sources.items()]
        self._device, self._current = device, _no_device
        self._known: dict[Any, dict[str, Any]] = {}
        self._warned: set[tuple[str, ...]] = set()
        self._launch = fn.run

    @property
    def arg_names(self) -> list[str]:
        """None: decorators of Triton ask for it, and none may stand above this one."""
        message = "autotuned is the first decorator: @triton.heuristics stands below it"
        raise StackingError(
            self.answers.path, self.__name__, f"{message}, @triton.autotune nowhere"
        )

    def _reader(self, name: str, source: Source | None) -> Reader:
        path, key, names = self.answers.path, f"problem.{name}", self._names
        if name not in self.answers.problem:
            message = f"is no parameter of the file (its own: {', '.join(self.answers.problem)})"
            raise AnswerError(path, key, message)
        if source is None:
            message = f"no argument of {self.answers.kernel} states it: say where, such as"
            raise AnswerError(path, key, f'{message} problem={{"{name}": {self._example(name)}}}')
        if callable(source):
            return lambda args, kwargs: source({**dict(zip(names, args, strict=False)), **kwargs})
        match = PLACE.fullmatch(source)
        if match is None:
            raise AnswerError(path, key, f"{source!r} is no argument, type or dimension")
        argument, is_type, dimension = match.groups()
        if argument not in names:
            message = f"{self.__name__} has no argument {argument} (its own: {', '.join(names)})"
            raise AnswerError(path, key, message)
        place = names.index(argument)

        if is_type:
            return lambda args, kwargs: (
                (args[place] if place < len(args) else kwargs[argument]).dtype
            )
        if dimension:
            number = int(dimension)
            return lambda args, kwargs: (
                args[place] if place < len(args) else kwargs[argument]
            ).shape[number]
        return lambda args, kwargs: args[place] if place < len(args) else kwargs[argument]

    def _example(self, name: str) -> str:
        """Where a launch might state a parameter of the problem."""
        tensor = next(iter(self.answers.tensors), self._names[0])
        if name not in self.answers.texts:
            return f'"{tensor}.shape[0]"'
        return f'"{tensor}.dtype"' if self.answers.is_type(name) else "lambda given: ..."

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A launch on a grid: a tuple, or a function of all arguments and tunables."""
        return self._launcher(grid, False)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch with the configuration for these arguments, as ``JITFunction.run`` does. Raises
        AnswerError when the launch does not state the problem, or sets what the file sets."""
        return self._launcher(grid, warmup)(*args, **kwargs)

    def _launcher(self, grid: Any, warmup: bool) -> Callable[..., Any]:
        # One function does it all: each call more would add to each launch.
        known, readers, run = self._known, self._readers, self._launch

        def launch(*args: Any, **kwargs: Any) -> Any:
            device = self._device if self._device is not None else self._device_name()
            try:
                found = known[device, *[read(args, kwargs) for read in readers]]
            except (KeyError, AttributeError, IndexError):
                found = self._configuration(args, kwargs)
            return run(*args, grid=grid, warmup=warmup, **kwargs, **found)

        return launch

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile what a launch would run, without running it."""
        return self.fn.warmup(*args, grid=grid, **kwargs, **self._configuration(args, kwargs))

    def answer(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The answer for a launch with these arguments, with its evidence. Returns
        ``configuration``, ``basis``, the ``problem`` that it was taken over from, ``time_ms`` and
        ``gain`` over the ``usual`` configuration with intervals; None where unknown."""
        return self.answers.answer(self._device_name(), self._problem(self._values(args, kwargs)))

    def _configuration(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        values, device = self._values(args, kwargs), self._device_name()
        problem = self._problem(values)
        answer = self.answers.answer(device, problem)
        found: dict[str, Any] = answer["configuration"]
        if clash := [name for name in found if name in kwargs]:
            message = "is set by the launch and by the file: leave it out of the launch"
            raise AnswerError(self.answers.path, clash[0], message)
        for name in self._unset:
            if name not in kwargs and name not in self._names[: len(args)]:
                measured = self.answers.computed.get(name)
                message = "has no value: @triton.heuristics below autotuned or the launch gives it"
                message += f" (measured with {measured})" if measured else ""
                raise AnswerError(self.answers.path, name, message)
        if answer["basis"] == "default":
            self._warn(
                device, [str(problem[name]) for name in problem if name in self.answers.texts]
            )
        self._known[device, *values] = found
        return found

    def _warn(self, device: str, texts: Sequence[str]) -> None:
        if (device, *texts) not in self._warned:
            self._warned.add((device, *texts))
            of = f" and {', '.join(texts)}" if texts else ""
            message = f"{self.__name__} has no answer for {device or 'this device'}{of}"
            text = f"{self.answers.path}: {message}: the fallback of the file is launched"
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    def _values(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        found = []
        for (name, source), read in zip(self._sources.items(), self._readers, strict=True):
            try:
                found.append(read(args, kwargs))
            except (KeyError, AttributeError, IndexError) as error:
                message = f"this launch of {self.__name__} has no {source}"
                raise AnswerError(self.answers.path, f"problem.{name}", message) from error
        return found

    def _problem(self, values: Sequence[Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (name, source), value in zip(self._sources.items(), values, strict=True):
            try:
                found[name] = type_name(value) if name in self.answers.texts else index(value)
            except TypeError as error:
                message = f"{source} is {value!r} in this launch, which is no integer"
                raise AnswerError(self.answers.path, f"problem.{name}", message) from error
        return found

    def _device_name(self) -> str:
        """Name of the current device; asked for once where there is one."""
        if self._device is not None:
            return self._device
        if self._current is _no_device:
            self._current = _current_device()
            if self._current is _no_device:
                self._device = device_name()
                return self._device
        return _name_of(self._current())


def check_kernel(fn: Any, answers: Answers) -> None:
    """Insist that a file is of this kernel, which no other decorator tunes. Raises AnswerError: one
    line, with the kernel that the file is of."""
    own = _function(fn).__name__
    if any(isinstance(one, AutotunedKernel) or hasattr(one, "configs") for one in _layers(fn)):
        message = "another decorator below chooses configurations, too: remove @triton.autotune"
        raise StackingError(answers.path, own, message)
    if own != answers.kernel:
        message = (
            f"the file is of {answers.kernel}, not of {own}: export it anew, or change it there"
        )
        raise AnswerError(answers.path, "kernel", message)
    fixed = _constexprs(fn) or list(fn.arg_names)  # Triton's interpreter does not tell them apart.
    for name in answers.tunables:
        if name not in OPTIONS and name not in fixed:
            message = f"is no constexpr of {own} (its own: {', '.join(fixed)})"
            raise AnswerError(answers.path, name, message)


def unset_constexprs(fn: Any, answers: Answers) -> list[str]:
    """Constexprs to which neither the file, a heuristic nor a default gives a value."""
    parameters = signature(_function(fn)).parameters
    known = {*answers.tunables, *(name for one in _layers(fn) for name in _heuristics(one))}
    asked = dict.fromkeys([*_constexprs(fn), *answers.computed])
    return [
        name
        for name in asked
        if name in parameters and parameters[name].default is Parameter.empty and name not in known
    ]


def _heuristics(layer: Any) -> Sequence[str]:
    """Names that a ``triton.heuristics`` computes."""
    values = getattr(layer, "values", None)
    return list(values) if isinstance(values, Mapping) else []


def _constexprs(fn: Any) -> list[str]:
    for layer in _layers(fn):
        if hasattr(layer, "params"):
            return [one.name for one in layer.params if one.is_constexpr]
    return []


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


def _no_device() -> int:
    return 0


def _current_device() -> Callable[[], int]:
    """Function that gives the number of the current device, of several."""
    try:
        import torch
    except ImportError:
        return _no_device
    current: Callable[[], int] = torch.cuda.current_device
    return current if torch.cuda.device_count() > 1 else _no_device
