"""The fastest configuration against size, and the GPUs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import theme, wording
from launchwise.report.answer import hardware
from launchwise.report.answer.cost import MOST_OPEN
from launchwise.report.blocks import Block, Figure, Panel, Section, Text
from launchwise.report.fields import (
    Field,
    decimals,
    field,
    file_of,
    grouped,
    significant,
    table_of,
)
from launchwise.report.gpus import card_ratios
from launchwise.report.numbers import by_problem, winners
from launchwise.report.study import StudyData
from launchwise.report.theme import (
    has_sizes,
    kinds_of,
    row_of,
    size_layout,
    slug,
)
from launchwise.tables.rows import is_baseline


def tiles(study: StudyData) -> Section | None:
    """Fastest configuration against size; None where no tunable changes with it."""
    best = winners(study)
    drawn = [best_against_size(study, best, gpu) for gpu in study.whole]
    found = [figure for figure in drawn if figure is not None]
    title = "Best configuration against size"
    return Section(f"{study.name}-tiles", title, found) if found else None


LIMITS = (
    "The copy limit of the file is the time to move the least bytes of a run (every array once) at "
    "the GPU's copy bandwidth, which is an estimate where it was not measured. Problems that fit "
    "the L2 cache can pass 100 %, others where the copy was slower when it was measured, once with "
    "each GPU's profile: a slice's may be above its card's."
)

FLOP = " FLOP are those of the problem at the rate measured for its type; tensor cores can pass it."


def compared(study: StudyData) -> Section:
    """The GPUs beside each other; rates of most kinds of problems, the roofline and all times are
    behind them."""
    best = winners(study)
    found: list[Block] = []
    first, *others = study.whole
    known = card_ratios.of_study(study)
    if ratios := [known[first, other] for other in others if (first, other) in known]:
        found.append(card_ratios.of_pairs(ratios))
    if has_sizes(study, best):
        found.append(rates(study, best))
    every = table_of("Best time of every problem", _fields(study, best), by_problem(study, best))
    found.append(file_of(f"data/{study.name}.best.csv", every))
    return Section(f"{study.name}-gpus", "GPUs", found)


COPIES_MATTER = 0.1  # Largest share of the copy bandwidth below which memory bounds no problem


def _fields(study: StudyData, best: pd.DataFrame) -> list[Field]:
    shares = best["limit_share"].max() >= COPIES_MATTER
    return [
        *(field(name, name) for name in study.problem_columns),
        field("GPU", "gpu"),
        field("best configuration", "configuration"),
        field("alike", "alike", wording.count, "configurations"),
        field("time", "best_ms", significant(4), "ms"),
        field("time from", "basis"),
        field("baseline", "baseline_ms", significant(4), "ms"),
        field("gain", "gain", decimals(2), "× baseline"),
        field("rate", "rate", significant(4), f"1e9 {study.spec.work.item}/s"),
        *grouped(
            "physical limit",
            field("bytes", "bytes_ms", wording.number, "ms"),
            field(
                "FLOP",
                "flop_ms",
                wording.number,
                "ms",
                detail=lambda row: "passed" * (row["flop_ms"] > row["best_ms"]),
            ),
        ),
        *([field("of copy limit", "limit_share", wording.percent, "%")] if shares else []),
    ]


def roofline(study: StudyData) -> Section | None:
    """The roofline of whole cards; None where neither memory nor arithmetic bounds the study."""
    drawn = hardware.roofline(study)
    if drawn is None:
        return None
    return Section(f"{study.name}-ceilings", "Roofline", [drawn, Text(LIMITS + FLOP, "note")])


def rates(study: StudyData, best: pd.DataFrame) -> Figure:
    """Best rate of every GPU against size."""
    item = study.spec.work.item
    panels = []
    kinds = sorted(kinds_of(study, best), key=lambda kind: -kind[1][study.size].nunique())
    for kind, rows in kinds[:MOST_OPEN]:
        traces = []
        for place, gpu in enumerate(study.whole):
            own = rows[rows["gpu"] == gpu].sort_values(study.size)
            if len(own):
                template = f"{study.size}=%{{x}}: %{{y:.4~g}} · 1e9/s<br>%{{text}}"
                more: dict[str, Any] = {
                    "hover": own["configuration"].tolist(),
                    "template": template,
                }
                trace = theme.line(own[study.size], own["rate"], name=gpu, place=place, **more)
                traces.append({**trace, "meta": row_of(study, own, gpu)})
        # Rates of kinds of problems differ by far: on one scale most of them would be flat.
        end = float(f"{1.06 * rows['rate'].max():.4g}")
        y = theme.axis(f"1e9 {item} / s", range=[0, end])
        panels.append(Panel(kind, traces, theme.layout(size_layout(study, rows), y)))
    return Figure(
        id=f"{study.name}-rate",
        caption=(f"Best rate of each GPU: higher is faster; {item} of the problem in one launch."),
        alt=f"Lines: the rate of the best configuration against {study.size}, one line per GPU.",
        panels=panels,
        keys=theme.keys(study.whole),
    )


def best_against_size(study: StudyData, best: pd.DataFrame, gpu: str) -> Figure | None:
    """Tunables of the fastest configuration against size, on a logarithmic scale."""
    own = best[best["gpu"] == gpu]
    drawn = [
        name
        for name, tunable in study.spec.tunables.items()
        if all(isinstance(value, int) for value in tunable.values)
        and own.loc[own[name] > 0, name].nunique() > 1
    ]
    if own.empty or not drawn or not has_sizes(study, own):
        return None
    every = np.concatenate([own[name].to_numpy(dtype=float) for name in drawn])
    least = every[every > 0].min()
    ticks = [2.0**power for power in range(0, 1 + int(np.ceil(np.log2(every.max()))), 2)]
    titles = [wording.with_unit(name, study.spec.tunables[name].unit) for name in drawn]
    y = theme.axis(
        # A single line has no legend.
        titles[0] if len(drawn) == 1 else "value of the tunable",
        type="log",
        tickvals=ticks,
        ticktext=[f"{tick:g}" for tick in ticks],
        range=[
            round(float(np.log10(0.8 * least)), 4),
            round(float(np.log10(1.35 * every.max())), 4),
        ],
    )
    panels = [
        Panel(kind, _lines(study, rows, drawn, gpu), theme.layout(size_layout(study, rows), y))
        for kind, rows in kinds_of(study, own)
    ]
    return Figure(
        id=f"{study.name}-best-{slug(gpu)}",
        caption=(
            f"{gpu}: the configuration named at every size: of those that cannot be told apart "
            "from the fastest the usual choice, else the simplest that was paired. A flat line: "
            "one choice serves all sizes; a gap: another variant is named. "
            f"{_at_the_edge(study, own, drawn, gpu)}"
        ).rstrip(),
        alt=f"Lines: {wording.listed(drawn)} of the fastest configuration against {study.size}.",
        panels=panels,
        keys=theme.keys(titles),
    )


THICKEST = 5.0  # Extra width of the first of many lines over the last, pixels
FEWEST_OF_A_LINE = 3  # Fewest points that a line joins: two points show no trend


def _lines(
    study: StudyData, rows: pd.DataFrame, drawn: Sequence[str], gpu: str
) -> list[dict[str, Any]]:
    """A line per tunable, each thinner than the one before it: equal values stay visible."""
    variants = study.spec.variants
    rows = rows.sort_values(study.size)
    hover = rows["configuration"].tolist()
    found = []
    step = min(2.2, THICKEST / max(len(drawn) - 1, 1))
    for place, name in enumerate(drawn):
        # A gap where the winning variant does not have this tunable, or has it switched off.
        used = rows["variant"].map(lambda variant, name=name: name in variants[variant].tunables)
        values = rows[name].astype(float).where(used & (rows[name] > 0))
        template = f"{study.size}=%{{x}}<br>%{{text}}"
        trace = theme.line(
            rows[study.size], values, name=name, place=place, hover=hover, template=template
        )
        after = len(drawn) - 1 - place
        trace["line"]["width"] += step * after
        trace["marker"]["size"] += 1.8 * step * after
        if len(rows) < FEWEST_OF_A_LINE:
            trace["mode"] = "markers"
        found.append({**trace, "meta": row_of(study, rows, gpu)})
    return found


def _at_the_edge(study: StudyData, own: pd.DataFrame, drawn: Sequence[str], gpu: str) -> str:
    """Tunables whose largest value in any row of the sweep is named. Where a problem leaves no
    choice of a value, nothing was to be tried."""
    rows = study.measured[study.measured["gpu"] == gpu]
    # The baseline is shown everywhere, and may be no candidate.
    rows = rows[~is_baseline(rows, study.spec)]
    free = rows.groupby(study.problem_columns)[list(drawn)].nunique().max() > 1
    said = []
    for name in free.index[free]:
        last = int(study.sweeps[gpu][name].max())
        count = int((own[name] == last).sum())
        if count:
            said.append(f"{name} = {last} (at {count} of {wording.plural(len(own), 'problem')})")
    if not said:
        return ""
    return (
        f"The largest value measured is named for {wording.listed(said)}: larger ones were not "
        "tried."
    )
