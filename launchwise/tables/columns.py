"""Columns that several tables share: kinds of columns, problem, configuration, origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from launchwise.tables.schema import (
    FINITE,
    TIMES,
    Column,
    Demand,
    above,
    at_least,
    at_most,
    one_of,
)
from launchwise.workloads.metrics import OLDEST, TIMED, Metric
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec


def text_column(*demands: Demand, **options: Any) -> Column:
    """Column of texts."""
    return Column("str", demands, **options)


def real_column(*demands: Demand, **options: Any) -> Column:
    """Column of real numbers."""
    # NaN marks a missing value; infinity is an error.
    return Column("float64", (*demands, FINITE), **options)


POSITIVE = above(0)


def ratio_columns(names: Iterable[str]) -> dict[str, Column]:
    """Columns of ratios, each with the limits of its 95 % interval; empty where unknown."""
    column = Column("float64", [POSITIVE], nullable=True)
    return {f"{name}{end}": column for name in names for end in ("", "_low", "_high")}


def whole_column(minimum: int = 0, **options: Any) -> Column:
    """Column of whole numbers of at least ``minimum``."""
    return Column("int64", [at_least(minimum)], **options)


def value_column(values: Sequence[Value], **options: Any) -> Column:
    """Column that holds some of ``values``: texts if one of them is, else whole numbers."""
    kind = "str" if any(isinstance(value, str) for value in values) else "int64"
    return Column(kind, [one_of(values)], **options)


def problem_schema(spec: Spec) -> dict[str, Column]:
    """Columns that name a problem of ``spec``."""
    columns = {}
    for name, parameter in spec.problem.items():
        if parameter.values is not None:
            columns[name] = value_column(parameter.values)
        else:
            columns[name] = Column("int64", _bounds(parameter.minimum, parameter.maximum))
    return columns


def _bounds(least: float | None, most: float | None) -> list[Demand]:
    demands = [] if least is None else [at_least(least)]
    return demands if most is None else [*demands, at_most(most)]


def configuration_schema(spec: Spec) -> dict[str, Column]:
    """Columns that name a configuration of ``spec``.

    A table without the column is older than the tunable (see :attr:`.Column.older`).
    """
    tunables = {
        name: value_column(
            list(dict.fromkeys([tunable.neutral, *tunable.values])),
            older={
                "neutral": tunable.neutral,
                "variants": [each for each, one in spec.variants.items() if name in one.tunables],
            },
        )
        for name, tunable in spec.tunables.items()
    }
    return {"variant": value_column(list(spec.variants)), **tunables}


def key_schema(spec: Spec) -> dict[str, Column]:
    """Columns that name a row: GPU, problem, configuration."""
    return {"gpu": text_column(), **problem_schema(spec), **configuration_schema(spec)}


TIMED_ROWS = Demand(
    "must be given exactly where status is ok, slow or unverified",
    lambda table: table["time_ms"].notna() == table["status"].isin(TIMED),
    "time_ms",
)
"""Rows have a time exactly where their status says so."""


def stage_schema(spec: Spec) -> dict[str, Column]:
    """Columns with the time of each stage of ``spec``, ms; none where it has no stages."""
    return {name: real_column(at_least(0), nullable=True) for name in spec.stage_columns}


def finding_schema(spec: Spec) -> dict[str, Column]:
    """Columns of check results beside the largest error."""
    return {name: real_column(nullable=True) for name in spec.findings}


def metric_columns(metrics: Iterable[Metric]) -> dict[str, Column]:
    """Columns of metrics; tables of a schema version below ``since`` lack a newer one."""
    return {each.name: _metric_column(each) for each in metrics}


def _metric_column(metric: Metric) -> Column:
    older = {"neutral": metric.absent, "since": metric.since} if metric.since > OLDEST else {}
    if metric.kind == "times":
        return Column("object", [TIMES], older=older)
    if metric.kind == "text":
        return text_column(*([one_of(metric.one_of)] if metric.one_of else []), older=older)
    if metric.kind == "whole":
        return whole_column(int(metric.least or 0), older=older)
    demands = [] if metric.above is None else [above(metric.above)]
    demands += _bounds(metric.least, metric.most)
    return real_column(*demands, nullable=True, older=older)
