"""The paper's conclusions, each with the figures here that speak for or against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Table
from launchwise.report.fields import of_texts
from launchwise.report.study_tables import StudyData

from ...learning.optima import mean_loss
from ..host_runs import APART, SOLVERS, alike, slower
from .borrowed import CARDS, lost, precisions, transfers
from .resources import block_losses, chosen_by_occupancy
from .series import CHOICE, SIZE, SubsystemSeries
from .solvers import LEAST

SMALL_PERCENT = 5.0
"""Loss up to which following the trend is called cheap: the paper's largest is 4.0 %."""


Conclusion = tuple[str, str, str, str]
"""Claim, the paper's figure, ours, and in how many of how many cases it holds."""


def cases(held: int, of: int, undecided: int = 0) -> str:
    return f"{held} of {of}" + (f", {undecided} undecided" if undecided else "")


def conclusions(
    study: StudyData,
    every: Sequence[SubsystemSeries],
    names: Mapping[str, str],
    solvers: Mapping[str, pd.DataFrame],
    published: Mapping[str, Records],
) -> Table:
    """One row per conclusion; a case is a GPU and a precision, or a pair of GPUs.

    ``names``: title of a case to what is shown of it.
    ``solvers``: title of a case to its :func:`~solvers.by_solver`.
    """
    facts = facts_of(published)
    rows = (
        _trend(every, facts),
        _larger(every, facts),
        *_solvers(solvers, names),
        _aligned(every, facts, published.get("optima_float64", [])),
        _fewer_blocks(every),
        *_transferred(every, names, facts),
        *_precisions(every, names),
        *_guide(study, every),
        *_threads(study, names, facts),
    )
    titles = ("conclusion", "paper", "here", "holds in cases")
    return of_texts("Conclusions of the paper", titles, rows)


