"""Every page of the report, and every section in its order: also those that a study brings along.

``section.py`` of a study's folder defines ``sections(study, published)``: a
:class:`~launchwise.report.study_tables.StudyData` and the tables of ``published/*.csv`` in, a list
of :class:`~launchwise.report.blocks.Section` out. Their ids begin with the study's name and
a hyphen.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os.path import commonprefix
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.experiment.published import Element, check_places, read_elements, read_tables
from launchwise.gpus.datasheets import Datasheet, Price
from launchwise.gpus.profile import GpuProfile
from launchwise.report import numbers, theme, wording
from launchwise.report.answer import (
    in_pairs,
    landscape,
    model_tables,
    predicted_times,
    rates,
    rule,
    tunables,
    worth,
)
from launchwise.report.answer.predicted_times import Spread, spread
from launchwise.report.blocks import MISSING, Fold, Notice, Page, Section, Text
from launchwise.report.fields import field, printed, table_of
from launchwise.report.pages import (
    card_ratios,
    gpu_comparison,
    health_section,
    index_page,
    invariants,
    sweep_health,
)
from launchwise.report.pages.index_page import named_gpus
from launchwise.report.pages.sweep_health import Health
from launchwise.report.site.reading import MissingStudy, made
from launchwise.report.site.rendering import check_sections, parts_of
from launchwise.report.study_tables import Run, StudyData
from launchwise.workloads.declared.own_functions import import_from, own_error


@dataclass(frozen=True)
class Report:
    studies: Sequence[StudyData]
    run: Run
    cards: Mapping[str, Datasheet] = dataclasses.field(
        default_factory=dict
    )  # for the power of the GPUs
    prices: Mapping[str, Price] = dataclasses.field(default_factory=dict)  # by GPU
    missing: Sequence[MissingStudy] = ()  # studies that cannot be read: named in their place

    @cached_property
    def apart(self) -> Spread | None:
        """Errors of predicted times, of all studies."""
        return spread(study.published_times for study in self.studies)

    @cached_property
    def sweeps(self) -> list[Health]:
        """How sound every sweep is."""
        return sweep_health.of_studies(self.studies)

    @cached_property
    def outline(self) -> dict[str, list[Page]]:
        """Pages without their sections, for ways between them: of the whole report under ``""``.
        Every study has its first page; which others it has is known once they are made."""
        found = {"": [Page(*each, "", "", []) for each in (FRONT, GPUS)]}
        found |= {study.name: [_first_page(study, [])] for study in self.studies}
        return found | {each.name: [each.page] for each in self.missing}

    @property
    def places(self) -> dict[str, str]:
        """Sections that other pages lead to, to their pages."""
        found = {name: GPUS[0] for name in ("verdicts", "invariants")}
        return found | {f"{name}-answer": own[0].path for name, own in self.outline.items() if name}

    @property
    def profiles(self) -> dict[str, GpuProfile]:
        return {gpu: one for study in self.studies for gpu, one in study.profiles.items()}

    @property
    def described(self) -> dict[str, GpuProfile]:
        """Datasheet-only GPUs of all studies."""
        return {gpu: one for study in self.studies for gpu, one in study.described.items()}


FRONT, GPUS = ("index.html", "Overview"), ("gpus.html", "GPUs and health")
"""Path and name of the pages of the whole report."""


def front_page(report: Report, said: Sequence[Notice]) -> Page:
    """The front page; ``said`` is what the reader must know first."""
    studies, run = report.studies, report.run
    lead = (
        f"{wording.plural(len(studies), 'study', 'studies')}. {whose(report)} Written "
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


def whose(report: Report) -> str:
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
    if tested := numbers.only_tested(report.studies):
        said.append(f"Blind tests only: {named_gpus(tested)}.")
    if others:
        said.append(f"Measured by others: {wording.plural(len(others), 'GPU')}.")
    if described := report.described:
        said.append(f"Predicted from datasheets: {wording.plural(len(described), 'GPU')}.")
    return " ".join(said)


def gpus_page(report: Report) -> Page:
    """The GPUs, and how far their sweeps can be trusted."""
    title, studies, run = "GPU comparison", report.studies, report.run
    asked = studies, report.cards, report.prices
    checked = studies, report.sweeps, run.written_at
    compared = _present(
        made("card-ratios", "Ratios of cards", card_ratios.section, studies),
        made("gpu-against-gpu", title, gpu_comparison.section, *asked),
        made("verdicts", "Health of the sweeps", health_section.section, *checked),
        made("gpus", "GPUs", gpu_comparison.attributes, report.profiles, report.described),
        made("invariants", "Contradictions", invariants.section, studies),
        health_section.provenance(run),
    )
    lead = "Which GPU is faster, how far its measurements can be trusted, and what it is."
    return Page(*GPUS, "GPUs and health", lead, compared)


def _first_page(study: StudyData, sections_: Sequence[Section]) -> Page:
    settings = study.settings
    path = f"{study.name}/index.html"
    return Page(path, "Answer", settings.title, settings.question, sections_, study.name)


MOST_GPUS = 24  # Most GPUs on a study's pages, whole cards first. The lookup and gpus.html have all


def of_study(
    every: StudyData, settings_files: Sequence[str] = (), named: Mapping[str, str] | None = None
) -> list[Page]:
    """A study's pages, the first of them the one that other pages lead to. Without
    ``settings_files``, config.yaml is all. ``named``: titles of the report's studies."""
    study = every
    if len(every.gpus) > MOST_GPUS:
        slices = [gpu for gpu in every.gpus if gpu not in every.whole]
        study = every.limited_to([*every.whole, *slices][:MOST_GPUS])
    first = made(f"{study.name}-answer", "Answer", rule.answer, study, settings_files)
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
    has_tables = study.folder is not None and any((study.folder / "published").glob("*"))
    if has_tables or study.settings.doi is not None:
        paper = [*own, *beside]
    else:
        sections_, paper = [sections_[0], *own, *sections_[1:]], beside
    if (listed := elements(study, [*sections_, *paper], named or {})) is not None:
        paper.append(listed)
    title, lead = study.settings.title, study.settings.question
    found = [_first_page(study, sections_)]
    if paper:
        lead = " ".join(filter(None, (lead, *_cited(study))))
        beside_title = f"{title}: comparison with the publication"
        found.append(
            Page(f"{study.name}/paper.html", "Publication", beside_title, lead, paper, study.name)
        )
    doi = study.settings.doi or ""
    return [replace(page, doi=doi) for page in found]


