"""The figures of a study, each from a table that ``numbers`` computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.row_arrays import keys_of
from launchwise.report import theme, wording
from launchwise.report.blocks import Figure, Key, Panel
from launchwise.report.numbers import configuration_names, winners
from launchwise.report.study import StudyData
from launchwise.workloads.metrics import MEASURED

MAX_KINDS = 12
"""Panels of one figure; a study with more kinds of problems shows the most measured ones."""


@dataclass(frozen=True)
class KindOnGpu:
    """A case of a study's own sections: one GPU and one kind of problem."""

    gpu: str
    kind: str

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.gpu}, {self.kind}"


COPIES_MATTER = 0.1
"""Largest copy-bandwidth share below which a study counts as not bound by memory."""

MOST_POINTS = 800
"""Most configurations per landscape; more are thinned out evenly."""


def kinds_of(study: StudyData, table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """(title, rows) of every kind of problem (all parameters but the size), in order.

    Of more than :data:`MAX_KINDS`, those with the most measured problems: a kind with one size
    shows nothing of sizes.
    """
    if not study.kinds:
        yield "", table
        return
    groups = list(table.groupby(study.kinds, sort=True))
    if len(groups) > MAX_KINDS:
        problems = Counter(keys_of(winners(study), study.kinds))
        measured = sorted(groups, key=lambda group: -problems[group[0]])
        most = {values for values, _ in measured[:MAX_KINDS]}
        groups = [(values, rows) for values, rows in groups if values in most]
    for values, rows in groups:
        named = dict(zip(study.kinds, values, strict=True))
        yield wording.problem(named, study.kinds), rows


def row_of(
    study: StudyData, rows: pd.DataFrame, gpu: str, *, sized: bool = False
) -> dict[str, Any]:
    """What a trace says of the rows behind its points, for the page's script.

    Parameters
    ----------
    rows
        Rows of one kind of problem.
    sized
        Whether they are one problem; else the size of each is the point's place on the axis.
    """
    first = rows.iloc[0]
    problem = [
        str(first[name]) if sized or name != study.size else None for name in study.problem_columns
    ]
    return {"gpu": gpu, "problem": problem}


def own_scales(panels: Sequence[Panel]) -> str:
    """Words for panels with a scale of their own each."""
    return " Each panel has its own scale." if len(panels) > 1 else ""


def size_axis(study: StudyData) -> str:
    """Title of the axis along which problems grow."""
    unit = study.spec.problem[study.size].unit
    return f"{study.size} ({unit})" if unit else study.size


def size_layout(study: StudyData, table: pd.DataFrame) -> dict[str, Any]:
    """Axis of problem sizes: logarithmic where they span two decades, categories where texts."""
    title = size_axis(study)
    if study.spec.problem[study.size].type == "category":
        return theme.axis(title, type="category")
    # By the sizes of the whole study: panels beside each other have one kind of axis.
    every = study.rows[study.size].astype(float)
    if len(every) and every.min() > 0 and every.max() / every.min() > 100:
        return theme.log_axis(title, table[study.size].astype(float))
    return theme.axis(title)


def copies_matter(best: pd.DataFrame) -> bool:
    """Whether shares of the copy bandwidth say anything of a study's fastest configurations."""
    return bool(best["limit_share"].max() >= COPIES_MATTER)


def has_sizes(study: StudyData, table: pd.DataFrame) -> bool:
    """Whether a plot against size would show more than a point."""
    return bool(table[study.size].nunique() > 1)


def throughput(study: StudyData, best: pd.DataFrame, *, share: bool, name: str) -> Figure:
    """Best rate, or share of the copy bandwidth, of every GPU against size."""
    item = study.spec.work.item
    title = "% of copy bandwidth" if share else f"1e9 {item} / s"
    top = 100 * best["limit_share"].max() if share else best["rate"].max()
    panels = []
    for kind, rows in kinds_of(study, best):
        if share and not copies_matter(rows):
            continue
        traces = []
        for place, gpu in enumerate(study.gpus):
            own = rows[rows["gpu"] == gpu].sort_values(study.size)
            if own.empty:
                continue
            values = 100 * own["limit_share"] if share else own["rate"]
            hover = own["configuration"].tolist()
            template = (
                f"{study.size}=%{{x}}: %{{y:.4~g}} {'%' if share else '· 1e9/s'}<br>%{{text}}"
            )
            trace = theme.line(
                own[study.size], values, name=gpu, place=place, hover=hover, template=template
            )
            traces.append({**trace, "meta": row_of(study, own, gpu)})
        # Rates of kinds of problems differ by far: on one scale most of them would be flat.
        end = top if share else rows["rate"].max()
        y = theme.axis(title, range=[0, float(f"{1.06 * end:.4g}")])
        panels.append(Panel(kind, traces, theme.layout(size_layout(study, rows), y)))
    what = "the share of its copy bandwidth" if share else "the rate"
    return Figure(
        id=f"{study.name}-{name}",
        caption=(
            f"Bandwidth of the best configuration in % of {wording.copies(study.profiles)}. Near "
            "100 %, memory is the limit; far below, something else. Kinds of problems below 10 % "
            "are left out."
            if share
            else f"Best rate of each GPU: higher is faster; {item} of the problem in one launch."
            f"{own_scales(panels)}"
        ),
        alt=f"Lines: {what} of the best configuration against {study.size}, one line per GPU.",
        panels=panels,
        keys=theme.keys(study.gpus),
    )


def best_against_size(study: StudyData, best: pd.DataFrame, gpu: str) -> Figure | None:
    """Tunables of the fastest configuration against size, on a logarithmic scale."""
    own = best[best["gpu"] == gpu]
    drawn = [
        name
        for name, tunable in study.spec.tunables.items()
        if all(isinstance(value, int) for value in tunable.values)
        and own.loc[own[name].map(_is_positive), name].nunique() > 1
    ]
    if own.empty or not drawn or not has_sizes(study, own):
        return None
    every = np.concatenate([own[name].to_numpy(dtype=float) for name in drawn])
    least = every[every > 0].min()
    ticks = [2.0**power for power in range(0, 1 + int(np.ceil(np.log2(every.max()))), 2)]
    titles = [_with_unit(study, name) for name in drawn]
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
            f"{gpu}: the fastest configuration at every size. A flat line: one choice serves all "
            "sizes; a gap: another variant is faster. The next figure shows what a jump gains. "
            f"{_at_the_edge(study, own, drawn, gpu)}"
        ).rstrip(),
        alt=f"Lines: {wording.listed(drawn)} of the fastest configuration against {study.size}.",
        panels=panels,
        keys=theme.keys(titles),
    )


