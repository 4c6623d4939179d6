"""The front page: lookup, gains, every kernel on every GPU, blind tests, links to studies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from urllib.parse import urlencode

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Fold, Notice, Section, Table, Text
from launchwise.report.fields import field, grouped, percents, table_of
from launchwise.report.front import finder, tuning_gain
from launchwise.report.gpus import card_ratios
from launchwise.report.scores import AGAINST_USUAL, of_mean
from launchwise.report.site.stand_ins import MissingStudy
from launchwise.report.study import StudyData


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
    if (lookup := finder.block(studies, settings_files)) is not None:
        said: list[Block] = [*notices]
        if least_gain is not None:
            words = f"Where a gain of {least_gain:g} is not sure, the answer is the usual choice."
            said.append(Text(words))
        found.append(Section("look-up", "Which configuration?", [*said, lookup]))
    elif notices:
        found.append(Section("not-here", "Missing from this report", notices))
    return [*found, Section("kernels", "Every kernel", [*_kernels(studies, missing)])]


MOST_PAIRS = 2  # Pairs of cards that the front page compares; gpus.html has all


def _kernels(studies: Sequence[StudyData], missing: Sequence[MissingStudy]) -> Iterator[Block]:
    """What tuning gains and which card is faster; all else in folds."""
    theirs = [one for one in studies if not one.profiles[one.whole[0]].has_measured_ceilings]
    ours = [one for one in studies if one not in theirs]
    yield _overview(ours or theirs)
    folds: dict[str, tuple[str, Sequence[Block]]] = {
        "others": ("Measured by others", [_overview(theirs)] if ours and theirs else []),
        "worth": ("Gain from tuning", _worth(studies)),
        "kernels-by-gpu": ("Every kernel on every GPU", _by_gpu(ours, theirs)),
        "blind": ("Blind tests", _blind_tests(studies)),
        "studies": ("Studies", [_studies(studies, missing)]),
    }
    yield from (Fold(title, blocks, name) for name, (title, blocks) in folds.items() if blocks)


def _overview(studies: Sequence[StudyData]) -> Table:
    """A row per study, below one of all kernels."""
    ratios = {
        (one.over, one.name, one.gpu, one.other): one for one in card_ratios.of_whole_cards(studies)
    }
    pairs = list(dict.fromkeys((gpu, other) for _, _, gpu, other in ratios))[:MOST_PAIRS]

    def ratio(study: StudyData | None, pair: tuple[str, str]) -> Cell:
        over, name = (card_ratios.STUDY, study.name) if study else (card_ratios.ALL,) * 2
        one = ratios.get((over, name, *pair))
        if one is None:
            return Cell(MISSING)
        between = "" if one.interval is None else wording.interval(one.interval, 2)
        return Cell(one.number, detail=f"{between}{one.verdict}")

    def gain(study: StudyData | None, part: str) -> Cell:
        one = tuning_gain.tuning_gain(study) if study else None
        if one is None:
            return Cell(MISSING if study else "")
        if part == "verdict":
            return Cell(one.verdict)
        between = getattr(one, f"{part}_interval")
        detail = "" if between is None else wording.interval(between, 2)
        return Cell(wording.fixed(getattr(one, part), 2), detail=detail)

    fields = [
        field(
            "kernel",
            lambda one: one.settings.title if one else card_ratios.ALL,
            link=lambda one: f"#{one.name}-answer" if one else "gpus.html",
        ),
        field("best", partial(gain, part="best"), unit="× usual, 95 %", number=True),
        field("recommended", partial(gain, part="recommended"), unit="× usual, 95 %", number=True),
        field("verdict", partial(gain, part="verdict")),
        *(
            field(
                f"{gpu} / {other}",
                partial(ratio, pair=(gpu, other)),
                unit="speed, 95 %",
                number=True,
            )
            for gpu, other in pairs
        ),
    ]
    whole = [None] if any(over == card_ratios.ALL for over, *_ in ratios) else []
    return table_of("Is tuning worth it, and which card is faster?", fields, [*whole, *studies])


def _worth(studies: Sequence[StudyData]) -> list[Block]:
    table = tuning_gain.table(studies)
    return [table, Text(tuning_gain.NOTE, "note")] if table.rows else []


def _by_gpu(ours: Sequence[StudyData], theirs: Sequence[StudyData]) -> list[Block]:
    """How fast every measured GPU runs every kernel that ran on two of them."""
    parts = ([study for study in part if len(study.gpus) > 1] for part in (ours, theirs))
    return [_table(part) for part in parts if part]


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
    "Problems were drawn at random from the ranges of each study: none is among the rows that it "
    "learnt from, nor had been measured on that GPU. The answers were recorded with a digest and "
    "the commit. Then these problems were "
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


def _blind_tests(studies: Sequence[StudyData]) -> list[Block]:
    """Figures of every blind test, one row per study and GPU."""
    rows = [
        {**got, "title": study.settings.title, "gpu": gpu}
        for study in studies
        for gpu, got in study.blind.items()
    ]
    if not rows:
        return []
    found: list[Block] = [table_of(BLIND_CAPTION, BLIND, rows), Text(BLIND_NOTE, "note")]
    waiting = [f"{study.settings.title} on {gpu}" for study in studies for gpu in study.frozen]
    if waiting:
        found.append(Text(f"Frozen, and not measured yet: {wording.listed(waiting)}."))
    return found
