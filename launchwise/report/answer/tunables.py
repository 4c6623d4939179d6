"""Sensitivity of the tunables: loss with one fixed value and all others free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.merit import geometric_mean
from launchwise.learning.row_arrays import arrays
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Section, Table, Text
from launchwise.report.fields import by_gpu, decimals, field, file_of, table_of
from launchwise.report.study_tables import StudyData
from launchwise.tables.rows import UNTOLD, is_baseline, row_numbers
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.space import gpu_facts
from launchwise.workloads.spec import Spec

LOSSES = ("problems", "loss_percent", "worst_loss_percent")  # Names of what `fixed_loss` returns


def fixed_loss(reached: np.ndarray) -> tuple[int, float, float]:
    """Cost of one value where another may be better: problems, mean and worst loss, %. ``reached``
    is the best time of each problem over the least time with the value."""
    mean, worst = geometric_mean(reached), float(reached.min())
    return len(reached), 100 * (1 / mean - 1), 100 * (1 / worst - 1)


def with_fractions(
    rows: pd.DataFrame, spec: Spec, statuses: Collection[str] = MEASURED
) -> pd.DataFrame:
    """Rows of one GPU with ``fraction``, the best time of the problem over the row's: NaN where the
    row has another status than ``statuses``, or tells nothing."""
    errors = pd.Series(rows.get("error", np.nan), rows.index)
    times = rows["time_ms"].where(rows["status"].isin(statuses) & ~(errors >= UNTOLD))
    best = times.groupby(row_numbers(rows, spec.problem_columns)).transform("min")
    return rows.assign(fraction=best / times)


def losses(rows: pd.DataFrame, spec: Spec, profile: GpuProfile) -> list[dict[str, Any]]:
    """Cost of one tunable value at every problem of a GPU.

    Of what only some variants have, only their rows count, and the loss is against the best of
    these: a slow variant is no fault of its tunables. Where a sweep is no full product, values were
    tried with settings of their own, and what these lose is no loss of the value. So problems count
    where two values were tried with all other settings of the fastest row, or the workload's
    constraints refuse that.

    ``rows``: all that was tried, as :func:`with_fractions` gives it.
    Returns ``tunable`` (``variant`` is one, too), ``value``, :data:`LOSSES` (:func:`fixed_loss`) of
    the problems where it was timed, ``asked``, the problems of ``rows``, and ``common``, whether
    it was timed at the most of them, and at the same as the other values that were. Tunables
    without two values are left out.
    """
    found = []
    facts = gpu_facts(profile.model_dump())
    asked = row_numbers(rows, spec.problem_columns).max(initial=-1) + 1
    # Rows are selected for each tunable: other columns would be carried about.
    rows = rows[[*spec.problem_columns, *spec.tunable_columns, "fraction"]]

    @cache
    def tried_with(*variants: str) -> Tried:
        return Tried.of(rows[rows["variant"].isin(variants)].reset_index(drop=True), spec)

    for name in spec.tunable_columns:
        tried = tried_with(*_having(name, spec))
        places, values = pd.factorize(tried.rows[name], sort=True)
        if len(values) < 2:
            continue
        best = _compared(tried, places, len(values), name, spec, facts)
        timed = ~np.isnan(best)
        sets = Counter(each.tobytes() for each in timed)
        most = max(timed, key=lambda each: (each.sum(), sets[each.tobytes()]))
        for value, of_value, known in zip(values.tolist(), best, timed, strict=True):
            if known.any():
                costs = dict(zip(LOSSES, fixed_loss(of_value[known]), strict=True))
                costs |= {"asked": asked, "common": bool((known == most).all())}
                found.append({"tunable": name, "value": value, **costs})
    return found


def _having(name: str, spec: Spec) -> list[str]:
    """Variants that have a tunable; rows of others hold its neutral value, which nothing chose."""
    return [one for one, own in spec.variants.items() if name in ("variant", *own.tunables)]


@dataclass(frozen=True)
class Tried:
    """Rows of some variants beside the fastest of their problems; tunables in the spec's order."""

    rows: pd.DataFrame
    problems: np.ndarray  # number of each row's problem
    order: np.ndarray  # places of the rows, those without a time first, the fastest last
    leader: np.ndarray  # place of the fastest row of each problem
    has: np.ndarray  # whether the row's variant has a tunable: shape (rows, tunables)
    differs: np.ndarray  # whether its value is another than the fastest's: the same shape

    @classmethod
    def of(cls, rows: pd.DataFrame, spec: Spec) -> Tried:
        names = spec.tunable_columns
        problems = row_numbers(rows, spec.problem_columns, ordered=True)
        order = np.argsort(-rows["fraction"].to_numpy(dtype=float), kind="stable")[::-1]
        leader = np.zeros(problems.max(initial=-1) + 1, dtype=int)
        # Of several rows for one place the last one stays: the fastest.
        leader[problems[order]] = order
        own = leader[problems]
        # Texts are slow to compare.
        values = np.column_stack([pd.factorize(rows[name])[0] for name in names])
        variant, variants = pd.factorize(rows["variant"])
        used = [["variant", *spec.variants[each].tunables] for each in variants]
        has = np.array([[name in one for name in names] for one in used], dtype=bool)
        has = has.reshape(-1, len(names))[variant]
        # What one of two variants lacks tells nothing of the other.
        differs = (values != values[own]) & has & has[own]
        return cls(rows, problems, order, leader, has, differs)


