"""The paper's conclusions, each with the figures here that speak for or against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Cell, Column, Table, table
from launchwise.report.study import StudyData

from ..neighbours import Learnt
from .borrowed import lost, precisions, transfers
from .resources import block_losses
from .series import CHOICE, SIZE, SubsystemSeries

COLUMNS = [
    Column("conclusion", number=False),
    Column("paper", number=False),
    Column("here", number=False),
    Column("holds in", number=False),
]

SMALL_PERCENT = 5.0
"""Loss up to which following the trend is called cheap: the paper's largest is 4.0 %."""


class Conclusion(NamedTuple):
    """``holds`` says in how many of how many cases; None where nothing here tests it."""

    claim: str
    paper: str
    here: str
    holds: tuple[int, int] | None


def conclusions(
    study: StudyData,
    every: Sequence[SubsystemSeries],
    entries: Sequence[Learnt],
    published: Mapping[str, Records],
) -> Table:
    """One row per conclusion; a case is a GPU and a precision, or a pair of GPUs."""
    facts = facts_of(published)
    rows = []
    for found in (
        _trend(every, facts),
        _larger(every, facts),
        *_rule(entries, facts),
        _aligned(every, facts),
        _fewer_blocks(every),
        *_transferred(every, facts),
        *_precisions(every, published),
        *_threads(study, facts),
    ):
        holds = MISSING if found.holds is None else f"{found.holds[0]} of {found.holds[1]} cases"
        texts = (Cell(found.claim), Cell(found.paper, role="theirs"), Cell(found.here), Cell(holds))
        rows.append(list(texts))
    return table("Conclusions of the paper and what is measured here", COLUMNS, rows)


