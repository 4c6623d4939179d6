"""Every section of the report in order, and the summaries that stand beside it as CSV."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from launchwise.base.parallel import in_parallel
from launchwise.report import (
    blind,
    goals,
    gpus,
    models,
    occupancy,
    overview,
    pairs,
    peers,
    predictions,
    published_times,
    sections,
    tunables,
    wording,
)
from launchwise.report.blocks import Section
from launchwise.report.described import described
from launchwise.report.elements import elements
from launchwise.report.numbers import single_best, winners
from launchwise.report.own_sections import own_sections
from launchwise.report.page import render
from launchwise.report.study import StudyData


def report(studies: Sequence[StudyData], run: overview.Run, processes: int = 1) -> tuple[str, str]:
    """The whole page, and the page with its tables only, as HTML.

    Sections of so many studies are made at once.
    """
    profiles = {gpu: profile for study in studies for gpu, profile in study.profiles.items()}
    made = [Section("answers", "Answers", [], [overview.answer(study) for study in studies])]
    if (tested := blind.section(studies)) is not None:
        made.insert(0, tested)
    cards = {gpu: profile for study in studies for gpu, profile in study.described.items()}
    made.append(gpus.section(profiles, cards))
    if (times := predictions.overall(studies, published_times.overall(studies))) is not None:
        made.append(times)
    made += in_parallel(_study, studies, processes)
    made.append(overview.provenance(run, studies))
    models_of_card = len({profile.card_model for profile in profiles.values()})
    lead = (
        f"{wording.plural(len(studies), 'study', 'studies')} on {wording.listed(profiles)} "
        f"({wording.plural(models_of_card, 'model of card', 'models of card')}). "
        f"Written {wording.moment(run.written_at)}, commit {wording.short(run.commit)}."
    )
    title = "Launch parameters: measured, learnt, recommended"
    return render(title, lead, made), render(title, lead, made, figures=False)


def _study(study: StudyData) -> Section:
    best = winners(study)
    first = goals.goals(study)
    parts: list[Section | None] = [
        pairs.section(study),
        peers.section(study),
        models.tables_of(study),
        sections.tiles(study, best),
        tunables.tunables(study),
        occupancy.occupancy(study),
        sections.compared(study, best),
        sections.landscape(study, best),
        predictions.predictions(study),
        published_times.published_times(study),
        described(study),
        sections.removed(study),
        sections.transferred(study),
    ]
    rest = [part for part in parts if part is not None]
    children = [first, *own_sections(study, [first, *rest]), *rest]
    if (listed := elements(study, children)) is not None:
        children.append(listed)
    return Section(f"study-{study.name}", f"Study: {study.settings.title}", [], children)


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
