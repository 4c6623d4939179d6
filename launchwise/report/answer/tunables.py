"""Sensitivity of the tunables: loss with one fixed value and all others free."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.merit import geometric_mean
from launchwise.learning.row_arrays import arrays
from launchwise.report import wording
from launchwise.report.blocks import Bar, Block, Drawing, Section, Text
from launchwise.report.fields import decimals, field, file_of, table_of
from launchwise.report.study import StudyData
from launchwise.report.theme import slug
from launchwise.tables.rows import row_numbers
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
    row has another status than ``statuses``."""
    times = rows["time_ms"].where(rows["status"].isin(statuses))
    best = times.groupby(row_numbers(rows, spec.problem_columns)).transform("min")
    return rows.assign(fraction=best / times)


def losses(rows: pd.DataFrame, spec: Spec, profile: GpuProfile) -> list[dict[str, Any]]:
    """Cost of one tunable value at every problem of a GPU.

    Of what only some variants have, only their rows count, and the loss is against the best of
    these: a slow variant is no fault of its tunables. Values were tried with settings of their own
    where a sweep is no full product, and what these lose is no loss of the value. So a value has a
    loss only at problems where it was tried with all other settings of the fastest row, or where
    the workload's constraints refuse that, and where another value has one, too.

    ``rows``: all that was tried, as :func:`with_fractions` gives it.
    Returns ``tunable`` (``variant`` is one, too), ``value``, and :data:`LOSSES`
    (:func:`fixed_loss`). Tunables without two such values are left out.
    """
    found = []
    facts = gpu_facts(profile.model_dump())
    # Rows are selected for each tunable: other columns would be carried about.
    rows = rows[[*spec.problem_columns, *spec.tunable_columns, "fraction"]]
    # Texts are slow to compare: each tunable's values as numbers, once.
    codes = pd.DataFrame(
        {name: pd.factorize(rows[name])[0] for name in spec.tunable_columns}, index=rows.index
    )
    for name in spec.tunable_columns:
        using = [
            variant
            for variant, declared in spec.variants.items()
            if name == "variant" or name in declared.tunables
        ]
        kept = rows["variant"].isin(using)
        own, own_codes = (table[kept].reset_index(drop=True) for table in (rows, codes))
        places, values = pd.factorize(own[name], sort=True)
        if len(values) < 2:
            continue
        best = _comparable(own, own_codes, places, len(values), name, spec, facts)
        for value, of_value in zip(values.tolist(), best, strict=True):
            known = of_value[~np.isnan(of_value)]
            if len(known):
                costs = dict(zip(LOSSES, fixed_loss(known), strict=True))
                found.append({"tunable": name, "value": value, **costs})
    return found


