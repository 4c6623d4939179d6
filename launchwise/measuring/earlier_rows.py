"""Rows from before a sweep: recorded ones that stay, to which its shards are joined, and others'.

A recorded row stays if its meaning has not changed since it was measured (see
:mod:`launchwise.measuring.source_states`), except those that shall be measured anew. Every problem
with something to measure has its baseline and its best row measured again, as anchors. Their rows
stay as well, so that rows of one visit remain comparable; how the anchors' times compare with
before, per card, is in the provenance: it says how well old and new rows compare.

A search begins with guesses of a model, and with rows of other GPUs (its prior): of the problem, or
of the nearest one that any of them measured (:func:`launchwise.workloads.near_problems.nearest`).

This runs beside the measuring process, not inside it: it loads pandas.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import read_json, write_json
from launchwise.experiment.method import Method, RowSelection
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.repeats import ONE_WAY, check_one_way
from launchwise.measuring.source_states import SourceState, predecessors, source_state, strangers
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema, prior_schema
from launchwise.tables.rows import selected
from launchwise.workloads.metrics import MEASURED, UNVERIFIED
from launchwise.workloads.near_problems import Prior, nearest
from launchwise.workloads.parts import Value
from launchwise.workloads.space import (
    Configuration,
    Problem,
    ProblemBlock,
    baseline,
    configurations,
    gpu_facts,
    narrowings,
)
from launchwise.workloads.spec import Spec, load_spec

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Extension:
    """Rows of an earlier sweep that stay."""

    spec: Spec
    # All rows, as launchwise.tables.measurements.measurement_schema declares them.
    recorded: pd.DataFrame
    facts: Mapping[str, Any]  # metadata of the recorded table
    anew: Collection[RowSelection] = ()  # rows that are measured again (see read_extension)
    unfit: Collection[tuple[str, str]] = ()  # commits and variants of rows that are no longer valid

    @cached_property
    def kept(self) -> pd.DataFrame:
        """Rows that are not measured again, except as anchors."""
        return self.recorded[~named(self.recorded, self.anew)].reset_index(drop=True)

    @cached_property
    def times(self) -> dict[Key, dict[Key, float | None]]:
        """Values of a problem to its configurations' values to their time, ms. None where a
        configuration has no time of several launches."""
        found: dict[Key, dict[Key, float | None]] = defaultdict(dict)
        count = len(self.spec.problem_columns)
        columns = [*self.spec.problem_columns, *self.spec.tunable_columns, "status", "time_ms"]
        for *names, status, time_ms in self.kept[columns].itertuples(index=False, name=None):
            known = time_ms if status == "ok" else None
            found[tuple(names[:count])][tuple(names[count:])] = known
        return found

    def missing(self, problem: Problem, listed: Iterable[Configuration]) -> list[Configuration]:
        """Configurations of ``listed`` to measure, anchors first; empty if every row exists."""
        known = self.times.get(tuple(problem.values()), {})
        new = [each for each in listed if tuple(each.values()) not in known]
        return [*self.anchors(problem), *new] if new else []

    def anchors(self, problem: Problem) -> list[Configuration]:
        """Baseline and best row of a problem, as far as they are among those that stay."""
        known = self.times.get(tuple(problem.values()), {})
        timed = {key: time_ms for key, time_ms in known.items() if time_ms is not None}
        first = tuple(baseline(self.spec).values())
        found = [first] if first in known else []
        if timed and (best := min(timed, key=timed.__getitem__)) != first:
            found.append(best)
        return [dict(zip(self.spec.tunable_columns, key, strict=True)) for key in found]

    def told(self, problem: Problem) -> list[tuple[Configuration, float | None]]:
        """Configurations and times that an explorer knows before it begins, anchors left out."""
        again = [tuple(each.values()) for each in self.anchors(problem)]
        columns = self.spec.tunable_columns
        return [
            (dict(zip(columns, key, strict=True)), time_ms)
            for key, time_ms in self.times.get(tuple(problem.values()), {}).items()
            if key not in again
        ]

    def check_labels(self, labels: Mapping[str, str], where: str | Path) -> None:
        """Reject another GPU, driver, toolkit or back-end before anything is measured. Another
        version shifts times by 2 to 3 %. Raises UserError, naming the column, what the rows have
        and what this machine has."""
        for name in ("gpu", *ONE_WAY):
            if strange := sorted(set(self.kept[name]) - {labels[name]}):
                message = (
                    f"recorded rows have {', '.join(strange)}, this machine {labels[name]}: "
                    "rows of both cannot be compared; measure all of them here"
                )
                raise UserError(where, name, message)


def read_extension(
    path: Path, folder: Path, spec: Spec, anew: Collection[RowSelection]
) -> Extension:
    """Rows of a recorded sweep (the table at ``path``) that an extension keeps.

    ``anew``: rows that are measured again: those with one of the given values in every given column
        of one of these (:func:`launchwise.experiment.study_checks.check_rows` says what is legal).
    Raises UserError when the kernels or the host code of rows that shall stay have changed, as
    ``folder`` has them now: says how many rows of which variants.
    """
    table, facts = read_table(path, measurement_schema(spec)), read_facts(path)
    try:
        states = {commit: SourceState(**each) for commit, each in facts.get("states", {}).items()}
    except (AttributeError, TypeError) as error:
        raise UserError(path, "states", "were not written by launchwise") from error
    made = set(zip(table["commit"], table["variant"], strict=True))
    unfit = strangers(made, states, source_state(folder, spec), predecessors(folder))
    extension = Extension(spec, table, facts, anew, unfit)
    pairs = extension.kept.groupby(["commit", "variant"], observed=True).size()
    if odd := [pair for pair in unfit if pair in pairs.index]:
        variants = sorted({variant for _, variant in odd})
        commits = sorted({commit[:7] for commit, _ in odd})
        message = (
            f"{pairs[odd].sum()} rows of {', '.join(variants)} (commits {', '.join(commits)}) "
            f"would not fit: their kernels or host code have changed; measure them anew "
            f"(sweeps.{spec.workload}.anew), or vouch for them in {folder}/predecessors.yaml"
        )
        raise UserError(path, "variant", message)
    return extension


def named(table: pd.DataFrame, anew: Collection[RowSelection]) -> pd.Series:
    """Which rows of a sweep one of the selections names: True or False for each."""
    found = pd.Series(False, index=table.index)
    for selection in anew:
        found |= selected(table, selection)
    return found


def extended(
    extension: Extension, new: pd.DataFrame, facts: Mapping[str, Any], method: Mapping[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Recorded rows and ``new`` ones, with their facts.

    A recorded row is replaced only if it was to be measured anew, and not by one that stopped early
    or failed unless it had itself. Recorded rows that no longer fit are left out, measured again or
    not.

    ``facts``: of the new rows: ``shards`` and ``states``. ``method``: how they were measured.
    Returns the rows, sorted by key, and the facts of both with one more entry of ``joined``: when,
    how many rows and problems, how, and what the anchors tell of each card (:func:`anchor_facts`).
    Where ``new`` was recorded before, table and facts are as recorded.
    """
    spec, old = extension.spec, extension.facts
    if new.empty or _is_recorded(extension, new):
        return extension.recorded, dict(old)
    made = zip(extension.recorded["commit"], extension.recorded["variant"], strict=True)
    stay = extension.recorded.loc[[pair not in extension.unfit for pair in made]]
    told = pd.MultiIndex.from_frame(stay.loc[~named(stay, extension.anew), spec.key_columns])
    anchors = pd.MultiIndex.from_frame(new[spec.key_columns]).isin(told)
    both = pd.concat([stay, new[~anchors]], ignore_index=True)
    # One launch must not replace many.
    both = both.assign(whole=both["status"] == "ok").sort_values("whole", kind="stable")
    both = both.drop_duplicates(spec.key_columns, keep="last").drop(columns="whole")
    entry = {
        "first_measured_at": min(new["measured_at"]),
        "last_measured_at": max(new["measured_at"]),
        "rows": len(both) - len(stay),
        "rows_anew": int((~anchors).sum()) - (len(both) - len(stay)),
        "rows_left_out": len(extension.recorded) - len(stay),
        "problems": len(new[spec.problem_columns].drop_duplicates()),
        "method": dict(method),
        "anew": [dict(each) for each in extension.anew],
        "cards": anchor_facts(extension, new, float(method["drift"])),
    }
    merged = {
        "shards": [*old.get("shards", []), *facts["shards"]],
        "states": {**old.get("states", {}), **facts["states"]},
        "joined": [*old.get("joined", []), entry],
    }
    return both.sort_values(spec.key_columns, ignore_index=True), merged