def _trend(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    worst = {case.title: float(case.corrected["loss_percent"].max()) for case in every}
    grows = [
        case.corrected[CHOICE].iloc[-1] > case.corrected[CHOICE].iloc[0]
        and worst[case.title] <= SMALL_PERCENT
        for case in every
    ]
    most = max(worst, key=lambda title: worst[title])
    moved = sum(
        int((case.corrected[CHOICE] != case.corrected["observed_m"]).sum()) for case in every
    )
    sizes = sum(len(case.corrected) for case in every)
    return Conclusion(
        f"The best {CHOICE} grows with the size; to follow the trend is cheap",
        f"{facts.get('corrected_optima', MISSING)} of {facts.get('sizes', MISSING)} corrected",
        f"{moved} of {sizes} corrected; at most {wording.fixed(worst[most], 2)} % lost ({most}); "
        f"cheap: at most {SMALL_PERCENT:g} %",
        (sum(grows), len(grows)),
    )


def _larger(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    """Speed-up of the best m over a smaller m: over all m that were measured."""
    gains = {}
    for case in every:
        best = case.best.merge(case.observed, on=SIZE, suffixes=("", "_best"))
        smaller = best[best[CHOICE] < best[f"{CHOICE}_best"]]
        ratio = smaller["time_ms"] / smaller["time_ms_best"]
        if len(ratio):
            gains[case.title] = (float(ratio.max()), smaller.iloc[int(ratio.argmax())])
    paper = float(facts.get("speed_up_larger_m", "nan"))
    reached = sum(gain >= paper for gain, _ in gains.values())
    title = max(gains, key=lambda name: gains[name][0], default="")
    here = MISSING
    if title:
        gain, row = gains[title]
        here = (
            f"up to {wording.fixed(gain, 2)}x, at {SIZE} = {wording.count(row[SIZE])}: {CHOICE} = "
            f"{wording.count(row[f'{CHOICE}_best'])} over {wording.count(row[CHOICE])} ({title})"
        )
    return Conclusion(
        f"The best {CHOICE} is faster than a smaller one",
        f"up to {facts.get('speed_up_larger_m', MISSING)}x (sizes and m lost)",
        here,
        (reached, len(every)),
    )


def _rule(entries: Sequence[Learnt], facts: Mapping[str, str]) -> Iterator[Conclusion]:
    """Accuracy of the nearest neighbour, per kind of optima."""
    for name in ("observed", "corrected"):
        classes = [
            entry.classification
            for entry in entries
            if entry.optima == name and entry.classification is not None
        ]
        if not classes:
            continue
        low, high = min(one.accuracy for one in classes), max(one.accuracy for one in classes)
        better = sum(one.accuracy > one.null_accuracy for one in classes)
        worst = max(one.worst_loss_percent for one in classes)
        given = [facts.get(f"accuracy_{name}_{dtype}", MISSING) for dtype in ("float64", "float32")]
        yield Conclusion(
            f"Nearest neighbours predict {name} optima better than the most frequent one",
            f"accuracy {given[0]} in float64, {given[1]} in float32",
            f"accuracy {wording.fixed(low, 2)} to {wording.fixed(high, 2)}; a miss costs at most "
            f"{wording.fixed(worst, 2)} %",
            (better, len(classes)),
        )


def _aligned(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    """Optima where streams cut the data that are multiples of the paper's 32 in float64."""
    step = int(facts.get("aligned_m_float64", 32))
    held, counts = 0, []
    cases = [case for case in every if case.dtype == "float64"]
    for case in cases:
        cut = case.optimum_rows[case.optimum_rows["streams"] > 1]
        whole = int((cut[CHOICE] % step == 0).sum())
        counts.append(f"{whole} of {len(cut)}")
        held += bool(len(cut)) and whole == len(cut)
    return Conclusion(
        f"With several streams, the best {CHOICE} in float64 is a multiple of {step}",
        "32 or 64 from 200\u202f000 rows on, after correction",
        f"optima that are: {wording.listed(counts)} sizes" if counts else MISSING,
        (held, len(cases)) if cases else None,
    )


def _fewer_blocks(every: Sequence[SubsystemSeries]) -> Conclusion:
    """Optima above the smallest m measured, beyond error: fewer blocks than possible."""
    larger, sizes, held = 0, 0, 0
    for case in every:
        smallest = case.rows.groupby(SIZE)[CHOICE].min()
        own = sum(smallest[size] not in choices for size, choices in case.ties.items())
        larger, sizes = larger + own, sizes + len(smallest)
        held += own > len(smallest) / 2
    return Conclusion(
        "The largest number of blocks is not the fastest",
        "stated, without figures",
        f"the smallest {CHOICE}, with most blocks, is slower than the best beyond error at "
        f"{larger} of {sizes} sizes",
        (held, len(every)),
    )


def _transferred(
    every: Sequence[SubsystemSeries], facts: Mapping[str, str]
) -> Iterator[Conclusion]:
    found = {pair: lost(losses) for pair, losses in transfers(every).items()}
    found = {pair: one for pair, one in found.items() if one.sizes}
    if not found:
        return
    names = ("worst_loss_a5000_percent", "worst_loss_rtx4080_percent")
    limits = [float(facts[name]) for name in names if name in facts]
    _, source, target = worst = max(found, key=lambda pair: found[pair].worst_percent)
    held = sum(one.worst_percent <= max(limits, default=0.0) for one in found.values())
    yield Conclusion(
        "One GPU's rule serves another at a small loss",
        f"at most {wording.listed(f'{limit} %' for limit in limits)}" if limits else MISSING,
        f"at most {wording.fixed(found[worst].worst_percent, 2)} % ({source} on {target}, {SIZE} = "
        f"{wording.count(found[worst].worst_size)}); slices of one card",
        (held, len(found)),
    )


def _precisions(
    every: Sequence[SubsystemSeries], published: Mapping[str, Records]
) -> Iterator[Conclusion]:
    """Whether float32 needs a rule of its own."""
    single = precisions(every)
    for title, losses in single.items():
        found = lost(losses)
        same = int((losses[CHOICE] == losses["best_m"]).sum())
        text = f"the rule of float64 is best at {same} of {len(losses)} sizes"
        if found.sizes:
            text += (
                f"; it loses {wording.fixed(found.mean_percent, 2)} % in the mean and at most "
                f"{wording.fixed(found.worst_percent, 2)} %"
            )
        if losses["untried"].any():
            text += (
                f"; at {losses['untried'].sum()} sizes float64 did not try the best m of float32"
            )
        if found.one_launch:
            text += f"; {wording.plural(found.one_launch, 'size')} with one launch left out"
        yield Conclusion(
            "float32 needs a rule of its own",
            "no connection with float64 seen",
            f"{text} ({title})",
            (int(found.certain > 0), 1),
        )


def _threads(study: StudyData, facts: Mapping[str, str]) -> Iterator[Conclusion]:
    losses = block_losses(study)
    if not losses:
        return
    paper = int(facts.get("threads_per_block", 256))
    best = {
        title: int(one["value"].iloc[int(one["loss_percent"].argmin())])
        for title, one in losses.items()
    }
    yield Conclusion(
        f"{paper} threads per block are the fastest",
        f"{paper} on the RTX 2080 Ti",
        "; ".join(f"{value} ({title})" for title, value in best.items()),
        (sum(value == paper for value in best.values()), len(best)),
    )
