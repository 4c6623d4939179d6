"""Search of a space of configurations on a GPU that nobody measured, guided by what is known."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from launchwise.search.candidates import Search, Told

__all__ = ["Search", "strategy"]


def strategy(
    known: Iterable[Iterable[Told]] = (), percent: float | None = None, seed: int = 0
) -> Any:
    """A strategy of Kernel Tuner that measures what :class:`Search` asks for.

    Use it as ``tune_kernel(..., strategy=strategy())``. Raises ImportError without Kernel Tuner.

    Parameters
    ----------
    known, seed
        See :class:`Search`.
    percent
        End once it is 90 % sure that nothing is faster by more than this; when left out, Kernel
        Tuner's own limits (``max_fevals``, ``time_limit``) end it.
    """
    from kernel_tuner.strategies.wrapper import OptAlg, OptAlgWrapper

    class Asking(OptAlg):
        """Measures what the search asks for."""

        def __init__(self) -> None:
            super().__init__()
            self.costfunc_kwargs = {"scaling": False, "snap": False}

        def __call__(self, func: Any, searchspace: Any) -> None:
            tunables = {name: list(each) for name, each in searchspace.tune_params.items()}
            listed = set(map(tuple, searchspace.list))
            search = Search(tunables, lambda each: tuple(each.values()) in listed, known, seed)
            while (configuration := search.ask()) is not None:
                if percent is not None and search.is_sure(percent):
                    return
                found = float(func(tuple(configuration.values())))
                # Failures have the largest number there is.
                search.tell(configuration, found if found < FAILED else None)

    return OptAlgWrapper(Asking())


FAILED = 1e20  # Kernel Tuner's objective of what failed is above this