def _compared(
    found: Tried, places: np.ndarray, count: int, name: str, spec: Spec, facts: Mapping[str, Any]
) -> np.ndarray:
    """Best time of each problem that counts over the least time with each value of a tunable:
    float64, shape (count, problems); NaN without a time.

    ``places``: number of each row's value, int64 below ``count``.
    """
    rows, problems, leader = found.rows, found.problems, found.leader
    reached = rows["fraction"].to_numpy(dtype=float)
    # The fastest row of each value and problem.
    of_cell = np.full((count, len(leader)), -1)
    of_cell[places[found.order], problems[found.order]] = found.order
    best = np.where(of_cell < 0, np.nan, reached[of_cell])
    others = np.array([other != name for other in spec.tunable_columns])
    alike = ~(found.differs & others).any(axis=1)
    tried = np.zeros(best.shape, dtype=bool)
    tried[places[alike], problems[alike]] = True
    lacking, at = np.nonzero(~np.isnan(best) & ~tried)
    asked, own = (
        rows.iloc[each].reset_index(drop=True) for each in (of_cell[lacking, at], leader[at])
    )
    both = found.has[of_cell[lacking, at]] & found.has[leader[at]] & others
    for other, having_it in zip(spec.tunable_columns, both.T, strict=True):
        if having_it.any():
            asked[other] = asked[other].mask(having_it, own[other])
    possible, comparable = _can_run(asked, spec, facts), ~np.isnan(best)
    comparable[lacking[possible], at[possible]] = False
    return np.asarray((best / reached[leader])[:, comparable.sum(axis=0) >= 2])


def _can_run(rows: pd.DataFrame, spec: Spec, facts: Mapping[str, Any]) -> np.ndarray:
    """Whether the workload's constraints allow each row's configuration: bool, shape (rows,)."""
    columns = Columns(spec.derived, {**arrays(rows, spec), **facts})
    allowed = np.ones(len(rows), dtype=bool)
    for text in spec.constraints:
        allowed &= columns.value(text).astype(bool)
    for name, variant in spec.variants.items():
        others = (rows["variant"] != name).to_numpy()
        for text in variant.constraints:
            allowed &= others | columns.value(text).astype(bool)
    return allowed


