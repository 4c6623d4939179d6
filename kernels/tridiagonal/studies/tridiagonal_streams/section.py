"""Sections of the streams study: overlap, overhead, and laws that choose the number of streams."""

from __future__ import annotations

from collections.abc import Mapping

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Section
from launchwise.report.study import StudyData

from . import gains
from .batches import batch_blocks
from .conclusion import conclusion_blocks
from .fits import fit_blocks
from .gains import SIZE, gain_block, gain_figure
from .optima import optima_blocks, optima_table
from .series import StreamSeries, series_of
from .stages import stage_blocks


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where no size has several numbers of streams."""
    every = [series for series in series_of(study) if len(series.gains)]
    if not every:
        return []
    optima = {
        series.title: optima_table(series, series.laws, published)
        for series in every
        if series.laws
    }
    parts: list[tuple[str, str, list[Block]]] = [
        (
            f"{study.name}-conclusion",
            "The paper's conclusion on our measurements",
            list(conclusion_blocks(study, every, optima, published)),
        ),
        (f"{study.name}-gain", "Speed-up of streams", _gain(study, every, published)),
        (
            f"{study.name}-overlap",
            "Stages that streams can overlap",
            list(stage_blocks(study, every, published)),
        ),
        (
            f"{study.name}-laws",
            "Laws of the sum and of the overhead",
            list(fit_blocks(study, every, published)),
        ),
        (
            f"{study.name}-optima",
            "Best and predicted number of streams",
            list(optima_blocks(optima, published)),
        ),
        (
            f"{study.name}-batches",
            "Batches, and pageable memory",
            list(batch_blocks(study, every)),
        ),
    ]
    return [Section(*part) for part in parts if part[2]]


def _gain(
    study: StudyData, every: list[StreamSeries], published: Mapping[str, Records]
) -> list[Block]:
    lead = [(f"{series.title}:", gains.sentence(series.gains)) for series in every]
    facts = facts_of(published)
    if "speed_up_streams" in facts:
        sizes = facts.get("speed_up_streams_at_n", "").split()
        at = f", at {SIZE} = {wording.listed(map(wording.count, map(int, sizes)))}" if sizes else ""
        lead.append(("Paper (RTX 2080 Ti):", f"up to {facts['speed_up_streams']}x{at}."))
    figure = gain_figure(study, [(one.title, one.runs, one.gains) for one in every])
    return [Bullets(lead), figure, *(gain_block(one.title, one.gains) for one in every)]
