"""Sections of the Granger study: a published prediction, its errors, a corrected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from launchwise.experiment.published import Records
from launchwise.gpus.datasheets import read_cards
from launchwise.learning.analytical import PARTS
from launchwise.learning.prediction_errors import correlations, group_ranks
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Bullets, Cell, Section, Table, Text
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
from launchwise.report.study import StudyData

from .formula import BEST, ONCE, PUBLISHED, Known, Rates, Row, Source, size, span
from .launches import launches

NOTABLE = 0.01  # part by which figures of a card may differ without being shown


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where the source's facts are not known. Without its
    table of predictions there are no sections about that table."""
    source = Source.of(published)
    if source is None:
        return []
    known = Known(study, source, read_cards())
    found = []
    if source.printed:
        blocks: list[Block] = [_lead(source), _predictions(known), *_notes(known)]
        found.append(Section(f"{study.name}-published", "The published prediction", blocks))
        found.append(_errors(known, published))
    better: list[Block] = [_corrected(known), *_figures(known), *_parts(known)]
    found.append(Section(f"{study.name}-corrected", "The prediction corrected", better))
    if (types := launches(study, source.facts)) is not None:
        found.append(types)
    if source.printed:
        found.append(verdict(known, published.get("claims", [])))
    return found


# The published prediction


def _lead(source: Source) -> Text:
    facts = source.facts
    again = [one.rates.times(facts).total for one in source.printed]
    off = [abs(us / one.times.total - 1) for us, one in zip(again, source.printed, strict=True)]
    return Text(
        f"max(FLOP / peak, bytes / bandwidth) + {facts.launch_overhead_us:g} µs, with "
        f"{wording.number(facts.flop / 1e6)} MFLOP and {size(facts.bytes)}: what the "
        f"source counts of {wording.plural(facts.threads, 'thread')}. Computed again, its times "
        f"differ by at most {wording.percent(max(off), 2)} %."
    )


def _predictions(known: Known) -> Table:
    facts = known.source.facts
    printed = {one.gpu: one for one in known.source.printed}
    rates = {gpu: one.rates for gpu, one in printed.items()}
    rates |= {gpu: Rates.of(known.gpus[gpu]) for gpu in known.added}
    computed = {gpu: one.times(facts) for gpu, one in rates.items()}

    def said(gpu: str, name: str) -> float | None:
        return getattr(printed[gpu].times, name) if gpu in printed else None

    def again(gpu: str, name: str) -> float:
        return float(getattr(computed[gpu], name))

    def off(gpu: str) -> float | None:
        total = said(gpu, "total")
        return None if total is None else computed[gpu].total / total - 1

    fields = [
        field("GPU", str),
        field("peak", lambda gpu: rates[gpu].peak / 1e12, significant(4), "TFLOP/s"),
        field("bandwidth", lambda gpu: rates[gpu].bandwidth / 1e9, significant(4), "GB/s"),
    ]
    for name, group in (("compute", "arithmetic"), ("memory", "memory"), ("total", "prediction")):
        fields += grouped(
            group,
            field("printed", partial(said, name=name), decimals(2), "µs"),
            field("computed", partial(again, name=name), decimals(2), "µs"),
        )
    fields += grouped("prediction", field("differs", off, percents(2), "%"))
    fields += grouped("measured", *_of_rows(known, known.measured, (PUBLISHED, ONCE)))
    problem = wording.problem(facts.problem, known.study.problem_columns)
    return table_of(f"Times by the published formula, {problem}", fields, rates)


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


def _notes(known: Known) -> Iterator[Text]:
    if known.added:
        names = wording.listed(known.added)
        text = f"{names}: not in the source; by measured ceilings, and its time of a launch."
        yield Text(text, "note")
    if any(PUBLISHED in found for found in known.measured.values()):
        yield Text(f"{PUBLISHED} is {wording.NEVER_CHOSEN}.", "note")


def _errors(known: Known, published: Mapping[str, Records]) -> Section:
    """Counts of the source beside those of its launch: tables of this project, from its figures."""
    reasons = [(f"{row['reason']}:", row["text"]) for row in published.get("reasons", [])]
    blocks: list[Block] = [
        table_of(
            "Counts of the source, and counts of its launch", ERRORS, published.get("errors", [])
        ),
        Bullets([*reasons, *_observed(known)]),
        table_of(
            "Counts of one thread: the source's, and those of the kernel's loops",
            RECOUNT,
            published.get("recount", []),
        ),
    ]
    study = known.study
    return Section(f"{study.name}-errors", "What it got wrong", blocks)


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
    for gpu, rows in known.measured.items():
        if PUBLISHED in rows:
            error, allowed = rows[PUBLISHED]["max_error"], rows[PUBLISHED]["tolerance"]
            said = "are NaN"
            if not wording.is_missing(error):
                said = (
                    f"are off by up to {error:.1e} of the largest, where {allowed:.1e} is allowed"
                )
            yield f"Race on {gpu}:", f"coefficients of the first launch {said}."


# The prediction corrected


def _corrected(known: Known) -> Table:
    fields = [
        field("GPU", str),
        *grouped("source", field("formula", known.formula_us, significant(4), "µs")),
    ]
    for group, rows in (("cost model", known.estimated), ("measured", known.measured)):
        fields += grouped(group, *_of_rows(known, rows, (PUBLISHED, ONCE, BEST)))
    caption = (
        "The published launch, the same without copies, and the fastest verified one: fastest rows"
    )
    return table_of(caption, fields, known.estimated)


