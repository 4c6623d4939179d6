"""launchwise: measure CUDA launch parameters, learn from them, recommend them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launchwise.base.triton_cache import warm_autotune_cache
    from launchwise.base.triton_launches import autotuned

__all__ = ["autotuned", "warm_autotune_cache"]
__version__ = "0.2.0.dev0"

_MODULES = {"autotuned": "triton_launches", "warm_autotune_cache": "triton_cache"}


def __getattr__(name: str) -> Any:
    # The command line needs neither, and starts without them.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"launchwise.base.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
