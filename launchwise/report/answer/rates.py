"""The GPUs of a study: ratios, rates and best times, and counters of the fastest configurations."""

from __future__ import annotations

import math
from functools import partial

import pandas as pd

from launchwise.experiment.study import Counters
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Panel, Section, Table, Text
from launchwise.report.fields import Field, field, file_of, grouped, percents, significant, table_of
from launchwise.report.numbers import winners
from launchwise.report.pages import card_ratios
from launchwise.report.study_tables import StudyData
from launchwise.report.theme import has_sizes, kinds_of, row_of, size_layout
from launchwise.workloads.metrics import COUNTERS


def compared(study: StudyData) -> Section:
    """The GPUs beside each other, rates of most kinds of problems, and a file of all times."""
    best = winners(study)
    found: list[Block] = []
    first, *others = study.whole
    known = card_ratios.of_study(study)
    if ratios := [known[first, other] for other in others if (first, other) in known]:
        found.append(card_ratios.of_pairs(ratios))
    elif others and best["by_host"].any():
        found.append(Text("No ratio of GPUs: times hold work of their hosts, which differ, too."))
    if has_sizes(study, best):
        found.append(rates(study, best))
    placed = best.assign(_place=best["gpu"].map(study.gpus.index))
    rows = placed.sort_values([*study.problem_columns, "_place"])
    every = table_of("Best time of every problem", _fields(study), rows)
    for gpu, why in study.kept_out.items():
        found.append(Text(f"The rows of {gpu} are kept out: {'; '.join(why)}.", "note"))
    found.append(file_of(f"data/{study.name}.best.csv", every))
    return Section(f"{study.name}-gpus", "GPUs", found)


def _fields(study: StudyData) -> list[Field]:
    return [
        *(field(name, name) for name in study.problem_columns),
        field("GPU", "gpu"),
        field("best configuration", "configuration"),
        field("alike", "alike", wording.count, "configurations"),
        field("time", "best_ms", significant(4), "ms"),
        field("time from", "basis"),
        field("baseline", "baseline_ms", significant(4), "ms"),
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
    ]


MOST_KINDS = 3  # Kinds of problems that are drawn


def rates(study: StudyData, best: pd.DataFrame) -> Figure:
    """Best rate of every GPU against size."""
    item = study.spec.work.item
    item += "" if " " in item or item.endswith("s") else "s"
    panels = []
    kinds = sorted(kinds_of(study, best), key=lambda kind: -kind[1][study.size].nunique())
    for kind, rows in kinds[:MOST_KINDS]:
        traces = []
        # Rates of kinds of problems differ by far: on one scale most of them would be flat.
        power = 3 * math.floor(math.log10(1e9 * rows["rate"].max()) / 3)
        rows = rows.assign(rate=10.0 ** (9 - power) * rows["rate"])
        unit = f"1e{power} {item} / s" if power else f"{item} / s"
        for place, gpu in enumerate(study.whole):
            own = rows[rows["gpu"] == gpu].sort_values(study.size)
            if len(own):
                template = f"{study.size}=%{{x}}: %{{y:.4~g}} {unit}<br>%{{text}}"
                drawn = partial(theme.line, own[study.size], own["rate"], name=gpu, place=place)
                trace = drawn(hover=own["configuration"].tolist(), template=template)
                traces.append({**trace, "meta": row_of(study, own, gpu)})
        end = float(f"{1.06 * rows['rate'].max():.4g}")
        y = theme.axis(unit, range=[0, end])
        panels.append(Panel(kind, traces, theme.layout(size_layout(study, rows), y)))
    few = f"; of {len(kinds)} kinds of problems {MOST_KINDS} with most sizes"
    few = few if len(kinds) > MOST_KINDS else ""
    return Figure(
        id=f"{study.name}-rate",
        caption=f"Best rate of each GPU: higher is faster; {item} of a problem over its time{few}.",
        alt=f"Lines: the rate of the best configuration against {study.size}, one line per GPU.",
        panels=panels,
        keys=theme.keys(study.whole),
    )


def occupancy(study: StudyData) -> Section | None:
    """The section; None where no counters were read, or the settings do not say by what."""
    asked = study.settings.counters
    if not study.counters or asked is None:
        return None
    by = asked.by
    largest = {
        gpu: outermost(counters, study.spec.key_columns) for gpu, counters in study.counters.items()
    }
    blocks: list[Block] = [
        Text(
            f"The fastest configuration of {_problems(asked)} and each value of "
            f"{wording.listed(by)}, run once more under Nsight Compute; of a kernel that runs at "
            "several levels, the largest launch.",
            "note",
        ),
        *(_table(study, gpu, rows, by) for gpu, rows in largest.items()),
    ]
    return Section(f"{study.name}-occupancy", "Occupancy", blocks)


def _problems(asked: Counters) -> str:
    if not asked.among:
        return "every problem"
    values = wording.listed(
        f"{name} = {wording.listed(map(str, each))}" for name, each in asked.among.items()
    )
    return f"problems with {values}"


def outermost(counters: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Of each kernel of a run (columns ``key``) the launch with the largest grid. Kernels of one
    block are left out."""
    order = counters.sort_values("grid_blocks", kind="stable")
    found = order.groupby([*key, "kernel"], sort=False).last().reset_index()
    several = found.groupby("kernel")["grid_blocks"].transform("max") > 1
    return found[several]


SHOWN = {each.name: each.shown for each in COUNTERS if each.shown is not None}
"""Column of the counters to how the table shows it."""


def _table(study: StudyData, gpu: str, largest: pd.DataFrame, by: list[str]) -> Table:
    """Counters of each kernel on a GPU, by kind of problem and values of the tunables ``by``."""
    held = [name for name in SHOWN if name in largest and largest[name].notna().any()]
    names = [*by, "kernel"] if largest["kernel"].nunique() > 1 else by
    rows = [
        {"problem": kind, **dict(zip(names, values, strict=True)), **own[held].median()}
        for kind, own_kind in kinds_of(study, largest)
        for values, own in own_kind.groupby(names, sort=True)
    ]
    fields = [
        field("problem", "problem"),
        *(field(name, name) for name in names),
        *(_shown(name) for name in held),
    ]
    caption = f"{gpu}: median over sizes; throughput in percent of the card's peak"
    return table_of(caption, fields, rows)


def _shown(name: str) -> Field:
    how = SHOWN[name]
    shown = percents(0) if how.factor == 100 else wording.number
    return field(how.title, name, shown, how.unit)
