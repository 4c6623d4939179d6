"""Kernels of a variant in the order in which they run: repetitions, counters, swapped arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launchwise.workloads.arguments import Repeated, Step
from launchwise.workloads.parts import Variant
from launchwise.workloads.spec import Spec

MOST_LAUNCHES = 100_000
"""Most launches of one run: more is a mistake in a count."""


@dataclass(frozen=True)
class Planned:
    """One launch of a run."""

    # What is launched.
    step: Step
    # Place of the step in its variant.
    place: int
    # Values of the counters around it.
    counters: Mapping[str, int]
    # Names of arrays to the names that are passed in their place, for those that are swapped.
    passed: Mapping[str, str]


def swapped_in(variant: Variant) -> list[tuple[str, str]]:
    """Pairs of arrays that a variant swaps."""
    pairs = [each.swap for each in (variant, *variant.kernels)]
    return [pair for pair in pairs if pair is not None]


def planned(spec: Spec, variant: Variant, names: Mapping[str, Any]) -> list[Planned]:
    """Launches of a variant for the values of a problem and a configuration.

    Raises
    ------
    ValueError
        When a count cannot be evaluated, is negative or too large.
    """
    made: list[Planned] = []
    swaps = _Swaps()
    for outer in swaps.repeated(spec, variant, names):
        for place, step in enumerate(variant.steps):
            for inner in swaps.repeated(spec, step, {**names, **outer}):
                if len(made) == MOST_LAUNCHES:
                    raise ValueError(f"more than {MOST_LAUNCHES} launches in a run")
                made.append(Planned(step, place, {**outer, **inner}, swaps.passed()))
    return made


class _Swaps:
    """Which arrays stand for which at the moment."""

    def __init__(self) -> None:
        self._passed: dict[str, str] = {}

    def passed(self) -> dict[str, str]:
        """Names to the names that stand for them now."""
        return {name: other for name, other in self._passed.items() if name != other}

    def repeated(
        self, spec: Spec, part: Repeated, names: Mapping[str, Any]
    ) -> Iterator[dict[str, int]]:
        """Counters of each repetition; arrays are swapped before all but the first one."""
        for number, counters in enumerate(_counted(spec, list(part.repeat.items()), names)):
            if number and part.swap is not None:
                one, other = part.swap
                first, second = self._passed.get(one, one), self._passed.get(other, other)
                self._passed |= {one: second, other: first}
            yield counters


def _counted(
    spec: Spec, counters: list[tuple[str, str]], names: Mapping[str, Any]
) -> Iterator[dict[str, int]]:
    if not counters:
        yield {}
        return
    (name, text), *rest = counters
    count = int(spec.value(text, names))
    if not 0 <= count <= MOST_LAUNCHES:
        raise ValueError(f"repeat.{name}: {count} repetitions (allowed: 0 to {MOST_LAUNCHES})")
    for step in range(count):
        for more in _counted(spec, rest, {**names, name: step}):
            yield {name: step, **more}