def _is_positive(value: Any) -> bool:
    return value > 0


def _with_unit(study: StudyData, name: str) -> str:
    unit = study.spec.tunables[name].unit
    return f"{name} ({unit})" if unit else name


THICKEST = 5.0
"""Extra width of the first of many lines over the last, pixels."""

FEWEST_OF_A_LINE = 3
"""Fewest points that a line joins: two points show no trend."""


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
    """Tunables whose largest measured value is the fastest."""
    measured = study.measured.loc[study.measured["gpu"] == gpu, list(drawn)].max()
    said = []
    for name in drawn:
        last = int(measured[name])
        count = int((own[name] == last).sum())
        if count:
            said.append(f"{name} = {last} (at {count} of {wording.plural(len(own), 'problem')})")
    if not said:
        return ""
    return (
        f"The largest value measured is the fastest for {wording.listed(said)}: a larger one may "
        "be faster still."
    )


def choices_against_size(
    study: StudyData, lines: Sequence[tuple[str, pd.DataFrame]], gpu: str
) -> Figure | None:
    """Speed of several methods in % of the best measured speed, against size.

    Parameters
    ----------
    lines
        (name, rows with problem columns and ``fraction``), in the order of the legend.

    Returns
    -------
    Figure or None
        None where there is a single size.
    """
    every = pd.concat([rows[[*study.problem_columns, "fraction"]] for _, rows in lines])
    if not has_sizes(study, every):
        return None
    panels = []
    parts = [(name, dict(kinds_of(study, rows))) for name, rows in lines]
    x = size_layout(study, every)
    for kind, shown in kinds_of(study, every):
        traces = []
        for place, (name, rows_of) in enumerate(parts):
            own = rows_of.get(kind)
            if own is None:
                continue
            own = own.sort_values(study.size)
            template = f"{study.size}=%{{x}}: %{{y:.1f}} % of the best speed"
            traces.append(
                theme.line(
                    own[study.size],
                    100 * own["fraction"],
                    name=name,
                    place=place,
                    template=template,
                )
            )
        lowest = 100 * float(shown["fraction"].min())
        pad = max(0.06 * (100 - lowest), 0.2)
        ends = [float(f"{lowest - pad:.4g}"), float(f"{100 + pad:.5g}")]
        y = theme.axis("% of the best speed", range=ends)
        panels.append(Panel(kind, traces, theme.layout(x, y)))
    return Figure(
        id=f"{study.name}-choices-{slug(gpu)}",
        caption=(
            f"{gpu}: speed of each method in % of the best configuration measured. "
            f"Regret: 100 minus this value.{own_scales(panels)}"
        ),
        alt=f"Lines: percent of the best speed against {study.size}, one line per method.",
        panels=panels,
        keys=theme.keys(name for name, _ in lines),
    )