def tunables(study: StudyData) -> Section | None:
    """The section; None where no tunable has two values that are compared."""
    spec, every = study.spec, study.rows
    found = {
        gpu: losses(with_fractions(every[every["gpu"] == gpu], spec), spec, study.profiles[gpu])
        for gpu in study.whole
    }
    listed = [{**one, "gpu": gpu} for gpu, own in found.items() for one in own]
    if not listed:
        return None
    table = table_of("Values of tunables", [field("GPU", "gpu"), *EVERY], listed)
    blocks: list[Block] = [file_of(f"data/{study.name}.tunables.csv", table)]
    blocks += [Text(said) for gpu in study.whole if (said := _at_the_edge(study, gpu))]
    # Of a single problem each tunable keeps its best value: nothing is lost.
    if any(one["problems"] > 1 for one in listed):
        blocks[:0] = [_table({gpu: own for gpu, own in found.items() if own}), Text(NOTE, "note")]
    return Section(f"{study.name}-tunables", "Sensitivity of the tunables", blocks)


NOTE = (
    "Time with a tunable's best single value at every problem, all others chosen freely, over the "
    "best time of the variants that have it: geometric mean, and the problem that loses most. "
    "Problems count where two values were tried with the fastest's other settings; of values timed "
    "at the most of these the best is named. Tried with fewer settings, it may lose less than "
    "stated. What loses little need not be tuned."
)


def _table(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Table:
    """The best single value of every tunable per GPU, the most sensitive tunable first."""
    best: dict[str, dict[str, Mapping[str, Any]]] = {}
    for gpu, own in found.items():
        names = dict.fromkeys(one["tunable"] for one in own)
        best[gpu] = {
            name: best_value([one for one in own if one["tunable"] == name]) for name in names
        }
    every = sorted(
        (-one["loss_percent"], -one["worst_loss_percent"], name)
        for own in best.values()
        for name, one in own.items()
    )
    fields = [
        field(name, partial(_cell, name=name)) for name in dict.fromkeys(name for *_, name in every)
    ]
    return by_gpu("Time lost with one value, % (geometric mean)", "tunable", fields, best)


def _cell(best: Mapping[str, Mapping[str, Any]], name: str) -> Cell:
    if name not in best:
        return Cell(MISSING)
    one = best[name]
    mean, worst = (wording.fixed(one[each], 1) for each in LOSSES[1:])
    fewer = one["problems"] < one["asked"]
    of = f", {one['problems']} of {one['asked']} problems" if fewer else ""
    return Cell(mean, detail=f"at {one['value']}; at most {worst}{of}")


def best_value(values: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The value that loses least of those that were timed at the same problems, the most."""
    common = [record for record in values if record["common"]]
    return min(common, key=lambda record: record["loss_percent"])


def _at_the_edge(study: StudyData, gpu: str) -> str:
    """Tunables whose largest value in any row of the sweep has the least time somewhere: of what
    ties the fastest by name is the usual choice. Where a problem leaves no choice of a value,
    nothing was to be tried."""
    spec, rows, swept = study.spec, study.measured, study.sweeps[gpu]
    rows = rows[rows["gpu"] == gpu]
    best = rows.loc[rows["time_ms"].groupby(row_numbers(rows, study.problem_columns)).idxmin()]
    # The baseline is shown everywhere, and may be no candidate.
    rows = rows[~is_baseline(rows, spec)]
    problems, said = row_numbers(rows, study.problem_columns), []
    for name in (each for each in spec.tunable_columns if rows[each].dtype.kind == "i"):
        having = _having(name, spec)
        tried, fastest = (each.loc[each["variant"].isin(having), name] for each in (swept, best))
        # What is switched on or off has no larger value: 0 is none.
        values = rows[name].where(rows["variant"].isin(having) & (rows[name] > 0))
        free = ((own := values.groupby(problems)).max() > own.min()).any()
        if free and (count := int((fastest == (last := tried.max())).sum())):
            said.append(f"{name} ({last}, at {count} of {wording.plural(len(best), 'problem')})")
    if not said:
        return ""
    what = f"the least time has the largest value measured of {wording.listed(said)}"
    return f"{gpu}: {what}; larger ones were not tried."


EVERY = [
    field("tunable", "tunable"),
    field("value", "value"),
    field("problems", "problems", wording.count),
    field("time lost", "loss_percent", decimals(1), "% (geometric mean)"),
    field("time lost", "worst_loss_percent", decimals(1), "% (worst)"),
]
"""Every value of every tunable, with its cost."""
