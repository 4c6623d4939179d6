"""How a configuration is launched: block, grid and dynamic shared memory of each of its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launchwise.workloads.spec import Spec

Size = tuple[int, int, int]


@dataclass(frozen=True)
class LaunchShape:
    """Launch of one kernel.

    Parameters
    ----------
    kernel
        Name of its ``__global__`` function as the spec gives it; empty where host code knows it.
    block, grid
        Threads per block and blocks per grid in x, y, z.
    shared_bytes
        Dynamic shared memory per block, bytes; None where host code computes it and the spec does
        not say.
    """

    kernel: str
    block: Size
    grid: Size
    shared_bytes: int | None


def launch_shapes(
    spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> list[LaunchShape]:
    """Launches of a configuration in the order in which they run.

    Parameters
    ----------
    configuration
        The variant and the tunables that it has; others may be left out.

    Returns
    -------
    The main kernel alone where host code launches several, and none where the host computes.
    """
    variant = spec.variants[str(configuration["variant"])]
    whole = {**spec.neutral, **configuration}

    def number(text: Any) -> int:
        return int(spec.value(text, problem, whole))

    def size(texts: Any) -> Size:
        x, y, z = map(number, texts)
        return x, y, z

    if variant.steps:
        return [
            LaunchShape(one.kernel, size(one.block), size(one.grid), number(one.shared_bytes))
            for one in variant.steps
        ]
    if variant.block is None or variant.grid is None:
        return []
    block, grid = size(variant.block), size(variant.grid)
    said = "shared_bytes" in variant.model_fields_set
    return [LaunchShape("", block, grid, number(variant.shared_bytes) if said else None)]
