"""The paper's conclusions, each with the figures here that speak for or against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Table
from launchwise.report.fields import of_texts
from launchwise.report.study import StudyData

from ..neighbours import Learnt
from .borrowed import lost, precisions, transfers
from .resources import block_losses, chosen_by_occupancy
from .series import CHOICE, SIZE, SubsystemSeries
from .solvers import LEAST, SOLVERS

SMALL_PERCENT = 5.0
"""Loss up to which following the trend is called cheap: the paper's largest is 4.0 %."""


RANKS = {"second": 2, "third": 3, "fourth": 4}  # ranks of corrected optima that the paper counts

Conclusion = tuple[str, str, str, str]
"""Claim, the paper's figure, ours, and in how many of how many cases it holds."""


def cases(held: int, of: int) -> str:
    return f"{held} of {of} cases"


def conclusions(
    study: StudyData,
    every: Sequence[SubsystemSeries],
    entries: Sequence[Learnt],
    occupancy: Mapping[str, pd.DataFrame],
    solvers: Mapping[str, pd.DataFrame],
    published: Mapping[str, Records],
) -> Table:
    """One row per conclusion; a case is a GPU and a precision, or a pair of GPUs.

    ``occupancy``: title of a case to its occupancy at its optima.
    ``solvers``: title of a case to its :func:`~solvers.by_solver`.
    """
    facts = facts_of(published)
    rows = (
        _trend(every, facts),
        _larger(every, facts),
        *_solvers(solvers),
        *_rule(entries, facts),
        _aligned(every, facts, published.get("optima_float64", [])),
        _fewer_blocks(every),
        *_transferred(study, every, facts),
        *_precisions(every),
        *_occupancy(occupancy, facts),
        *_guide(study, every),
        *_threads(study, facts),
    )
    titles = ("conclusion", "paper", "here", "holds in")
    return of_texts("Conclusions of the paper and what is measured here", titles, rows)


