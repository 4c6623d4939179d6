"""Series of problems that differ in one size parameter; shared by the methods that use one.

A *series* is what was measured on one GPU of problems that differ in one integer parameter, their
*size*, and in nothing else. A case of an unknown series is answered from the nearest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.learning.features import Domain
from launchwise.learning.regression import distances
from launchwise.learning.splits import Case, case_codes, cases_in
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec


@dataclass(frozen=True)
class Series:
    """Values that all problems of a series share.

    ``gpu``, ``gpu_features``: the GPU by name and by its attributes (see
    :attr:`Domain.gpu_features`).
    ``others``: the problem's parameters but the size.
    """

    gpu: str
    gpu_features: list[float]
    others: dict[str, Value]

    def __str__(self) -> str:
        return ", ".join([self.gpu, *(f"{name}={value}" for name, value in self.others.items())])


@dataclass(frozen=True)
class BySize:
    """Best configuration of each size of a series."""

    series: Series
    sizes: list[int]  # ascending, above 0
    configurations: pd.DataFrame  # the tunables' columns, one row per size

    @classmethod
    def of(cls, series: Series, rows: pd.DataFrame, size: str, spec: Spec) -> BySize:
        rows = rows.sort_values(size)
        return cls(series, rows[size].tolist(), rows[spec.tunable_columns].reset_index(drop=True))

    def plain(self) -> dict[str, Any]:
        held = {"series": asdict(self.series), "sizes": self.sizes}
        return {**held, "configurations": self.configurations.to_dict("list")}

    @classmethod
    def read(cls, plain: dict[str, Any]) -> BySize:
        series, configurations = Series(**plain["series"]), pd.DataFrame(plain["configurations"])
        return cls(series, list(plain["sizes"]), configurations)


def size_parameter(spec: Spec, name: str | None) -> str:
    """``name``, or the first integer parameter of the problem where there is none. Raises UserError
    when it is no integer parameter of the problem."""
    allowed = [one for one, parameter in spec.problem.items() if parameter.type == "integer"]
    return _named("size", "integer parameter of the problem", name, allowed)


def integer_choice(spec: Spec, name: str | None) -> str:
    """``name``, or the first tunable whose values are integers where there is none. A derived name
    that depends on tunables alone, such as a number of levels, is a choice as well: it sorts
    configurations into kinds. Raises UserError when it is neither."""
    tunables = [
        one
        for one, tunable in spec.tunables.items()
        if all(isinstance(value, int) for value in tunable.values)
    ]
    known = set(spec.tunable_columns)
    derived = [one for one in spec.derived if known.issuperset(spec.formulas.raw_names(one))]
    allowed = [*tunables, *derived]
    return _named("choice", "integer tunable or name derived from tunables", name, allowed)


def choices_in(rows: pd.DataFrame, name: str, spec: Spec) -> np.ndarray:
    """Value of an :func:`integer_choice` in each row: int64, shape (rows,)."""
    if name in rows:
        return rows[name].to_numpy(dtype="int64")
    raw = list(spec.formulas.raw_names(name))
    values = rows[raw].itertuples(index=False, name=None)
    found = [spec.formulas.value(name, dict(zip(raw, row, strict=True))) for row in values]
    return np.array(found, dtype="int64")


def _named(key: str, what: str, name: str | None, allowed: list[str]) -> str:
    if name in allowed or (name is None and allowed):
        return name or allowed[0]
    raise UserError("config.yaml", f"models.parameters.{key}", unknown(what, name, allowed))


def split_series(
    rows: pd.DataFrame, domain: Domain, size: str
) -> list[tuple[Series, pd.DataFrame]]:
    """Each series of measured rows, with its rows, in order of first appearance."""
    others = [name for name in domain.spec.problem_columns if name != size]
    found = []
    for _, part in rows.groupby(["gpu", *others], sort=False, observed=True):
        first = cases_in(part.iloc[:1], domain.spec)[0]
        named = {name: first.problem[name] for name in others}
        series = Series(first.gpu, _features(domain, first.gpu), named)
        found.append((series, part.reset_index(drop=True)))
    return found


def nearest_series(known: Sequence[Series], case: Case, domain: Domain) -> int:
    """Index of the series to use for a case. One of its own GPU before one of another, then by the
    GPUs' attributes (distances as :func:`launchwise.learning.regression.distances` scales them), by
    how many of the other parameters differ, and by how far the numbers among them are apart."""
    points = np.array([one.gpu_features for one in known])
    away = distances(points, np.array([_features(domain, case.gpu)]))[0]
    foreign = [one.gpu != case.gpu for one in known]
    different = [sum(case.problem[name] != it for name, it in one.others.items()) for one in known]
    apart = [
        sum(_apart(case.problem[name], it) for name, it in one.others.items()) for one in known
    ]
    return int(np.lexsort((apart, different, away, foreign))[0])


def _features(domain: Domain, gpu: str) -> list[float]:
    known = domain.profiles[gpu].features()
    return [float(known[name]) for name in domain.gpu_features]


def _apart(one: Value, other: Value) -> float:
    if isinstance(one, str) or isinstance(other, str):
        return 0.0
    # Like the logarithm of the ratio, but 0 and what is negative have a place, too.
    return float(abs(np.arcsinh(one) - np.arcsinh(other)))


def by_nearness(sizes: Sequence[int], asked: Value) -> np.ndarray:
    """Places of ``sizes`` (ascending, above 0) by distance in log(size), the smaller first in ties.
    int64, shape (sizes,)."""
    # Without rounding, two sizes as near would differ by an error of the logarithm.
    away = np.abs(np.log(np.asarray(sizes, dtype=float)) - np.log(float(asked))).round(12)
    return np.argsort(away, kind="stable")


def rows_of_cases(rows: pd.DataFrame, spec: Spec) -> list[tuple[Case, np.ndarray]]:
    """Each case of a table with the places of its rows (int64), in order of first appearance."""
    if rows.empty:
        return []
    codes, keys = case_codes(rows, spec)
    order = np.argsort(codes, kind="stable")
    pieces = np.split(order, np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1])
    return list(zip(cases_in(rows, spec), pieces, strict=True))


def places_in(wanted: Sequence[int], codes: np.ndarray) -> np.ndarray:
    """Place of each code's first appearance in ``wanted``, its length where it is not there."""
    known = pd.Index(list(dict.fromkeys(wanted)), dtype="int64")
    found = known.get_indexer(pd.Index(codes, dtype="int64"))
    return np.where(found < 0, len(known), found)
