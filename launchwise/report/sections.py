"""A study's section: the same parts for every study, driven by its spec and its settings."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from launchwise.learning.splits import MOST_TRANSFER_FOLDS
from launchwise.report import figures, landscape_rows, maps, models, outliers, roofline, wording
from launchwise.report.blocks import (
    Block,
    Bullets,
    Column,
    Figure,
    Fold,
    Section,
    Table,
    Text,
    table,
)
from launchwise.report.fields import decimals, field, grouped, significant, table_of
from launchwise.report.numbers import (
    fractions_on,
    records,
    shown_problem,
    single_best,
    statuses,
    transfer,
    winners,
)
from launchwise.report.single_launches import of_one_launch
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows, is_baseline
from launchwise.workloads.metrics import STATUSES

STATUS_WORDS = {
    "ok": "rows, timed",
    "slow": "rows, one launch",
    "unverified": "rows, timed only",
    "wrong": "rows, bad result",
    "failed": "rows, no launch",
    "timeout": "rows, hung",
    "out_of_memory": "rows",
}
"""Statuses in the order they are shown, with what stands below each in a heading."""


def tiles(study: StudyData) -> Section:
    """Fastest configuration against size, and the loss of simpler choices."""
    best = winners(study)
    found: list[Block] = []
    for gpu in study.gpus:
        drawn: list[Figure | None] = [
            figures.best_against_size(study, best, gpu),
            figures.choices_against_size(study, _choices(study, gpu), gpu),
        ]
        parts: list[Block] = [figure for figure in drawn if figure is not None]
        parts.append(_winners_table(study, best, gpu))
        if gpu in study.whole:
            title = f"{gpu}: the fastest configuration of every problem"
            found += [*parts[:-1], Fold(title, parts[-1:])]
        else:
            found.append(Fold(f"{gpu}: figures and table", parts))
    return Section(f"{study.name}-tiles", "Best configuration against size", found)


def _choices(study: StudyData, gpu: str) -> list[tuple[str, pd.DataFrame]]:
    own = fractions_on(study, gpu)
    baseline = own[is_baseline(own, study.spec)]
    one = single_best(study, ["gpu", *study.kinds])
    one = one.loc[one["gpu"] == gpu, [*study.kinds, *study.spec.tunable_columns]]
    same = own.merge(one, on=[*study.kinds, *study.spec.tunable_columns])
    found = [("baseline", baseline), ("one fixed configuration", same)]
    split = models.first_split(study)
    name = models.leader(study, split, gpu)
    if name is not None:
        rows = study.evaluation
        rows = rows[(rows["split"] == split) & (rows["gpu"] == gpu) & (rows["model"] == name)]
        unseen = "unseen GPU" if models.first_split_is_transfer(study) else "unseen sizes"
        found.append((f"{study.title(name)}, {unseen}", rows[rows["fraction"].notna()]))
    return [(title, rows) for title, rows in found if len(rows)]


def _winners_table(study: StudyData, best: pd.DataFrame, gpu: str) -> Table:
    own = best[best["gpu"] == gpu]
    of_kinds = dict(figures.kinds_of(study, own))
    cells = {
        (size, kind): name
        for kind, rows in of_kinds.items()
        for size, name in zip(rows[study.size], rows["configuration"], strict=True)
    }
    sizes = sorted({size for size, _ in cells})
    columns = [Column(study.size, study.spec.problem[study.size].unit)]
    columns += [Column(kind or "configuration", number=False) for kind in of_kinds]
    rows = [[f"{size}", *(cells.get((size, kind), "–") for kind in of_kinds)] for size in sizes]
    return table(f"Fastest configuration measured on {gpu}", columns, rows)


LIMITS = (
    "The copy limit is the time to move the least bytes of the problem (every array once) at "
    "{copies}. Problems that fit the L2 cache can pass 100 %. FLOP are those "
    "of the problem at the measured rate of their type; tensor cores can pass it."
)
NO_SHARES = (
    "No run reaches a tenth of the copy bandwidth: launches, copies from and to the host or "
    "waiting bound this study, so shares of that bandwidth are not shown. FLOP are those of the "
    "problem at the measured rate of their type; tensor cores can pass it."
)
ONE_CARD = "So no claim about unmeasured GPUs rests on these figures."


def compared(study: StudyData) -> Section:
    """The GPUs beside each other."""
    best = winners(study)
    item = study.spec.work.item
    found: list[Block] = [_slices(study)] if len(study.whole) < len(study.gpus) else []
    sized = figures.has_sizes(study, best)
    if sized:
        found.append(figures.throughput(study, best, share=False, name="rate"))
    shares = figures.copies_matter(best)
    if shares and sized:
        found.append(figures.throughput(study, best, share=True, name="share"))
    if (drawn := roofline.figure(study)) is not None:
        found.append(drawn)
    fields = [
        field("problem", lambda row: wording.problem(row, study.problem_columns)),
        field("GPU", "gpu"),
        field("best configuration", "configuration"),
        field("time", "best_ms", significant(4), "ms"),
        field("baseline", "baseline_ms", significant(4), "ms"),
        field("gain", "gain", decimals(2), "× baseline"),
        field("rate", "rate", significant(4), f"1e9 {item}/s"),
        *grouped(
            "physical limit",
            field("bytes", "bytes_ms", wording.number, "ms"),
            field("FLOP", "flop_ms", wording.number, "ms"),
        ),
        *([field("of copy limit", "limit_share", wording.percent, "%")] if shares else []),
    ]
    every = table_of("Best time of every problem", fields, _ordered(study, best))
    note = LIMITS.format(copies=wording.copies(study.profiles)) if shares else NO_SHARES
    found += [
        Text(note, "note"),
        Fold("Every problem on every GPU", [every]),
    ]
    return Section(f"{study.name}-gpus", "The GPUs compared", found)


def _slices(study: StudyData) -> Text:
    slices = [gpu for gpu in study.gpus if gpu not in study.whole]
    first = study.profiles[slices[0]]
    return Text(
        f"{wording.listed(slices)}: slices of a card with the number of SMs that their names end "
        f"with, such as {first.sms} of {first.whole_card_sms} SMs for {slices[0]}; memory and "
        "caches are those of the card.",
        "note",
    )


def _ordered(study: StudyData, best: pd.DataFrame) -> pd.DataFrame:
    place = best["gpu"].map({gpu: place for place, gpu in enumerate(study.gpus)})
    ordered = best.assign(_place=place).sort_values(
        [*study.problem_columns, "_place"], kind="stable"
    )
    return ordered.drop(columns="_place")


def landscape(study: StudyData) -> Section:
    """All configurations of one problem, and how the rows of every GPU ended."""
    chosen = shown_problem(study)
    gpu = chosen["gpu"]
    rows = study.rows[study.rows["gpu"] == gpu]
    for name in study.problem_columns:
        rows = rows[rows[name] == chosen[name]]
    title = f"{wording.problem(chosen, study.problem_columns)}, on {gpu}"
    times = rows.loc[rows["time_ms"].notna(), "time_ms"].sort_values()
    near = int((times <= 1.02 * times.iloc[0]).sum())
    ended = rows["status"].value_counts()
    counted = [
        f"{ended[name]} {name.replace('_', ' ')}" for name in STATUSES if name in ended.index
    ]
    lead = (
        f"{title}: {wording.plural(len(rows), 'configuration')} ({wording.listed(counted)}), "
        f"{near} of them within 2 % of the best."
    )
    known = rows.loc[rows["time_ms"].notna() & ~of_one_launch(rows), "time_ms"]
    if len(known):
        lead += (
            " The slowest with repeats takes "
            f"{wording.number(known.max() / times.iloc[0])} times as long as the best."
        )
    if "slow" in ended.index:
        lead += " A slow configuration was stopped early: its time is that of one launch."
    figure = figures.landscape(study, rows, title, float(chosen["baseline_ms"]))
    found: list[Block] = [
        Text(
            "The problem is the one chosen under “Look up one problem”. Two tunables as axes show "
            "the fastest configuration with each pair of values.",
            "note",
        ),
        landscape_rows.block(study, figure, chosen, gpu, lead),
        figure,
        *_beside(study, gpu, chosen),
        Fold("How to read a configuration", [Bullets(wording.configuration_key(study.spec))]),
        Fold("How the rows of the sweeps ended", [_status_table(study)]),
    ]
    return Section(f"{study.name}-landscape", "All configurations of one problem", found)


def _beside(study: StudyData, gpu: str, chosen: dict[str, Any]) -> list[Block]:
    """Times and errors of unverified variants for a problem (a row of ``winners``)."""
    rows = study.unverified
    rows = rows[(rows["gpu"] == gpu) & rows["time_ms"].notna()]
    for name in study.problem_columns:
        rows = rows[rows[name] == chosen[name]]
    title = wording.problem(chosen, study.problem_columns)
    found: list[Block] = []
    for row in records(fastest_rows(rows, ["variant"], study.spec)):
        error = (
            "results that are NaN"
            if wording.is_missing(row["max_error"])
            else f"an error of {wording.number(row['max_error'])}"
        )
        found.append(
            Text(
                f"Not among them, at {title} on {gpu}: {wording.configuration(row, study.spec)} "
                f"({wording.NEVER_CHOSEN}). It took "
                f"{wording.number(row['time_ms'] / chosen['best_ms'])} times as long as the best, "
                f"with {error}, where {wording.number(row['tolerance'])} is allowed.",
                "note",
            )
        )
    return found


def _status_table(study: StudyData) -> Table:
    counts = statuses(study)
    names = [name for name in STATUS_WORDS if name in counts.columns]
    rows = []
    for gpu in study.gpus:
        if gpu not in counts.index:
            continue
        own = counts.loc[gpu]
        rows.append([gpu, *(wording.count(own[name]) for name in names), wording.count(own.sum())])
    columns = [Column("GPU", number=False)]
    columns += [Column(name.replace("_", " "), STATUS_WORDS[name]) for name in names]
    return table("How the rows of the sweeps ended", [*columns, Column("all", "rows")], rows)


def transferred(study: StudyData) -> Section | None:
    """Loss of one GPU's best configurations on other GPUs; None with a single GPU."""
    if len(study.gpus) < 2:
        return None
    pairs = transfer(study)
    found: list[Block] = []
    if pairs["loss"].notna().any():
        worst = records(pairs.sort_values("loss", ascending=False))[0]
        median = (
            f"; the median pair loses {wording.percent(pairs['loss'].median())} %"
            if len(pairs) > 2
            else ""
        )
        found.append(
            Text(
                f"Using {worst['source']}'s best configurations on {worst['target']} loses "
                f"{wording.percent(worst['loss'])} % on average, the most of all pairs"
                f"{median}."
            )
        )
    found += [Text(text) for text in _left_out(study)]
    found += [Text(text, "note") for text in _transfer_caveats(study)]
    found.append(maps.transfer_heat(study, pairs))
    fields = [
        field("best of", "source"),
        field("used on", "target"),
        field("problems", "problems", wording.count, "in common"),
        field("mean loss", "loss", partial(wording.percent, places=2), "%"),
        field("worst loss", "worst", wording.percent, "%"),
        field("no time there", "impossible", wording.count, "problems"),
    ]
    caption = "Loss from using one GPU's best configuration on another"
    found.append(Fold("Every pair", [table_of(caption, fields, pairs)]))
    return Section(f"{study.name}-transfer", "Transfer between GPUs", found)


