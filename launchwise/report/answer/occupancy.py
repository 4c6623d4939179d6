"""What the hardware allows: the roofline, and counters of the fastest configurations."""

from __future__ import annotations

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.experiment.study import Counters
from launchwise.gpus.machine import Machine
from launchwise.learning.row_arrays import arithmetic_types, arrays, least_bytes
from launchwise.report import theme, wording
from launchwise.report.blocks import Block, Figure, Key, Panel, Section, Table, Text
from launchwise.report.fields import Field, field, percents, table_of
from launchwise.report.numbers import winners
from launchwise.report.study import StudyData, remembered
from launchwise.report.theme import kinds_of
from launchwise.workloads.metrics import COUNTERS

NEAR = 0.1  # A study of which no problem reaches this share of a ceiling is bound by something else
MOST_CARDS = 8  # Most GPUs in the figure; the first ones are shown


@remembered
def points(study: StudyData) -> pd.DataFrame:
    """Position of each problem's fastest configuration in the roofline.

    Returns rows of :func:`launchwise.report.numbers.winners` with ``precision``, ``intensity``
    (FLOP of the problem divided by the least bytes of the run), ``gflops`` (FLOP of the problem
    divided by the best time, 1e9 per second) and ``share``: of the lower of the copy bandwidth's
    and the FLOP's ceiling of the problem's type.
    """
    best = winners(study)
    columns = Columns(study.spec.derived, arrays(best, study.spec, study.spec.problem_columns))
    flop = columns.value(study.spec.work.flop).astype(float)
    moved_bytes = least_bytes(best, columns, study.spec)
    limit_ms = best[["bytes_ms", "flop_ms"]].max(axis=1)
    return best.assign(
        precision=columns.value(study.spec.work.precision),
        intensity=flop / moved_bytes,
        gflops=flop / best["best_ms"] / 1e6,
        share=limit_ms / best["best_ms"],
    )


LIMITS = (
    "The copy limit of the file is the time to move the least bytes of a run (every array once) at "
    "the GPU's copy bandwidth, which is an estimate where it was not measured. Problems that fit "
    "the L2 cache can pass 100 %, others where the copy was slower when it was measured, once with "
    "each GPU's profile: a slice's may be above its card's. FLOP are those of the problem at the "
    "rate measured for its type; tensor cores can pass it."
)


def roofline(study: StudyData) -> Section | None:
    """The section; None for a study that neither memory nor arithmetic bounds."""
    if (drawn := roofline_figure(study)) is None:
        return None
    return Section(f"{study.name}-ceilings", "Roofline", [drawn, Text(LIMITS, "note")])


def roofline_figure(study: StudyData) -> Figure | None:
    """A panel per whole card; None where none comes near a ceiling."""
    found = points(study)
    found = found[(found["intensity"] > 0) & np.isfinite(found["intensity"])]
    if found.empty or found["share"].max() < NEAR:
        return None
    precisions = sorted(set(map(str, found["precision"])))
    panels = [
        _card(study, gpu, found, precisions)
        for gpu in study.whole[:MOST_CARDS]
        if (found["gpu"] == gpu).any()
    ]
    if not panels:
        return None
    ceilings = sorted(arithmetic_types(study.spec, found["precision"].to_numpy()))
    return Figure(
        id=f"{study.name}-roofline",
        caption=(
            "Roofline: rate of each problem's fastest configuration against FLOP per byte that a "
            "run must move. Sloping line: copy bandwidth; level lines: a launch of independent "
            "multiply-adds, by mma instructions on tensor cores. Both were measured apart from the "
            "points; data in L2 and wgmma instructions can lift these above them."
        ),
        alt="Roofline: rate against FLOP per byte, one point per problem, ceilings as lines.",
        panels=panels,
        keys=[
            *(
                Key(f"problems in {name}", theme.colour(place), theme.symbol(place))
                for place, name in enumerate(precisions)
            ),
            Key("copy bandwidth", theme.INK, "solid"),
            *(
                Key(f"{name} ceiling", theme.INK, theme.dash(1 + place))
                for place, name in enumerate(ceilings)
            ),
        ],
        height=320,
        width=420,
        limit=0 if len(panels) > 1 else 760,
    )


def _card(study: StudyData, gpu: str, found: pd.DataFrame, precisions: list[str]) -> Panel:
    profile = study.profiles[gpu]
    machine = Machine.of(profile)
    own = found[found["gpu"] == gpu]
    types = sorted(arithmetic_types(study.spec, found["precision"].to_numpy()))
    rates = {name: float(getattr(machine, name)) for name in types}
    copy_gbs = profile.ceilings.copy_bandwidth_gbs
    # From left of every point to right of the last ridge.
    low = 0.5 * float(own["intensity"].min())
    high = 2 * max(float(own["intensity"].max()), *(rate / copy_gbs for rate in rates.values()))
    top = max(rates.values()) / copy_gbs
    slope, name = [low * copy_gbs, top * copy_gbs], "copy bandwidth"
    traces = [theme.rule([low, top], slope, "solid", 1.4, name=name)]
    for place, (name, rate) in enumerate(rates.items()):
        ends, dash = [rate / copy_gbs, high], theme.dash(1 + place)
        traces.append(theme.rule(ends, [rate, rate], dash, 1.4, name=f"{name} ceiling"))
    for place, name in enumerate(precisions):
        of_type = own[own["precision"] == name]
        if of_type.empty:
            continue
        hover = [
            f"{wording.problem(row, study.problem_columns)}<br>{row['configuration']}<br>"
            f"{wording.percent(row['share'], 0)} % of the roofline"
            for row in of_type.to_dict("records")
        ]
        traces.append(
            theme.dots(
                of_type["intensity"],
                of_type["gflops"],
                name=name,
                colour_=theme.colour(place),
                shape=theme.symbol(place),
                size=6,
                hover=hover,
                template="%{text}<br>%{x:.3~g} FLOP per byte, %{y:.4~g} GFLOP/s",
            )
        )
    y = [*own["gflops"], *rates.values(), low * copy_gbs]
    x = theme.log_axis("FLOP per byte", [low, high])
    return Panel(gpu, traces, theme.layout(x, theme.log_axis("GFLOP/s", y)))


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
