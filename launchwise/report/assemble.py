"""Every section of the report in order, and the summaries that stand beside it as CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import pandas as pd

from launchwise.base.parallel import in_parallel
from launchwise.gpus.datasheets import Datasheet
from launchwise.gpus.prices import Price
from launchwise.report import (
    comparison,
    curves,
    fixed_choice,
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
from launchwise.report.missing import MissingStudy, failed, made, notices
from launchwise.report.numbers import single_best
from launchwise.report.own_sections import own_sections
from launchwise.report.spread import Spread, spread
from launchwise.report.study import StudyData


def pages(
    studies: Sequence[StudyData],
    run: overview.Run,
    processes: int = 1,
    cards: Mapping[str, Datasheet] = MappingProxyType({}),
    prices: Mapping[str, Price] = MappingProxyType({}),
    missing: Sequence[MissingStudy] = (),
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
    missing
        Studies that cannot be read: named in their place.
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
    compared = _present(
        made(
            "gpu-against-gpu", "GPU against GPU", comparison.section, studies, cards, prices, apart
        ),
        made("gpus", "GPUs", gpus.section, profiles, described_only),
        made("predicted", "Predicted run times", _predicted, studies),
    )
    of_study = partial(_study, apart=apart)
    own = [page for found in in_parallel(of_study, studies, processes) for page in found]
    said = notices(missing, list(failed(own)))
    title = "Launch parameters: measured, learnt, recommended"
    found = [
        Page("index.html", "Overview", title, lead, front.sections(studies, missing, said)),
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
            _present(
                made("verdicts", "Verdicts", health.section, studies),
                overview.provenance(run, studies),
            ),
        ),
    ]
    return [*found, *own, *(each.page for each in missing)]


def _predicted(studies: Sequence[StudyData]) -> Section | None:
    return predictions.overall(studies, published_times.overall(studies))


def _study(study: StudyData, apart: Spread | None) -> list[Page]:
    answer = _all_made(study, ANSWERS)
    learnt = _all_made(study, LEARNT)
    if (
        unmeasured := made(f"{study.name}-unmeasured", UNMEASURED, described, study, apart)
    ) is not None:
        answer.append(unmeasured)
    beside = _all_made(
        study, {"published-times": ("Published times", published_times.published_times)}
    )
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


ANSWERS = {
    "answer": ("Answer", overview.answer),
    "landscape": ("All configurations of one problem", sections.landscape),
    "fixed": ("One configuration for every problem", fixed_choice.section),
    "tunables": ("Sensitivity of the tunables", tunables.tunables),
    "pairs": ("Gains in pairs", pairs.section),
    "peers": ("Beside libraries", peers.section),
    "tiles": ("Best configuration against size", sections.tiles),
    "occupancy": ("Occupancy", occupancy.occupancy),
    "gpus": ("The GPUs compared", sections.compared),
}
"""Sections of a study's first page: end of the id to the title that stands where one fails, and
what makes it."""

LEARNT = {
    "goals": ("Headline figures", goals.goals),
    "models": ("Models and baselines", models.tables_of),
    "curves": ("How many measurements are enough", curves.learning_curves),
    "predicted": ("Predicted against measured time", predictions.predictions),
    "outliers": ("What was removed as an outlier", sections.removed),
    "transfer": ("From one GPU to another", sections.transferred),
}
"""Sections of the page of models, in the same way."""

PUBLISHED = {"against": ("Predictions against published times", published_times.published_times)}
"""Section of the page beside the publication, in the same way."""

UNMEASURED = "Datasheet-only GPUs"


def _all_made(
    study: StudyData, wanted: Mapping[str, tuple[str, Callable[[StudyData], Section | None]]]
) -> list[Section]:
    return _present(
        *(made(f"{study.name}-{end}", title, make, study) for end, (title, make) in wanted.items())
    )


def _present(*sections_: Section | None) -> list[Section]:
    return [one for one in sections_ if one is not None]


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
