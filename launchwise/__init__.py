"""launchwise: measure CUDA launch parameters, learn from them, recommend them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from launchwise.base.triton_launches import AutotunedKernel

__version__ = "0.2.0.dev0"


def autotuned(file: Any, **options: Any) -> Callable[[Any], AutotunedKernel]:
    """Decorator of a Triton kernel: see :func:`launchwise.base.triton_launches.autotuned`."""
    from launchwise.base.triton_launches import autotuned as decorator

    return decorator(file, **options)


def warm_autotune_cache(kernel: Any, file: Any, **options: Any) -> int:
    """Answers in Triton's cache: see :func:`launchwise.base.triton_cache.warm_autotune_cache`."""
    from launchwise.base.triton_cache import warm_autotune_cache as warm

    return warm(kernel, file, **options)
