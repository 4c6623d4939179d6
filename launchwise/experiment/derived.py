"""Sweep and study of a workload that its spec describes whole and that brings none of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from launchwise.experiment.method import ProblemBlock, Sweep
from launchwise.experiment.study import ProblemSplit, Study
from launchwise.workloads.parts import ProblemParameter, Value
from launchwise.workloads.spec import Spec

SIZES = 5
"""Sizes per integer parameter, evenly spread on a log scale."""

MOST_CROSSED = 2
"""Most integer parameters whose sizes are crossed; more than that grow together."""

HELD_OUT_EVERY = 3
"""One of so many sizes is tested and not trained on."""

MODELS = ["learnt", "lightgbm", "forest"]


def derived_sweep(spec: Spec) -> Sweep:
    """Problems of a workload without ``sweep.yaml``.

    Five sizes of each integer, evenly spread between its limits on a log scale; every value of each
    category. Up to two integers are crossed; more grow together.

    Raises
    ------
    ValueError
        When an integer has no maximum to spread sizes up to.
    """
    sizes = {
        name: _sizes(name, parameter)
        for name, parameter in spec.problem.items()
        if parameter.type == "integer"
    }
    rest = {
        name: list(parameter.values or [])
        for name, parameter in spec.problem.items()
        if name not in sizes
    }
    if len(sizes) <= MOST_CROSSED:
        return Sweep(problems=[_block(spec, {**sizes, **rest})])
    longest = max(map(len, sizes.values()))
    together = [
        {name: [values[place * len(values) // longest]] for name, values in sizes.items()}
        for place in range(longest)
    ]
    return Sweep(problems=[_block(spec, {**each, **rest}) for each in together])


def _block(spec: Spec, values: Mapping[str, list[Value]]) -> dict[str, Any]:
    """A block of problems, in the order of the spec."""
    return {name: values[name] for name in spec.problem}


def _sizes(name: str, parameter: ProblemParameter) -> list[Value]:
    if parameter.values is not None:
        listed = sorted(value for value in parameter.values if isinstance(value, int))
        count = min(SIZES, len(listed))
        places = [round(i * (len(listed) - 1) / max(1, count - 1)) for i in range(count)]
        return [listed[place] for place in dict.fromkeys(places)]
    if parameter.maximum is None:
        raise ValueError(f"problem.{name}: give a maximum, or list sizes in sweep.yaml")
    low, high = max(1, parameter.minimum or 1), parameter.maximum
    steps = [math.log(low) + math.log(high / low) * i / (SIZES - 1) for i in range(SIZES)]
    return list(dict.fromkeys(min(high, max(low, round(math.exp(step)))) for step in steps))


def derived_study(spec: Spec, problems: list[dict[str, Any]]) -> Study | None:
    """Study of a workload without one: every third size held out, two kinds of trees and a model.

    Parameters
    ----------
    problems
        Problems that GPUs measure.

    Returns
    -------
    None where no parameter has three sizes: then nothing can be held out between others.
    """
    for name, parameter in spec.problem.items():
        sizes = sorted({problem[name] for problem in problems}) if problems else []
        if parameter.type != "integer" or len(sizes) < HELD_OUT_EVERY:
            continue
        test = sizes[1:-1:HELD_OUT_EVERY]
        split = ProblemSplit(
            kind="problems",
            title="held-out sizes between measured ones",
            train={name: [size for size in sizes if size not in test]},
            test={name: test},
        )
        tunables = ", ".join(spec.tunables)
        return Study(
            workload=spec.workload,
            title=spec.title,
            question=f"Which {tunables} should {spec.title} use?",
            splits={"interpolation": split},
            models=MODELS,
        )
    return None


def problems_in(blocks: Iterable[ProblemBlock]) -> list[dict[str, Any]]:
    """Values of each problem of blocks of a sweep."""
    found = []
    for block in blocks:
        names = [name for name in block if name not in ("only", "constraints")]
        values = [block[name] for name in names]
        found += [dict(zip(names, each, strict=True)) for each in itertools.product(*values)]
    return found
