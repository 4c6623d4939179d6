"""Where slides, tables and laws of the paper contradict each other: from its published values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block

from ...recommenders.stream_law.laws import (
    PUBLISHED_OVERHEAD,
    PUBLISHED_SUM,
    STREAMS,
    predicted_gains,
    predicted_streams,
)
from ..checks import Check, blocks_of
from .gains import SIZE
from .optima import LOSSES

PARTS = ("t1_comp_ms", "t1_d2h_ms", "t3_h2d_ms", "t3_comp_ms")
"""Stages whose times the table of stages adds up."""

NEEDED = ("stages", "optima", "models")

LEAST_ERROR = 0.05
"""Relative error of a printed law, on a printed time, from which it does not fit it."""


def contradictions(published: Mapping[str, Records]) -> Iterator[Block]:
    """A table of what does not agree, and a sentence on what does; nothing without tables."""
    facts = facts_of(published)
    if all(published.get(name) for name in NEEDED) and "size_factors" in facts:
        yield from blocks_of(list(checks(published)))


def checks(published: Mapping[str, Records]) -> Iterator[Check]:
    """Everything that is compared, in the order of the slides."""
    facts = facts_of(published)
    yield _sizes(facts, published["optima"])
    yield from _stages(facts, published["stages"])
    yield _law_of_the_sum(published["stages"], published["models"])
    yield _errors(published["models"])
    yield from _choices(published["optima"])
    yield _losses(facts)


def _listed(sizes: Sequence[int]) -> str:
    return wording.listed(wording.count(size) for size in sizes)


def _sizes(facts: Mapping[str, str], optima: Records) -> Check:
    factors = [Fraction(one) for one in facts["size_factors"].split()]
    exponents = [int(one) for one in facts["size_exponents"].split()]
    said = {int(factor * 10**exponent) for factor in factors for exponent in exponents}
    shown = {int(row[SIZE]) for row in optima}
    more, fewer = sorted(shown - said), sorted(said - shown)
    conflict = []
    if more:
        conflict.append(f"{SIZE} = {_listed(more)} is not among those of the slide")
    if fewer:
        conflict.append(f"of {SIZE} = {_listed(fewer)} no optimum is printed")
    return Check(
        "sizes",
        f"{len(said)} (slide of the computational experiment)",
        f"{len(shown)} (last slide with results)",
        not conflict,
        "; ".join(conflict),
    )


def _stages(facts: Mapping[str, str], stages: Records) -> Iterator[Check]:
    sums = [
        row[SIZE]
        for row in stages
        if not np.isclose(sum(float(row[name]) for name in PARTS), float(row["sum_ms"]), rtol=1e-5)
    ]
    yield Check(
        "sums of stages",
        "column sum of the table of stages",
        f"other than its four stages at {len(sums)} of {wording.plural(len(stages), 'size')}",
        not sums,
        "no sum of these stages",
    )
    tau = float(facts["stream_creation_rtx2080ti_ms"])
    wrong = [
        row[SIZE]
        for row in stages
        if abs((float(row["sum_ms"]) / tau) ** 0.5 - float(row["streams_gomez_luna"])) > 0.051
    ]
    yield Check(
        "numbers of streams of the earlier model",
        "column of the table of stages",
        f"other than √(sum / tau) at {len(wrong)} of {wording.plural(len(stages), 'size')}",
        not wrong,
        "another tau",
    )


def _law_of_the_sum(stages: Records, models: Records) -> Check:
    off = {
        int(row[SIZE]): float(PUBLISHED_SUM.predict(int(row[SIZE]))) / float(row["sum_ms"]) - 1
        for row in stages
    }
    far = {size: error for size, error in off.items() if abs(error) > LEAST_ERROR}
    r2 = next(
        (row["r_squared"] for row in models if (row["model"], row["set"]) == ("sum", "test")), ""
    )
    said = wording.listed(
        f"{wording.fixed(100 * error, 0)} % at {SIZE} = {wording.count(size)}"
        for size, error in far.items()
    )
    return Check(
        "line of the sum",
        f"R² {wording.fixed(float(r2), 5) if r2 else '–'} on test sizes (model of the sum)",
        f"it is off by {said or 'little'} (table of stages)",
        not far,
        "R² of errors in ms is that of the largest sizes; where 1 stream is best, the line does "
        "not fit",
    )


def _errors(models: Records) -> Check:
    both = [row for row in models if row["mse_ms2"] and row["rmse_ms"]]
    wrong = [
        row for row in both if not np.isclose(float(row["mse_ms2"]) ** 0.5, float(row["rmse_ms"]))
    ]
    return Check(
        "RMSE and MSE of the laws",
        "RMSE (table of metrics)",
        f"other than √MSE in {len(wrong)} of {wording.plural(len(both), 'column')}",
        not wrong,
        "no root of it",
    )


def _choices(optima: Records) -> Iterator[Check]:
    """The printed laws, used as the slides say, at every printed size."""
    chosen = {int(row[SIZE]): int(row["streams_predicted"]) for row in optima}
    by_law = {n: predicted_streams(n, PUBLISHED_SUM, PUBLISHED_OVERHEAD) for n in chosen}
    other = [n for n in chosen if by_law[n] != chosen[n]]
    yield Check(
        "predicted numbers of streams",
        "column of the last slide with results",
        f"other by the printed laws at {len(other)} of {wording.plural(len(chosen), 'size')}",
        not other,
        "these laws did not predict them",
    )
    alone = {n: float(PUBLISHED_OVERHEAD.predict(n, 1)) for n in chosen}
    by_definition = {n: _with_nothing_for_one(n) for n in chosen}
    moved = [n for n in chosen if by_definition[n] != chosen[n]]
    said = wording.listed(
        f"{by_definition[n]}, not {chosen[n]}, at {SIZE} = {wording.count(n)}" for n in moved
    )
    ends = [wording.number(value, 3) for value in (min(alone.values()), max(alone.values()))]
    yield Check(
        "overhead of one stream",
        "0 (definition, slide of the model for the overhead)",
        f"{' to '.join(ends)} ms by the printed laws",
        not any(alone.values()),
        f"with 0 the laws ask for {said}" if said else "no choice depends on it",
    )


def _with_nothing_for_one(n: int) -> int:
    """The best number of streams where one stream has the overhead of its definition, 0."""
    several = [s for s in STREAMS if s > 1]
    gains = predicted_gains(n, PUBLISHED_SUM, PUBLISHED_OVERHEAD, several)
    best = int(np.argmax(gains))
    return several[best] if gains[best] > 0 else 1


def _losses(facts: Mapping[str, str]) -> Check:
    """Time lost of each wrong prediction beside the difference of its two times."""
    wrong = []
    for size, (loss, best) in LOSSES.items():
        predicted = next(
            (
                float(value)
                for name, value in facts.items()
                if name.startswith(best.partition("_measured")[0] + "_predicted")
            ),
            float("nan"),
        )
        if not np.isclose(predicted - float(facts[best]), float(facts[loss]), atol=1e-6):
            wrong.append(size)
    return Check(
        "time that wrong predictions lose",
        "printed differences (last slide with results)",
        f"other than those of the times beside them at {len(wrong)} of "
        f"{wording.plural(len(LOSSES), 'size')}",
        not wrong,
        "no difference of these times",
    )
