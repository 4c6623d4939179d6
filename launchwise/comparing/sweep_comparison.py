"""Compares two sides: every sweep that both have, and which changes a caller must see."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.comparing.matching import (
    OK,
    OUTCOMES,
    Difference,
    Rule,
    differences,
    matched,
    ratio_intervals,
    remeasured,
)
from launchwise.comparing.sides import Key, Side
from launchwise.tables.rows import fastest_rows, row_numbers
from launchwise.tables.visits import FEWEST, beyond_common, errors_near, places_of
from launchwise.workloads.spec import Spec

VERDICTS: dict[str, str] = {
    "kept": "the same configuration is the fastest",
    "close": "another is the fastest, by no more than the threshold",
    "unclear": "another is faster by more than the threshold, but the interval holds 1, or rows of "
    "other problems moved as far",
    "stale": "another is faster by more than the threshold, or the old best has no time now",
    "unmeasured": "NEW lacks the row of the old best",
}
"""Whether an answer still holds, in words."""

NONE = -1  # Index of no row


def best_answers(rows: pd.DataFrame, spec: Spec, rule: Rule) -> pd.DataFrame:
    """Best configurations of OLD and NEW for each problem, by rows with status ``ok``.

    ``rows``: from :func:`launchwise.comparing.matching.matched`, with their index. Returns one row
    per problem that is in both and has a best in OLD: its columns; ``old_best`` and ``new_best``,
    positions in ``rows`` (:data:`NONE` where nothing is ``ok`` in NEW); ``ratio``, NEW's time of
    the old best / that of the new best, with ``ratio_low`` and ``ratio_high`` (NaN where the old
    best is not ``ok`` in NEW); ``verdict``.
    """
    numbers = row_numbers(rows, spec.problem_columns)
    old, new = (_best(rows, numbers, side, spec) for side in ("old", "new"))
    in_new = np.unique(numbers[rows["new_status"].notna().to_numpy()])
    problems = np.flatnonzero(old != NONE)
    problems = problems[np.isin(problems, in_new)]
    # By key, as rows are: the first row of each problem tells.
    old, new = old[problems], new[problems]
    found = rows.iloc[old][spec.problem_columns].reset_index(drop=True)
    found["old_best"], found["new_best"] = old, new
    limits = np.full((3, len(found)), np.nan)
    status = rows["new_status"].iloc[old]
    timed = (status == OK).to_numpy(bool)
    now, best = rows.iloc[old[timed]], rows.iloc[new[timed]]
    limits[0, timed] = now["new_time_ms"].to_numpy() / best["new_time_ms"].to_numpy()
    limits[1:, timed] = ratio_intervals(
        best["new_times_ms"].tolist(), now["new_times_ms"].tolist(), rule.confidence
    )
    found["ratio"], found["ratio_low"], found["ratio_high"] = limits
    moved = np.ones(len(found))
    moved[timed] = _by_chance(rows, numbers, old[timed], new[timed], rule.confidence)
    cases = [
        (old == new, "kept"),
        (status.isna().to_numpy(), "unmeasured"),
        (~timed, "stale"),
        (~rule.differ(limits[0]), "close"),
        ((limits[1] > 1) & (limits[0] > moved), "stale"),
    ]
    found["verdict"] = np.select(
        [np.asarray(mask, dtype=bool) for mask, _ in cases],
        [verdict for _, verdict in cases],
        default="unclear",
    )
    return found


CLOSE = 1.3
"""Times of the least of a problem up to which rows tell how far two visits lie apart."""


def _by_chance(
    rows: pd.DataFrame, numbers: np.ndarray, old: np.ndarray, new: np.ndarray, confidence: float
) -> np.ndarray:
    """How many times as long as NEW's best an old best may take though nothing changed: as far as
    similar rows of other problems moved between the sides, beyond what is common to close ones of
    their problem. A best is the luckiest of many: by ``confidence`` none is beyond this by chance.
    1 where too few rows were measured twice. ``old``, ``new``: positions of the best rows."""
    ok = (rows["old_status"] == OK) & (rows["new_status"] == OK)
    again = ok.to_numpy(bool) & remeasured(rows)
    before, after = (np.log(rows.loc[again, f"{each}_time_ms"]) for each in ("old", "new"))
    twice = places_of((before + after) / 2, numbers[again])
    close = twice["log"] - twice["least"] <= math.log(CLOSE)
    twice["apart"] = beyond_common(after - before, close, twice["problem"]).where(close)
    known = twice[twice["apart"].notna()]
    found = np.ones(len(old))
    asked = np.isin(old, twice.index) & np.isin(new, twice.index)
    if len(known) >= FEWEST and asked.any():
        both = (errors_near(known, twice.loc[each[asked]], "apart") for each in (old, new))
        sigmas = NormalDist().inv_cdf(1 - (1 - confidence) / 2 / len(known))
        found[asked] = np.exp(np.nan_to_num(sigmas * np.hypot(*both)))
    return found


def _best(rows: pd.DataFrame, numbers: np.ndarray, side: str, spec: Spec) -> np.ndarray:
    """Position of the fastest row of each problem's number: int64, :data:`NONE` without one."""
    ok = np.flatnonzero((rows[f"{side}_status"] == OK).to_numpy(bool))
    timed = rows.iloc[ok][spec.tunable_columns].assign(
        time_ms=rows[f"{side}_time_ms"].to_numpy()[ok], problem=numbers[ok], place=ok
    )
    fastest = fastest_rows(timed, ["problem"], spec)
    found = np.full(int(numbers.max(initial=NONE)) + 1, NONE, dtype=np.int64)
    found[fastest["problem"].to_numpy()] = fastest["place"].to_numpy()
    return found


