"""The paper's conclusions on recursion, each with the figures here that speak for or against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Table
from launchwise.report.fields import of_texts
from launchwise.report.numbers import records

from ..neighbours import Learnt
from .rule import looked_up_ways
from .series import ADDED, CHOICE, SAVED, SIZE, RecursionSeries, fixed_size_losses, stage_changes

SMALL_PERCENT = 2.5  # loss (%) that the paper calls significant when it is exceeded

Row = tuple[str, str, str, bool | None]
"""Conclusion, paper, here, and whether it holds (None: not tested)."""


def conclusions(
    every: Sequence[RecursionSeries],
    entries: Sequence[Learnt],
    facts: Mapping[str, str],
    fixed: int,
) -> Table:
    """One row per conclusion and case, those of a conclusion together."""
    said = {None: MISSING, True: "yes", False: "no"}
    by_claim: dict[str, list[tuple[str, ...]]] = {}
    for case in every:
        own = [entry for entry in entries if entry.title == case.title]
        for claim, paper, here, holds in _of_case(case, own, facts, fixed):
            by_claim.setdefault(claim, []).append((claim, paper, case.title, here, said[holds]))
    rows = [row for found in by_claim.values() for row in found]
    titles = ("conclusion", "paper", "measured on", "here", "holds")
    return of_texts("Conclusions of the paper and what is measured here", titles, rows)


def _of_case(
    case: RecursionSeries, entries: Sequence[Learnt], facts: Mapping[str, str], fixed: int
) -> Iterator[Row]:
    yield from _pays(case, facts)
    yield _four(case, facts)
    for entry in entries:
        classes = entry.classification
        if entry.optima == "corrected" and classes is not None:
            tested = len(classes.predictions)
            yield (
                "The nearest size predicts the number of recursions",
                f"accuracy {entry.paper[0]}, most frequent {entry.paper[1]}",
                f"accuracy {wording.fixed(classes.accuracy, 2)} of {tested} test sizes, most "
                f"frequent {wording.fixed(classes.null_accuracy, 2)}",
                classes.accuracy > classes.null_accuracy,
            )
    yield from _fixed(case, facts, fixed)
    yield from _rule(case, fixed)
    yield from _stages(case)


def _pays(case: RecursionSeries, facts: Mapping[str, str]) -> Iterator[Row]:
    most = case.speed_up().max(axis=1)
    if most.empty:
        return
    size = int(str(most.idxmax()))
    yield (
        "Recursion pays at large sizes",
        f"up to {facts.get('speed_up_recursion', MISSING)}x (size lost in the text)",
        f"up to {wording.fixed(most.max(), 2)}x, at {SIZE} = {wording.count(size)}",
        0 not in case.ties[size],
    )


def _four(case: RecursionSeries, facts: Mapping[str, str]) -> Row:
    """Sizes where more recursions than in the paper are fastest, beyond error or tied."""
    limit = int(facts.get("recursions_that_pay_most", 3))
    depths = case.overall.set_index(SIZE)[CHOICE]
    deep = [int(size) for size in depths.index[depths > limit]]
    alone = [size for size in deep if min(case.ties[size]) > limit]
    return (
        f"More than {limit} recursions are never the fastest",
        "at no size",
        f"fastest at {len(deep)} of {wording.plural(len(depths), 'size')}, beyond error at "
        f"{len(alone)}",
        not alone,
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
        f"best in {agree} of {facts.get('second_level_cases', MISSING)} cases; differences among "
        f"{tried or MISSING} called negligible (their percentage is lost in the text)",
        f"best or tied at {wording.count(own['best_at'])} of "
        f"{wording.plural(own['problems'], 'size')}; loses "
        f"{wording.fixed(own['loss_percent'], 2)} % in the mean, at most "
        f"{wording.fixed(own['worst_loss_percent'], 2)} %",
        bool(own["worst_loss_percent"] <= SMALL_PERCENT),
    )


def _rule(case: RecursionSeries, fixed: int) -> Iterator[Row]:
    """The rule of section 3.2 at the best number of recursions; judged where half have a time."""
    depths = case.overall.set_index(SIZE)[CHOICE]
    for way, found in looked_up_ways(case, fixed).items():
        best = found[found[CHOICE].to_numpy() == depths.reindex(found[SIZE]).to_numpy()]
        timed = best[best["state"] == ""]
        most = timed["loss_percent"].max()
        known = int((found["state"] == "").sum())
        text = (
            f"{known} of {len(found)} choices have a time, {len(timed)} of {len(depths)} at the "
            "best number of recursions"
        )
        text += f"; these lose at most {wording.fixed(most, 2)} %" if len(timed) else ""
        holds = bool(most <= SMALL_PERCENT) if len(timed) >= len(depths) / 2 else None
        claim = f"m per level follows from the rule by size, with {way}"
        yield claim, "formulated, without losses", text, holds


def _depths(depths: Sequence[int]) -> str:
    """``0 to 4``; one by one where some number between the ends has no time."""
    if len(depths) == depths[-1] - depths[0] + 1:
        return f"{depths[0]} to {depths[-1]}"
    return wording.listed(map(wording.count, depths))


def _stages(case: RecursionSeries) -> Iterator[Row]:
    """Time that a recursion saves at the largest size, and adds at the smallest.

    At the largest size copies and the interface system take most, at the smallest the launches.
    """
    found = stage_changes(case)
    for title, names, size, grows in (
        ("Each recursion saves copies and stage 2 on the host", SAVED, found[SIZE].max(), False),
        ("Each recursion adds an overhead on the device", ADDED, found[SIZE].min(), True),
    ):
        own = found[found[SIZE] == size].set_index(CHOICE)
        times = own[[f"{name}_ms" for name in names]].sum(axis=1)
        if len(times) < 2:
            continue
        steps = times.diff().dropna()
        listed = ", ".join(wording.number(value, 3) for value in times)
        yield (
            title,
            "supposed, without figures",
            f"at {SIZE} = {wording.count(size)}, {wording.listed(names.values())} take {listed} ms "
            f"with {_depths(list(times.index))} recursions",
            bool((steps > 0).all() if grows else (steps < 0).all()),
        )