def landscape(study: StudyData, rows: pd.DataFrame, title: str, baseline_ms: float) -> Figure:
    """Times of every configuration of one problem, from fastest to slowest."""
    timed = rows[rows["status"].isin(MEASURED)].sort_values(
        ["time_ms", *study.spec.tunable_columns], kind="stable"
    )
    timed = timed.assign(_rank=np.arange(1, len(timed) + 1))
    shown = timed.iloc[theme.thinned(len(timed), MOST_POINTS)]
    traces = list(_dots_of_variants(study, shown))
    if np.isfinite(baseline_ms):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [1, len(timed)],
                "y": theme.rounded([baseline_ms] * 2),
                "line": {"color": theme.INK, "width": 1, "dash": "dash"},
                "hovertemplate": "baseline %{y:.4~g} ms<extra></extra>",
            }
        )
    every = "Every configuration"
    if len(shown) < len(timed):
        every = f"{wording.count(len(shown))} of {wording.count(len(timed))} configurations"
    return Figure(
        id=f"{study.name}-landscape",
        caption=(
            f"{every} of one problem ({title}), from fastest to slowest: how much a "
            "good choice gains, and how many choices are nearly as good as the best."
        ),
        alt="Scatter: time of every configuration by rank, coloured by variant.",
        panels=[
            Panel(
                "",
                traces,
                theme.layout(
                    theme.axis("place, fastest first"),
                    theme.log_axis("time (ms)", [*timed["time_ms"], baseline_ms]),
                ),
            )
        ],
        keys=[
            *(
                Key(variant, theme.colour(place), theme.symbol(place))
                for place, variant in enumerate(study.spec.variants)
                if variant in timed["variant"].unique()
            ),
            Key("baseline", theme.INK, "dash"),
        ],
        height=340,
    )


def _dots_of_variants(study: StudyData, shown: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Time against place (``_rank``) of every variant's rows."""
    for place, variant in enumerate(study.spec.variants):
        own = shown[shown["variant"] == variant]
        if own.empty:
            continue
        trace = theme.dots(
            own["_rank"],
            own["time_ms"],
            name=variant,
            colour_=theme.colour(place),
            shape=theme.symbol(place),
            size=6,
            opacity=0.85,
            hover=configuration_names(own, study.spec),
            template="%{text}<br>place %{x}, %{y:.4~g} ms",
        )
        yield {**trace, "meta": row_of(study, own, str(own["gpu"].iloc[0]), sized=True)}


def slug(name: str) -> str:
    """A name as part of an id: letters and digits alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)