COMMAND = "compare"
SHIFT_PERCENTILES = (5, 50, 95)
MOST_LISTED = 4  # Most sweeps that a complaint lists of a side


@dataclass(frozen=True)
class SweepComparison:
    """Two sweeps of a workload."""

    spec: Spec
    gpu: str  # name of the GPU in OLD
    new_gpu: str  # name of the GPU in NEW
    rows: pd.DataFrame  # from launchwise.comparing.matching.matched
    answers: pd.DataFrame  # from launchwise.comparing.sweep_comparison.best_answers
    differences: list[Difference]  # how the rows were measured differently

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """Rows per outcome, zeros included."""
        counts = self.rows["outcome"].value_counts()
        return {each: int(counts.get(each, 0)) for each in OUTCOMES}

    @cached_property
    def verdicts(self) -> dict[str, int]:
        """Problems per verdict on their best configuration, zeros included."""
        counts = self.answers["verdict"].value_counts()
        return {each: int(counts.get(each, 0)) for each in VERDICTS}

    @cached_property
    def matched(self) -> int:
        """Rows that are in both."""
        return len(self.rows) - self.outcomes["new"] - self.outcomes["gone"]

    @cached_property
    def carried(self) -> int:
        """Rows that are in both and are the same measurement."""
        return self.matched - int(remeasured(self.rows).sum())

    @cached_property
    def shift(self) -> tuple[int, tuple[float, float, float] | None]:
        """Number of rows measured twice with status ``ok``, and percentiles of their new / old.
        Percentiles are :data:`SHIFT_PERCENTILES`; None without such a row."""
        ok = (self.rows["old_status"] == "ok") & (self.rows["new_status"] == "ok")
        ratios = self.rows.loc[ok.to_numpy(bool) & remeasured(self.rows), "ratio"].to_numpy(float)
        if not len(ratios):
            return 0, None
        low, middle, high = (float(each) for each in np.percentile(ratios, SHIFT_PERCENTILES))
        return len(ratios), (low, middle, high)


@dataclass(frozen=True)
class Comparison:
    """All sweeps that two sides share."""

    # The sides as the user named them.
    old: str
    new: str
    rule: Rule
    sweeps: list[SweepComparison]
    # GPU and workload of sweeps that one side has alone, sorted.
    only_old: list[Key]
    only_new: list[Key]

    @property
    def outcomes(self) -> dict[str, int]:
        """Rows per outcome over all sweeps."""
        return {each: sum(one.outcomes[each] for one in self.sweeps) for each in OUTCOMES}

    @property
    def verdicts(self) -> dict[str, int]:
        """Problems per verdict over all sweeps."""
        return {each: sum(one.verdicts[each] for one in self.sweeps) for each in VERDICTS}


