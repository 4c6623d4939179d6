"""Loss of an optimum borrowed from another GPU or another precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import NamedTuple

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.learning.metrics import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import (
    MISSING,
    Block,
    Cell,
    Column,
    Fold,
    Section,
    Table,
    Text,
    table,
)
from launchwise.report.study import StudyData

from .predicted import CARDS, SIGNIFICANT, predicted_transfer
from .series import CHOICE, NOT_MEASURED, ONE_LAUNCH, SIZE, SubsystemSeries

COLUMNS = [
    Column("optima of", number=False),
    Column("used on", number=False),
    Column("sizes"),
    Column("time lost", "% (mean)"),
    Column("time lost", "% (worst)"),
    Column("worst at", "rows"),
    Column(f"above {SIGNIFICANT} %", "sizes"),
    Column("beyond error", "sizes"),
    Column("one launch", "sizes"),
    Column("not measured", "sizes"),
]


class Lost(NamedTuple):
    """A rule used elsewhere, over the sizes that both have.

    ``sizes`` have a loss; ``one_launch`` and ``not_measured`` sizes have none, as the rule's m was
    stopped early or never tried there. ``significant`` losses are above :data:`SIGNIFICANT`,
    ``certain`` ones of these beyond the errors of the times.
    """

    sizes: int
    mean_percent: float
    worst_percent: float
    worst_size: int | None
    significant: int
    certain: int
    one_launch: int
    not_measured: int


def lost(losses: pd.DataFrame) -> Lost:
    """Summary of :meth:`SubsystemSeries.losses`."""
    timed = losses[losses["state"] == ""]
    percent = timed["loss_percent"]
    above = timed[percent > SIGNIFICANT]
    worst = int(timed[SIZE].iloc[int(percent.argmax())]) if len(timed) else None
    return Lost(
        sizes=len(timed),
        mean_percent=100 * (geometric_mean(1 + percent.to_numpy() / 100) - 1),
        worst_percent=float(percent.max()),
        worst_size=worst,
        significant=len(above),
        certain=int((~above["tied"]).sum()),
        one_launch=int((losses["state"] == ONE_LAUNCH).sum()),
        not_measured=int((losses["state"] == NOT_MEASURED).sum()),
    )


def transfers(
    every: Sequence[SubsystemSeries],
) -> dict[tuple[str, str, str], pd.DataFrame]:
    """(kind, source, target) -> losses of the source's corrected optima on the target."""
    return {
        (source.kind, source.gpu, target.gpu): target.losses(source.corrected)
        for source, target in permutations(every, 2)
        if source.kind == target.kind and source.gpu != target.gpu
    }


def precisions(every: Sequence[SubsystemSeries]) -> dict[str, pd.DataFrame]:
    """Title of a float32 case -> losses of the corrected optima of its float64 counterpart.

    A column ``untried`` (bool) beside those of :meth:`SubsystemSeries.losses`: float64 has no time
    for the best m of float32 at that size, so that its rule could not choose it.
    """
    double = {case.gpu: case for case in every if case.dtype == "float64"}
    found = {}
    for case in every:
        if case.dtype == "float32" and case.gpu in double:
            source = double[case.gpu]
            losses = case.losses(source.corrected)
            tried = set(zip(source.best[SIZE], source.best[CHOICE], strict=True))
            best = zip(losses[SIZE], losses["best_m"], strict=True)
            found[case.title] = losses.assign(untried=[key not in tried for key in best])
    return found


def borrowed(
    study: StudyData, every: Sequence[SubsystemSeries], published: Mapping[str, Records]
) -> list[Section]:
    """The section on other GPUs and the other precision; none where there is one case only."""
    pairs, single = transfers(every), precisions(every)
    blocks: list[Block] = []
    if pairs:
        blocks += [_summary(pairs, published), *_details(every, published)]
    blocks += predicted_transfer(study, published)
    if single:
        blocks += _precision(single, published)
    if not blocks:
        return []
    note = Text(
        "A loss counts only where the target measured the m with repeats. One launch: the m was "
        f"stopped early there, and its time is no loss. Beyond error: losses above {SIGNIFICANT} % "
        "that exceed two standard errors of the ratio of the times. Slices are parts of one card.",
        "note",
    )
    title = "Optima of one GPU or precision on another"
    return [Section(f"{study.name}-borrowed", title, [*blocks, note])]


def _summary(
    pairs: Mapping[tuple[str, str, str], pd.DataFrame], published: Mapping[str, Records]
) -> Table:
    rows = [
        [Cell(f"{source}, {kind}"), Cell(target), *map(Cell, _texts(lost(losses)))]
        for (kind, source, target), losses in pairs.items()
    ]
    theirs = published.get("transfer", [])
    for card, name in CARDS.items() if theirs else ():
        texts = ["RTX 2080 Ti, float64 (paper)", name, *_their_texts(card, theirs)]
        rows.append([Cell(text, role="theirs") for text in texts])
    return table("Corrected optima of one GPU used on another", COLUMNS, rows)


def _texts(found: Lost) -> list[str]:
    return [
        wording.count(found.sizes),
        wording.fixed(found.mean_percent, 2),
        wording.fixed(found.worst_percent, 2),
        wording.count(found.worst_size),
        wording.count(found.significant),
        wording.count(found.certain),
        wording.count(found.one_launch),
        wording.count(found.not_measured),
    ]


