"""Answers in the cache of ``triton.autotune``, which then times nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from launchwise.base.triton_answers import OPTIONS, Answers
from launchwise.base.triton_launches import check_kernel, current_device

Values = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Problem to the values of arguments."""


def warm_autotune_cache(
    kernel: Any, file: str | Path, *, values: Values | None = None, device: str | None = None
) -> int:
    """Write answers of this device into the cache of ``triton.autotune``.

    Triton itself computes where each belongs and writes it (``Autotuner.check_disk_cache``): from
    its release, the device, the environment, the kernel's text and its ``configs``. So call this
    where the kernel runs. The run then sets ``TRITON_CACHE_AUTOTUNING=1``. What Triton finds in its
    cache already stays.

    Parameters
    ----------
    kernel
        What ``triton.autotune`` returned; its launches give the tensors by place.
    file
        As ``launchwise export --format triton`` writes it.
    values
        Problem to the values of those arguments in ``key`` that are no parameters of the problem,
        such as strides.
    device
        Name of the device in place of that of the current one.

    Returns
    -------
    int
        Problems that Triton's cache answers now.

    Raises
    ------
    AnswerError
        When the kernel is none of ``triton.autotune``, never reads its cache, or is not that of the
        file; when ``key`` names an argument of unknown value; when there is no GPU or no Triton.

    Warns
    -----
    RuntimeWarning
        When the file has no answer for the device.
    """
    answers = Answers(file)
    try:
        triton = import_module("triton")
    except ImportError as error:
        message = f"Triton cannot be imported ({error}): pip install 'triton>=3.6'"
        raise answers.error("", message) from error
    while not hasattr(kernel, "check_disk_cache"):
        if not hasattr(kernel, "fn"):
            raise answers.error("", "the kernel has no @triton.autotune")
        kernel = kernel.fn
    _check_reads_cache(kernel, answers)
    check_kernel(kernel.fn, answers)
    own_device = current_device() if device is None else device
    if not own_device:
        raise answers.error("", "PyTorch finds no GPU: call this where the kernel runs")
    try:  # Where Triton looks for an answer depends on the GPU, whatever ``device`` says.
        triton.runtime.driver.active.get_current_target()
    except RuntimeError as error:
        message = f"Triton finds no GPU ({error}): call this where the kernel runs"
        raise answers.error("", message) from error
    listed = [*answers.listed(own_device)]
    if not listed:
        message = f"{file}: no answer for {own_device}: Triton times {answers.kernel} as before"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    for one in listed:
        given = one["configuration"]
        options = {name: given[name] for name in OPTIONS if given.get(name)}
        own = {name: value for name, value in given.items() if name not in OPTIONS}
        more = {} if values is None else values(one["problem"])
        key = tuple(_tuning_key(kernel, answers, one["problem"], more))
        _write_answer(kernel, key, triton.Config(own, **options), one["time_ms"])
    return len(listed)


def _write_answer(kernel: Any, key: tuple[Any, ...], config: Any, time_ms: float | None) -> None:
    """Have Triton write its cache's entry, as if it had timed the configuration."""

    def known() -> None:
        kernel.configs_timings = {config: [time_ms] * 3}
        kernel.cache[key] = config

    kernel.check_disk_cache(key, kernel.configs, known)


def _check_reads_cache(kernel: Any, answers: Answers) -> None:
    """Insist that the autotuner asks its cache with its configurations as they are declared."""
    if len(kernel.configs) < 2:
        why = "has one configuration, which it takes for every problem"
    elif any(config.pre_hook for config in kernel.configs):
        why = "has configurations with a pre_hook, which its cache never holds"
    elif kernel.early_config_prune or kernel.perf_model:
        why = "prunes its configurations (prune_configs_by), on which its cache depends"
    else:
        return
    raise answers.error("", f"the @triton.autotune of {answers.kernel} {why}")


def _tuning_key(
    kernel: Any, answers: Answers, problem: Mapping[str, Any], more: Mapping[str, Any]
) -> Iterator[Any]:
    """Values that ``key`` names, then the types of all tensors, as a launch has them."""
    place = {source: name for name, source in answers.problem.items()}
    for name in kernel.keys:
        if name in more:
            yield more[name]
        elif name in place:
            yield problem[place[name]]
        else:
            message = f"{name} of the key is no parameter of the problem: give it by values="
            raise answers.error("", message)
    for name in kernel.arg_names:
        if name in answers.tensors:
            kind = answers.tensors[name]
            yield f"torch.{problem.get(kind, kind)}"
