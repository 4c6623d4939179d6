"""Configurations of time steps, the best of the recorded H200 first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.workloads.space import feasible
from launchwise.workloads.spec import Spec

from .problem import Grid

FILE = Path(__file__).with_name("choices.json")  # made from recorded rows by `recorded`


def choice(grid: Grid, spec: Spec, gpu: Mapping[str, Any]) -> dict[str, Any]:
    """The first listed configuration that the GPU can run.

    ``gpu``: facts of the GPU that constraints read.
    Raises UserError when it can run none.
    """
    listed = json.loads(FILE.read_text(encoding="utf-8"))[f"{grid.dtype.name} {grid.order}"]
    # Constraints speak of cubes: rows are those of this grid, padded.
    problem = {"n": grid.pitch, "dtype": grid.dtype.name, "order": grid.order}
    for values in listed:
        whole = {**spec.neutral, **values}
        if feasible(spec, problem, whole, gpu):
            return values
    raise UserError("simulation", "device", "its GPU can run no kernel of the acoustic stencil")


def checked(configuration: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    """A configuration that a caller gave.

    Raises ValueError when it is none of a kernel that simulations can use.
    """
    variant = configuration.get("variant")
    if variant not in ("stream", "stream_tensor"):
        raise ValueError(
            f"configuration: variant must be stream or stream_tensor, not {variant!r}: others "
            "have no absorbing layer"
        )
    needed = [name for name in spec.variants[str(variant)].tunables if name != "row_padding"]
    for name in needed:
        if name not in configuration:
            raise ValueError(f"configuration: {name} is missing")
        if configuration[name] not in spec.tunables[name].values:
            allowed = ", ".join(map(str, spec.tunables[name].values))
            raise ValueError(
                f"configuration: {name} = {configuration[name]!r}, allowed are {allowed}"
            )
    return {"variant": variant, **{name: configuration[name] for name in needed}}
