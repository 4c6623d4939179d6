"""Every section of the report in order, and the summaries that stand beside it as CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from launchwise.report import (
    acoustic,
    goals,
    gpus,
    granger,
    models,
    occupancy,
    overview,
    predictions,
    recursion,
    sections,
    sentiment,
    streams,
    subsystem,
    tunables,
    wording,
)
from launchwise.report.blocks import Section
from launchwise.report.numbers import single_best, winners
from launchwise.report.page import render
from launchwise.report.published import Records, read_published
from launchwise.report.study import StudyData

Own = Callable[[StudyData, Mapping[str, Records]], list[Section]]


OWN_SECTIONS: dict[str, tuple[Sequence[str], Own]] = {
    "acoustic_tile": (acoustic.FILES, acoustic.own),
    "tridiagonal_subsystem": (subsystem.FILES, subsystem.own),
    "tridiagonal_recursion": (recursion.FILES, recursion.own),
    "tridiagonal_streams": (streams.FILES, streams.own),
    "sentiment_inference": (sentiment.FILES, sentiment.own),
    "granger_time": (granger.FILES, granger.own),
}
"""Published tables that a study reads, and what it shows after its headline figures with them."""


def report(
    studies: Sequence[StudyData], published: Mapping[str, dict[str, Path]], run: overview.Run
) -> tuple[str, str]:
    """The whole page, and the page with its tables only, as HTML.

    Parameters
    ----------
    published
        Study -> name -> published table; a study without an entry has no such part.
    """
    profiles = {gpu: profile for study in studies for gpu, profile in study.profiles.items()}
    made = [Section("answers", "Answers", [], [overview.answer(study) for study in studies])]
    made.append(gpus.section(profiles))
    if (times := predictions.overall(studies)) is not None:
        made.append(times)
    made += [_study(study, published.get(study.name, {})) for study in studies]
    made.append(overview.provenance(run, studies))
    cards = len({profile.card_model for profile in profiles.values()})
    lead = (
        f"{wording.plural(len(studies), 'study', 'studies')} on {wording.listed(profiles)} "
        f"({wording.plural(cards, 'model of card', 'models of card')}). "
        f"Written {wording.moment(run.written_at)}, commit {wording.short(run.commit)}."
    )
    title = "Launch parameters: measured, learnt, recommended"
    return render(title, lead, made), render(title, lead, made, figures=False)


def _study(study: StudyData, published: dict[str, Path]) -> Section:
    best = winners(study)
    parts: list[Section | None] = [
        goals.goals(study),
        *_own(study, published),
        models.tables_of(study),
        sections.tiles(study, best),
        tunables.tunables(study),
        occupancy.occupancy(study),
        sections.compared(study, best),
        sections.landscape(study, best),
        predictions.predictions(study),
        predictions.unmeasured(study),
        sections.removed(study),
        sections.transferred(study),
    ]
    children = [part for part in parts if part is not None]
    return Section(f"study-{study.name}", f"Study: {study.settings.title}", [], children)


def _own(study: StudyData, published: Mapping[str, Path]) -> list[Section]:
    if study.name not in OWN_SECTIONS:
        return []
    files, sections_of = OWN_SECTIONS[study.name]
    known = {name: path for name, path in published.items() if name in files}
    return sections_of(study, read_published(known))


def model_summary(study: StudyData) -> pd.DataFrame:
    """The model tables of every split as one table, for ``<study>.models.csv``."""
    parts = []
    for split in sorted(study.facts.get("splits", {})):
        found = models.score_table(study, split, models.ALL_GPUS)
        found.insert(0, "split", split)
        parts.append(found)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def configuration_summary(study: StudyData) -> pd.DataFrame:
    """The one configuration to use by GPU and kind, for ``<study>.configurations.csv``."""
    return single_best(study, ["gpu", *study.kinds])