def _cited(study: StudyData) -> Iterator[str]:
    """Authors and title of the study's published tables: what their sources begin with."""
    every = read_tables(study.folder).values() if study.folder else ()
    works: dict[str, list[str]] = {}
    for source in (row.get("source", "") for records in every for row in records):
        authors, colon, _ = source.partition(": ")
        if colon:
            works.setdefault(authors, []).append(source)
    for sources in works.values():
        common = commonprefix([*sources, f"{sources[0]}, "])  # noqa: RUF071 (texts, no paths)
        if work := common.rpartition(", ")[0]:
            yield f"Published: {work}."


Made = Callable[[StudyData], Section | None]

PARTS: Mapping[str, Sequence[Made]] = {
    "cost": (worth.cost, tunables.tunables, in_pairs.gains_in_pairs),
    "load": (worth.section,),
    "gpus": (rates.compared, rates.occupancy, model_tables.transferred),
    "sure": (
        *(rule.sure, model_tables.tables_of, model_tables.learning_curves),
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


log = logging.getLogger("launchwise")

SECTION_FILE = "section.py"

FAILED = "The section that this study brings along could not be made."


def own_sections(study: StudyData, others: Sequence[Section] = ()) -> list[Section]:
    """Sections of the study's ``section.py``; if it fails, a section with the reason. No id of
    ``others``, the sections that every study has, may be used again. Raises UserError when a
    published table of the study cannot be read."""
    if study.folder is None or not (study.folder / SECTION_FILE).is_file():
        return []
    published = read_tables(study.folder)
    workload = study.folder.parents[1]
    path = study.folder / SECTION_FILE
    try:
        module = import_from(workload, f"studies.{study.folder.name}.section")
        if not callable(getattr(module, "sections", None)):
            raise UserError(path, "", "must define sections(study, published)")
        made = list(module.sections(study, published))
        _check(study, made, others)
        return made
    except UserError as error:
        failure = error
    except Exception as error:
        failure = own_error(workload, error)
    log.warning("%s", failure)
    text = f"{FAILED} {failure}"
    return [Section(f"{study.name}-own", "This study's own section", [Text(text, "note")])]


def _check(study: StudyData, made: list[Section], others: Sequence[Section]) -> None:
    path = study.folder / SECTION_FILE if study.folder else SECTION_FILE
    if strange := [one for one in made if not isinstance(one, Section)]:
        message = f"sections() must return Section objects, not {type(strange[0]).__name__}"
        raise UserError(path, "", message)
    for one in made:
        if not one.id.startswith(f"{study.name}-"):
            raise UserError(path, one.id, f"the id of a section must begin with {study.name}-")
    try:
        check_sections(made, others)
    except Exception as error:
        raise UserError(path, "", f"its sections cannot be shown: {error}") from error


ENDS = {theme.slug(one.__name__) for made_ in PARTS.values() for one in made_} | {*PARTS}
"""Ends of the ids of sections on a study's first page."""


def elements(
    study: StudyData, others: Sequence[Section], studies: Mapping[str, str]
) -> Section | None:
    """The list of elements of the study's paper; None where the study has none. Places among the
    sections ``others`` are named by their titles, elsewhere by those of ``studies``. Raises
    UserError when the list cannot be read, or an element has neither a place nor a reason."""
    found = read_elements(study.folder) if study.folder else []
    if not study.folder or not found:
        return None
    try:
        check_places(study.folder)
    except UserError as error:
        log.warning("%s", error)  # A copy of the project may lack its documents.
    # The study's answer stands at the beginning of the page.
    titles = {f"{study.name}-answer": "Answers"}
    titles |= {one.id: one.title for one in parts_of(others)}

    def place(one: str) -> tuple[str, str]:
        """Title of a section and the way to it."""
        name, _, end = one.partition("-")
        if one in titles or name not in studies:
            return titles.get(one, one), f"#{one}" if one in titles else ""
        page = "index" if end in ENDS else "paper"
        return f"{studies[name]}: {end}", f"{name}/{page}.html#{one}"

    def places(element: Element) -> str:
        """Sections by title, files by name."""
        named = [f"“{place(one)[0]}”" for one in element.sections(study.name)]
        named += [Path(name).name for name in element.files]
        return wording.listed(dict.fromkeys(named)) if named else MISSING

    def link(element: Element) -> str:
        ways = (place(one)[1] for one in element.sections(study.name))
        return next(filter(None, ways), "")

    fields = [
        field("element", "element"),
        field("in the paper", "where"),
        field("here", places, link=link),
        field("difference or reason", "reason", printed, number=False),
    ]
    listed = table_of("Elements of the paper, in its order", fields, found, "words")
    title = "Everything in the paper, and where it is"
    return Section(f"{study.name}-elements", title, [Fold("Every element", [listed])])
