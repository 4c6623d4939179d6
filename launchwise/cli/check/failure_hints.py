"""What a failed launch on the CPU device, or a wrong result, may come from."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from launchwise.workloads.device import Launch
from launchwise.workloads.parts import UNKNOWN_GPU, WARP_SIZE
from launchwise.workloads.spec import Spec

_CEIL_DIV = re.compile(r"ceil_div\(([^,()]+), ([^,()]+)\)")


def hint(
    reason: str, spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> str:
    """The key that a failure points to, to be added to its reason; '' for none."""
    if "bytes of dynamic shared memory" in reason:
        return f"; shared_bytes of variants.{configuration['variant']} sets them"
    if "beyond the end of a buffer" in reason:
        names = {**UNKNOWN_GPU, **problem, **configuration}
        for length, block in _divisions(spec, str(configuration["variant"])):
            try:
                size, side = (int(spec.value(text, names)) for text in (length, block))
            except ValueError:
                continue
            if side > 1 and size % side:
                named = block if block == str(side) else f"{block} = {side}"
                return (
                    f"; {length} = {size} is no multiple of {named}: the kernel needs a bound, "
                    f'or the spec constraints: ["{length} % {block} == 0"]'
                )
    return ""


def unfilled_warp(launch: Launch) -> str:
    """Remark on a block whose last warp is not full; '' for others."""
    threads = math.prod(launch.block)
    if threads % WARP_SIZE == 0:
        return ""
    return (
        f"; the block has {threads} threads, no multiple of {WARP_SIZE}: its last warp is not full"
    )


def doubt(spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]) -> str:
    """Why wrong results on the CPU say nothing about a GPU; '' where they do."""
    names = {**configuration, **problem}
    kinds = {argument.dtype(names).name for argument in spec.arguments.values()}
    if spec.variants[str(configuration["variant"])].is_triton and "bfloat16" in kinds:
        known = "Triton's interpreter does not compute in bfloat16"
        return f"{known}: check another type, or cast to float32 in the kernel"
    return ""


def _divisions(spec: Spec, variant: str) -> Iterator[tuple[str, str]]:
    for text in itertools.chain(*spec.variants[variant].grids):
        yield from ((match[1].strip(), match[2].strip()) for match in _CEIL_DIV.finditer(text))
