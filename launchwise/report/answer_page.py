"""The page of one workload on one GPU: what to use for each problem, and how the others ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from launchwise.gpus.profile import GpuProfile
from launchwise.report import gpus, theme, wording
from launchwise.report.blocks import Block, Column, Figure, Fold, Key, Panel, Section, Text, table
from launchwise.report.page import render
from launchwise.tables.answers import Answer
from launchwise.tables.rows import is_baseline
from launchwise.workloads.metrics import TIMED
from launchwise.workloads.spec import Spec

MOST_PROBLEMS = 12
"""Most problems per figure; more are thinned out evenly."""

MOST_POINTS = 2000
"""Most configurations per panel; more are thinned out evenly from fastest to slowest."""


def page(spec: Spec, profile: GpuProfile, rows: pd.DataFrame, found: Sequence[Answer]) -> str:
    """A self-contained HTML page.

    Parameters
    ----------
    rows
        Sweep of the GPU: a table of :func:`launchwise.tables.measurements.measurement_schema`.
    found
        :func:`launchwise.tables.answers.answers` of ``rows``.
    """
    sections = [
        Section("answers", "Fastest configurations", [*_answers(spec, profile, found)]),
        Section("all", "Every configuration", [*_every(spec, rows)]),
        Section("tunables", "Effect of each tunable", [*_tunables(spec, rows)]),
        gpus.section({profile.name: profile}),
    ]
    lead = (
        f"{spec.title} on {profile.device_name}: {wording.plural(len(found), 'problem')}, "
        f"{wording.plural(len(rows), 'measurement')}, "
        f"measured until {wording.moment(str(rows['measured_at'].max()))}, "
        f"commit {wording.short(str(rows['commit'].iloc[-1]))}."
    )
    title = f"{spec.title}: fastest configurations"
    return render(title, lead, [section for section in sections if section.blocks])


def _answers(spec: Spec, profile: GpuProfile, found: Sequence[Answer]) -> Iterator[Block]:
    names = list(spec.problem)
    columns = [
        *(Column(name, spec.problem[name].unit) for name in names),
        Column("fastest configuration", number=False),
        Column("time", "ms"),
        Column("default", "ms"),
        Column("speed-up", "× default"),
        Column("in a tie", "others"),
        Column("bandwidth", "GB/s"),
        Column("of peak" if profile.has_attributes_alone else "of copies", "%"),
        Column("timed"),
        Column("without a time"),
    ]
    most_gbs, of_what = profile.memory_bandwidth_gbs, "that of bus width and memory clock"
    if not profile.has_attributes_alone:
        most_gbs, of_what = profile.ceilings.copy_bandwidth_gbs, "a plain copy"
    rows = [_answer(spec, each, most_gbs) for each in found]
    yield table("Fastest configuration of each problem", columns, rows)
    yield Text(
        "Times are medians of launches whose results were verified. A configuration ties with the "
        "fastest if their times differ by less than the measurement error. Bandwidth: minimum "
        f"traffic of the problem divided by the time; its share is relative to {of_what}.",
        "note",
    )
    if outcomes := [*_outcomes(spec, found)]:
        columns = [
            *(Column(name, spec.problem[name].unit) for name in names),
            Column("status", number=False),
            Column("configurations"),
            Column("with this reason"),
            Column("most frequent reason", number=False),
            Column("one of them", number=False),
        ]
        yield table("Configurations that are not ok", columns, outcomes)
    yield Fold("How to read a configuration", [_key(spec)])


def _answer(spec: Spec, each: Answer, most_gbs: float | None) -> list[str]:
    """Row of a problem's fastest configuration; its share is relative to ``most_gbs``."""
    untimed = sum(count for status, count in each.statuses.items() if status not in TIMED)
    name = "no configuration is ok"
    if each.configuration is not None:
        name = wording.configuration(each.configuration, spec)
    share = each.bandwidth_gbs and most_gbs and each.bandwidth_gbs / most_gbs
    return [
        *(str(each.problem[name]) for name in spec.problem),
        name,
        wording.number(each.time_ms, 4),
        wording.number(each.baseline_ms, 4),
        wording.number(each.speedup),
        wording.count(each.tied),
        wording.number(each.bandwidth_gbs, 4),
        wording.percent(share),
        wording.count(sum(each.statuses.values()) - untimed),
        wording.count(untimed),
    ]


