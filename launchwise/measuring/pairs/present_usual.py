"""Recorded pairs beside the usual choice of today.

``gain`` is relative to what was usual when the pairs were measured. A rule for the usual choice may
change later; the rounds are there to say what the gain over another configuration is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from launchwise.base.robust import Ratio, paired_ratio
from launchwise.measuring.telemetry import HINDERED, reasons_in
from launchwise.workloads.space import baseline, plain
from launchwise.workloads.spec import Spec
from launchwise.workloads.usual import Usual, usual_configuration

USUAL = "usual"
UNKNOWN = Ratio(math.nan, math.nan, math.nan, 0, 0)


def limits_of(name: str, ratio: Ratio) -> dict[str, float]:
    """Columns of a ratio: itself, and the limits of its interval."""
    return {name: ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high}


def beside_usual(
    pairs: pd.DataFrame, spec: Spec, rules: Sequence[Usual], clock_tolerance: float
) -> pd.DataFrame:
    """Pairs whose role ``usual`` and whose gains are those of the usual choice by ``rules``.

    Gains of problems whose usual choice is another one now are computed again from their rounds
    (:func:`ratio_of_rounds`); they are empty where it did not run there.

    ``pairs``: as :func:`launchwise.tables.measurements.pairs_schema` declares it.
    ``clock_tolerance``: relative difference of SM clocks above which a pair is discarded.
    """
    found = pairs.copy()
    for members, present in _changed(pairs, spec, rules):
        usual = None if present is None else members.loc[present]
        for row, own in members.iterrows():
            roles = [role for role in own["roles"].split("+") if role != USUAL]
            found.loc[row, "roles"] = "+".join([*roles, USUAL] if row == present else roles)
            _write(found, row, "gain", ratio_of_rounds(usual, own, members, clock_tolerance))
            found.loc[row, "earlier_gain"] = math.nan  # over what was usual then
    return found


def peers_beside_usual(
    peers: pd.DataFrame,
    pairs: pd.DataFrame,
    spec: Spec,
    rules: Sequence[Usual],
    clock_tolerance: float,
) -> pd.DataFrame:
    """The same of libraries: ``usual_speedup`` of problems whose usual choice is another one now.
    ``peers``: as :func:`launchwise.tables.measurements.peers_schema` declares it. ``pairs``:
    configurations of the same rounds, as they were measured."""
    found = peers.copy()
    key = ["gpu", *spec.problem_columns]
    for members, present in _changed(pairs, spec, rules):
        usual = None if present is None else members.loc[present]
        same = (peers[key] == members[key].iloc[0]).all(axis=1)
        for row in peers.index[same]:
            ratio = ratio_of_rounds(peers.loc[row], usual, members, clock_tolerance)
            _write(found, row, "usual_speedup", ratio)
    return found


def _changed(
    pairs: pd.DataFrame, spec: Spec, rules: Sequence[Usual]
) -> Iterator[tuple[pd.DataFrame, Any]]:
    """Problems that ran beside what is not usual now: their rows, and the label of what is. None
    where that did not run. Where nothing usual ran before either, the baseline stands in for it, as
    it did then."""
    for _, members in pairs.groupby(["gpu", *spec.problem_columns], sort=False):
        problem = plain(members.iloc[0], spec.problem_columns)
        usual = usual_configuration(rules, problem, spec) or baseline(spec)
        is_present = pd.Series(True, index=members.index)
        for name in spec.tunable_columns:
            is_present &= members[name] == usual[name]
        had = members["roles"].str.split("+").map(lambda each: USUAL in each).astype(bool)
        if (had == is_present).all() or not (had.any() or is_present.any()):
            continue
        yield members, next(iter(members.index[is_present]), None)


def ratio_of_rounds(
    reference: Mapping[Any, Any] | pd.Series | None,
    own: Mapping[Any, Any] | pd.Series | None,
    members: pd.DataFrame,
    clock_tolerance: float,
) -> Ratio:
    """Time of ``reference`` over that of ``own`` in the rounds of a problem's ``members``.
    :data:`UNKNOWN` without one of them, where their rounds do not match, or where heat or a weak
    supply of power held the card back: the table does not say in which rounds."""
    held_back = any(HINDERED & reasons_in(str(each)) for each in members["throttle"])
    if reference is None or own is None or held_back:
        return UNKNOWN
    if not 0 < len(reference["times_ms"]) == len(own["times_ms"]):
        return UNKNOWN
    times = reference["times_ms"], own["times_ms"]
    return paired_ratio(*times, reference["clocks_mhz"], own["clocks_mhz"], clock_tolerance)


def _write(table: pd.DataFrame, row: Any, name: str, ratio: Ratio) -> None:
    limits = limits_of(name, ratio)
    table.loc[row, list(limits)] = list(limits.values())
    table.loc[row, "thrown"] = max(table.loc[row, "thrown"], ratio.thrown)
