"""Sections of the Granger study: a published prediction, its errors, a corrected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from scipy.stats import spearmanr

from launchwise.experiment.published import Records
from launchwise.gpus.datasheets import read_cards
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Bullets, Cell, Fold, Section, Table, Text
from launchwise.report.fields import (
    Field,
    decimals,
    field,
    grouped,
    of_texts,
    percents,
    significant,
    table_of,
)
from launchwise.report.study_tables import StudyData

from .formula import BEST, ONCE, PUBLISHED, Known, Rates, Row, Source, size
from .launches import launches


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where a fact or the table of predictions is missing."""
    source = Source.of(published)
    if source is None or not source.printed:
        return []
    known = Known(study, source, read_cards())
    blocks: list[Block] = [_lead(source), _predictions(known), _note(known)]
    return [
        Section(f"{study.name}-published", "The published prediction, and the time", blocks),
        _errors(known, published),
        *launches(study, source.facts),
        verdict(known, published.get("claims", [])),
    ]


# The published prediction


def _lead(source: Source) -> Text:
    facts = source.facts
    again = [one.rates.predicted_us(facts) for one in source.printed]
    off = [abs(us / one.predicted_us - 1) for us, one in zip(again, source.printed, strict=True)]
    return Text(
        f"max(FLOP / peak, bytes / bandwidth) + {facts.launch_overhead_us:g} µs, with "
        f"{wording.number(facts.flop / 1e6)} MFLOP and {size(facts.bytes)}: what the "
        f"source counts of {wording.plural(facts.threads, 'thread')}. Computed again, its times "
        f"differ by at most {wording.percent(max(off), 2)} %."
    )


def _predictions(known: Known) -> Table:
    """The source's cards, then the whole cards of the study: formula, cost model, sweep."""
    facts = known.source.facts
    said = {one.gpu: one.predicted_us for one in known.source.printed}
    rates = {one.gpu: one.rates for one in known.source.printed}
    rates |= {gpu: Rates.of(known.gpus[gpu]) for gpu in known.added}

    def off(gpu: str) -> float | None:
        """Peak of the source / peak of the table of cards - 1."""
        card = known.cards.get(gpu)
        if gpu not in said or card is None or card.missing:
            return None
        return 1e-9 * rates[gpu].peak / card.figures["float32_gflops"] - 1

    fields = [
        field("GPU", str),
        field("peak", lambda gpu: rates[gpu].peak / 1e12, significant(4), "TFLOP/s"),
        field("off the table of cards", off, percents(1), "%"),
        field("bandwidth", lambda gpu: rates[gpu].bandwidth / 1e9, significant(4), "GB/s"),
        *grouped(
            "formula",
            field("printed", said.get, decimals(2), "µs"),
            field("computed", lambda gpu: rates[gpu].predicted_us(facts), decimals(2), "µs"),
        ),
    ]
    for group, rows in (("cost model", known.estimated), ("measured", known.measured)):
        fields += grouped(group, *_of_rows(known, rows, (PUBLISHED, ONCE, BEST)))
    problem = wording.problem(facts.problem, known.study.problem_columns)
    caption = (
        f"Times of {problem}, rows of the sweep: published launch, no copies, fastest verified"
    )
    return table_of(caption, fields, rates)


def _of_rows(
    known: Known, rows: Mapping[str, Mapping[str, Row]], names: Sequence[str]
) -> Iterator[Field]:
    """Times of a GPU's rows of these names, µs, each with its own launch below it."""

    def cell(gpu: str, name: str) -> Cell:
        row = rows.get(gpu, {}).get(name)
        if row is None:
            return Cell(MISSING)
        launch = wording.configuration(row, known.study.spec)
        detail = launch if name == BEST else launch.removeprefix(name).lstrip()
        once = "one launch timed" if row.get("repeats") == 1 else ""
        return Cell(
            wording.number(row["time_us"], 4), detail=", ".join(filter(None, (detail, once)))
        )

    for name in names:
        yield field(name, partial(cell, name=name), unit="µs", number=True)


def _note(known: Known) -> Text:
    added = ""
    if known.added:
        added = f"{wording.listed(known.added)}: not in the source, by their measured ceilings. "
    return Text(
        f"{added}The source measures nothing, and its GPUs were not at hand: the cost model has "
        f"their datasheets. {PUBLISHED} is {wording.NEVER_CHOSEN}.",
        "note",
    )


def _errors(known: Known, published: Mapping[str, Records]) -> Section:
    """Counts of the source beside those of its launch: tables of this project, from its figures."""
    reasons = [(f"{row['reason']}:", row["text"]) for row in published.get("reasons", [])]
    counts = "Counts of the source, and counts of its launch"
    again = "Counts of one thread: the source's, and those of the kernel's loops"
    blocks: list[Block] = [
        table_of(counts, ERRORS, published.get("errors", [])),
        Bullets([*reasons, *_observed(known)]),
        Fold(again, [table_of(again, RECOUNT, published.get("recount", []))]),
    ]
    return Section(f"{known.study.name}-errors", "What it got wrong", blocks)


ERRORS = [
    field("what", "what"),
    field("in the source", "in_source", number=True),
    field("by the launch", "by_launch", number=True),
    field("off by", "off", number=True),
    *grouped(
        "prediction",
        field("by its counts", "by_counts", unit="× printed", number=True),
        field("by the launch", "by_its_launch", unit="× printed", number=True),
    ),
]

RECOUNT = [
    field("count", "count"),
    field("printed", lambda row: int(row["printed"]), wording.count),
    field("counted again", lambda row: int(row["counted_again"]), wording.count),
    field(
        "printed is off by",
        lambda row: wording.percent(int(row["printed"]) / int(row["counted_again"]) - 1, 2),
        unit="%",
        number=True,
    ),
]