def compared(
    old: Side,
    new: Side,
    spec_of: Callable[[str], Spec],
    rule: Rule,
    gpus: Mapping[str, str] | None = None,
    only: Collection[str] = (),
) -> Comparison:
    """Compare every sweep that both sides have.

    ``spec_of``: workload to its spec; raises :class:`UserError` for one that is unknown.
    ``gpus``: GPU of OLD to the one of NEW that it is compared with, where names differ.
    ``only``: workloads that are compared; all where it is empty.
    Raises UserError when no sweep is in both, a name is in neither, or a file does not fit its
    workload.
    """
    gpus = gpus or {}
    _check_names(old, new, gpus, only)
    wanted_old, wanted_new = (
        {key for key in side.files if not only or key[1] in only} for side in (old, new)
    )
    pairs = {key: (gpus.get(key[0], key[0]), key[1]) for key in sorted(wanted_old)}
    pairs = {key: partner for key, partner in pairs.items() if partner in wanted_new}
    if not pairs:
        message = (
            f"no sweep in common: {old.name} has {_listed(wanted_old)}; "
            f"{new.name} has {_listed(wanted_new)} (--gpu OLD=NEW compares GPUs of other names)"
        )
        raise UserError(COMMAND, "", message)
    sweeps = []
    for key, partner in pairs.items():
        spec = spec_of(key[1])
        rows = matched(old.read(key, spec), new.read(partner, spec), spec, rule)
        answers = best_answers(rows, spec, rule)
        sweeps.append(SweepComparison(spec, key[0], partner[0], rows, answers, differences(rows)))
    only_new = wanted_new - set(pairs.values())
    return Comparison(
        old.name, new.name, rule, sweeps, sorted(wanted_old - set(pairs)), sorted(only_new)
    )


def _check_names(old: Side, new: Side, gpus: Mapping[str, str], only: Collection[str]) -> None:
    for side, names in ((old, gpus.keys()), (new, gpus.values())):
        known = {gpu for gpu, _ in side.files}
        for name in names:
            if name not in known:
                raise UserError(COMMAND, "--gpu", f"{side.name}: {unknown('GPU', name, known)}")
    workloads = {workload for side in (old, new) for _, workload in side.files}
    for name in only:
        if name not in workloads:
            raise UserError(COMMAND, "--only", unknown("workload", name, workloads))


def _listed(keys: Collection[Key]) -> str:
    names = [f"{workload} on {gpu}" for gpu, workload in sorted(keys)]
    more = [f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    return ", ".join([*names[:MOST_LISTED], *more]) or "none"


STALE = "stale"  # The only complaint about answers
COMPLAINTS = ("slower", "stopped", "broken", STALE, "gone")
"""Outcomes of rows that may reject a comparison, and ``stale`` answers."""
BY_CHANCE = ("slower", "stopped")
"""Complaints that chance makes, too; the others are facts."""


def complaints(
    comparison: Comparison, wanted: Collection[str], allowed_percent: float
) -> list[str]:
    """A line for each complaint about each sweep; none where nothing got worse.

    ``wanted``: what counts.
    ``allowed_percent``: share of a sweep's matched rows that may be slower or stopped, 0 to 100.
    """
    return [line for one in comparison.sweeps for line in _of_sweep(one, wanted, allowed_percent)]


def _of_sweep(one: SweepComparison, wanted: Collection[str], allowed_percent: float) -> list[str]:
    counts = {
        each: one.verdicts[each] if each == STALE else one.outcomes[each]
        for each in COMPLAINTS
        if each in wanted
    }
    if 100 * sum(counts.get(each, 0) for each in BY_CHANCE) <= allowed_percent * one.matched:
        counts = {each: count for each, count in counts.items() if each not in BY_CHANCE}
    where = f"{one.spec.workload} on {one.new_gpu}"
    return [
        f"{where}: {count} {'best configuration' if each == STALE else 'row'}"
        f"{'s' if count > 1 else ''} {each}"
        for each, count in counts.items()
        if count
    ]
