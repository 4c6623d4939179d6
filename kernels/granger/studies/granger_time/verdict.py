"""Claims of the source, each beside the count or measurement that tests it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from launchwise.experiment.published import Records
from launchwise.learning.ranks import correlations, group_ranks
from launchwise.report import wording
from launchwise.report.blocks import Block, Section, Text
from launchwise.report.fields import of_texts

from .formula import span

if TYPE_CHECKING:
    from .section import Known

PUBLISHED = "published"

NEAR = 1.1  # ratio up to which a printed figure holds
SMALL = 0.1  # part of the whole up to which a term is small
MEMORY = "dram"  # part of the cost model that is device memory

FEWEST_FOR_ORDER = 3
TITLES = ("claim", "printed", "here", "holds")


def verdict(known: Known, counted: Records) -> Section:
    """One row per claim; ``counted`` are those on its counts."""
    told = [[row[name] for name in TITLES] for row in counted]
    rows = [*told, *_launch(known), *_bound(known), *_times(known), *_order(known)]
    text = (
        f"A figure holds if it is within {100 * (NEAR - 1):.0f} % of what is counted or measured; "
        f"a term is small below {100 * SMALL:.0f} % of the whole."
    )
    claims = of_texts("Claims of the source and what became of them", TITLES, rows)
    blocks: list[Block] = [claims, Text(text, "note")]
    study = known.study
    return Section(f"{study.name}-verdict", "Which claims hold", blocks)


def _holds(said: float, follows: float) -> str:
    return "yes" if max(said, follows) <= NEAR * min(said, follows) else "no"


def _launch(known: Known) -> Iterator[list[str]]:
    said = known.source.facts.launch_overhead_us
    for gpu in known.study.whole:
        reached = known.study.profiles[gpu].ceilings
        told = f"{wording.number(reached.launch_overhead_us)} µs on {gpu}, launched by the host"
        if reached.graph_launch_us is not None:
            told += f"; {wording.number(reached.graph_launch_us)} µs in a CUDA graph"
        yield ["time of a launch", f"{said:g} µs", told, _holds(said, reached.launch_overhead_us)]
        row = known.measured.get(gpu, {}).get(PUBLISHED)
        if row is not None:
            part = reached.launch_overhead_us / row["time_us"]
            printed = [said / one.times.total for one in known.source.printed]
            shown = span([100 * each for each in printed], 1)
            yield [
                "a launch is small beside the rest",
                f"{shown} % of the predicted times",
                f"{wording.percent(part, 2)} % of the measured time on {gpu}",
                "yes" if part < SMALL else "no",
            ]


def _bound(known: Known) -> Iterator[list[str]]:
    bounds = [str(rows[PUBLISHED]["bound_by"]) for rows in known.estimated.values()]
    by_memory = bounds.count(MEMORY)
    others = wording.listed(dict.fromkeys(bound for bound in bounds if bound != MEMORY))
    told = f"device memory on {by_memory} of {wording.plural(len(bounds), 'GPU')} by the cost model"
    yield [
        "bound by device memory",
        "on all GPUs",
        told + (f", else {others}" if others else ""),
        "yes" if by_memory == len(bounds) else "no",
    ]


def _times(known: Known) -> Iterator[list[str]]:
    for gpu, rows in known.measured.items():
        if PUBLISHED in rows and not known.study.profiles[gpu].is_slice:
            row = rows[PUBLISHED]
            launches = wording.plural(int(row["repeats"]), "launch", "launches")
            said, time = known.formula_us(gpu), row["time_us"]
            yield [
                f"time on {gpu} by the formula",
                f"{wording.number(said)} µs",
                f"{wording.number(time)} µs measured ({launches})",
                _holds(said, time),
            ]
    named = [one for one in known.source.printed if one.gpu in known.estimated]
    if named:
        ratios = [known.estimated[one.gpu][PUBLISHED]["time_us"] / one.times.total for one in named]
        yield [
            "times on the source's GPUs",
            f"{span([one.times.total for one in named])} µs",
            f"{span(ratios, 1)} times as much by the cost model; not measured",
            "not by the cost model" if min(ratios) > NEAR else "yes, by the cost model",
        ]


def _order(known: Known) -> Iterator[list[str]]:
    named = [one for one in known.source.printed if one.gpu in known.estimated]
    if len(named) < FEWEST_FOR_ORDER:
        return
    printed = np.array([one.times.total for one in named])
    ours = np.array([known.estimated[one.gpu][PUBLISHED]["time_us"] for one in named])
    whole = np.zeros(len(named), dtype=np.int64)
    ranks = [group_ranks(whole, values) for values in (printed, ours)]
    rho = float(correlations(whole, *ranks)[0])
    order = sorted(zip(ours, (one.gpu for one in named), strict=True))
    yield [
        "order of the source's GPUs",
        ", ".join(gpu for _, gpu in sorted((one.times.total, one.gpu) for one in named)),
        f"{', '.join(gpu for _, gpu in order)} by the cost model (rank correlation {rho:.2f})",
        "yes" if rho == 1 else "in part" if rho > 0.5 else "no",
    ]
