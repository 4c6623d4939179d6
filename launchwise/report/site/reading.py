"""Reads and checks the tables of studies, as the report's scripts are given them.

What stands where something is missing: studies that cannot be read, sections that fail, and the
front page before the report is done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from pydantic import BaseModel

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import read_sealed_json, write_text
from launchwise.experiment.load import load_of
from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.entries import TIME, named_answers, read_stored
from launchwise.exporting.table import read_answer_table
from launchwise.gpus.profile import read_profile
from launchwise.learning.answers import MEASURED
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.report import wording
from launchwise.report.blocks import Fold, Notice, Page, Section, Text
from launchwise.report.fields import field, table_of
from launchwise.report.site.rendering import parts_of, render
from launchwise.report.study_tables import NEVER_SHOWN, StudyData
from launchwise.tables import files as tables
from launchwise.tables.learning import curves_schema, evaluation_schema, published_times_schema
from launchwise.tables.measurements import (
    counters_schema,
    measurement_schema,
    pairs_schema,
    peers_schema,
)
from launchwise.tables.schema import Schema
from launchwise.tables.times import times_schema, with_judged_limits, with_judged_times
from launchwise.workloads.spec import Spec, load_spec

FAILED = "notice"  # Role of the text that stands for a section which could not be made


@dataclass(frozen=True)
class MissingStudy:
    """A study of the settings whose tables cannot be read."""

    name: str
    title: str
    question: str
    reason: str  # which file, and what is wrong with it

    @property
    def section(self) -> Section:
        """Substitute for the study's answer."""
        text = (
            f"This study is not in the report: {self.reason}. Delete this file and run the "
            "workflow again (snakemake --cores all): it makes what is missing."
        )
        return Section(f"{self.name}-answer", self.title, [Text(text, FAILED)])

    @property
    def page(self) -> Page:
        path = f"{self.name}/index.html"
        return Page(path, "Answer", self.title, self.question, [self.section], self.name)


def made(
    name: str, title: str, make: Callable[..., Section | None], *args: object
) -> Section | None:
    """``make(*args)``; if that fails, a section of this id with the error. Raises UserError as
    ``make`` does: a mistake that the user can mend stops the report."""
    try:
        return make(*args)
    except UserError:
        raise
    except Exception as error:
        log.exception("section %s could not be made", name)
        text = (
            f"This section could not be made ({type(error).__name__}: {error}). The other "
            "sections stand; results/logs/report.log has the place."
        )
        return Section(name, title, [Text(text, FAILED)])


def failed(pages: Sequence[Page]) -> Iterator[tuple[Section | Fold, str]]:
    """Sections and folds of pages that could not be made, and the path of the page of each."""
    for page in pages:
        for part in parts_of(page.sections):
            if any(isinstance(block, Text) and block.role == FAILED for block in part.blocks):
                yield part, page.path


def notices(missing: Sequence[MissingStudy], broken: Sequence[Section | Fold]) -> list[Notice]:
    """Notices at the top of the front page."""
    found = []
    if missing:
        text = f"{wording.plural(len(missing), 'study', 'studies')} not in this report:"
        named = wording.listed(each.title for each in missing)
        found.append(Notice(f"{text} {named}.", f"#{missing[0].section.id}", "Why"))
    if broken:
        text = f"{wording.plural(len(broken), 'section')} could not be made:"
        named = wording.listed(f"“{each.title}”" for each in broken)
        found.append(Notice(f"{text} {named}.", f"#{broken[0].id}", "The first of them"))
    return found


SHOWN = 8  # Answers of a study that the page shows, evenly apart

LEAD = (
    "The run goes on: this page shows the first answers, of {studies}. The whole report takes its "
    "place. Ctrl-C keeps all that is done: the same command goes on from there."
)


def write_first_page(report: Path, archive: Path, answers: Path) -> bool:
    """Write a front page of the studies with answers if no report is there; whether it was written.
    ``archive`` is there once the report is complete, ``answers`` holds ``<study>.json``."""
    if archive.exists():
        return False
    known: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(answers.glob("*.json")):
        try:
            found = named_answers(read_stored(path))
        except UserError:
            # Another study's job takes its answers away before it makes them anew.
            if path.exists():
                raise
            continue
        if found:
            known[path.stem] = found
    if not known:
        return False
    sections = [_first_answers(study, each) for study, each in known.items()]
    lead = LEAD.format(studies=wording.plural(len(known), "study", "studies"))
    write_text(report, render("launchwise: first answers", lead, sections))
    return True


