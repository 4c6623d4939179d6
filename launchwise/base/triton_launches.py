"""Launches of a Triton kernel by a file of answers, in place of ``@triton.autotune``.

    @autotuned("matmul.json")
    @triton.jit
    def matmul(c, a, b, m, n, k, BLOCK_M: tl.constexpr, ...): ...

    matmul[lambda META: (triton.cdiv(m, META["BLOCK_M"]),)](c, a, b, m, n, k)

``launchwise export STUDY --format triton`` writes the file, beside it a Python module that decides
at other sizes, and ``launchwise_triton.py``, which needs Triton alone. Nothing is timed: files,
arguments and the name of the device tell a configuration, so all ranks launch the same.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from inspect import Parameter, signature
from operator import index
from pathlib import Path
from typing import Any

from launchwise.base.triton_answers import OPTIONS, AnswerError, Answers

TYPES = {"fp": "float", "bf": "bfloat", "i": "int", "u": "uint"}
"""Triton's names of types, without bits, to those of answers: PyTorch's without ``torch.``."""

PLACE = re.compile(r"(\w+)(?:\.(dtype)|\.shape\[(\d+)\])?")
Source = str | Callable[[Mapping[str, Any]], Any]
"""Where a launch states a parameter of the problem: ``m``, ``a.dtype`` or ``a.shape[0]``; or a
function of all arguments."""


class StackingError(AnswerError, AttributeError):
    """Decorators of a kernel in a wrong order."""


def autotuned(
    file: str | Path, *, problem: Mapping[str, Source] | None = None, device: str | None = None
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

    Raises AnswerError when the file is broken, or of another kernel; when another decorator stands
    above this one, or ``triton.autotune`` below it.
    """

    def decorate(fn: Any) -> AutotunedKernel:
        path = Path(_layers(fn)[-1].__code__.co_filename).parent / file
        return AutotunedKernel(fn, Answers(path), problem or {}, device)

    return decorate


