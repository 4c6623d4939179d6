"""Columns that several tables share: kinds of columns, problem, configuration, origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandera.pandas as pa

from launchwise.workloads.metrics import OLDEST, TIMED, Metric
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec


def text_column(**options: Any) -> pa.Column:
    """Column of texts."""
    return pa.Column(str, **options)


def real_column(*checks: pa.Check, **options: Any) -> pa.Column:
    """Column of real numbers."""
    # NaN marks a missing value; infinity is an error.
    finite = pa.Check(lambda column: ~np.isinf(column), error="must be finite")
    return pa.Column(float, checks=[*checks, finite], **options)


POSITIVE = pa.Check.gt(0)


def ratio_columns(names: Iterable[str]) -> dict[str, pa.Column]:
    """Columns of ratios, each with the limits of its 95 % interval; empty where unknown."""
    column = pa.Column(float, checks=POSITIVE, nullable=True)
    return {f"{name}{end}": column for name in names for end in ("", "_low", "_high")}


def whole_column(minimum: int = 0, **options: Any) -> pa.Column:
    """Column of whole numbers of at least ``minimum``."""
    return pa.Column("int64", checks=pa.Check.ge(minimum), **options)


def _are_times(row: Any) -> bool:
    times = np.asarray(row, dtype=float)
    return times.ndim == 1 and bool(np.all(np.isfinite(times) & (times > 0)))


_EVERY_TIME = pa.Check(
    lambda column: column.map(_are_times), error="must hold positive, finite numbers"
)


def value_column(values: Sequence[Value], metadata: dict[str, Any] | None = None) -> pa.Column:
    """Column that holds some of ``values``: texts if one of them is, else whole numbers."""
    kind: Any = str if any(isinstance(value, str) for value in values) else "int64"
    return pa.Column(kind, checks=pa.Check.isin(values), metadata=metadata)


def problem_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns that name a problem of ``spec``."""
    columns = {}
    for name, parameter in spec.problem.items():
        if parameter.values is not None:
            columns[name] = value_column(parameter.values)
        else:
            checks = [
                pa.Check.ge(parameter.minimum) if parameter.minimum is not None else None,
                pa.Check.le(parameter.maximum) if parameter.maximum is not None else None,
            ]
            columns[name] = pa.Column("int64", checks=[check for check in checks if check])
    return columns


def configuration_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns that name a configuration of ``spec``.

    Their metadata say what a table without the column means, because it is older than the tunable:
    ``neutral`` in every row, and no row of the ``variants`` that have the tunable.
    """
    tunables = {
        name: value_column(
            list(dict.fromkeys([tunable.neutral, *tunable.values])),
            {
                "neutral": tunable.neutral,
                "variants": [each for each, one in spec.variants.items() if name in one.tunables],
            },
        )
        for name, tunable in spec.tunables.items()
    }
    return {"variant": value_column(list(spec.variants)), **tunables}


def timed_check() -> pa.Check:
    """Check that rows have a time exactly where their status says so."""
    return pa.Check(
        lambda table: table["time_ms"].notna() == table["status"].isin(TIMED),
        name="time_ms",
        error="must be given exactly where status is ok, slow or unverified",
    )


def stage_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns with the time of each stage of ``spec``, ms; none where it has no stages."""
    return {name: real_column(pa.Check.ge(0), nullable=True) for name in spec.stage_columns}


def finding_schema(spec: Spec) -> dict[str, pa.Column]:
    """Columns of check results beside the largest error."""
    return {name: real_column(nullable=True) for name in spec.findings}


def metric_columns(metrics: Iterable[Metric]) -> dict[str, pa.Column]:
    """Columns of metrics.

    The metadata of one that is newer than the oldest tables say what a table without it means:
    ``neutral`` in every row of a table whose schema version is below ``since``.
    """
    return {each.name: _metric_column(each) for each in metrics}


def _metric_column(metric: Metric) -> pa.Column:
    later = {"neutral": metric.absent, "since": metric.since} if metric.since > OLDEST else None
    if metric.kind == "times":
        return pa.Column(object, checks=_EVERY_TIME, metadata=later)
    if metric.kind == "text":
        known = pa.Check.isin(metric.one_of) if metric.one_of else None
        return text_column(checks=known, metadata=later)
    if metric.kind == "whole":
        return whole_column(int(metric.least or 0), metadata=later)
    checks = []
    if metric.above is not None:
        checks.append(pa.Check.gt(metric.above))
    if metric.least is not None and metric.most is not None:
        checks.append(pa.Check.in_range(metric.least, metric.most))
    elif metric.least is not None:
        checks.append(pa.Check.ge(metric.least))
    elif metric.most is not None:
        checks.append(pa.Check.le(metric.most))
    return real_column(*checks, nullable=True, metadata=later)
