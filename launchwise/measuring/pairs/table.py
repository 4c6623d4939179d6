"""The table of a finished stage: every configuration's paired times and ratios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.paired import Ratio, paired_ratio
from launchwise.base.provenance import now
from launchwise.experiment.confirmation import Confirmation, Contest, Role
from launchwise.measuring.pairs.confirming import Rounds, rounds_of
from launchwise.measuring.shard import Shard
from launchwise.tables.pairs import RATIOS, pairs_schema


def pairs_table(
    shard: Shard,
    contests: Iterable[Contest],
    how: Confirmation,
    notes: list[dict[str, Any]],
    sweep_ms: Mapping[tuple[Any, ...], float],
) -> pd.DataFrame:
    """Paired times of every entrant.

    Parameters
    ----------
    notes
        Of the journal.
    sweep_ms
        Values of a problem and a configuration, in the order of the spec, to their time in the
        sweep, ms; an entrant that the sweep lacks has none.

    Returns
    -------
    pandas.DataFrame
        As :func:`launchwise.tables.pairs.pairs_schema` declares it, sorted by key.
    """
    spec = shard.spec
    rows = [
        {**row, "sweep_ms": sweep_ms.get(tuple(row[name] for name in spec.key_columns[1:]))}
        for contest in contests
        for row in _rows_of(contest, rounds_of(contest, notes, shard), how)
    ]
    columns = pairs_schema(spec).columns
    table = pd.DataFrame([{**shard.labels, **row} for row in rows], columns=list(columns))
    if table.empty:
        # Nobody's values say what they are.
        return table.astype({name: str(column.dtype) for name, column in columns.items()})
    real = [name for name, column in columns.items() if str(column.dtype) == "float64"]
    table[real] = table[real].astype(float)
    for name in ("times_ms", "clocks_mhz"):
        table[name] = table[name].map(lambda values: np.asarray(values, dtype=float))
    return table.sort_values(spec.key_columns, ignore_index=True)


def _rows_of(contest: Contest, rounds: Rounds, how: Confirmation) -> Iterable[dict[str, Any]]:
    baseline = _place(contest, rounds, "baseline")
    usual = _place(contest, rounds, "usual")
    # Where what is usual is not there or fails, a competent person falls back as well.
    places = {"gain": baseline if usual is None else usual, "improvement": baseline}
    for place, entrant in enumerate(contest.entrants):
        ran = _ran(rounds, place)
        found = rounds.found[place]
        if found["status"] == "ok" and not ran:
            found = {**found, "reason": "there is nothing to compare it with"}
        ratios = {name: _ratio(rounds, reference, place, how) for name, reference in places.items()}
        yield {
            **contest.problem,
            **entrant.configuration,
            "roles": "+".join(entrant.roles),
            **found,
            "time_ms": statistics.median(rounds.times_ms[place]) if ran else None,
            "times_ms": rounds.times_ms[place],
            "clocks_mhz": rounds.clocks_mhz[place],
            "rounds": len(rounds.times_ms[place]),
            "thrown": max(ratio.thrown for ratio in ratios.values()),
            **{
                name + suffix: value
                for name in RATIOS
                for suffix, value in _limits(ratios[name]).items()
            },
            "throttle": "+".join(rounds.throttle[place]),
            "measured_at": now(),
        }


NO_RATIO = Ratio(math.nan, math.nan, math.nan, 0, 0)


def _place(contest: Contest, rounds: Rounds, role: Role) -> int | None:
    """Place of the entrant of a role, if its result was right."""
    places = (place for place, each in enumerate(contest.entrants) if role in each.roles)
    return next((place for place in places if _right(rounds, place)), None)


def _right(rounds: Rounds, place: int) -> bool:
    return rounds.found[place]["status"] == "ok"


def _ran(rounds: Rounds, place: int) -> bool:
    return _right(rounds, place) and bool(rounds.times_ms[place])


def _ratio(rounds: Rounds, reference: int | None, place: int, how: Confirmation) -> Ratio:
    if reference == place and _right(rounds, place):
        return Ratio(1.0, 1.0, 1.0, len(rounds.times_ms[place]), 0)
    if reference is None or not _ran(rounds, reference) or not _ran(rounds, place):
        return NO_RATIO
    return paired_ratio(
        rounds.times_ms[reference],
        rounds.times_ms[place],
        rounds.clocks_mhz[reference],
        rounds.clocks_mhz[place],
        how.clock_tolerance,
    )


def _limits(ratio: Ratio) -> dict[str, float]:
    return {"": ratio.value, "_low": ratio.low, "_high": ratio.high}