def _left_out(study: StudyData) -> list[str]:
    found = []
    for split, asked in study.settings.splits.items():
        name = models.leader(study, split, models.ALL_GPUS)
        if asked.kind != "leave_one_gpu_out" or name is None:
            continue
        got = models.score_of(study, split, models.ALL_GPUS, name)
        found.append(
            f"Split “{split}” leaves {_held_out(study)}: the answering model, "
            f"{study.title(name)}, then reaches {wording.fixed(got['fraction'])} of the best "
            f"and improves {wording.percent(got['improved'])} % of the problems."
        )
    return found


def _held_out(study: StudyData) -> str:
    """What a transfer split leaves out of training; as :func:`left_out_together` does."""
    if study.cards == 1:
        return "each GPU out of training in turn"
    slices = any(study.profiles[gpu].is_slice for gpu in study.gpus)
    each = "each card with its slices" if slices else "each card"
    if study.cards <= MOST_TRANSFER_FOLDS:
        return f"{each} out of training in turn"
    return f"{each} out of training, in {MOST_TRANSFER_FOLDS} groups of cards"


def _transfer_caveats(study: StudyData) -> list[str]:
    found = [
        f"The rows of {gpu} are kept out: {'; '.join(why)}." for gpu, why in study.kept_out.items()
    ]
    slices = [gpu for gpu in study.gpus if study.profiles[gpu].is_slice]
    if slices:
        cards = "one model of card" if study.cards == 1 else f"{study.cards} models of cards"
        found.append(
            f"{wording.listed(study.gpus)} are {cards}: {wording.listed(slices)} "
            f"{'is a slice' if len(slices) == 1 else 'are slices'} with fewer SMs and the same "
            "cache, memory and clock as the card. "
            + (
                ONE_CARD
                if study.cards == 1
                else "Claims about unseen GPUs rest on whole cards only."
            )
        )
    if dropped := models.dropped_features(study, models.first_split(study)):
        found.append(
            "GPU features that do not vary between these GPUs were dropped from the models: "
            f"{wording.listed(dropped)}."
        )
    return found


def removed(study: StudyData) -> Section:
    """Rows that the Tukey filter removed."""
    return Section(f"{study.name}-outliers", "Filtered rows", outliers.blocks(study))
