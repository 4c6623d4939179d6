"""Sensitivity of a study's tunables as one picture per GPU: a bar per tunable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.base.literals import html_text
from launchwise.report import theme, wording
from launchwise.report.blocks import Drawing

WIDTH, LABEL, ROW, TOP = 1000, 220, 24, 10
WORDS = 250
"""Room for what stands behind a bar."""

TICKS = (1, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)

LEAST_END = 1.05
"""Right end of the axis where no tunable costs more."""


@dataclass(frozen=True)
class Sensitivity:
    """Cost of one tunable's best single value at every problem."""

    tunable: str
    value: Any
    problems: int
    mean: float  # time / least time, geometric mean over problems
    worst: float


def drawing(name: str, gpu: str, found: Sequence[Sensitivity]) -> Drawing:
    """Bars on a logarithmic axis, the most sensitive tunable on top.

    Parameters
    ----------
    name
        Id of the figure.
    found
        At least one.
    """
    ordered = sorted(found, key=lambda one: (-one.mean, -one.worst, one.tunable))
    end = max(LEAST_END, 1.02 * max(one.worst for one in ordered))
    plot = WIDTH - LABEL - WORDS

    def x(ratio: float) -> float:
        return round(LABEL + plot * math.log(ratio) / math.log(end), 1)

    bottom = TOP + ROW * len(ordered)
    parts = theme.bars(WIDTH, TOP, bottom, (tick for tick in TICKS if tick <= end), x)
    for place, one in enumerate(ordered):
        parts += _row(one, TOP + ROW * (place + 0.5), x(1), x(one.mean), x(one.worst))
    parts.append("</svg>")
    said = "; ".join(
        f"{one.tunable} = {one.value}: {_percent(one.mean)} % in the mean, "
        f"{_percent(one.worst)} % at most"
        for one in ordered
    )
    caption = (
        f"{gpu}: time with one value of a tunable at every problem, all others chosen freely, "
        "divided by the best time of the variants that have it. Bar: geometric mean for the best "
        "single value; line: the problem that loses most."
    )
    return Drawing(name, caption, f"Sensitivity of tunables on {gpu}. {said}.", "".join(parts))


def _row(one: Sensitivity, y: float, zero: float, mean: float, worst: float) -> list[str]:
    words = f"{one.value}: {_percent(one.mean)} %, at most {_percent(one.worst)} %"
    return [
        f'<text x="{LABEL - 10}" y="{y + 4}" text-anchor="end">{html_text(one.tunable)}</text>',
        f'<path d="M{zero} {y}H{worst}M{worst} {y - 5}V{y + 5}" fill="none" class="tick"/>',
        f'<rect x="{zero}" y="{y - 7}" width="{max(1.0, round(mean - zero, 1))}" height="14" '
        f'fill="{theme.SKY}" stroke="{theme.BLUE}"/>',
        f'<text x="{worst + 10}" y="{y + 4}" class="soft">{html_text(words)}</text>',
    ]


def _percent(ratio: float) -> str:
    return wording.fixed(100 * (ratio - 1), 1)