def _their_texts(card: str, theirs: Records) -> list[str]:
    """The same figures of table III: it prints losses, not times."""
    percent = {
        record["row"]: float(record[f"loss_{card}_percent"])
        for record in theirs
        if record[f"loss_{card}_percent"]
    }
    worst = max(percent, key=lambda row: percent[row])
    sizes = {record["row"]: record["n"] for record in theirs}
    return [
        wording.count(len(theirs)),
        MISSING,
        wording.fixed(percent[worst], 2),
        wording.count(int(sizes[worst])) if sizes[worst] else MISSING,
        wording.count(sum(value > SIGNIFICANT for value in percent.values())),
        *[MISSING] * 3,
    ]


def _details(every: Sequence[SubsystemSeries], published: Mapping[str, Records]) -> Iterator[Block]:
    """Every size: the first GPU's rule on the others, beside table III."""
    theirs = published.get("transfer", [])
    for kind in dict.fromkeys(case.kind for case in every):
        source, *targets = [case for case in every if case.kind == kind]
        if not targets:
            continue
        title = f"Every size: the rule of {source.title} on the other GPUs, beside table III"
        shown = theirs if source.dtype == "float64" else []
        blocks: list[Block] = [_detail(source, targets, shown)]
        without = [record for record in shown if not record["n"]]
        if without:
            rows = [_their_cells(record) for record in without]
            caption = "Rows of table III whose size the text lost, in ascending order"
            blocks.append(table(caption, _their_columns(), rows))
        yield Fold(title, blocks)


def _detail(source: SubsystemSeries, targets: Sequence[SubsystemSeries], theirs: Records) -> Table:
    known = {int(record["n"]): record for record in theirs if record["n"]}
    optima = source.corrected.set_index(SIZE)
    losses = [target.losses(source.corrected).set_index(SIZE) for target in targets]
    columns = [
        Column(SIZE, "rows"),
        Column("m observed", "rows", group=source.gpu),
        Column("rule", "m", group=source.gpu),
    ]
    for target in targets:
        columns += [
            Column("best m", "rows", group=target.gpu),
            Column("loses", "%", group=target.gpu),
        ]
    rows = []
    for size in sorted({*optima.index, *known}):
        if size in optima.index:
            own = [optima.loc[size, "observed_m"], optima.loc[size, "m"]]
        else:
            own = [None, None]
        cells = [Cell(wording.count(value)) for value in (size, *own)]
        for table_ in losses:
            cells += _loss_cells(table_, size)
        if theirs:
            cells += _their_cells(known.get(size, {}))
        rows.append(cells)
    columns += _their_columns() if theirs else []
    return table(f"The rule of {source.title} on other GPUs", columns, rows)


def _loss_cells(losses: pd.DataFrame, size: int) -> list[Cell]:
    """Best m of the target and the loss of the borrowed m, or why it has no loss."""
    if size not in losses.index:
        return [Cell(MISSING)] * 2
    row = losses.loc[size]
    if row["state"]:
        said = str(row["state"])
    else:
        said = wording.fixed(row["loss_percent"], 2)
        said += " (tie)" if row["tied"] and row["loss_percent"] > 0 else ""
    return [Cell(wording.count(row["best_m"])), Cell(said)]


def _their_columns() -> list[Column]:
    group = "paper"
    columns = [
        Column("row", group=group),
        Column("streams", group=group),
        Column("2080 Ti", "m", group=group),
        Column("rule", "m", group=group),
    ]
    for name in CARDS.values():
        columns += [Column(name, "m", group=group), Column("loses", "%", group=group)]
    return columns


def _their_cells(record: Mapping[str, str]) -> list[Cell]:
    """A row of table III; empty cells where it has no such size."""
    names = ["row", "streams", "m_rtx2080ti", "m_heuristic"]
    texts = [record.get(name, "") for name in names]
    for card in CARDS:
        loss = record.get(f"loss_{card}", "")
        printed = record.get(f"loss_{card}_percent", "")
        texts += [record.get(f"m_{card}", ""), printed or ("" if loss == "none" else loss)]
    return [Cell(text or MISSING, role="theirs") for text in texts]


def _precision(
    single: Mapping[str, pd.DataFrame], published: Mapping[str, Records]
) -> Iterator[Block]:
    """Loss of float64's optimum in float32, and how often the two agree."""
    columns = [
        Column("used on", number=False),
        Column("same optimum", "sizes"),
        Column("best m untried in float64", "sizes"),
        *COLUMNS[2:],
    ]
    rows = []
    for title, losses in single.items():
        same = int((losses[CHOICE] == losses["best_m"]).sum())
        texts = [title, f"{same} of {len(losses)}", wording.count(losses["untried"].sum())]
        rows.append([Cell(text) for text in (*texts, *_texts(lost(losses)))])
    theirs = published.get("optima_float32", [])
    if theirs:
        printed = [record["m_observed_float64"] for record in theirs]
        both = [text for text in printed if text != "not measured"]
        same_ = f"{both.count('')} of {len(both)}"
        texts = ["RTX 2080 Ti, float32 (paper)", same_, *[MISSING] * (len(columns) - 2)]
        rows.append([Cell(text, role="theirs") for text in texts])
    yield table("Corrected optima of float64 used in float32", columns, rows)