def _outcomes(spec: Spec, found: Sequence[Answer]) -> Iterator[list[str]]:
    """A row per problem and status."""
    for each in found:
        for status, outcome in each.outcomes.items():
            yield [
                *(str(each.problem[name]) for name in spec.problem),
                status,
                wording.count(outcome.count),
                wording.count(outcome.alike),
                outcome.reason or wording.MISSING,
                wording.configuration(outcome.configuration, spec),
            ]


def _key(spec: Spec) -> Block:
    columns = [Column("configuration", number=False), Column("what it is", number=False)]
    return table("Forms of configurations", columns, [*map(list, wording.configuration_key(spec))])


def _every(spec: Spec, rows: pd.DataFrame) -> Iterator[Block]:
    panels = []
    for title, own in _problems(spec, rows):
        timed = own[own["status"].isin(["ok", "slow"])].sort_values("time_ms", ignore_index=True)
        if timed.empty:
            continue
        places = np.unique(np.linspace(0, len(timed) - 1, MOST_POINTS).round().astype(int))
        drawn = timed.iloc[places]
        names = [wording.configuration(row, spec) for row in drawn.to_dict("records")]
        traces = [
            {
                "type": "scatter",
                "mode": "markers",
                "x": (places + 1).tolist(),
                "y": theme.rounded(drawn["time_ms"]),
                "text": names,
                "marker": {"color": theme.BLUE, "size": 4},
                "hovertemplate": "%{text}<br>%{y:.4~g} ms<extra></extra>",
            }
        ]
        default = timed[is_baseline(timed, spec)]
        if len(default):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": [int(default.index[0]) + 1],
                    "y": theme.rounded(default["time_ms"]),
                    "marker": {"color": theme.ORANGE, "size": 10, "symbol": "diamond"},
                    "hovertemplate": "default<br>%{y:.4~g} ms<extra></extra>",
                }
            )
        layout = theme.layout(
            theme.axis("configuration, from the fastest"),
            theme.log_axis("time (ms)", timed["time_ms"]),
        )
        panels.append(Panel(title, traces, layout))
    if panels:
        yield Figure(
            id="every",
            caption="Time of every configuration, sorted. Where few points lie at the left, the "
            "fastest are hard to find by chance.",
            alt="Points: times of all configurations in ascending order, the default marked.",
            panels=panels,
            keys=[Key("configuration", theme.BLUE, "dot"), Key("default", theme.ORANGE, "dot")],
        )


def _tunables(spec: Spec, rows: pd.DataFrame) -> Iterator[Block]:
    """Best time for each value of a tunable, divided by the overall best time."""
    titles = ["variant", *spec.tunables] if len(spec.variants) > 1 else list(spec.tunables)
    timed = rows[rows["status"] == "ok"]
    if timed.empty:
        return
    best = timed.groupby(spec.problem_columns)["time_ms"].transform("min")
    timed = timed.assign(excess=timed["time_ms"] / best)
    cells = []
    for name in titles:
        having = timed
        if name != "variant":
            with_it = [each for each, one in spec.variants.items() if name in one.tunables]
            having = timed[timed["variant"].isin(with_it)]
        own = having.groupby([*spec.problem_columns, name])["excess"].min()
        for value, losses in own.groupby(level=name):
            cells.append(
                [
                    name,
                    str(value),
                    wording.number(float(np.exp(np.log(losses).mean())), 4),
                    wording.number(float(losses.max()), 4),
                    wording.count(len(losses)),
                ]
            )
    columns = [
        Column("tunable", number=False),
        Column("value", number=False),
        Column("mean", "× the best"),
        Column("worst", "× the best"),
        Column("problems"),
    ]
    yield Text(
        "Time of the fastest configuration with this value, divided by the best time. 1 means that "
        "fixing the value costs nothing if all other tunables are tuned."
    )
    yield table("One value fixed, all others free", columns, cells)


def _problems(spec: Spec, rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    grouped = list(rows.groupby(spec.problem_columns, sort=False))
    places = np.unique(np.linspace(0, len(grouped) - 1, MOST_PROBLEMS).round().astype(int))
    for place in places.tolist():
        values, own = grouped[place]
        named = dict(zip(spec.problem_columns, values, strict=True))
        yield wording.problem(named, spec.problem_columns), own
