"""The front page: lookup, every kernel's gain and its ratios of cards, blind tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from launchwise.base.robust import EQUAL
from launchwise.learning.merit import Means, geometric_mean, resampled_means
from launchwise.report import numbers, wording
from launchwise.report.blocks import MISSING, Block, Cell, Fold, Notice, Section, Table, Text
from launchwise.report.fields import (
    AGAINST_USUAL,
    answers_in,
    field,
    grouped,
    of_mean,
    percents,
    table_of,
)
from launchwise.report.numbers import winners
from launchwise.report.pages import card_ratios, finder
from launchwise.report.study_tables import StudyData, remembered
from launchwise.tables.measurements import faster_libraries


def sections(
    studies: Sequence[StudyData],
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
    found.append(Section("kernels", QUESTION, [*_kernels(studies)]))
    if tests := _blind_tests(studies):
        found.append(Section("blind-tests", "Blind tests", [Fold("Blind tests", tests, "blind")]))
    return found


INTERVAL_SEED = 0

LITTLE = 1.02  # Least gain of the best configuration over the usual choice that justifies tuning

ORACLE = "oracle"

TUNE = "tune"  # The verdict where even the least gain justifies it

RULES = {"best_on_average": "fixed choice", "nearest_size": "nearest size"}
"""Simple rule to its words, the simplest first."""

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class TuningGain:
    """Speeds relative to the usual choice over the same problems, geometric means."""

    problems: int
    best: float  # speeds: NaN where there is none
    recommended: float  # by the answering model
    best_interval: Interval  # 95 %, bootstrap over the problems; None for fewer than five
    recommended_interval: Interval
    enough: str = ""  # of simple rules that the recommended is not surely faster than

    @property
    def verdict(self) -> str:
        if self.best_interval is None:
            return "too few problems to tell"
        low, high = self.best_interval
        if low >= LITTLE:
            return TUNE
        return "keep the usual choice" if high < LITTLE else "little to gain"

    @property
    def said(self) -> tuple[str, ...]:
        """The verdict, and where it is to tune which simple rules do as well."""
        return (self.verdict, self.enough) if self.verdict == TUNE else (self.verdict,)


@remembered
def tuning_gains(study: StudyData) -> dict[str, TuningGain]:
    """Whole card to its speeds over test problems of the first split."""
    split = numbers.first_split(study)
    rows = study.evaluation
    rows = rows[rows["split"] == split]
    name = numbers.leader(study, split, numbers.ALL_GPUS)
    gpus = [] if name is None else [gpu for gpu in study.whole if gpu in rows["gpu"].unique()]
    return {gpu: _gain_on(study, rows[rows["gpu"] == gpu], str(name)) for gpu in gpus}


def _gain_on(study: StudyData, rows: pd.DataFrame, name: str) -> TuningGain:
    """Of a model on one card."""
    own = rows[rows["model"].isin([ORACLE, name, *RULES])]
    own = own.assign(fraction=own["gain"].fillna(0.0))
    means = resampled_means(
        own if study.load is None else own.assign(weight=study.load.weights(own)),
        study.problem_columns,
        INTERVAL_SEED,
    )
    speeds = {model: study.mean(part) for model, part in own.groupby("model", sort=False)}
    return TuningGain(
        problems=len(own[own["model"] == ORACLE]),
        best=speeds.get(ORACLE, math.nan),
        recommended=speeds.get(name, math.nan),
        best_interval=means.interval(ORACLE) if ORACLE in speeds else None,
        recommended_interval=means.interval(name),
        enough=", ".join(filter(None, (_beside(means, name, rule) for rule in RULES))),
    )


def _beside(means: Means, name: str, rule: str) -> str:
    """What a model gains over a rule on the same problems; empty where it is surely faster."""
    ratio = means.ratio(name, rule) if rule in means.methods and rule != name else None
    if ratio is None or ratio[0] > 1:
        return ""
    return f"{RULES[rule]} {'as good' if ratio[1] <= 1 + EQUAL else 'undecided'}"


def _libraries(study: StudyData, gpu: str) -> Iterator[str]:
    """The sweep's fastest beside each library that is faster somewhere, over the problems that both
    ran in pairs."""
    rows = study.peers[gpu] if gpu in study.peers else pd.DataFrame({"peer": []})
    for name, own in rows.groupby("peer"):
        known = own[own["speedup"].notna()]
        if slower := len(faster_libraries(known)):
            mean = wording.fixed(geometric_mean(known["speedup"].to_numpy()), 2)
            # Kinds of problems that a library serves otherwise have no mean in common.
            said = str(name) if study.settings.peer_kinds else f"{name} {mean}"
            yield f"best / {said}, slower at {slower} of {len(known)}"


GAIN_NOTE = (
    "Gains, of the answer and of the best configuration, are over the usual choice, over test "
    "problems of each study's first split (geometric means; the answer's 95 % by bootstrap over "
    "problems). The verdict is by the interval of the best: on the first card, then what differs "
    "on the other. The fixed choice and the nearest size need no model. As good: the answer is "
    f"surely at most {100 * EQUAL:g} % faster; undecided: the interval of their ratio holds 1. "
    "Libraries that are faster somewhere: in pairs, all problems. Host timed, too: times include "
    "the host's work, and hosts differ, so that they give no ratio of GPUs."
)

HOSTED = "host timed, too"  # Hosts of two GPUs differ, so that a ratio would not be the GPUs'
QUESTION = "Is tuning worth it, and which card is faster?"
MOST_PAIRS = 2  # Pairs of cards that the front page compares; gpus.html has all
MOST_CARDS = 2  # Cards whose gains it shows beside each other


def _kernels(studies: Sequence[StudyData]) -> Iterator[Block]:
    """What tuning gains and which card is faster; what others measured in a fold."""
    theirs = [one for one in studies if not one.profiles[one.whole[0]].has_measured_ceilings]
    ours = [one for one in studies if one not in theirs]
    yield _overview("Every kernel", ours or theirs)
    yield Fold("How gains are counted", [Text(GAIN_NOTE)], "gains")
    if ours and theirs:
        table = _overview("Is tuning worth it, by what others measured?", theirs)
        yield Fold("Measured by others", [table], "others")


def _overview(caption: str, studies: Sequence[StudyData]) -> Table:
    """A row per study, below one of all kernels."""
    ratios = {
        (one.over, one.name, one.gpu, one.other): one for one in card_ratios.of_whole_cards(studies)
    }
    pairs = list(dict.fromkeys((gpu, other) for _, _, gpu, other in ratios))[:MOST_PAIRS]
    # Cards that every study was tested on; of none in common each study's first.
    known = dict.fromkeys(gpu for one in studies for gpu in one.whole)
    common = [gpu for gpu in known if all(gpu in tuning_gains(one) for one in studies)]

    def gains(study: StudyData | None) -> dict[str, TuningGain]:
        found = tuning_gains(study) if study else {}
        shown = common[:MOST_CARDS] or list(found)[:1]
        return {gpu: one for gpu, one in found.items() if gpu in shown}

    def ratio(study: StudyData | None, pair: tuple[str, str]) -> Cell:
        over, name = (card_ratios.STUDY, study.name) if study else (card_ratios.ALL,) * 2
        one = ratios.get((over, name, *pair))
        if one is None:
            hosted = study is not None and winners(study)["by_host"].any()
            return Cell(MISSING, detail=HOSTED if hosted else "")
        between = "" if one.interval is None else wording.interval(one.interval, 2)
        return Cell(one.number, detail=f"{between}{one.verdict}")

    def tried(study: StudyData | None) -> str:
        counts = {gpu: one.problems for gpu, one in gains(study).items()}
        listed = " and ".join(map(str, dict.fromkeys(counts.values())))
        return ", ".join([f"{listed} test problems", *([] if common else counts)]) if counts else ""

    def gain(study: StudyData | None, place: int) -> Cell:
        found = [*gains(study).values()][place : place + 1]
        for one in found:
            between = one.recommended_interval
            detail = "" if between is None else wording.interval(between, 2)
            both = [wording.fixed(speed, 2) for speed in (one.recommended, one.best)]
            return Cell(" / ".join(both), detail=detail)
        return Cell(MISSING if study else "")

    def verdict(study: StudyData | None) -> Cell:
        if study is None or not (found := gains(study)):
            return Cell(MISSING if study else "")
        (first, one), *others = found.items()
        said = [*one.said[1:], *_libraries(study, first)]
        for gpu, other in others:
            new = [each for each in other.said if each and each not in one.said]
            said += [f"{gpu}: {', '.join(new)}"] if new else []
        return Cell(one.verdict, detail="; ".join(filter(None, said)))

    fields = [
        field(
            "kernel",
            lambda one: one.settings.title if one else card_ratios.ALL,
            detail=tried,
            link=lambda one: f"#{one.name}-answer" if one else "gpus.html",
        ),
        *(
            field(f"gain{title}", partial(gain, place=place), unit="answer / best")
            for place, title in enumerate([f", {gpu}" for gpu in common[:MOST_CARDS]] or [""])
        ),
        field("verdict", verdict),
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
    return table_of(caption, fields, [*whole, *studies])


MOST_NAMED = 14  # GPUs that a line names; of more it says how many there are


def named_gpus(gpus: Sequence[str]) -> str:
    """``a, b and c``, or the first of many and their number."""
    if len(gpus) <= MOST_NAMED:
        return wording.listed(gpus)
    return f"{', '.join(gpus[:3])} and {wording.count(len(gpus) - 3)} more"


BLIND_NOTE = (
    "Problems were drawn at random from each study's ranges, none of them learnt from or measured "
    "on that GPU before. Once the answers were written down, they were measured in full; answer, "
    "usual choice and fastest configuration ran in pairs, which mean, percentile and speed are "
    "from. The best is of at most eight configurations, so fractions are upper bounds; that of "
    "five measurements is from single rows. Slower: than the usual choice, by more than 2 %. Kept: "
    "the answer was the usual choice; missed: of these, problems whose best configuration is more "
    "than 5 % faster. New: the models had read no row of this GPU when they answered."
)

BLIND = [
    field("study", "title"),
    field("GPU", lambda got: f"{got['gpu']}, new" if got["new_gpu"] else got["gpu"]),
    field("answers", "when"),
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
        field("gains covered", "covered", percents(0), "%", detail=answers_in("intervals")),
        field("times covered", "times_covered", percents(0), "%", detail=answers_in("times")),
    ),
    field(
        "written down",
        lambda got: f"{got['commit'][:7]}, {got['frozen_at'][:10]}",
        detail=lambda got: f"digest {got['digest']}",
        number=True,
    ),
]

BLIND_CAPTION = "Blind tests: answered first, measured afterwards"


def _blind_tests(studies: Sequence[StudyData]) -> list[Block]:
    """Figures of every blind test, one row per study and GPU."""
    rows = [
        {
            **{**got, "title": study.settings.title, "gpu": gpu, "when": when},
            "least_gain": study.scores[gpu]["gain"].min()
            if gpu in study.scores and when == "first"
            else None,
        }
        for study in studies
        for when, tests, scores in (
            ("first", study.blind, study.scores),
            ("later", study.drawn, {}),
        )
        for gpu, got in tests.items()
    ]
    if not rows:
        return []
    found: list[Block] = [table_of(BLIND_CAPTION, BLIND, rows), Text(BLIND_NOTE, "note")]
    waiting = [f"{study.settings.title} on {gpu}" for study in studies for gpu in study.frozen]
    if waiting:
        found.append(Text(f"Frozen, and not measured yet: {wording.listed(waiting)}."))
    return found
