"""Sections of the Granger study: a published prediction, its errors, a corrected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pandas as pd

from launchwise.experiment.published import Records, facts_of
from launchwise.gpus.datasheets import (
    Datasheet,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.analytical import PARTS, CostModel
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Bullets, Column, Section, Table, Text, table
from launchwise.report.fields import (
    Field,
    decimals,
    field,
    grouped,
    significant,
    table_of,
)
from launchwise.report.numbers import records
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows
from launchwise.workloads.space import baseline
from launchwise.workloads.statuses import TIMED

from .formula import Rates, Source
from .formula_counts import recounted
from .formula_errors import errors, reasons, size
from .launches import launches
from .verdict import verdict

PUBLISHED, ONCE, BEST = "published", "no_duplicates", "best"
"""Rows shown per GPU: two variants, and the fastest verified one."""

US = significant(4)

NOTABLE = 0.01
"""Part by which figures of a card may differ without being shown."""

Row = dict[str, Any]


@dataclass
class Known:
    """The study, the source, and the datasheets of the cards that the source predicts for."""

    study: StudyData
    source: Source
    cards: Mapping[str, Datasheet]

    @cached_property
    def gpus(self) -> dict[str, GpuProfile]:
        """Profiles: GPUs of the source with a complete datasheet, then those of the study."""
        named = [one.gpu for one in self.source.printed]
        known = [gpu for gpu in named if gpu in self.cards and not self.cards[gpu].missing]
        measured = {gpu: self.study.profiles[gpu] for gpu in self.study.gpus}
        if not known:
            return measured
        efficiency = reference_efficiency(self.cards)
        described = {gpu: described_profile(gpu, self.cards, efficiency) for gpu in known}
        return {**described, **measured}

    @property
    def added(self) -> list[str]:
        """GPUs of the study that are whole cards and no GPUs of the source."""
        named = {one.gpu for one in self.source.printed}
        profiles = self.study.profiles
        return [gpu for gpu in self.study.gpus if gpu not in named and not profiles[gpu].is_slice]

    @cached_property
    def measured(self) -> dict[str, dict[str, Row]]:
        """GPU of the study to :func:`chosen` of its sweep at the published size.

        Of the whole sweep: splits and candidates of the study may have less.
        """
        found = {}
        for gpu, rows in self.study.sweeps.items():
            here = rows["status"].isin(TIMED)
            for name, value in self.source.facts.problem.items():
                here &= rows[name] == value
            found[gpu] = chosen(rows[here], self.study)
        return found

    @cached_property
    def estimated(self) -> dict[str, dict[str, Row]]:
        """GPU to :func:`chosen` of the cost model's estimates, with parts (µs) and bounds."""
        spec, problem = self.study.spec, self.source.facts.problem
        verified = Domain(spec, self.gpus).choices([Case(gpu, problem) for gpu in self.gpus])
        launched = {**problem, **baseline(spec), "variant": PUBLISHED}
        unverified = pd.DataFrame([{"gpu": gpu, **launched} for gpu in self.gpus])
        rows = pd.concat([unverified, verified], ignore_index=True)
        estimate = CostModel(spec, self.gpus).estimate(rows)
        parts = {name: 1e3 * estimate.parts[name] for name in PARTS}
        rows = rows.assign(time_ms=estimate.time_ms, bound_by=estimate.bound_by(), **parts)
        by_gpu = rows.groupby("gpu", sort=False)
        return {str(gpu): chosen(part, self.study) for gpu, part in by_gpu}

    def formula_us(self, gpu: str) -> float:
        """The printed prediction; of a GPU that the source does not have by its formula."""
        for one in self.source.printed:
            if one.gpu == gpu:
                return one.times.total
        facts = self.source.facts
        return self.rates(gpu).times(facts.counts, facts).total

    def rates(self, gpu: str) -> Rates:
        """Inputs of the formula by a GPU's profile."""
        return Rates.of(self.gpus[gpu])