def _trend(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    found = [(case.corrected[CHOICE], lost(case.corrected)) for case in every]
    grows = [
        choices.iloc[-1] > choices.iloc[0] and not losses["worst_percent"] > SMALL_PERCENT
        for choices, losses in found
    ]
    moved = pd.concat([case.corrected for case in every])
    sizes, moved = len(moved), moved[~moved["tied"]]
    costs = [facts.get(f"corrections_of_{size}_cost", MISSING) for size in ("small", "larger")]
    worst = max(losses["worst_percent"] for _, losses in found)
    return (
        f"The best {CHOICE} grows with the size; to follow the trend is cheap",
        f"{facts.get('corrected_optima', MISSING)} of {facts.get('sizes', MISSING)} corrected"
        + _to_ranks({rank: int(facts.get(f"corrected_to_{rank}_best", 0)) for rank in RANKS})
        + f", {costs[0]} at a small and {costs[1]} at a larger cost",
        f"{len(moved)} of {sizes} corrected to an {CHOICE} that is slower beyond error"
        + _to_ranks({rank: int((moved["rank"] == at).sum()) for rank, at in RANKS.items()})
        + f"; at most {wording.fixed(worst, 2)} % lost in pairs",
        cases(sum(grows), len(grows)),
    )


def _to_ranks(counts: Mapping[str, int]) -> str:
    """How many were corrected to the second best m, to the third and so on."""
    said = [f"{count} to the {rank} best" for rank, count in counts.items() if count]
    return f" ({wording.listed(said)})" if said else ""


def _larger(every: Sequence[SubsystemSeries], facts: Mapping[str, str]) -> Conclusion:
    """No verdict: the paper's two m are lost, and ours is over the slowest smaller one."""
    best = pd.concat(
        [case.best.merge(case.observed, on=SIZE, suffixes=("", "_best")) for case in every]
    )
    smaller = best[best[CHOICE] < best[f"{CHOICE}_best"]]
    ratio = smaller["time_ms"] / smaller["time_ms_best"]
    here = MISSING
    if len(ratio):
        row = smaller.iloc[int(ratio.argmax())]
        here = (
            f"up to {wording.fixed(ratio.max(), 2)}x, at {SIZE} = {wording.count(row[SIZE])}: "
            f"{CHOICE} = {wording.count(row[f'{CHOICE}_best'])} over {wording.count(row[CHOICE])} "
            f"({row['gpu']}, {row['dtype']}); not the paper's two m"
        )
    return (
        f"The best {CHOICE} is faster than a smaller one",
        f"up to {facts.get('speed_up_larger_m', MISSING)}x (size and both m lost)",
        here,
        MISSING,
    )


def _solvers(solvers: Mapping[str, pd.DataFrame]) -> Iterator[Conclusion]:
    """The paper's m, by who solves stage 2: it does not say whom it had."""
    for title, found in solvers.items():
        said = [
            f"with {name} it loses {wording.fixed(_mean_loss(found[f'{solver}_loss']), 1)} % in "
            f"the geometric mean, beyond error at {(~found[f'{solver}_tied']).sum()} of "
            f"{wording.plural(len(found), 'size')}"
            for solver, name in SOLVERS.items()
        ]
        held = [bool(found[f"{solver}_tied"].all()) for solver in SOLVERS]
        yield (
            f"The {CHOICE} of table I is the fastest from {wording.count(LEAST)} rows on",
            "by measurement; the solver of stage 2 is not named",
            f"{'; '.join(said)} ({title})",
            f"{sum(held)} of {len(held)} solvers",
        )


def _mean_loss(percent: pd.Series) -> float:
    return 100 * (geometric_mean(1 + percent.to_numpy() / 100) - 1)


def _rule(entries: Sequence[Learnt], facts: Mapping[str, str]) -> Iterator[Conclusion]:
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
        # Missing where nothing of a case ran in pairs.
        worst = pd.Series([one.worst_loss_percent for one in classes]).max()
        tested = sum(len(one.predictions) for one in classes)
        told = tested - sum(one.unmeasured for one in classes)
        given = [facts.get(f"accuracy_{name}_{dtype}", MISSING) for dtype in ("float64", "float32")]
        yield (
            f"Nearest neighbours predict {name} optima better than the most frequent one",
            f"accuracy {given[0]} in float64, {given[1]} in float32",
            f"accuracy {wording.fixed(low, 2)} to {wording.fixed(high, 2)}; a miss costs at most "
            f"{wording.fixed(worst, 2)} % in pairs, told at {told} of "
            f"{wording.plural(tested, 'test size')}",
            cases(better, len(classes)),
        )


def _aligned(
    every: Sequence[SubsystemSeries], facts: Mapping[str, str], theirs: Records
) -> Conclusion:
    """Optima where streams cut the data that are multiples of the paper's 32 in float64.

    A case holds where every size that tells (:func:`_telling`) has multiples alone as its optima.
    """
    step = int(facts.get("aligned_m_float64", 32))
    held, sizes, gains, found = 0, 0, [], {"alone": 0, "tied": 0, "other": 0}
    double = [case for case in every if case.dtype == "float64"]
    for case in double:
        cut = case.best[case.best["streams"] > 1]
        told = _telling(cut, step)
        optima = [[m % step == 0 for m in case.ties[int(n)]] for n in told.index]
        found["alone"] += (alone := sum(map(all, optima)))
        found["other"] += (other := sum(not any(one) for one in optima))
        found["tied"] += len(optima) - alone - other
        held += bool(optima) and alone == len(optima)
        sizes += cut[SIZE].nunique()
        gains += list(told[False] / told[True]) if len(told) else []
    here = MISSING
    if double:
        here = (
            f"told by {len(gains)} of {wording.plural(sizes, 'size')}: at the others no other "
            f"{CHOICE} as large as the best multiple was measured"
        )
    if gains:
        here += (
            f"; there multiples alone are optima at {found['alone']}, tie with others at "
            f"{found['tied']}, are none at {found['other']}; the best multiple is "
            f"{wording.fixed(geometric_mean(gains), 3)} times as fast as the best other {CHOICE} "
            "(geometric mean)"
        )
    return (
        f"With several streams, the best {CHOICE} in float64 is a multiple of {step} "
        f"({8 * step} bytes, as memory is aligned)",
        _with_streams(theirs),
        here,
        cases(held, len(double)) if double else MISSING,
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
    return f"{said[0]} from {first} rows on, after correction; {said[1]} before (table I)"


def _fewer_blocks(every: Sequence[SubsystemSeries]) -> Conclusion:
    """Optima above the smallest m measured, beyond error: fewer blocks than possible."""
    larger, sizes, held = 0, 0, 0
    for case in every:
        smallest = case.rows.groupby(SIZE)[CHOICE].min()
        own = sum(smallest[size] not in choices for size, choices in case.ties.items())
        larger, sizes = larger + own, sizes + len(smallest)
        held += own > len(smallest) / 2
    return (
        "The largest number of blocks is not the fastest",
        "stated, without figures",
        f"the smallest {CHOICE}, with most blocks, is slower than the best beyond error at "
        f"{larger} of {sizes} sizes",
        cases(held, len(every)),
    )


def _transferred(
    study: StudyData, every: Sequence[SubsystemSeries], facts: Mapping[str, str]
) -> Iterator[Conclusion]:
    found = {pair: lost(losses) for pair, losses in transfers(every).items()}
    found = {pair: one for pair, one in found.items() if one["sizes"]}
    if not found:
        return
    names = ("worst_loss_a5000_percent", "worst_loss_rtx4080_percent")
    limits = [facts[name] for name in names if name in facts]
    _, source, target = worst = max(found, key=lambda pair: found[pair]["worst_percent"])
    limit = max((float(facts[name]) for name in names if name in facts), default=0.0)
    held = sum(one["worst_percent"] <= limit for one in found.values())
    models = {gpu: study.profiles[gpu].card_model for gpu in study.gpus}
    alike = sum(models[one] == models[other] for _, one, other in found)
    yield (
        "One GPU's rule serves another at a small loss",
        f"at most {wording.listed(f'{limit} %' for limit in limits)}" if limits else MISSING,
        f"at most {wording.fixed(found[worst]['worst_percent'], 2)} % ({source} on {target}, "
        f"{SIZE} = {wording.count(found[worst]['worst_size'])}); "
        f"of {wording.plural(len(found), 'pair')} of GPUs with times in pairs {alike} are of one "
        "model of card",
        cases(held, len(found)),
    )


def _precisions(every: Sequence[SubsystemSeries]) -> Iterator[Conclusion]:
    for title, losses in precisions(every).items():
        found = lost(losses)
        text = (
            f"the rule of float64 is best or ties at {losses['tied'].sum()} of {len(losses)} sizes"
        )
        if found["sizes"]:
            text += f"; it loses at most {wording.fixed(found['worst_percent'], 2)} % in pairs"
        claim, paper = "float32 needs a rule of its own", "no connection with float64 seen"
        yield claim, paper, f"{text} ({title})", cases(int(found["significant"] > 0), 1)


def _occupancy(
    occupancy: Mapping[str, pd.DataFrame], facts: Mapping[str, str]
) -> Iterator[Conclusion]:
    theirs = facts.get("theoretical_occupancy_percent")
    shares = {title: one[["stage_1", "stage_3"]] for title, one in occupancy.items()}
    if theirs is None or not shares:
        return
    held = sum(100 * one.min().min() >= float(theirs) for one in shares.values())
    every = pd.concat(shares.values())
    ends = {str(stage): (every[stage].min(), every[stage].max()) for stage in every}
    said = wording.listed(
        f"{wording.percent(low, 0)} to {wording.percent(high, 0)} % for {stage.replace('_', ' ')}"
        for stage, (low, high) in ends.items()
    )
    claim = "Registers and shared memory leave room for all threads of an SM at the optimum"
    yield claim, f"{theirs} % for both stages (figure 1)", said, cases(held, len(shares))


def _guide(study: StudyData, every: Sequence[SubsystemSeries]) -> Iterator[Conclusion]:
    found = {case.title: chosen_by_occupancy(study, case) for case in every}
    found = {title: one for title, one in found.items() if len(one)}
    if not found:
        return
    sizes = pd.concat(found.values())
    title = max(found, key=lambda name: found[name]["loss_percent"].max())
    worst = found[title].iloc[int(found[title]["loss_percent"].to_numpy().argmax())]
    held = sum(one["loss_percent"].max() > SMALL_PERCENT for one in found.values())
    yield (
        f"Occupancy is no guide to the best {CHOICE}",
        "stated: less than 100 % is achieved up to a size (lost in the text)",
        f"the {CHOICE} of the highest occupancy is the fastest at "
        f"{int((sizes['loss_percent'] == 0).sum())} of {wording.plural(len(sizes), 'size')}; it "
        f"loses {wording.fixed(_mean_loss(sizes['loss_percent']), 2)} % in the geometric mean, at "
        f"most {wording.fixed(worst['loss_percent'], 2)} % (n = {wording.count(worst[SIZE])}, "
        f"{title})",
        cases(held, len(found)),
    )


def _threads(study: StudyData, facts: Mapping[str, str]) -> Iterator[Conclusion]:
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
        f"{paper} on the RTX 2080 Ti; {a5000} on the RTX A5000 with a negligible difference",
        "; ".join(f"{value} ({title})" for title, value in best.items()),
        cases(sum(value == paper for value in best.values()), len(best)),
    )