class AutotunedKernel:
    """A kernel whose launches take their configurations from answers: see :func:`autotuned`. ``fn``
    is what ``triton.jit`` or ``triton.heuristics`` returned."""

    def __init__(
        self, fn: Any, answers: Answers, problem: Mapping[str, Source], device: str | None
    ) -> None:
        check_kernel(fn, answers)
        self.fn, self.answers = fn, answers
        self._names: list[str] = list(fn.arg_names)
        self._unset = _unset_constexprs(fn, answers)
        self.__name__ = _layers(fn)[-1].__name__
        self._sources = {**answers.problem, **problem}
        self._readers = [self._reader(name, one) for name, one in self._sources.items()]
        self._device = device
        self._current: Callable[[], int] | None = None  # Number of the current one, of several.
        self._known: dict[Any, dict[str, Any]] = {}
        self._warned: set[tuple[str, ...]] = set()

    @property
    def arg_names(self) -> list[str]:
        """None: decorators of Triton ask for it, and none may stand above this one."""
        message = "autotuned is the first decorator: @triton.heuristics stands below it"
        message += ", @triton.autotune nowhere"
        raise StackingError(self.answers.path, self.__name__, message)

    def _reader(self, name: str, source: Source | None) -> Callable[..., Any]:
        """Function of a launch's arguments, by place and by name."""
        key, names = f"problem.{name}", self._names
        if name not in self.answers.problem:
            own = ", ".join(self.answers.problem)
            raise self.answers.error(key, f"is no parameter of the file (its own: {own})")
        if source is None:
            message = f"no argument of {self.answers.kernel} states it: say where, such as"
            raise self.answers.error(key, f'{message} problem={{"{name}": {self._example(name)}}}')
        if callable(source):
            return lambda args, kwargs: source({**dict(zip(names, args, strict=False)), **kwargs})
        match = PLACE.fullmatch(source)
        if match is None:
            raise self.answers.error(key, f"{source!r} is no argument, type or dimension")
        argument, is_type, dimension = match.groups()
        if argument not in names:
            message = f"{self.__name__} has no argument {argument} (its own: {', '.join(names)})"
            raise self.answers.error(key, message)
        at, size = names.index(argument), int(dimension or 0)
        if is_type:
            return lambda args, kwargs: (args[at] if at < len(args) else kwargs[argument]).dtype
        if dimension:
            return lambda args, kwargs: (args[at] if at < len(args) else kwargs[argument]).shape[
                size
            ]
        return lambda args, kwargs: args[at] if at < len(args) else kwargs[argument]

    def _example(self, name: str) -> str:
        """Where a launch might state a parameter of the problem."""
        tensor = next(iter(self.answers.tensors), self._names[0])
        if name not in self.answers.texts:
            return f'"{tensor}.shape[0]"'
        is_type = name in self.answers.tensors.values()
        return f'"{tensor}.dtype"' if is_type else "lambda given: ..."

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A launch on a grid: a tuple, or a function of all arguments and tunables."""
        return self._launcher(grid, warmup=False)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch with the configuration for these arguments, as ``JITFunction.run`` does. Raises
        AnswerError when the launch does not state the problem, or sets what the file sets."""
        return self._launcher(grid, warmup)(*args, **kwargs)

    def _launcher(self, grid: Any, warmup: bool) -> Callable[..., Any]:
        # One function does it all: each call more would add to each launch.
        known, readers, run = self._known, self._readers, self.fn.run

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
        ``gain`` over the usual choice with intervals; None where unknown."""
        return self.answers.answer(self._device_name(), self._problem(args, kwargs)[1])

    def _configuration(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        values, problem = self._problem(args, kwargs)
        device = self._device_name()
        answer = self.answers.answer(device, problem)
        found: dict[str, Any] = answer["configuration"]
        for name in found:
            if name in kwargs:
                message = "is set by the launch and by the file: leave it out of the launch"
                raise self.answers.error(name, message)
        for name in self._unset:
            if name not in kwargs and name not in self._names[: len(args)]:
                message = "has no value: @triton.heuristics below autotuned or the launch gives it"
                measured = self.answers.computed.get(name)
                message += f" (measured with {measured})" if measured else ""
                raise self.answers.error(name, message)
        texts = [str(problem[one]) for one in problem if one in self.answers.texts]
        if answer["basis"] in ("usual", "default") and (device, *texts) not in self._warned:
            self._warned.add((device, *texts))
            of = f" and {', '.join(texts)}" if texts else ""
            message = f"{self.__name__} has no answer for {device or 'this device'}{of}"
            what = "usual choice" if answer["basis"] == "usual" else "fallback of the file"
            text = f"{self.answers.path}: {message}: the {what} is launched"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
        self._known[device, *values] = found
        return found

    def _problem(self, args: Any, kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
        """What the launch has in each place, and the problem that it is."""
        values, problem = [], {}
        for (name, source), read in zip(self._sources.items(), self._readers, strict=True):
            is_text = name in self.answers.texts
            try:
                values.append(read(args, kwargs))
                problem[name] = _type_name(values[-1]) if is_text else index(values[-1])
            except (KeyError, AttributeError, IndexError) as error:
                message = f"this launch of {self.__name__} has no {source}"
                raise self.answers.error(f"problem.{name}", message) from error
            except TypeError as error:
                message = f"{source} is {values[-1]!r} in this launch, which is no integer"
                raise self.answers.error(f"problem.{name}", message) from error
        return values, problem

    def _device_name(self) -> str:
        """Name of the current device; asked for once where there is one."""
        if self._device is not None:
            return self._device
        if self._current is None:
            cuda = _cuda()
            if cuda is None or cuda.device_count() < 2:
                self._device = current_device()
                return self._device
            self._current = cuda.current_device
        return name_of(self._current())


def _type_name(value: Any) -> str:
    """A type's name without its library's: ``float16`` of ``torch.float16`` and of ``fp16``."""
    name = str(value).rpartition(".")[2]
    match = re.fullmatch(r"(fp|bf|i|u)(\d+)", name)
    return f"{TYPES[match[1]]}{match[2]}" if match else name


def _cuda() -> Any:
    """``torch.cuda``; None without PyTorch."""
    try:
        return import_module("torch").cuda
    except ImportError:
        return None


def current_device() -> str:
    """What CUDA calls the current device; empty where there is none."""
    cuda = _cuda()
    return name_of(cuda.current_device()) if cuda is not None and cuda.is_available() else ""


@cache
def name_of(number: int) -> str:
    return str(_cuda().get_device_name(number))


def _layers(fn: Any) -> list[Any]:
    """What decorators of Triton made, the outermost first, and the Python function."""
    return [fn] if hasattr(fn, "__code__") else [fn, *_layers(fn.fn)]


def _constexprs(fn: Any) -> list[str]:
    layers = (one.params for one in _layers(fn) if hasattr(one, "params"))
    return [one.name for one in next(layers, ()) if one.is_constexpr]


def check_kernel(fn: Any, answers: Answers) -> None:
    """Insist that a file is of this kernel, which no other decorator tunes."""
    own = _layers(fn)[-1].__name__
    if any(isinstance(one, AutotunedKernel) or hasattr(one, "configs") for one in _layers(fn)):
        message = "another decorator below chooses configurations, too: remove @triton.autotune"
        raise StackingError(answers.path, own, message)
    if own != answers.kernel:
        message = f"the file is of {answers.kernel}, not of {own}: export it anew"
        raise answers.error("kernel", f"{message}, or change it there")
    fixed = _constexprs(fn) or list(fn.arg_names)  # Triton's interpreter does not tell them apart.
    for name in answers.fallback:
        if name not in OPTIONS and name not in fixed:
            raise answers.error(name, f"is no constexpr of {own} (its own: {', '.join(fixed)})")


def _unset_constexprs(fn: Any, answers: Answers) -> list[str]:
    """Constexprs to which neither the file, a heuristic nor a default gives a value."""
    parameters = signature(_layers(fn)[-1]).parameters
    computed = [getattr(one, "values", None) for one in _layers(fn)]  # Of ``triton.heuristics``.
    known = {name for one in computed if isinstance(one, Mapping) for name in one}
    known |= {*answers.fallback}
    known |= {name for name, one in parameters.items() if one.default is not Parameter.empty}
    asked = dict.fromkeys([*_constexprs(fn), *answers.computed])
    return [name for name in asked if name in parameters and name not in known]
