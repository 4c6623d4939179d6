"""The roofline of every whole card with the fastest configuration of each problem on it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from launchwise.base.vectors import Columns
from launchwise.gpus.machine import Machine
from launchwise.learning.rooflines import arithmetic_types
from launchwise.learning.row_arrays import arrays
from launchwise.report import theme, wording
from launchwise.report.blocks import Figure, Key, Panel
from launchwise.report.numbers import winners
from launchwise.report.study import StudyData, remembered

NEAR = 0.1
"""A study of which no problem reaches this share of a ceiling is bound by something else."""

MOST_PANELS = 8
"""Most GPUs in the figure; the first ones are shown."""


@remembered
def points(study: StudyData) -> pd.DataFrame:
    """Position of each problem's fastest configuration in the roofline.

    Returns
    -------
    DataFrame
        Rows of :func:`launchwise.report.numbers.winners` with ``precision``, ``intensity`` (FLOP of
        the problem divided by its least bytes), ``gflops`` (FLOP of the problem divided by the best
        time, 1e9 per second) and ``share``: of the lower of the copy bandwidth's and the FLOP's
        ceiling of the problem's type.
    """
    best = winners(study)
    columns = Columns(study.spec.derived, arrays(best, study.spec, study.spec.problem_columns))
    flop = columns.value(study.spec.work.flop).astype(float)
    moved_bytes = columns.value(study.spec.work.bytes).astype(float)
    limit_ms = best[["bytes_ms", "flop_ms"]].max(axis=1)
    return best.assign(
        precision=columns.value(study.spec.work.precision),
        intensity=flop / moved_bytes,
        gflops=flop / best["best_ms"] / 1e6,
        share=limit_ms / best["best_ms"],
    )


def figure(study: StudyData) -> Figure | None:
    """A panel per whole card; None for a study that neither memory nor arithmetic bounds."""
    found = points(study)
    found = found[(found["intensity"] > 0) & np.isfinite(found["intensity"])]
    if found.empty or found["share"].max() < NEAR:
        return None
    precisions = sorted(set(map(str, found["precision"])))
    panels = [
        _panel(study, gpu, found, precisions)
        for gpu in study.whole[:MOST_PANELS]
        if (found["gpu"] == gpu).any()
    ]
    if not panels:
        return None
    ceilings = sorted(arithmetic_types(study.spec, found["precision"].to_numpy()))
    return Figure(
        id=f"{study.name}-roofline",
        caption=(
            "Roofline: rate of the fastest configuration of each problem against FLOP per byte of "
            "the problem (every array once). Sloping line: copy bandwidth; level lines: "
            "arithmetic rates. Points above the sloping line run from the L2 cache."
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


def _panel(study: StudyData, gpu: str, found: pd.DataFrame, precisions: list[str]) -> Panel:
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
