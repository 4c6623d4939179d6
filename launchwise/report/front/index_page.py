"""The front page: lookup, gains, every kernel on every GPU, blind tests, links to studies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from urllib.parse import urlencode

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Fold, Notice, Section, Table, Text
from launchwise.report.fields import field, grouped, percents, table_of
from launchwise.report.front import finder, tuning_gain
from launchwise.report.gpus import card_ratios
from launchwise.report.health import sweep_health
from launchwise.report.scores import AGAINST_USUAL, of_mean
from launchwise.report.site.stand_ins import MissingStudy
from launchwise.report.study import StudyData


def section(studies: Sequence[StudyData]) -> Section | None:
    """How fast every measured GPU runs every kernel; None where no kernel ran on two of them."""
    found = [study for study in studies if len(study.gpus) > 1]
    theirs = [study for study in found if not study.profiles[study.whole[0]].has_measured_ceilings]
    ours = [study for study in found if study not in theirs]
    blocks: list[Block] = [
        Text(f"{each.gpu} over {each.other}, all kernels: {each.said}.")
        for each in card_ratios.of_whole_cards(studies)
        if each.over == card_ratios.ALL
    ]
    if ours:
        blocks.append(_table(ours))
    if theirs:
        blocks.append(Fold("Measured by others", [_table(theirs)]) if ours else _table(theirs))
    if not blocks:
        return None
    words = f"Each GPU runs its own fastest configuration. {card_ratios.WORDS}"
    return Section("kernels-by-gpu", "Every kernel on every GPU", [*blocks, Text(words, "note")])


def _table(studies: Sequence[StudyData]) -> Table:
    """A row per GPU."""
    fields = [field("GPU", str)]
    for study in studies:
        unit = f"× {study.whole[0]}"
        fields.append(field(study.settings.title, partial(_cell, study), unit=unit, number=True))
    gpus = [gpu for study in studies for gpu in study.gpus]
    return table_of("Speed of every GPU", fields, dict.fromkeys(gpus))


def _cell(study: StudyData, gpu: str) -> Cell:
    reference = study.whole[0]
    one = card_ratios.of_study(study).get((gpu, reference))
    if one is None:
        return Cell("1" if gpu == reference else MISSING)
    asked = {"study": study.name, "gpus": f"{reference},{gpu}", "beside": reference}
    link = f"gpus.html#compare?{urlencode(asked, safe=',')}"
    return Cell(one.number, detail=one.basis, link=link)


def sections(
    studies: Sequence[StudyData],
    missing: Sequence[MissingStudy] = (),
    notices: Sequence[Notice] = (),
    least_gain: float | None = None,
    settings_files: Sequence[str] = (),
) -> list[Section]:
    """Sections of the front page, the lookup first; ``notices`` is what a reader must know before.
    ``least_gain`` is the gain that must be sure, None where the expected one decides."""
    found: list[Section] = []
    unwell = sweep_health.notice(sweep_health.of_studies(studies))
    if (lookup := finder.block(studies, settings_files)) is not None:
        lead = "Choose a kernel, a GPU and a problem: the lookup answers any size."
        if least_gain is not None:
            lead += f" Where a gain of {least_gain:g} is not sure, the answer is the usual choice."
        strip = [*notices, *([] if unwell is None else [unwell])]
        found.append(Section("look-up", "Which configuration?", [*strip, Text(lead), lookup]))
    elif notices:
        found.append(Section("not-here", "Missing from this report", notices))
    others = (
        tuning_gain.section(studies),
        section(studies),
        blind_tests(studies),
        Section("studies", "Studies", [_studies(studies, missing)]),
    )
    return [*found, *(one for one in others if one is not None)]


MOST_NAMED = 14  # GPUs that a line names; of more it says how many there are


def named_gpus(gpus: Sequence[str]) -> str:
    """``a, b and c``, or the first of many and their number."""
    if len(gpus) <= MOST_NAMED:
        return wording.listed(gpus)
    return f"{', '.join(gpus[:3])} and {wording.count(len(gpus) - 3)} more"


STUDIES = [
    field("study", "title", detail=itemgetter("name"), link=itemgetter("link")),
    field("question", "question"),
    field("GPUs", "gpus"),
    field("measured", "rows", unit="rows", number=True),
]


def _studies(studies: Sequence[StudyData], missing: Sequence[MissingStudy]) -> Table:
    rows = [
        {
            "name": study.name,
            "title": study.settings.title,
            "link": f"#{study.name}-answer",
            "question": study.settings.question,
            "gpus": named_gpus(study.gpus),
            "rows": wording.count(len(study.rows)),
        }
        for study in studies
    ]
    rows += [each.row for each in missing]
    return table_of("Studies of this report", STUDIES, rows)


BLIND_NOTE = (
    "Problems were drawn at random from the ranges of each study, and none of them had been "
    "measured. The answers were recorded with a digest and the commit. Then these problems were "
    "measured in full, and answer, usual choice and fastest configuration were timed in pairs. "
    "Mean, percentile and speed are from these pairs; the best is the fastest of at most eight "
    "configurations that ran in them, so fractions are upper bounds. The best of five measurements "
    "is from single rows of the test's sweep. "
    "Slower: slower than the usual choice by more than 2 %. Kept: the answer was the usual choice; "
    "missed: of these, problems whose best configuration is more than 5 % faster. "
    "New: the study had no row of this GPU when it answered."
)

BLIND = [
    field("study", "title"),
    field("GPU", lambda got: f"{got['gpu']}, new" if got["new_gpu"] else got["gpu"]),
    field("problems", "problems", wording.count, "count"),
    *grouped(
        "fraction of the best",
        field("mean", "fraction_geometric_mean", wording.fixed, "geometric, 95 %", detail=of_mean),
        field("5th percentile", "fraction_p5", wording.fixed),
        field("5 measured", "best_of_5", wording.fixed, "geometric, single rows"),
    ),
    *AGAINST_USUAL,
    *grouped(
        "90 % intervals",
        field("gains covered", "covered", percents(0), "%"),
        field("times covered", "times_covered", percents(0), "%"),
    ),
    field(
        "commit and day",
        lambda got: f"{wording.short(got['commit'])}, {got['frozen_at'][:10]}",
        unit="digest of the answers",
        detail=itemgetter("digest"),
    ),
]


BLIND_CAPTION = "Blind tests: answered first, measured afterwards"


def blind_tests(studies: Sequence[StudyData]) -> Section | None:
    """Figures of every blind test, one row per study and GPU; None without any."""
    rows = [
        {**got, "title": study.settings.title, "gpu": gpu}
        for study in studies
        for gpu, got in study.blind.items()
    ]
    if not rows:
        return None
    found: list[Block] = [Text(BLIND_NOTE, "note"), table_of(BLIND_CAPTION, BLIND, rows)]
    waiting = [f"{study.settings.title} on {gpu}" for study in studies for gpu in study.frozen]
    if waiting:
        found.append(Text(f"Frozen, and not measured yet: {wording.listed(waiting)}."))
    return Section("blind", "Blind tests", found)
