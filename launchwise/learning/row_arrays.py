"""Arrays over measured rows: constants of GPUs, least times, regrets, configuration numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.splits import case_numbers
from launchwise.tables.rows import least_by
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec


def keys_of(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Values of some columns, a tuple per row."""
    return list(zip(*(rows[name].tolist() for name in columns), strict=True))


def of_gpus(rows: pd.DataFrame, facts: Mapping[str, Mapping[str, float]]) -> dict[str, np.ndarray]:
    """Constants of each row's GPU, by name: float64, shape (rows,).

    ``facts``: GPU to its facts, every GPU of ``rows`` among them; all have the same names.
    """
    codes, gpus = pd.factorize(rows["gpu"])
    return {
        name: np.array([facts[gpu][name] for gpu in gpus], dtype=float)[codes]
        for name in next(iter(facts.values()))
    }


def least_bytes_ms(
    rows: pd.DataFrame, columns: Columns, spec: Spec, profiles: Mapping[str, GpuProfile]
) -> np.ndarray:
    """Time of the problems' least bytes at the copy bandwidth: ms, shape (rows,).

    ``columns`` evaluates expressions over the problems of ``rows``.
    """
    rates = {gpu: {"gbs": one.ceilings.copy_bandwidth_gbs} for gpu, one in profiles.items()}
    moved_bytes = np.asarray(columns.value(spec.work.bytes), dtype=float)
    return np.asarray(moved_bytes / of_gpus(rows, rates)["gbs"] / 1e6)


def arrays(rows: pd.DataFrame, spec: Spec, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Columns as plain arrays: text as objects, numbers as they are."""
    wanted = [*spec.problem_columns, *spec.tunable_columns] if names is None else list(names)
    arrays = {name: rows[name].to_numpy() for name in wanted}
    return {
        name: values if values.dtype.kind in "iuf" else values.astype(object)
        for name, values in arrays.items()
    }


def records_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as mappings."""
    return [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]


def regrets(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """log(time / best time of the same case) of each row: 0 is the best. Shape (rows,)."""
    codes = case_numbers(rows, spec)
    logs = np.log(rows["time_ms"].to_numpy(dtype=float))
    return logs - least_by(codes, logs)[codes]


def configuration_codes(rows: pd.DataFrame, columns: list[str], spec: Spec) -> np.ndarray:
    """Number each row's values in some tunables, the same way in every table.

    Returns int64, shape (rows,): positions of the values in the spec, as digits of mixed radix.
    ``columns``: some of :attr:`Spec.tunable_columns`. Raises ValueError when a row holds a value
    that the spec does not have.
    """
    codes = np.zeros(len(rows), dtype=np.int64)
    for name in columns:
        if name == "variant":
            allowed: list[Value] = list(spec.variants)
        else:
            tunable = spec.tunables[name]
            allowed = list(dict.fromkeys([tunable.neutral, *tunable.values]))
        places = {value: place for place, value in enumerate(allowed)}
        # Few distinct values: find those in the spec, then spread them.
        numbers, distinct = pd.factorize(rows[name].array)
        found = [places.get(value, -1) for value in distinct.tolist()]
        if -1 in found:
            strange = rows[name].iloc[int((numbers == found.index(-1)).argmax())]
            raise ValueError(f"{name} holds {strange}, unknown to the spec")
        codes *= len(allowed)
        if len(found) > 1:
            codes += np.array(found, dtype=np.int64)[numbers]
        elif found:
            codes += found[0]
    return codes
