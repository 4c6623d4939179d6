"""Every page of the report, and every section in its order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from launchwise.gpus.datasheets import Datasheet, Price
from launchwise.gpus.profile import GpuProfile
from launchwise.report import scores, theme, wording
from launchwise.report.answer import (
    cost,
    hardware,
    in_pairs,
    landscape,
    load,
    sizes,
    study_answer,
    tunables,
)
from launchwise.report.blocks import Fold, Notice, Page, Section, Text
from launchwise.report.front import index_page
from launchwise.report.front.index_page import named_gpus
from launchwise.report.gpus import card_ratios, gpu_attributes, gpu_comparison
from launchwise.report.gpus.gpu_attributes import Spread, spread
from launchwise.report.health import health_section, invariants, sweep_health
from launchwise.report.health.sweep_health import Health
from launchwise.report.models import (
    learning_curves,
    model_tables,
    predicted_times,
    transfer,
)
from launchwise.report.site.own_sections import elements, own_sections
from launchwise.report.site.stand_ins import MissingStudy, made
from launchwise.report.study import Run, StudyData


@dataclass(frozen=True)
class Report:
    studies: Sequence[StudyData]
    run: Run
    cards: Mapping[str, Datasheet] = field(default_factory=dict)  # for the power of the GPUs
    prices: Mapping[str, Price] = field(default_factory=dict)  # by GPU
    missing: Sequence[MissingStudy] = ()  # studies that cannot be read: named in their place

    @cached_property
    def apart(self) -> Spread | None:
        """Errors of predicted times, of all studies."""
        return spread(self.studies)

    @cached_property
    def sweeps(self) -> list[Health]:
        """How sound every sweep is."""
        return sweep_health.of_studies(self.studies)

    @cached_property
    def outline(self) -> dict[str, list[Page]]:
        """Pages without their sections, for ways between them: of the whole report under ``""``.
        Every study has its first page; which others it has is known once they are made."""
        found = {"": [Page(*each, "", "", []) for each in (FRONT, GPUS, HEALTH)]}
        found |= {study.name: [_first_page(study, [])] for study in self.studies}
        return found | {each.name: [each.page] for each in self.missing}

    @property
    def places(self) -> dict[str, str]:
        """Sections that other pages lead to, to their pages."""
        found = {name: HEALTH[0] for name in ("verdicts", "invariants")}
        return found | {f"{name}-answer": own[0].path for name, own in self.outline.items() if name}

    @property
    def profiles(self) -> dict[str, GpuProfile]:
        return {gpu: one for study in self.studies for gpu, one in study.profiles.items()}

    @property
    def described(self) -> dict[str, GpuProfile]:
        """Datasheet-only GPUs of all studies."""
        return {gpu: one for study in self.studies for gpu, one in study.described.items()}


FRONT, GPUS, HEALTH = (
    ("index.html", "Overview"),
    ("gpus.html", "GPUs"),
    ("health.html", "Health"),
)
"""Path and name of the pages of the whole report."""


def front_page(report: Report, said: Sequence[Notice]) -> Page:
    """The front page; ``said`` is what the reader must know first."""
    studies, run = report.studies, report.run
    lead = (
        f"{wording.plural(len(studies), 'study', 'studies')}. {_whose(report)} Written "
        f"{wording.moment(run.written_at)}, commit {wording.short(run.commit)}."
    )
    title = "Launch parameters: measured, learnt, recommended"
    told = [*said, *_contradictions(studies)]
    sections_ = index_page.sections(studies, told, run.least_gain, run.settings_files)
    return Page(*FRONT, title, lead, sections_)


def _contradictions(studies: Sequence[StudyData]) -> Iterator[Notice]:
    try:
        found = invariants.notice(studies)
    except Exception:
        # Their section on the page of health fails for the same reason, and says so.
        return
    if found is not None:
        yield found


def _whose(report: Report) -> str:
    profiles = report.profiles
    # Imported sweeps do not record the driver.
    own = [gpu for gpu, profile in profiles.items() if profile.driver]
    cards = [gpu for gpu in own if not profiles[gpu].is_slice]
    slices = len(own) - len(cards)
    others = [gpu for gpu in profiles if gpu not in own]
    said = []
    if own:
        of = [wording.plural(slices, "slice")] if slices else []
        said.append(f"Measured here: {named_gpus([*cards, *of])}.")
    if tested := scores.only_tested(report.studies):
        said.append(f"Blind tests only: {named_gpus(tested)}.")
    if others:
        said.append(f"Measured by others: {named_gpus(others)}.")
    if described := report.described:
        said.append(f"Predicted from datasheets: {wording.plural(len(described), 'GPU')}.")
    return " ".join(said)


def gpus_page(report: Report) -> Page:
    title = "GPU comparison"
    asked = report.studies, report.cards, report.prices, report.apart
    compared = _present(
        made("card-ratios", "Ratios of cards", card_ratios.section, report.studies, report.prices),
        made("gpu-against-gpu", title, gpu_comparison.section, *asked),
        made("gpus", "GPUs", gpu_attributes.section, report.profiles, report.described),
    )
    lead = "Best times per GPU, GPU attributes and measured ceilings."
    return Page(*GPUS, "GPUs", lead, compared)


def health_page(report: Report) -> Page:
    studies, run = report.studies, report.run
    found = _present(
        made(
            "verdicts", "Verdicts", health_section.section, studies, report.sweeps, run.written_at
        ),
        made("invariants", "Contradictions", invariants.section, studies),
        health_section.provenance(run),
    )
    lead = "Quality of the sweeps, and provenance of every number."
    return Page(*HEALTH, "Health of the measurements", lead, found)


def _first_page(study: StudyData, sections_: Sequence[Section]) -> Page:
    settings = study.settings
    path = f"{study.name}/index.html"
    return Page(path, "Answer", settings.title, settings.question, sections_, study.name)


def _is_published(study: StudyData) -> bool:
    own = study.folder is not None and any((study.folder / "published").glob("*"))
    return own or study.settings.doi is not None


MOST_GPUS = 24  # Most GPUs on a study's pages, whole cards first. The lookup and gpus.html have all


def of_study(every: StudyData, settings_files: Sequence[str] = ()) -> list[Page]:
    """A study's pages, the first of them the one that other pages lead to. Without
    ``settings_files``, config.yaml is all."""
    study = every
    if len(every.gpus) > MOST_GPUS:
        slices = [gpu for gpu in every.gpus if gpu not in every.whole]
        study = every.limited_to([*every.whole, *slices][:MOST_GPUS])
    first = made(f"{study.name}-answer", "Answer", study_answer.answer, study, settings_files)
    sections_ = _present(first, *(_with_folds(study, end) for end in PARTS))
    if study is not every:
        text = (
            f"This page shows {MOST_GPUS} of the study's {wording.count(len(every.gpus))} GPUs. "
            "The lookup and the GPU comparison have all of them."
        )
        sections_[0] = replace(sections_[0], blocks=[Text(text, "note"), *sections_[0].blocks])
    beside = _present(
        made(f"{study.name}-against", "Published times", predicted_times.published_times, study)
    )
    own = own_sections(study, [*sections_, *beside])
    if _is_published(study):
        paper = [*own, *beside]
    else:
        sections_, paper = [sections_[0], *own, *sections_[1:]], beside
    if (listed := elements(study, [*sections_, *paper])) is not None:
        paper.append(listed)
    title, lead = study.settings.title, study.settings.question
    found = [_first_page(study, sections_)]
    if paper:
        beside_title = f"{title}: comparison with the publication"
        found.append(
            Page(f"{study.name}/paper.html", "Publication", beside_title, lead, paper, study.name)
        )
    doi = study.settings.doi or ""
    return [replace(page, doi=doi) for page in found]


Made = Callable[[StudyData], Section | None]

PARTS: Mapping[str, Sequence[Made]] = {
    "cost": (cost.cost, tunables.tunables, in_pairs.gains_in_pairs, sizes.tiles),
    "load": (load.section,),
    "gpus": (sizes.compared, sizes.roofline, hardware.occupancy, transfer.transferred),
    "sure": (
        *(study_answer.sure, model_tables.tables_of, learning_curves.learning_curves),
        predicted_times.predictions,
    ),
    "rows": (landscape.landscape,),
}
"""Sections of a study's page below its answer: end of the id to what makes each, and its folds."""


def _with_folds(study: StudyData, end: str) -> Section | None:
    def of(make: Made, end: str) -> Section | None:
        # Where it fails, its title is the maker's name.
        title = make.__name__.replace("_", " ").capitalize()
        return made(f"{study.name}-{end}", title, make, study)

    first, *others = PARTS[end]
    inside = _present(*(of(one, theme.slug(one.__name__)) for one in others))
    if (section := of(first, end)) is None:
        return None
    folds = [Fold(one.title, one.blocks, one.id) for one in inside]
    return replace(section, blocks=[*section.blocks, *folds])


def _present(*sections_: Section | None) -> list[Section]:
    return [one for one in sections_ if one is not None]