def _is_recorded(extension: Extension, new: pd.DataFrame) -> bool:
    """Whether an earlier run joined these rows: all but anchors are there as they are."""
    keys = extension.spec.key_columns
    told = pd.MultiIndex.from_frame(extension.kept[keys])
    others = new[~pd.MultiIndex.from_frame(new[keys]).isin(told)]
    marks = [*keys, "measured_at"]
    return len(others[marks].merge(extension.recorded[marks])) == len(others)


def anchor_facts(extension: Extension, new: pd.DataFrame, drift: float) -> dict[str, Any]:
    """Ratios of the anchors per card that measured the new rows: number of anchors with a time then
    and now, lowest, median and highest ratio (time now / then), and the number of those off by more
    than the method's ``drift``."""
    keys = extension.spec.key_columns
    then = extension.recorded.loc[extension.recorded["status"] == "ok", [*keys, "time_ms"]]
    now = new.loc[new["status"] == "ok", [*keys, "time_ms", "card"]]
    both = then.merge(now, on=keys, suffixes=("_then", "_now"))
    both = both.assign(ratio=both["time_ms_now"] / both["time_ms_then"])
    return {
        str(card): {
            "anchors": len(rows),
            "lowest_ratio": float(rows["ratio"].min()),
            "median_ratio": float(rows["ratio"].median()),
            "highest_ratio": float(rows["ratio"].max()),
            "beyond_drift": int(((rows["ratio"] - 1).abs() > drift).sum()),
        }
        for card, rows in both.groupby("card")
    }


