"""Sensitivity of the tunables: loss with one fixed value and all others free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Bar, Block, Drawing, Fold, Section, Table, Text
from launchwise.report.fields import beside, decimals, field, grouped, table_of
from launchwise.report.numbers import fractions_on
from launchwise.report.study import StudyData
from launchwise.report.theme import slug
from launchwise.tables.rows import row_numbers
from launchwise.workloads.spec import Spec

LOSSES = ("problems", "loss_percent", "worst_loss_percent")  # Names of what `fixed_loss` returns


def fixed_loss(reached: np.ndarray) -> tuple[int, float, float]:
    """Cost of one value where another may be better: problems, mean and worst loss, %. ``reached``
    is the best time of each problem over the least time with the value."""
    mean, worst = geometric_mean(reached), float(reached.min())
    return len(reached), 100 * (1 / mean - 1), 100 * (1 / worst - 1)


def losses(rows: pd.DataFrame, spec: Spec) -> list[dict[str, Any]]:
    """Cost of one tunable value at every problem of a GPU.

    Of what only some variants have, only their rows count, and the loss is against the best of
    these: a slow variant is no fault of its tunables.

    ``rows``: problem and configuration columns, and ``fraction``, the best time of the problem over
        the row's.
    Returns ``tunable`` (``variant`` is one, too), ``value``, and :data:`LOSSES`
    (:func:`fixed_loss`). Tunables that were measured with one value only are left out.
    """
    found = []
    problems = row_numbers(rows, spec.problem_columns, ordered=True)
    reached, variants = rows["fraction"].to_numpy(), rows["variant"]
    for name in spec.tunable_columns:
        using = [
            variant
            for variant, declared in spec.variants.items()
            if name == "variant" or name in declared.tunables
        ]
        own = variants.isin(using).to_numpy()
        places, values = pd.factorize(rows[name][own], sort=True)
        if len(values) < 2:
            continue
        best = np.full((len(values), problems.max() + 1), np.nan)
        np.fmax.at(best, (places, problems[own]), reached[own])
        best /= np.fmax.reduce(best, axis=0)
        for value, of_value in zip(values.tolist(), best, strict=True):
            costs = fixed_loss(of_value[~np.isnan(of_value)])
            found.append({"tunable": name, "value": value, **dict(zip(LOSSES, costs, strict=True))})
    return found


def tunables(study: StudyData) -> Section | None:
    """The section; None where no tunable has two values."""
    found = {gpu: losses(fractions_on(study, gpu), study.spec) for gpu in study.whole}
    if not any(found.values()):
        return None
    blocks: list[Block] = [
        Text(
            "How much slower the best configuration becomes when a tunable has the same value at "
            "every problem and all others are chosen freely. A tunable whose best single value "
            "loses little need not be tuned. A tunable of some variants is compared within "
            "these variants; the line of the variant compares the variants."
        )
    ]
    for gpu, own in found.items():
        blocks += _of_gpu(study, own, gpu) if own else []
    return Section(f"{study.name}-tunables", "Sensitivity of the tunables", blocks)


def _of_gpu(study: StudyData, found: list[dict[str, Any]], gpu: str) -> Iterator[Block]:
    of_tunables: dict[str, list[dict[str, Any]]] = {}
    for record in found:
        of_tunables.setdefault(record["tunable"], []).append(record)
    best = {tunable: _best(values) for tunable, values in of_tunables.items()}
    # Of a single problem each tunable keeps its best value: nothing is lost, nothing to draw.
    if any(record["problems"] > 1 for record in best.values()):
        yield drawing(f"{study.name}-sensitivity-{slug(gpu)}", gpu, list(best.values()))
    yield Fold(
        f"{gpu}: values of every tunable",
        [
            _best_and_worst(of_tunables, best, gpu),
            every_value(f"Values of tunables on {gpu}", found),
        ],
    )


def _best(values: list[dict[str, Any]]) -> dict[str, Any]:
    """The value that costs least of those that most problems can have. A value that few problems
    can have is no choice for all of them."""
    most = max(record["problems"] for record in values)
    common = [record for record in values if record["problems"] == most]
    return min(common, key=lambda record: record["loss_percent"])


VALUE = [
    field("value", "value", number=True),
    field("problems", "problems", wording.count),
    field("time lost", "loss_percent", decimals(1), "% (mean)"),
]

WORST = field("time lost", "worst_loss_percent", decimals(1), "% (worst)")


def _best_and_worst(
    of_tunables: dict[str, list[dict[str, Any]]], best: dict[str, dict[str, Any]], gpu: str
) -> Table:
    worst = {
        tunable: max(values, key=lambda record: record["loss_percent"])
        for tunable, values in of_tunables.items()
    }
    return beside(
        f"One value for every problem of {gpu}",
        field("tunable", lambda tunable: tunable),
        of_tunables,
        (grouped("best single value", *VALUE, WORST), best),
        (grouped("worst single value", *VALUE), worst),
    )


def every_value(caption: str, found: list[dict[str, Any]]) -> Table:
    """Every value of every tunable, with its cost."""
    return table_of(caption, [field("tunable", "tunable"), *VALUE, WORST], found)


TICKS = (1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)

LEAST_END = 1.05  # Right end of the axis where no tunable costs more


def drawing(name: str, gpu: str, found: Sequence[Mapping[str, Any]]) -> Drawing:
    """A bar per tunable, the most sensitive on top; at least one. ``found`` are records of
    :func:`losses`, one per tunable."""
    order = itemgetter(*LOSSES[1:])
    ordered = sorted(found, key=lambda one: (*(-loss for loss in order(one)), one["tunable"]))
    bars, said = [], []
    for one in ordered:
        mean, worst = (wording.fixed(loss, 1) for loss in order(one))
        end, line = (1 + loss / 100 for loss in order(one))
        words = f"{one['value']}: {mean} %, at most {worst} %"
        bars.append(Bar(one["tunable"], words, end, line=line))
        said.append(f"{one['tunable']} = {one['value']}: {mean} % in the mean, {worst} % at most")
    caption = (
        f"{gpu}: time with one value of a tunable at every problem, all others chosen freely, "
        "divided by the best time of the variants that have it. Bar: geometric mean for the best "
        "single value; line: the problem that loses most."
    )
    alt = f"Sensitivity of tunables on {gpu}. {'; '.join(said)}."
    ends = 1.0, max(LEAST_END, 1.02 * max(bar.line for bar in bars))
    return Drawing(name, caption, alt, bars, TICKS, ends, label=220, row=24)