def _observed(known: Known) -> Iterator[tuple[str, str]]:
    """What the copies do to the coefficients: GPUs where they do the same are named together."""
    said: dict[str, list[str]] = {}
    for gpu, rows in known.measured.items():
        if PUBLISHED in rows:
            error, allowed = rows[PUBLISHED]["max_error"], rows[PUBLISHED]["tolerance"]
            text = "NaN"
            if not wording.is_missing(error):
                text = f"off by up to {error:.1e} of the largest, where {allowed:.1e} is allowed"
            said.setdefault(text, []).append(gpu)
    for text, gpus in said.items():
        yield (
            "Race, as measured:",
            f"coefficients of the first launch on {wording.listed(gpus)} are {text}.",
        )


# Which claims hold

NEAR = 1.1  # ratio up to which a printed figure holds
SMALL = 0.1  # part of the whole up to which a term is small
MEMORY = "dram"  # part of the cost model that is device memory

FEWEST_FOR_ORDER = 3
TITLES = ("claim", "printed", "here", "holds")


def verdict(known: Known, counted: Records) -> Section:
    """One row per claim; ``counted`` are those on its counts."""
    told = [[row[name] for name in TITLES] for row in counted]
    rows = [*told, *_launch(known), *_bound(known), *_times(known), *_order(known)]
    text = (
        f"A figure holds if it is within {100 * (NEAR - 1):.0f} % of what is counted or measured; "
        f"a term is small below {100 * SMALL:.0f} % of the whole."
    )
    claims = of_texts("Claims of the source and what became of them", TITLES, rows)
    blocks: list[Block] = [claims, Text(text, "note")]
    study = known.study
    return Section(f"{study.name}-verdict", "Which claims hold", blocks)


def _holds(said: float, follows: float) -> str:
    return "yes" if max(said, follows) <= NEAR * min(said, follows) else "no"


def _launch(known: Known) -> Iterator[list[str]]:
    said = known.source.facts.launch_overhead_us
    cards = [gpu for gpu in known.study.whole if PUBLISHED in known.measured.get(gpu, {})]
    if not cards:
        return
    here = [known.gpus[gpu].ceilings.launch_overhead_us for gpu in cards]
    told = [
        f"{wording.number(us)} µs by that of {gpu}" for gpu, us in zip(cards, here, strict=True)
    ]
    held = [_holds(said, us) for us in here]
    yield [
        "time of a launch by the host",
        f"{said:g} µs",
        wording.listed(told),
        _of_all(held, "hosts"),
    ]
    times = [known.measured[gpu][PUBLISHED]["time_us"] for gpu in cards]
    parts = [us / time for us, time in zip(here, times, strict=True)]
    printed = wording.span([100 * said / one.predicted_us for one in known.source.printed], 1)
    yield [
        "a launch is small beside the rest",
        f"{printed} % of the predicted times",
        f"{wording.span([100 * part for part in parts])} % of the measured times",
        _of_all(["yes" if part < SMALL else "no" for part in parts]),
    ]


def _of_all(held: Sequence[str], what: str = "GPUs") -> str:
    return held[0] if len(set(held)) == 1 else f"on {held.count('yes')} of {len(held)} {what}"


def _bound(known: Known) -> Iterator[list[str]]:
    bounds = [str(rows[PUBLISHED]["bound_by"]) for rows in known.estimated.values()]
    by_memory = bounds.count(MEMORY)
    others = wording.listed(dict.fromkeys(bound for bound in bounds if bound != MEMORY))
    told = f"device memory on {by_memory} of {wording.plural(len(bounds), 'GPU')} by the cost model"
    yield [
        "bound by device memory",
        "on all GPUs",
        told + (f", else {others}" if others else ""),
        "yes" if by_memory == len(bounds) else "no",
    ]


def _times(known: Known) -> Iterator[list[str]]:
    cards = [gpu for gpu in known.study.whole if PUBLISHED in known.measured.get(gpu, {})]
    if cards:
        said = [known.formula_us(gpu) for gpu in cards]
        times = [known.measured[gpu][PUBLISHED]["time_us"] for gpu in cards]
        ratios = [time / us for time, us in zip(times, said, strict=True)]
        yield [
            f"times on {wording.listed(cards)} by the formula",
            f"{wording.span(said)} µs",
            f"{wording.span(ratios, 1)} times as much, measured",
            _of_all([_holds(*pair) for pair in zip(said, times, strict=True)]),
        ]
    named = [one for one in known.source.printed if one.gpu in known.estimated]
    if named:
        ratios = [
            known.estimated[one.gpu][PUBLISHED]["time_us"] / one.predicted_us for one in named
        ]
        yield [
            "times on the source's GPUs",
            f"{wording.span([one.predicted_us for one in named])} µs",
            f"{wording.span(ratios, 1)} times as much by the cost model; not measured",
            "not by the cost model" if min(ratios) > NEAR else "yes, by the cost model",
        ]


def _order(known: Known) -> Iterator[list[str]]:
    named = [one for one in known.source.printed if one.gpu in known.estimated]
    if len(named) < FEWEST_FOR_ORDER:
        return
    printed = np.array([one.predicted_us for one in named])
    ours = np.array([known.estimated[one.gpu][PUBLISHED]["time_us"] for one in named])
    rho = float(spearmanr(printed, ours).statistic)
    order = sorted(zip(ours, (one.gpu for one in named), strict=True))
    yield [
        "order of the source's GPUs",
        ", ".join(gpu for _, gpu in sorted((one.predicted_us, one.gpu) for one in named)),
        f"{', '.join(gpu for _, gpu in order)} by the cost model (rank correlation {rho:.2f})",
        "yes" if rho == 1 else "in part" if rho > 0.5 else "no",
    ]