def _comparable(
    rows: pd.DataFrame,
    codes: pd.DataFrame,
    places: np.ndarray,
    count: int,
    name: str,
    spec: Spec,
    facts: Mapping[str, Any],
) -> np.ndarray:
    """Best time of each problem over the least time with each value of a tunable: float64, shape
    (count, problems); NaN where the value is not compared.

    ``codes``: values of the tunables as numbers, row by row.
    ``places``: number of each row's value, int64 below ``count``.
    """
    problems = row_numbers(rows, spec.problem_columns, ordered=True)
    reached = rows["fraction"].to_numpy(dtype=float)
    shape = count, problems.max() + 1
    # The fastest row of each value and problem, and of each problem; rows without a time come last.
    order = np.argsort(-reached, kind="stable")
    cells, first = np.unique((places * shape[1] + problems)[order], return_index=True)
    of_cell = np.full(shape, -1)
    of_cell.flat[cells] = order[first]
    leader = order[np.unique(problems[order], return_index=True)[1]]
    best = np.where(of_cell < 0, np.nan, reached[of_cell])
    variant, variants = pd.factorize(rows["variant"])
    alike = np.ones(len(rows), dtype=bool)
    has: dict[str, np.ndarray] = {}
    for other in spec.tunable_columns:
        if other == name:
            continue
        used = [other == "variant" or other in spec.variants[one].tunables for one in variants]
        has[other] = np.array(used)[variant]
        value, own = codes[other].to_numpy(), leader[problems]
        # What one of two variants lacks tells nothing of the other.
        alike &= (value == value[own]) | ~has[other] | ~has[other][own]
    tried = np.zeros(shape, dtype=bool)
    tried[places[alike], problems[alike]] = True
    lacking, at = np.nonzero(~np.isnan(best) & ~tried)
    asked = rows.iloc[of_cell[lacking, at]].reset_index(drop=True)
    for other, having_it in has.items():
        both = having_it[of_cell[lacking, at]] & having_it[leader[at]]
        asked[other] = asked[other].mask(both, rows[other].iloc[leader[at]].reset_index(drop=True))
    possible = _can_run(asked, spec, facts)
    best[lacking[possible], at[possible]] = np.nan
    best[:, (~np.isnan(best)).sum(axis=0) < 2] = np.nan
    return np.asarray(best / reached[leader])


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
    if not any(found.values()):
        return None
    blocks: list[Block] = []
    listed = []
    for gpu, own in found.items():
        blocks += _of_gpu(study, own, gpu) if own else []
        listed += [{**one, "gpu": gpu} for one in own]
    table = table_of("Values of tunables", [field("GPU", "gpu"), *EVERY], listed)
    blocks += [Text(NOTE, "note"), file_of(f"data/{study.name}.tunables.csv", table)]
    return Section(f"{study.name}-tunables", "Sensitivity of the tunables", blocks)


NOTE = (
    "Time with one value of a tunable at every problem, all others chosen freely, divided by the "
    "best time of the variants that have it. Bar: geometric mean for the best single value; line: "
    "the problem that loses most. A tunable that loses little need not be tuned."
)


def _of_gpu(study: StudyData, found: list[dict[str, Any]], gpu: str) -> Iterator[Block]:
    of_tunables: dict[str, list[dict[str, Any]]] = {}
    for record in found:
        of_tunables.setdefault(record["tunable"], []).append(record)
    best = {tunable: _best(values) for tunable, values in of_tunables.items()}
    # Of a single problem each tunable keeps its best value: nothing is lost, nothing to draw.
    if any(record["problems"] > 1 for record in best.values()):
        yield drawing(f"{study.name}-sensitivity-{slug(gpu)}", gpu, list(best.values()))


def _best(values: list[dict[str, Any]]) -> dict[str, Any]:
    """The value that costs least of those that most problems can have. A value that few problems
    can have is no choice for all of them."""
    most = max(record["problems"] for record in values)
    common = [record for record in values if record["problems"] == most]
    return min(common, key=lambda record: record["loss_percent"])


EVERY = [
    field("tunable", "tunable"),
    field("value", "value"),
    field("problems", "problems", wording.count),
    field("time lost", "loss_percent", decimals(1), "% (mean)"),
    field("time lost", "worst_loss_percent", decimals(1), "% (worst)"),
]
"""Every value of every tunable, with its cost."""


def drawing(name: str, gpu: str, found: Sequence[Mapping[str, Any]]) -> Drawing:
    """A bar per tunable, the most sensitive on top; at least one. ``found`` are records of
    :func:`losses`, one per tunable."""
    order = itemgetter(*LOSSES[1:])
    ordered = sorted(found, key=lambda one: (*(-loss for loss in order(one)), one["tunable"]))
    bars, said = [], []
    for one in ordered:
        mean, worst = (wording.fixed(loss, 1) for loss in order(one))
        end, line = (1 + loss / 100 for loss in order(one))
        words = f"{one['value']}: {mean} %, at most {worst} %, problems: {one['problems']}"
        bars.append(Bar(one["tunable"], words, end, line))
        said.append(f"{one['tunable']} = {words}")
    caption = f"{gpu}: time with the best single value of a tunable / best time"
    alt = f"Sensitivity of tunables on {gpu}. {'; '.join(said)}."
    return Drawing(name, caption, alt, bars)
