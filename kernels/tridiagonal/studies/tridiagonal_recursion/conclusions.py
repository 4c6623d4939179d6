"""The paper's conclusions on recursion, and its rule for m per level (section 3.2) by our rows.

m of the outermost level is what the heuristic says for n; that of the first recursion is what it
says for the first interface system, or a fixed m = 10 (the text lost the condition, so both are
looked up); those of further recursions are what it says for their interface systems. The heuristic
is the nearest size's corrected optimum without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.base.robust import FASTER, SLOWER, UNDECIDED
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Table
from launchwise.report.fields import of_texts
from launchwise.report.numbers import records
from launchwise.tables.rows import Z95, ratio_limits
from launchwise.workloads.spec import Spec

from ...host.plan import Level
from ...learning.optima import corrected_optima, with_a_choice
from ...learning.series import by_nearness
from ..host_runs import APART, LEVELS, alike, slower
from .gains import by_cause
from .series import (
    ADDED,
    CHOICE,
    SAVED,
    SIZE,
    RecursionSeries,
    fixed_size_losses,
    said_levels,
    stage_changes,
)

MOST = len(LEVELS) - 1  # most recursions that the tunables allow


ONE_LAUNCH, NOT_MEASURED, IMPOSSIBLE = "one launch", "not measured", "too small a system"


@dataclass(frozen=True)
class SizeRule:
    """m by the nearest size in log(n); ``sizes`` ascend."""

    sizes: tuple[int, ...]
    choices: tuple[int, ...]

    @classmethod
    def of(cls, flat: pd.DataFrame) -> SizeRule | None:
        """From rows without recursion; None where no size has two m and an optimum among them. A
        size whose fastest m is the largest that was tried there has no known optimum. The trend of
        the optima never falls, so such a size would hold down those of all smaller ones."""
        rows = with_a_choice(flat, SIZE, "m")
        rows = rows[rows[SIZE].isin(_bracketed(rows))]
        if rows.empty:
            return None
        optima = corrected_optima(rows, SIZE, "m")
        return cls(tuple(map(int, optima[SIZE])), tuple(map(int, optima["m"])))

    def m(self, rows: int) -> int:
        return self.choices[int(by_nearness(self.sizes, rows)[0])]


def _bracketed(rows: pd.DataFrame) -> pd.Index:
    """Sizes at which a larger m than the fastest was tried."""
    fastest = rows.sort_values("time_ms").drop_duplicates(SIZE).set_index(SIZE)["m"]
    largest = rows.groupby(SIZE)["m"].max()
    return largest.index[largest > fastest.reindex(largest.index)]


def chosen_levels(
    rule: SizeRule, rows: int, depth: int, spec: Spec, first: int | None = None
) -> tuple[int, ...] | None:
    """m of each level by the rule of section 3.2, the outermost first.

    ``first``: m of the first recursion; the rule's for the first interface system if None.
    Returns a tuple: ``depth + 1`` values, each the nearest (in its logarithm) that the level's
    tunable has. None where an interface system is too small to be cut again.
    """
    found = []
    for place, tunable in enumerate(LEVELS[: depth + 1]):
        wanted = first if place == 1 and first is not None else rule.m(rows)
        allowed = sorted(int(str(m)) for m in spec.tunables[tunable].values if m)
        m = allowed[int(by_nearness(allowed, wanted)[0])]
        level = Level(rows, m)
        if m > rows or level.interface_rows >= rows:
            return None
        found.append(m)
        rows = level.interface_rows
    return tuple(found)


def looked_up(case: RecursionSeries, rule: SizeRule, first: int | None = None) -> pd.DataFrame:
    """Choice of the rule at each size for each number of recursions, and its loss. Returns a
    DataFrame: ``n``, ``depth`` (1 to 4), ``levels`` (m per level, or None), ``state`` (empty, or
    why there is no time), ``loss_percent`` against the fastest row of the size, NaN unless the
    choice's row has repeats, and ``told``: whether it is slower beyond error."""
    kept = [SIZE, *LEVELS, "status", "time_ms", "error", "basis", "card"]
    known = {
        (int(row[SIZE]), *(int(row[name]) for name in LEVELS)): row
        for row in records(_fastest_known(case).filter(items=kept))
    }
    found = []
    pairs: list[Mapping[str, object]] = []
    for best in records(case.overall.filter(items=kept)):
        size = best[SIZE]
        for depth in range(1, MOST + 1):
            levels = chosen_levels(rule, int(size), depth, case.spec, first)
            state = IMPOSSIBLE
            if levels is not None:
                row = known.get((int(size), *levels, *[0] * (MOST - depth)))
                state = _state(row)
                pairs += [best, row] if row is not None and not state else []
            found.append((int(size), depth, levels, state, np.nan, False))
    table = pd.DataFrame(found, columns=[SIZE, CHOICE, "levels", "state", "loss_percent", "told"])
    if pairs:
        both = pd.DataFrame(pairs)
        low, _ = ratio_limits(both, np.arange(len(both)) // 2 * 2)
        losses = 100 * (both["time_ms"].to_numpy()[1::2] / both["time_ms"].to_numpy()[::2] - 1)
        timed, near = table["state"] == "", alike(both[1::2], both[::2])
        table.loc[timed, "loss_percent"] = np.where(near, losses, np.nan)
        table.loc[timed, "told"] = near & (low[1::2] > 1)
        table.loc[timed, "state"] = np.where(near, "", APART)
    return table


def _fastest_known(case: RecursionSeries) -> pd.DataFrame:
    """The fastest row of each size and m per level; one with repeats before others."""
    once = case.timed["status"] != "ok"
    order = case.timed.assign(_once=once).sort_values(["_once", "time_ms"])
    return order.drop_duplicates([SIZE, *LEVELS])


def _state(row: Mapping[str, object] | None) -> str:
    if row is None:
        return NOT_MEASURED
    return "" if row["status"] == "ok" else ONE_LAUNCH


def looked_up_ways(case: RecursionSeries, fixed: int) -> dict[str, pd.DataFrame]:
    """:func:`looked_up` with m1 by the rule, and with a fixed one; empty where there is no rule."""
    rule = SizeRule.of(case.flat)
    if rule is None:
        return {}
    return {"m1 by the rule": looked_up(case, rule), f"m1 = {fixed}": looked_up(case, rule, fixed)}


SMALL_PERCENT = 2.5  # loss (%) that the paper calls significant when it is exceeded

Row = tuple[str, str, str, bool | str | None]
"""Conclusion, paper, here, and whether it holds (None: not tested), or UNDECIDED."""


def conclusions(
    every: Sequence[RecursionSeries], names: Mapping[str, str], facts: Mapping[str, str], fixed: int
) -> Table:
    """One row per conclusion, a column per case."""
    said = {None: MISSING, True: "yes", False: "no", UNDECIDED: UNDECIDED}
    by_claim: dict[tuple[str, str], dict[str, tuple[str, str]]] = {}
    for case in every:
        for claim, paper, here, holds in _of_case(case, facts, fixed):
            by_claim.setdefault((claim, paper), {})[case.title] = here, said[holds]
    rows = []
    for stated, found in by_claim.items():
        cells = [found.get(title, (MISSING, MISSING)) for title in names]
        held = dict.fromkeys(holds for _, holds in cells)
        verdict = next(iter(held)) if len(held) == 1 else ", ".join(holds for _, holds in cells)
        rows.append([*stated, *(here for here, _ in cells), verdict])
    titles = ("conclusion", "paper", *names.values(), "holds")
    return of_texts("Conclusions of the paper", titles, rows)


def _of_case(case: RecursionSeries, facts: Mapping[str, str], fixed: int) -> Iterator[Row]:
    yield from _pays(case, facts)
    yield _four(case, facts)
    yield from _fixed(case, facts, fixed)
    yield from _rule(case, fixed)
    yield from _stages(case)


def _pays(case: RecursionSeries, facts: Mapping[str, str]) -> Iterator[Row]:
    """In the paper's design, and over the best without recursion: only that is recursion's own. It
    pays where it is faster at the largest size of which the best is known."""
    found = by_cause(case)
    if found.empty:
        return
    held = {"": None, UNDECIDED: UNDECIDED, FASTER: True, SLOWER: False}
    apart = int((found["verdict"] == APART).sum())
    rivals = found[~found["verdict"].isin(["", APART])]
    text = _most(found, "designed")
    if len(rivals):
        said = rivals["verdict"].value_counts()
        text += (
            f"; over the fastest by other streams or Thomas {_most(rivals, 'gain')}, faster beyond "
            f"error at {said.get(FASTER, 0)} of {wording.plural(len(rivals), 'size')}, slower at "
            f"{said.get(SLOWER, 0)}"
        )
    text += f"; {apart} {APART}" if apart else ""
    yield (
        "Recursion pays at large sizes",
        f"up to {facts.get('speed_up_recursion', MISSING)}x (size lost)",
        text,
        held[rivals["verdict"].iloc[-1]] if len(rivals) else None,
    )


def _most(found: pd.DataFrame, gain: str) -> str:
    row = records(found.sort_values(gain))[-1]
    return f"up to {wording.fixed(row[gain], 2)}x (n = {wording.count(row[SIZE])})"


def _four(case: RecursionSeries, facts: Mapping[str, str]) -> Row:
    """Sizes where more recursions than in the paper are fastest, beyond error or tied."""
    limit = int(facts.get("recursions_that_pay_most", 3))
    case = case.comparable
    depths = case.least
    deep = [int(size) for size in depths.index[depths > limit]]
    others = case.best[(case.best[CHOICE] > limit) | ~slower(case.best, SIZE)]
    alone = {*deep} - {*others.loc[others[CHOICE] <= limit, SIZE]}
    return (
        f"More than {limit} recursions are never the fastest",
        "at no size",
        f"fastest at {len(deep)} of {wording.plural(len(depths), 'size')}, beyond error at "
        f"{len(alone)}",
        not alone and (UNDECIDED if deep else True) if len(depths) else None,
    )


def _fixed(case: RecursionSeries, facts: Mapping[str, str], fixed: int) -> Iterator[Row]:
    losses = fixed_size_losses(case, "m1")
    own = next((row for row in records(losses) if row["value"] == fixed), None)
    if own is None:
        return
    agree = facts.get("second_level_cases_that_agree", MISSING)
    tried = wording.listed(facts.get("second_level_m_tried", "").split())
    yield (
        f"m = {fixed} may be fixed for the first recursion",
        f"best in {agree} of {facts.get('second_level_cases', MISSING)} cases, {tried or MISSING} "
        "differ by little (figure lost)",
        f"best or tied at {wording.count(own['best_at'])} of "
        f"{wording.plural(own['problems'], 'size')}; {_lost(own['worst_loss_percent'])}",
        bool(own["worst_loss_percent"] <= SMALL_PERCENT),
    )


def _rule(case: RecursionSeries, fixed: int) -> Iterator[Row]:
    """The rule of section 3.2 at the best number of recursions; judged where half have a time."""
    depths = case.overall.set_index(SIZE)[CHOICE]
    for way, found in looked_up_ways(case, fixed).items():
        best = found[found[CHOICE].to_numpy() == depths.reindex(found[SIZE]).to_numpy()]
        timed = best[best["state"] == ""]
        most = timed["loss_percent"].where(timed["told"], 0.0).max()
        known = int((found["state"] == "").sum())
        text = f"{known} of {len(found)} choices compared, {len(timed)} of {len(depths)} at the "
        text += f"best number; {_lost(most)}" if len(timed) else "best number"
        holds = bool(most <= SMALL_PERCENT) if len(timed) >= len(depths) / 2 else None
        claim = f"m per level by the rule of section 3.2, {way}"
        yield claim, "no losses", text, holds


def _lost(most: float) -> str:
    """The largest loss (%) beyond error; 0 where there is none."""
    return (
        f"loses at most {wording.fixed(most, 2)} % beyond error" if most else "no loss beyond error"
    )


def _depths(depths: Sequence[int]) -> str:
    """``0 to 4``; one by one where some number between the ends has no time."""
    if len(depths) == depths[-1] - depths[0] + 1:
        return f"{depths[0]} to {depths[-1]}"
    return wording.listed(map(wording.count, depths))


def _stages(case: RecursionSeries) -> Iterator[Row]:
    """Time that a recursion saves at the largest size, and adds at the smallest: every step beyond
    the errors of another visit; one against it beyond them refutes it. At the largest size copies
    and the interface system take most, at the smallest the launches."""
    found = stage_changes(case)
    if found.empty:
        return
    for does, names, size, grows in (
        ("saves", SAVED, found[SIZE].max(), False),
        ("adds time of", ADDED, found[SIZE].min(), True),
    ):
        own = found[found[SIZE] == size].set_index(CHOICE)
        times = own[[f"{name}_ms" for name in names]].sum(axis=1)
        if len(times) < 2:
            continue
        steps = np.log(times.clip(lower=1e-6)).diff() * (1 if grows else -1)
        reach = Z95 * np.hypot(own["error"], own["error"].shift())
        listed = ", ".join(wording.number(value, 3) for value in times)
        yield (
            f"Each recursion {does} {wording.listed(names.values())}",
            "supposed",
            f"n = {wording.count(size)}, m = {said_levels(records(own)[-1])}: {listed} ms with "
            f"{_depths(list(times.index))}",
            not (steps < -reach).any() and (bool((steps > reach)[1:].all()) or UNDECIDED),
        )