def _first_answers(study: str, answers: Sequence[Mapping[str, Any]]) -> Section:
    gpu = answers[0]["gpu"]
    own = [each for each in answers if each["gpu"] == gpu]
    step = max(1, len(own) // SHOWN)
    fields = [
        field("problem", lambda each: assigned(each["problem"])),
        field("configuration", _words),
        field("basis", lambda each: "measured" if each["basis"] == MEASURED else "expected"),
        field("time", "time_ms", wording.number, "ms"),
        field("speed-up", "gain", wording.number, "× usual choice"),
    ]
    count = f"{len(own)} of {len(answers)} answers are for it"
    caption = f"What to launch on {gpu}; {count}"
    return Section(study, study, [table_of(caption, fields, own[::step][:SHOWN])])


def _words(answer: Mapping[str, Any]) -> str:
    """The variant first: JSON sorts names."""
    variant, rest = answer["configuration"]["variant"], dict(answer["configuration"])
    return f"{variant} {assigned({name: rest[name] for name in rest if name != 'variant'})}".strip()


log = logging.getLogger("launchwise")


class StudyFiles(BaseModel):
    """Paths of the tables of one study; mappings go from GPU to path."""

    folder: Path
    sweeps: Mapping[str, Path]
    judged: Mapping[str, Path]
    profiles: Mapping[str, Path]
    evaluation: Path
    curves: Path
    facts: Path
    candidates: Path
    counters: Mapping[str, Path]
    described: Mapping[str, Path]
    pairs: Mapping[str, Path]
    peers: Mapping[str, Path]
    blind: Mapping[str, Path]
    drawn: Mapping[str, Path] = MappingProxyType({})  # later ones
    scores: Mapping[str, Path]
    frozen: Sequence[str]  # GPUs whose frozen answers are not measured yet
    published: Path | None
    answers: Path | None


def read_study(
    name: str,
    settings: Study,
    entries: Mapping[str, ModelEntry],
    files: StudyFiles,
    kept_out: Mapping[str, Sequence[str]],
    sweeps: dict[Path, pd.DataFrame],
    objective: str = TIME,
) -> StudyData:
    """Read and check every table of a study. ``kept_out`` says why rows of a GPU are flagged and
    not among the study's; ``sweeps``, those that were read for other studies, gets those of this
    one. ``objective``: by which answers are chosen. Raises UserError when a file is missing,
    truncated or does not fit its schema."""
    spec = load_spec(files.folder.parents[1])
    measurements = measurement_schema(spec)
    judged = _of_gpus(files.judged, times_schema(spec))
    wanted = [name for name in measurements.columns if name not in NEVER_SHOWN]
    for path in files.sweeps.values():
        if path not in sweeps:
            sweeps[path] = tables.read_table(path, measurements, wanted)
    profiles, described = (
        {gpu: read_profile(path, gpu) for gpu, path in some.items()}
        for some in (files.profiles, files.described)
    )
    found = StudyData(
        name=name,
        folder=files.folder,
        settings=settings,
        spec=spec,
        entries={model: entries[model] for model in settings.models},
        profiles=profiles,
        sweeps={
            gpu: with_judged_times(sweeps[path], judged[gpu], spec, files.judged[gpu])
            for gpu, path in files.sweeps.items()
        },
        pairs={
            gpu: with_judged_limits(rows, judged[gpu], spec)
            for gpu, rows in _of_gpus(files.pairs, pairs_schema(spec)).items()
        },
        peers=_of_gpus(files.peers, peers_schema(spec)),
        blind={gpu: read_sealed_json(path) for gpu, path in files.blind.items()},
        drawn={gpu: read_sealed_json(path) for gpu, path in files.drawn.items()},
        scores={gpu: read_scores(path, spec) for gpu, path in files.scores.items()},
        tested={gpu: rows[rows["blind"]] for gpu, rows in judged.items() if rows["blind"].any()},
        frozen=files.frozen,
        evaluation=tables.read_table(files.evaluation, evaluation_schema(spec)),
        curves=tables.read_table(files.curves, curves_schema()),
        models={
            model: tables.read_facts(files.candidates.parent / f"{model}.parquet")
            for model in settings.models
        },
        facts=read_sealed_json(files.facts),
        counters=_of_gpus(files.counters, counters_schema(spec)),
        published_times=None
        if files.published is None
        else tables.read_table(files.published, published_times_schema(spec)),
        described=described,
        kept_out=kept_out,
        load=load_of(settings.load, spec),
        table=None
        if files.answers is None
        else read_answer_table(
            files.answers, Domain.of(settings, spec, {**profiles, **described}), objective
        ),
    )
    return _of_measured(found)


def _of_measured(study: StudyData) -> StudyData:
    """Without GPUs whose sweeps hold problems of other studies alone, if there is another GPU."""
    asked = [gpu for gpu, rows in study.sweeps.items() if asked_about(study.settings, rows).any()]
    if 0 < len(asked) < len(study.sweeps):
        return replace(study.limited_to(asked), left_out=())
    return study


def _of_gpus(paths: Mapping[str, Path], schema: Schema) -> dict[str, pd.DataFrame]:
    return {gpu: tables.read_table(path, schema) for gpu, path in paths.items()}


def read_scores(path: Path, spec: Spec) -> pd.DataFrame:
    """Scores of a blind test, problem by problem."""
    texts = {
        name: str
        for name, one in spec.problem.items()
        if any(isinstance(value, str) for value in one.values or ())
    }
    return pd.read_csv(path, dtype=texts)


def read_studies(
    files: Mapping[str, Any],
    settings: Mapping[str, Any],
    kept_out: Mapping[str, Mapping[str, Sequence[str]]],
) -> tuple[list[StudyData], list[MissingStudy]]:
    """Studies that can be read, and those that cannot.

    One after the other: to hand tables over from processes takes longer than to read them.

    ``files``: study to its files (:class:`StudyFiles`).
    ``settings``: ``studies`` and ``models``, each by study, and ``objective``, as plain values.
    ``kept_out``: study to GPU to why its rows are not among the study's.
    """
    # Studies of a workload share most of its sweeps.
    sweeps: dict[Path, pd.DataFrame] = {}

    def read(name: str) -> StudyData | MissingStudy:
        asked = Study.model_validate(settings["studies"][name])
        models = settings["models"][name]
        entries = {model: ModelEntry.model_validate(entry) for model, entry in models.items()}
        try:
            given = StudyFiles.model_validate(files[name])
            return read_study(
                name, asked, entries, given, kept_out[name], sweeps, settings["objective"]
            )
        except UserError as error:
            log.warning("%s is not in the report: %s", name, error)
            return MissingStudy(name, asked.title, asked.question, str(error))

    read_ones = [read(name) for name in files]
    return (
        [each for each in read_ones if isinstance(each, StudyData)],
        [each for each in read_ones if isinstance(each, MissingStudy)],
    )
