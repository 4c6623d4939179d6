"""Every section of the report in order, and the summaries that stand beside it as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import pandas as pd

from launchwise.base.parallel import in_parallel
from launchwise.gpus.datasheets import Datasheet
from launchwise.gpus.prices import Price
from launchwise.report import (
    comparison,
    curves,
    front,
    goals,
    gpus,
    health,
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
from launchwise.report.blocks import Page, Section
from launchwise.report.described import described
from launchwise.report.elements import elements
from launchwise.report.numbers import single_best, winners
from launchwise.report.own_sections import own_sections
from launchwise.report.spread import Spread, spread
from launchwise.report.study import StudyData


def pages(
    studies: Sequence[StudyData],
    run: overview.Run,
    processes: int = 1,
    cards: Mapping[str, Datasheet] = MappingProxyType({}),
    prices: Mapping[str, Price] = MappingProxyType({}),
) -> list[Page]:
    """Every page of the report, the first page first.

    Parameters
    ----------
    processes
        Pages of so many studies are made at once.
    cards
        Datasheets of cards: for the power of the GPUs.
    prices
        GPU to what it costs.
    """
    profiles = {gpu: profile for study in studies for gpu, profile in study.profiles.items()}
    described_only = {gpu: one for study in studies for gpu, one in study.described.items()}
    models_of_card = len({profile.card_model for profile in profiles.values()})
    lead = (
        f"{wording.plural(len(studies), 'study', 'studies')} on {wording.listed(profiles)} "
        f"({wording.plural(models_of_card, 'model of card', 'models of card')}). "
        f"Written {wording.moment(run.written_at)}, commit {wording.short(run.commit)}."
    )
    apart = spread(studies)
    compared = _present(comparison.section(studies, cards, prices, apart))
    compared.append(gpus.section(profiles, described_only))
    if (times := predictions.overall(studies, published_times.overall(studies))) is not None:
        compared.append(times)
    title = "Launch parameters: measured, learnt, recommended"
    found = [
        Page("index.html", "Overview", title, lead, front.sections(studies)),
        Page(
            "gpus.html",
            "GPUs",
            "GPUs",
            "How fast they are beside each other, what they are, and what they reach.",
            compared,
        ),
        Page(
            "health.html",
            "Health",
            "Health of the measurements",
            "How far the sweeps can be trusted, and where every number comes from.",
            [health.section(studies), overview.provenance(run, studies)],
        ),
    ]
    of_study = partial(_study, apart=apart)
    for own in in_parallel(of_study, studies, processes):
        found += own
    return found


def _study(study: StudyData, apart: Spread | None) -> list[Page]:
    best = winners(study)
    answer = _present(
        overview.answer(study),
        pairs.section(study),
        peers.section(study),
        sections.tiles(study, best),
        tunables.tunables(study),
        occupancy.occupancy(study),
        sections.compared(study, best),
        sections.landscape(study, best),
        described(study, apart),
    )
    learnt = _present(
        goals.goals(study),
        models.tables_of(study),
        curves.learning_curves(study),
        predictions.predictions(study),
        sections.removed(study),
        sections.transferred(study),
    )
    beside = _present(published_times.published_times(study))
    others = [*answer, *learnt, *beside]
    paper = [*own_sections(study, others), *beside]
    if (listed := elements(study, [*answer, *learnt, *paper])) is not None:
        paper.append(listed)
    title, lead = study.settings.title, study.settings.question
    found = [
        Page(f"{study.name}/index.html", "Answer", title, lead, answer, study.name),
        Page(f"{study.name}/models.html", "Models", f"{title}: models", lead, learnt, study.name),
    ]
    if paper:
        beside_title = f"{title}: beside the publication"
        found.append(
            Page(f"{study.name}/paper.html", "Publication", beside_title, lead, paper, study.name)
        )
    return found


def _present(*made: Section | None) -> list[Section]:
    return [one for one in made if one is not None]


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