def chosen(rows: pd.DataFrame, study: StudyData) -> dict[str, Row]:
    """The fastest row of one GPU for each of :data:`PUBLISHED`, :data:`ONCE`, :data:`BEST`.

    Adds ``time_us``.
    """
    rows = rows.assign(time_us=1e3 * rows["time_ms"])
    parts = {name: rows[rows["variant"] == name] for name in (PUBLISHED, ONCE)}
    parts[BEST] = rows[rows["variant"].isin(list(study.spec.recommendable.variants))]
    fastest = {name: fastest_rows(part, ["gpu"], study.spec) for name, part in parts.items()}
    return {name: records(part)[0] for name, part in fastest.items() if len(part)}


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order; none where the source's facts are not known.

    Without its table of predictions there are no sections about that table.
    """
    source = Source.of(published)
    if source is None:
        return []
    known = Known(study, source, read_cards())
    found = []
    if source.printed:
        blocks: list[Block] = [_lead(source), _predictions(known), *_notes(known)]
        found.append(Section(f"{study.name}-published", "The published prediction", blocks))
        words = [*reasons(source, known.gpus), *_observed(known)]
        again = recounted(source.facts, facts_of(published))
        wrong: list[Block] = [errors(source, known.gpus), Bullets(words), again]
        found.append(Section(f"{study.name}-errors", "What it got wrong", wrong))
    better: list[Block] = [_corrected(known), *_figures(known), *_parts(known)]
    found.append(Section(f"{study.name}-corrected", "The prediction corrected", better))
    if (types := launches(study, source.facts)) is not None:
        found.append(types)
    if source.printed:
        found.append(verdict(known))
    return found


# The published prediction


def _lead(source: Source) -> Text:
    facts = source.facts
    again = [one.rates.times(facts.counts, facts).total for one in source.printed]
    off = [abs(us / one.times.total - 1) for us, one in zip(again, source.printed, strict=True)]
    return Text(
        f"max(FLOP / peak, bytes / bandwidth) + {facts.launch_overhead_us:g} µs, with "
        f"{wording.number(facts.counts.flop / 1e6)} MFLOP and {size(facts.counts.bytes)}: what the "
        f"source counts of {wording.plural(facts.threads, 'thread')}. Computed again, its times "
        f"differ by at most {wording.percent(max(off), 2)} %."
    )


def _time(variant: str, of: str) -> Field:
    """Time of a variant among the rows of a record."""
    return field(variant, lambda record: record[of].get(variant, {}).get("time_us"), US, "µs")


def _printed_and_computed(name: str) -> list[Field]:
    return [
        field("printed", lambda row: getattr(row["printed"], name, None), decimals(2), "µs"),
        field("computed", lambda row: getattr(row["computed"], name), decimals(2), "µs"),
    ]


PREDICTIONS = [
    field("GPU", "gpu"),
    field("peak", lambda row: row["rates"].peak / 1e12, significant(4), "TFLOP/s"),
    field("bandwidth", lambda row: row["rates"].bandwidth / 1e9, significant(4), "GB/s"),
    *grouped("arithmetic", *_printed_and_computed("compute")),
    *grouped("memory", *_printed_and_computed("memory")),
    *grouped(
        "prediction",
        *_printed_and_computed("total"),
        field("differs", "off", partial(wording.percent, places=2), "%"),
    ),
    *grouped("measured", _time(PUBLISHED, "measured"), _time(ONCE, "measured")),
]


def _predictions(known: Known) -> Table:
    facts, rows = known.source.facts, []
    gpus = [(one.gpu, one.rates, one.times) for one in known.source.printed]
    for gpu, rates, printed in (*gpus, *((gpu, known.rates(gpu), None) for gpu in known.added)):
        again = rates.times(facts.counts, facts)
        off = None if printed is None else again.total / printed.total - 1
        row = {"gpu": gpu, "rates": rates, "printed": printed, "computed": again, "off": off}
        rows.append({**row, "measured": known.measured.get(gpu, {})})
    problem = wording.problem(facts.problem, known.study.problem_columns)
    return table_of(f"Times by the published formula, {problem}", PREDICTIONS, rows)


def _notes(known: Known) -> Iterator[Text]:
    if known.added:
        names = wording.listed(known.added)
        text = f"{names}: not in the source; by measured ceilings, and its time of a launch."
        yield Text(text, "note")
    rows = [row for found in known.measured.values() for row in found.values()]
    if any(row["variant"] == PUBLISHED for row in rows):
        yield Text(f"{PUBLISHED} is {wording.NEVER_CHOSEN}.{_single(rows)}", "note")


def _single(rows: list[Row]) -> str:
    """Shown rows of a single launch, in words."""
    named = dict.fromkeys(row["variant"] for row in rows if row.get("repeats") == 1)
    return f" Times of {wording.listed(named)} are those of one launch." if named else ""


def _observed(known: Known) -> Iterator[tuple[str, str]]:
    """Error of the published variant's first launch, at the published size."""
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
    spec = known.study.spec

    def times(of: str) -> list[Field]:
        best = field(
            "the best is",
            lambda row: wording.configuration(row[of][BEST], spec) if BEST in row[of] else MISSING,
        )
        return [*(_time(name, of) for name in (PUBLISHED, ONCE, BEST)), best]

    fields = [
        field("GPU", "gpu"),
        *grouped("source", field("formula", "formula", US, "µs")),
        *grouped("cost model", *times("estimated")),
        *grouped("measured", *times("measured")),
    ]
    rows = [
        {
            "gpu": gpu,
            "formula": known.formula_us(gpu),
            "estimated": estimated,
            "measured": known.measured.get(gpu, {}),
        }
        for gpu, estimated in known.estimated.items()
    ]
    caption = "The published launch, the same without copies, and the fastest verified one"
    return table_of(caption, fields, rows)


def _figures(known: Known) -> Iterator[Block]:
    """Figures of a card that differ between the source and the table of cards."""
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
                off = wording.percent(said / ours - 1)
                cells = [one.gpu, f"{shown[0]}{note}", shown[1], off, card.sources[figure]]
                rows.append(cells)
    limit = f"{100 * NOTABLE:g} %"
    if rows:
        columns = [
            Column("GPU", number=False),
            Column("in the source"),
            Column("table of cards"),
            Column("differs", "%"),
            Column("source of the table", number=False),
        ]
        yield table(f"Peaks and bandwidths that differ by more than {limit}", columns, rows)
    elif known.source.printed:
        yield Text(f"Peaks and bandwidths are those of the table of cards, within {limit}.", "note")


def _parts(known: Known) -> Iterator[Block]:
    """Parts of the cost model's estimate of the published launch."""
    of = {gpu: rows[PUBLISHED] for gpu, rows in known.estimated.items()}
    shown = [name for name in PARTS if any(row[name] > 0 for row in of.values())]
    fields = [
        field("GPU", "gpu"),
        field("in all", "time_us", US, "µs"),
        *grouped("alone", *(field(name, name, wording.number, "µs") for name in shown)),
        field("bound by", "bound_by"),
    ]
    caption = "Where the published launch's time goes, by the cost model"
    yield table_of(caption, fields, [{**row, "gpu": gpu} for gpu, row in of.items()])
    note = (
        "Parts overlap, so they do not add up. Waiting: what a thread waits for, one load or sum "
        "after the other."
    )
    described = [gpu for gpu in of if known.gpus[gpu].source == "described"]
    if described:
        note += f" {wording.listed(described)}: estimated from datasheets."
    yield Text(note, "note")
