"""What a search begins with: guesses of a model, and rows of other GPUs (its prior).

Of a problem that other GPUs measured, the prior is their rows of it. Of another problem it is their
rows of the nearest problem that any of them measured
(:func:`launchwise.workloads.near_problems.nearest`).

This runs beside the measuring process, not inside it: it loads pandas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import read_json, write_json
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import prior_schema
from launchwise.workloads.metrics import MEASURED, UNVERIFIED
from launchwise.workloads.near_problems import Prior, nearest
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Configuration, Problem
from launchwise.workloads.spec import Spec


def write_prior(
    path: str | Path, spec: Spec, sweeps: Mapping[str, pd.DataFrame], problems: Iterable[Problem]
) -> int:
    """Write other GPUs' rows (``sweeps``) of each problem to be measured, or of the nearest one.
    Returns the number of problems whose prior is another problem's."""
    tables = {gpu: _usable(rows, spec) for gpu, rows in sweeps.items()}
    known = {gpu: _by_problem(rows, spec) for gpu, rows in tables.items()}
    measured = list(dict.fromkeys(key for groups in known.values() for key in groups))
    pieces, taken = [], []
    for problem in problems:
        near = nearest(tuple(problem[name] for name in spec.problem_columns), measured)
        found = {gpu: groups[near] for gpu, groups in known.items() if near in groups}
        pieces += [rows.assign(gpu=gpu, **problem) for gpu, rows in found.items()]
        from_problem = dict(zip(spec.problem_columns, near, strict=True)) if near else None
        taken.append({"problem": problem, "from": from_problem, "gpus": list(found)})
    schema = prior_schema(spec)
    table = pd.concat(pieces, ignore_index=True) if pieces else schema.empty()
    write_table(path, table[list(schema.columns)], schema, {"priors": taken})
    return sum(each["from"] not in (None, each["problem"]) for each in taken)


def _usable(rows: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Rows that say how fast a configuration is, or that it fails: time_ms is NaN where it does."""
    kept = rows[rows["status"] != UNVERIFIED]
    times = kept["time_ms"].where(kept["status"].isin(MEASURED))
    return kept[[*spec.problem_columns, *spec.tunable_columns]].assign(time_ms=times)


def _by_problem(rows: pd.DataFrame, spec: Spec) -> dict[tuple[Value, ...], pd.DataFrame]:
    """Values of each problem of which something has a time, to its rows."""
    groups: Any = rows.groupby(spec.problem_columns, sort=False, observed=True)
    return {
        tuple(value if isinstance(value, str) else int(value) for value in values): part
        for values, part in groups
        if part["time_ms"].notna().any()
    }


def read_prior(path: Path, spec: Spec) -> Callable[[Problem], Prior]:
    """Rows of other GPUs, by problem. The function that is returned raises UserError for a problem
    that the file was not written for. Raises UserError when the file is missing or is no prior of
    this workload."""
    table = read_table(path, prior_schema(spec))
    asked = [each["problem"] for each in read_facts(path)["priors"]]
    found: dict[tuple[Value, ...], Prior] = {
        tuple(problem[name] for name in spec.problem_columns): [] for problem in asked
    }
    groups: Any = table.groupby([*spec.problem_columns, "gpu"], sort=False, observed=True)
    for (*problem, _), rows in groups:
        configurations = rows[spec.tunable_columns].astype(object).to_numpy().tolist()
        times = [None if math.isnan(time_ms) else time_ms for time_ms in rows["time_ms"].tolist()]
        found[tuple(problem)].append(list(zip(configurations, times, strict=True)))

    def of(problem: Problem) -> Prior:
        key = tuple(problem[name] for name in spec.problem_columns)
        if key not in found:
            raise UserError(path, "priors", f"has none for {assigned(problem)}")
        return found[key]

    return of


def write_guesses(
    path: str | Path, model: str, guesses: list[tuple[Problem, list[Configuration]]]
) -> None:
    """Write what ``model`` (its folder) recommends for each problem, best first."""
    listed = [
        {"problem": problem, "configurations": configurations}
        for problem, configurations in guesses
    ]
    write_json(path, {"model": model, "guesses": listed})


def read_guesses(path: Path) -> Callable[[Problem], list[Configuration]]:
    """Guesses for one problem. The function that is returned raises UserError for a problem that
    the file does not hold. Raises UserError when the file is missing or holds no guesses."""
    content: Any = read_json(path)
    try:
        known = {
            tuple(sorted(each["problem"].items())): list(each["configurations"])
            for each in content["guesses"]
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(path, "guesses", "is missing or is not a list of guesses") from error

    def of(problem: Problem) -> list[Configuration]:
        key = tuple(sorted(problem.items()))
        if key not in known:
            raise UserError(path, "guesses", f"has none for {assigned(problem)}")
        return known[key]

    return of
