"""Sections of the streams study: overlap, overhead, and laws that choose the number of streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from launchwise.experiment.published import Records
from launchwise.report.blocks import Block, Bullets, Fold, Section
from launchwise.report.fields import contradictions, table_of
from launchwise.report.study import StudyData

from . import gains
from .batches import batch_blocks
from .conclusion import conclusion_blocks
from .fits import fit_blocks
from .gains import FIELDS, gain_figure
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
    parts: dict[str, tuple[str, Iterable[Block]]] = {
        f"{study.name}-conclusion": (
            "The paper's conclusion on our measurements",
            [*conclusion_blocks(study, every, optima, published), *contradictions(published)],
        ),
        f"{study.name}-gain": ("Speed-up of streams", _gain(study, every)),
        f"{study.name}-overlap": (
            "Stages that streams can overlap",
            stage_blocks(study, every, published),
        ),
        f"{study.name}-laws": (
            "Laws of the sum and of the overhead",
            fit_blocks(study, every, published),
        ),
        f"{study.name}-optima": ("Best and predicted number of streams", optima_blocks(optima)),
        f"{study.name}-batches": ("Batches", batch_blocks(study)),
    }
    made = ((name, title, list(blocks)) for name, (title, blocks) in parts.items())
    return [Section(name, title, blocks) for name, title, blocks in made if blocks]


def _gain(study: StudyData, every: list[StreamSeries]) -> Iterator[Block]:
    yield Bullets([(f"{series.title}:", gains.sentence(series.gains)) for series in every])
    yield gain_figure(study, [(one.title, one.runs, one.gains) for one in every])
    for one in every:
        made = table_of(f"Speed-up and bound, {one.title}", FIELDS, one.gains)
        yield Fold(f"{one.title}: speed-up and bound of every size", [made])