PEAKS = [
    field("GPU", "gpu"),
    field("in the source", "said", number=True),
    field("table of cards", "ours", number=True),
    field("differs", "off", wording.percent, "%"),
    field("source of the table", "source"),
]


def _figures(known: Known) -> Iterator[Block]:
    rows = []
    for one in known.source.printed:
        card = known.cards.get(one.gpu)
        if card is None or card.missing:
            continue
        clock = 1e-6 * one.rates.peak / (2 * card.cores)
        for figure, taken, unit, scale, note in (
            ("float32_gflops", one.rates.peak, "TFLOP/s", 1e-3, f", as at {clock:.0f} MHz"),
            ("memory_bandwidth_gbs", one.rates.bandwidth, "GB/s", 1.0, ""),
        ):
            said, ours = 1e-9 * taken, card.figures[figure]
            if abs(said / ours - 1) > NOTABLE:
                shown = [f"{wording.number(scale * each, 4)} {unit}" for each in (said, ours)]
                about = {"gpu": one.gpu, "off": said / ours - 1, "source": card.sources[figure]}
                rows.append({**about, "said": f"{shown[0]}{note}", "ours": shown[1]})
    limit = f"{100 * NOTABLE:g} %"
    if rows:
        yield table_of(f"Peaks and bandwidths that differ by more than {limit}", PEAKS, rows)
    elif known.source.printed:
        yield Text(f"Peaks and bandwidths are those of the table of cards, within {limit}.", "note")


def _parts(known: Known) -> Iterator[Block]:
    of = {gpu: rows[PUBLISHED] for gpu, rows in known.estimated.items()}
    shown = [name for name in PARTS if any(row[name] > 0 for row in of.values())]
    fields = [
        field("GPU", "gpu"),
        field("in all", "time_us", significant(4), "µs"),
        *grouped("alone", *(field(name, name, wording.number, "µs") for name in shown)),
        field("bound by", "bound_by"),
    ]
    caption = "Where the published launch's time goes, by the cost model"
    yield table_of(caption, fields, of.values())
    note = (
        "Parts overlap, so they do not add up. Waiting: what a thread waits for, one load or sum "
        "after the other."
    )
    described = [gpu for gpu in of if known.gpus[gpu].source == "described"]
    if described:
        note += f" {wording.listed(described)}: estimated from datasheets."
    yield Text(note, "note")


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
    for gpu in known.study.whole:
        reached = known.study.profiles[gpu].ceilings
        told = f"{wording.number(reached.launch_overhead_us)} µs on {gpu}, launched by the host"
        if reached.graph_launch_us is not None:
            told += f"; {wording.number(reached.graph_launch_us)} µs in a CUDA graph"
        yield ["time of a launch", f"{said:g} µs", told, _holds(said, reached.launch_overhead_us)]
        row = known.measured.get(gpu, {}).get(PUBLISHED)
        if row is not None:
            part = reached.launch_overhead_us / row["time_us"]
            printed = [said / one.times.total for one in known.source.printed]
            shown = span([100 * each for each in printed], 1)
            yield [
                "a launch is small beside the rest",
                f"{shown} % of the predicted times",
                f"{wording.percent(part, 2)} % of the measured time on {gpu}",
                "yes" if part < SMALL else "no",
            ]


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
    for gpu, rows in known.measured.items():
        if PUBLISHED in rows and not known.study.profiles[gpu].is_slice:
            row = rows[PUBLISHED]
            launches = wording.plural(int(row["repeats"]), "launch", "launches")
            said, time = known.formula_us(gpu), row["time_us"]
            yield [
                f"time on {gpu} by the formula",
                f"{wording.number(said)} µs",
                f"{wording.number(time)} µs measured ({launches})",
                _holds(said, time),
            ]
    named = [one for one in known.source.printed if one.gpu in known.estimated]
    if named:
        ratios = [known.estimated[one.gpu][PUBLISHED]["time_us"] / one.times.total for one in named]
        yield [
            "times on the source's GPUs",
            f"{span([one.times.total for one in named])} µs",
            f"{span(ratios, 1)} times as much by the cost model; not measured",
            "not by the cost model" if min(ratios) > NEAR else "yes, by the cost model",
        ]


def _order(known: Known) -> Iterator[list[str]]:
    named = [one for one in known.source.printed if one.gpu in known.estimated]
    if len(named) < FEWEST_FOR_ORDER:
        return
    printed = np.array([one.times.total for one in named])
    ours = np.array([known.estimated[one.gpu][PUBLISHED]["time_us"] for one in named])
    whole = np.zeros(len(named), dtype=np.int64)
    ranks = [group_ranks(whole, values) for values in (printed, ours)]
    rho = float(correlations(whole, *ranks)[0])
    order = sorted(zip(ours, (one.gpu for one in named), strict=True))
    yield [
        "order of the source's GPUs",
        ", ".join(gpu for _, gpu in sorted((one.times.total, one.gpu) for one in named)),
        f"{', '.join(gpu for _, gpu in order)} by the cost model (rank correlation {rho:.2f})",
        "yes" if rho == 1 else "in part" if rho > 0.5 else "no",
    ]