def lacks_anything(
    spec: Spec,
    profile: GpuProfile,
    problems: list[Problem],
    blocks: list[ProblemBlock],
    method: Method,
    extension: Extension,
) -> bool:
    """Whether a recorded sweep lacks a row of these problems; an explorer always may."""
    if method.strategy.searches:
        return True
    facts, parts = gpu_facts(profile.model_dump()), narrowings(spec, blocks)
    return any(
        extension.missing(
            problem, configurations(spec, problem, facts, parts.get(tuple(problem.values())))
        )
        for problem in problems
    )


def gather(
    folder: Path,
    shards: Sequence[str | Path],
    extends: Mapping[str, Any] | None,
    method: dict[str, Any],
    output: str | Path,
) -> None:
    """Write one table, sorted by key, of every row in ``shards``, measured by ``method``.
    ``extends``: recorded sweep (``path``) whose rows stay, except those measured ``anew``. Raises
    UserError when a table cannot be read, or rows differ in driver, toolkit or back-end."""
    spec = load_spec(folder)
    schema = measurement_schema(spec)
    tables = [read_table(path, schema) for path in shards]
    facts = [read_facts(path) for path in shards]
    states = {commit: state for each in facts for commit, state in each.pop("states", {}).items()}
    found: dict[str, Any] = {"shards": facts, "states": states}
    rows = [table for table in tables if len(table)]
    if extends is not None:
        extension = read_extension(Path(extends["path"]), folder, spec, extends["anew"])
        new = pd.concat(rows, ignore_index=True) if rows else tables[0]
        merged, found = extended(extension, new, found, method)
    else:
        merged = pd.concat(rows, ignore_index=True).sort_values(spec.key_columns, ignore_index=True)
    check_one_way(merged, output)
    write_table(output, merged, schema, found)


def write_prior(
    path: str | Path,
    spec: Spec,
    sweeps: Mapping[str, pd.DataFrame],
    problems: Iterable[Problem],
    gpus: Mapping[str, Mapping[str, Any]],
) -> int:
    """Write other GPUs' rows (``sweeps``) of each problem to be measured, or of the nearest one,
    and what is known of these GPUs (``gpus``, see :mod:`launchwise.search.candidates`). Returns the
    number of problems whose prior is another problem's."""
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
    write_table(path, table[list(schema.columns)], schema, {"priors": taken, "gpus": gpus})
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
    facts = read_facts(path)
    asked = [each["problem"] for each in facts["priors"]]
    found: dict[tuple[Value, ...], Prior] = {
        tuple(problem[name] for name in spec.problem_columns): [] for problem in asked
    }
    groups: Any = table.groupby([*spec.problem_columns, "gpu"], sort=False, observed=True)
    for (*problem, gpu), rows in groups:
        configurations = rows[spec.tunable_columns].astype(object).to_numpy().tolist()
        times = [None if math.isnan(time_ms) else time_ms for time_ms in rows["time_ms"].tolist()]
        told = list(zip(configurations, times, strict=True))
        found[tuple(problem)].append((facts.get("gpus", {}).get(gpu, {}), told))

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