def _trend(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    found = [(case.corrected[CHOICE], lost(case.corrected)) for case in every]
    grows = [
        choices.iloc[-1] > choices.iloc[0] and not losses["told_percent"] > SMALL_PERCENT
        for choices, losses in found
    ]
    followed = pd.concat([case.corrected for case in every])
    moved = followed[~followed["tied"]]
    percent = 100 * (followed["time_ms"] / followed["best_ms"] - 1)
    most = percent.groupby(followed["state"] == "").agg(["size", "max"])
    said = [
        f"at most {wording.fixed(most.loc[paired, 'max'], 2)} % lost at the "
        f"{wording.count(most.loc[paired, 'size'])} {where}"
        for paired, where in ((True, "in pairs"), (False, "that are not, by single rows"))
        if paired in most.index
    ]
    return (
        f"The best {CHOICE} grows with the size; to follow the trend is cheap",
        f"{facts.get('corrected_optima', MISSING)} of {facts.get('sizes', MISSING)} corrected",
        f"{len(moved)} of {len(followed)} corrected to one slower beyond error; {', '.join(said)}",
        cases(sum(grows), len(grows)),
    )


def _larger(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    """No verdict: the paper's two m are lost, and ours is over the slowest smaller one."""
    both = (case.best.merge(case.optimum_rows, on=SIZE, suffixes=("", "_best")) for case in every)
    best = pd.concat(both)
    smaller = best[best[CHOICE] < best[f"{CHOICE}_best"]]
    theirs = smaller.filter(like="_best").rename(columns=lambda name: name.removesuffix("_best"))
    near = alike(smaller, theirs)
    smaller, apart = smaller[near], int((~near).sum())
    ratio = smaller["time_ms"] / smaller["time_ms_best"]
    here = MISSING
    if len(ratio):
        row = smaller.iloc[int(ratio.argmax())]
        here = (
            f"up to {wording.fixed(ratio.max(), 2)}x, {CHOICE} = "
            f"{wording.count(row[f'{CHOICE}_best'])} over {wording.count(row[CHOICE])} at {SIZE} = "
            f"{wording.count(row[SIZE])} ({row['gpu']}, {row['dtype']}); {apart} {APART}"
        )
    return (
        f"The best {CHOICE} is faster than a smaller one",
        f"up to {facts.get('speed_up_larger_m', MISSING)}x (size and m lost)",
        here,
        MISSING,
    )


def _solvers(solvers: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> Iterator[Conclusion]:
    """The paper's m, by who solves stage 2: it does not say whom it had."""
    for title, found in solvers.items():
        said = [
            f"{name} loses {wording.fixed(mean_loss(found[f'{solver}_loss']), 1)} % "
            "(geometric mean), beyond error at "
            f"{(~found[f'{solver}_tied']).sum()} of {len(found)} sizes"
            for solver, name in SOLVERS.items()
        ]
        held = [bool(found[f"{solver}_tied"].all()) for solver in SOLVERS]
        yield (
            f"Its {CHOICE} is the fastest or ties from {wording.count(LEAST)} rows on",
            "solver of stage 2 not named",
            f"{'; '.join(said)} ({names.get(title, title)})",
            cases(sum(held), len(held)),
        )


def _aligned(
    every: Sequence[SubsystemSeries], facts: Mapping[str, str], theirs: Records
) -> Conclusion:
    """Optima where streams cut the data that are multiples of the paper's 32 in float64.

    A case holds where every size that tells (:func:`_telling`) has multiples alone as its optima.
    """
    step = int(facts.get("aligned_m_float64", 32))
    held, undecided, sizes, told_at = 0, 0, 0, 0
    found = {"alone": 0, "tied": 0, "other": 0}
    double = [case for case in every if case.dtype == "float64"]
    for case in double:
        cut = case.best[case.best["streams"] > 1]
        told = _telling(cut, step)
        optima = [[m % step == 0 for m in case.ties[int(n)]] for n in told.index]
        found["alone"] += (alone := sum(map(all, optima)))
        found["other"] += (other := sum(not any(one) for one in optima))
        found["tied"] += len(optima) - alone - other
        held += bool(optima) and alone == len(optima)
        undecided += not other and alone < max(len(optima), 1)
        sizes += cut[SIZE].nunique()
        told_at += len(told)
    here = MISSING
    if double:
        # Elsewhere no other m as large as the best multiple was measured.
        here = f"told by {told_at} of {wording.plural(sizes, 'size')}"
    if told_at:
        here += (
            f": multiples alone best at {found['alone']}, tie at {found['tied']}, are not at "
            f"{found['other']}"
        )
    return (
        f"With several streams, the best {CHOICE} in float64 is a multiple of {step}",
        _with_streams(theirs),
        here,
        cases(held, len(double), undecided) if double else MISSING,
    )


def _telling(best: pd.DataFrame, step: int) -> pd.DataFrame:
    """Least time by size (index) of other m and of multiples of ``step`` (columns False and True),
    at the sizes that tell which is faster: the fastest is another m, or one was measured that is
    larger than the best multiple. Elsewhere a multiple may win by being larger."""
    least = best.sort_values("time_ms").assign(multiple=best[CHOICE] % step == 0)
    first = least.drop_duplicates([SIZE, "multiple"]).set_index([SIZE, "multiple"])
    times = first["time_ms"].unstack().reindex(columns=[False, True]).dropna()
    largest = least[~least["multiple"]].groupby(SIZE)[CHOICE].max().reindex(times.index)
    chosen = first[CHOICE].unstack().reindex(index=times.index, columns=[True])[True]
    return times[(largest > chosen) | (times[False] < times[True])]


def _with_streams(theirs: Records) -> str:
    """Optima of table I with several streams, after correction and before."""
    cut = [row for row in theirs if row["n"] and int(row["streams"]) > 1]
    if not cut:
        return MISSING
    said = [
        wording.listed([str(m) for m in sorted({int(row[name]) for row in cut})])
        for name in ("m_corrected", "m_observed")
    ]
    first = wording.count(min(int(row["n"]) for row in cut))
    return f"{said[0]} from {first} rows on; {said[1]} before correction"


def _fewer_blocks(every: Sequence[SubsystemSeries]) -> Conclusion:
    """Optima above the smallest m measured, beyond error: fewer blocks than possible."""
    larger, sizes, held = 0, 0, 0
    for case in every:
        told = case.best.assign(slower=slower(case.best, SIZE))
        smallest = told.sort_values(CHOICE).groupby(SIZE)["slower"].first()
        own = int(smallest.sum())
        larger, sizes = larger + own, sizes + len(smallest)
        held += own > len(smallest) / 2
    return (
        "The largest number of blocks is not the fastest",
        "stated",
        f"the smallest {CHOICE} is slower beyond error at {larger} of {sizes} sizes",
        cases(held, len(every)),
    )


def _transferred(
    every: Sequence[SubsystemSeries], names: Mapping[str, str], facts: Mapping[str, str]
) -> Iterator[Conclusion]:
    found = {pair: lost(losses) for pair, losses in transfers(every).items()}
    found = {pair: one for pair, one in found.items() if one["sizes"]}
    if not found:
        return
    limits = [facts.get(f"worst_loss_{card}_percent", MISSING) for card in CARDS]
    source, target = worst = max(found, key=lambda pair: found[pair]["worst_percent"])
    limit = max((float(one) for one in limits if one != MISSING), default=0.0)
    held = sum(one["told_percent"] <= limit for one in found.values())
    yield (
        "One GPU's rule serves another at a small loss",
        f"at most {wording.listed(f'{one} %' for one in limits)}",
        f"at most {wording.fixed(found[worst]['worst_percent'], 2)} % ({names[source]} on "
        f"{names[target].partition(',')[0]})",
        cases(held, len(found)),
    )


def _precisions(every: Sequence[SubsystemSeries], names: Mapping[str, str]) -> Iterator[Conclusion]:
    found = {target: lost(one) for (_, target), one in precisions(every).items()}
    found = {target: one for target, one in found.items() if one["sizes"]}
    if found:
        said = (
            f"{wording.fixed(one['worst_percent'], 2)} % ({names[target]})"
            for target, one in found.items()
        )
        yield (
            "float32 needs a rule of its own",
            "no connection with float64 seen",
            f"that of float64 loses at most {wording.listed(said)}",
            cases(sum(one["significant"] > 0 for one in found.values()), len(found)),
        )


def _guide(study: StudyData, every: Sequence[SubsystemSeries]) -> Iterator[Conclusion]:
    found = {case.title: chosen_by_occupancy(study, case) for case in every}
    found = {title: one for title, one in found.items() if len(one)}
    if not found:
        return
    sizes = pd.concat(found.values())
    held = sum(one["loss_percent"].max() > SMALL_PERCENT for one in found.values())
    yield (
        f"Occupancy is no guide to the best {CHOICE}",
        "stated",
        f"the {CHOICE} of the highest is the fastest at {int((sizes['loss_percent'] == 0).sum())} "
        f"of {wording.plural(len(sizes), 'size')} on one card or in pairs; loses "
        f"{wording.fixed(mean_loss(sizes['loss_percent']), 2)} % in the geometric mean",
        cases(held, len(found)),
    )


def _threads(
    study: StudyData, names: Mapping[str, str], facts: Mapping[str, str]
) -> Iterator[Conclusion]:
    losses = block_losses(study)
    if not losses:
        return
    paper = int(facts.get("threads_per_block", 256))
    a5000 = facts.get("threads_per_block_fastest_a5000", MISSING)
    best = {
        title: int(one["value"].iloc[int(one["loss_percent"].argmin())])
        for title, one in losses.items()
    }
    yield (
        f"{paper} threads per block are the fastest",
        f"RTX 2080 Ti; RTX A5000: {a5000}, by little",
        "; ".join(f"{value} ({names.get(title, title)})" for title, value in best.items()),
        cases(sum(value == paper for value in best.values()), len(best)),
    )
