"""The tables of one study, read, checked and put side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd
import pandera.pandas as pa

from launchwise.base.storage import read_sealed_json
from launchwise.experiment.study import ModelEntry, Study
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.tables import files as tables
from launchwise.tables.folds import of_split
from launchwise.tables.learning import (
    curves_schema,
    evaluation_schema,
    predicted_times_schema,
    removed_schema,
    training_schema,
)
from launchwise.tables.measurements import counters_schema, measurement_schema
from launchwise.tables.pairs import pairs_schema
from launchwise.tables.peers import peers_schema
from launchwise.tables.predictions import published_times_schema
from launchwise.tables.times import times_schema, with_judged_times
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.statuses import MEASURED

LISTS = ("times_ms",)
"""Columns of a sweep that the report never shows: lists are slow to carry about."""

UNREAD = (
    *(*LISTS, "workload", "reason", "throttle", "timer", "card", "driver", "toolkit", "backend"),
    *("commit", "measured_at"),
)
"""Columns that say how a sweep was measured: texts are slow to carry about. Who asks for them reads
the sweep itself."""


P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class StudyData:
    """Everything the report knows of a study.

    Parameters
    ----------
    sweeps
        GPU -> its measurements (schema ``measurements``), with judged times
        (:data:`launchwise.tables.times.JUDGED`).
    removed, training, evaluation
        Tables of the clean and evaluate stages.
    predictions
        Predicted times of every candidate in the first split
        (:func:`launchwise.tables.learning.predicted_times_schema`).
    models
        Model -> its training record.
    sweep_facts
        GPU -> metadata of its sweep.
    facts
        The evaluation's summary: models and figures by split and GPU.
    counters
        GPU -> hardware counters of its fastest configurations, where they were read.
    folder
        Where ``study.yaml`` is, with the study's own section and published tables if it has any.
    published_times
        Predictions of published run times, for datasheet-only GPUs
        (:func:`launchwise.tables.predictions.published_times_schema`).
    published_facts
        Published times without a prediction: ``skipped`` and ``unfit``, by series.
    described
        Datasheet-only GPU -> its profile.
    kept_out
        GPU -> why its import flagged its rows, which no part of the study uses.
    pairs
        GPU -> its fastest configurations in pairs (:func:`launchwise.tables.pairs.pairs_schema`),
        where they were compared.
    blind
        GPU -> figures of its blind test, where there was one.
    scores
        GPU -> the same problem by problem, as :func:`launchwise.learning.blind.scoring.score` says.
    tested
        GPU -> judged times of a recorded blind test, where there are any.
    peers
        GPU -> other people's libraries in the same pairs
        (:func:`launchwise.tables.peers.peers_schema`).
    curves
        Quality against number of measurements (:func:`launchwise.tables.learning.curves_schema`).
    answers
        What the study's product answers (:class:`launchwise.exporting.lookup.LookupEntry` as JSON
        values); None where there is none.
    left_out
        GPUs that :meth:`limited_to` left out.
    """

    name: str
    settings: Study
    spec: Spec
    entries: Mapping[str, ModelEntry]
    profiles: Mapping[str, GpuProfile]
    sweeps: Mapping[str, pd.DataFrame]
    training: pd.DataFrame
    removed: pd.DataFrame
    evaluation: pd.DataFrame
    predictions: pd.DataFrame
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sweep_facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    counters: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    folder: Path | None = None
    published_times: pd.DataFrame | None = None
    published_facts: Mapping[str, Any] = field(default_factory=dict)
    described: Mapping[str, GpuProfile] = field(default_factory=dict)
    kept_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pairs: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    blind: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scores: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    tested: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    peers: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    curves: pd.DataFrame | None = None
    answers: Sequence[Mapping[str, Any]] | None = None
    left_out: Sequence[str] = ()
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def gpus(self) -> list[str]:
        """GPUs of the study, in the order of the settings."""
        return list(self.sweeps)

    @cached_property
    def whole(self) -> list[str]:
        """GPUs that are whole cards; all of them when there are slices only."""
        return [gpu for gpu in self.gpus if not self.profiles[gpu].is_slice] or self.gpus

    def limited_to(self, gpus: Sequence[str]) -> StudyData:
        """The study as if it had these GPUs alone; what was evaluated over all of them stays."""
        kept = set(gpus)

        def of(table: pd.DataFrame) -> pd.DataFrame:
            return table[table["gpu"].isin(kept)].reset_index(drop=True)

        def own(found: Mapping[str, Any]) -> dict[str, Any]:
            return {gpu: found[gpu] for gpu in gpus if gpu in found}

        return replace(
            self,
            profiles=own(self.profiles),
            sweeps=own(self.sweeps),
            sweep_facts=own(self.sweep_facts),
            counters=own(self.counters),
            pairs=own(self.pairs),
            peers=own(self.peers),
            blind=own(self.blind),
            scores=own(self.scores),
            tested=own(self.tested),
            training=of(self.training),
            removed=of(self.removed),
            evaluation=of(self.evaluation),
            predictions=of(self.predictions),
            left_out=[gpu for gpu in self.gpus if gpu not in kept],
            _known={},
        )

    @property
    def cards(self) -> int:
        """Number of models of cards behind the GPUs."""
        return len({self.profiles[gpu].card_model for gpu in self.gpus})

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Measurements of every GPU in one table: candidates of the study, on its problems.

        A sweep may hold more, for other studies of the same workload.
        """
        named = self.settings
        domain = Domain(self.spec, self.profiles, named.candidates, named.constraints)
        rows = self._asked_about
        return rows[domain.is_candidate(rows)].reset_index(drop=True)

    @cached_property
    def unverified(self) -> pd.DataFrame:
        """Rows of variants that are not verified, on the study's problems: shown, never chosen."""
        rows = self._asked_about
        verified = rows["variant"].isin(list(self.spec.recommendable.variants))
        return rows[~verified].reset_index(drop=True)

    @cached_property
    def _asked_about(self) -> pd.DataFrame:
        kept = [table.drop(columns=list(UNREAD), errors="ignore") for table in self.sweeps.values()]
        rows = pd.concat(kept, ignore_index=True)
        return rows[asked_about(self.settings, rows)]

    @cached_property
    def measured(self) -> pd.DataFrame:
        """The rows of :attr:`rows` that have a time."""
        return self.rows[self.rows["status"].isin(MEASURED)].reset_index(drop=True)

    @cached_property
    def timed(self) -> pd.DataFrame:
        """Rows with a time on the study's problems, of variants that are no candidates, too."""
        rows = self._asked_about
        return rows[rows["status"].isin(MEASURED)].reset_index(drop=True)

    @property
    def problem_columns(self) -> list[str]:
        """Columns that name a problem."""
        return self.spec.problem_columns

    @cached_property
    def size(self) -> str:
        """The problem parameter to draw along: the free integer with the most values measured."""
        free = [
            name
            for name, parameter in self.spec.problem.items()
            if parameter.type == "integer" and parameter.values is None
        ]
        candidates = free or self.problem_columns
        return max(
            candidates, key=lambda name: (self.rows[name].nunique(), -candidates.index(name))
        )

    @property
    def kinds(self) -> list[str]:
        """The other problem parameters: each combination of them is one panel."""
        return [name for name in self.problem_columns if name != self.size]

    def title(self, model: str) -> str:
        """A model's or baseline's name for people."""
        if model in self.entries:
            return self.entries[model].title
        said = self.facts.get("models", {}).get(model, {}).get("title", model.replace("_", " "))
        return str(said).removesuffix(" measurements, expected")

    def split_title(self, split: str) -> str:
        """Title of a split, from the settings."""
        found = self.settings.splits.get(split)
        return found.title if found else split


def remembered(
    compute: Callable[Concatenate[StudyData, P], R],
) -> Callable[Concatenate[StudyData, P], R]:
    """Compute a table of a study once; several parts of the page share it.

    Callers must not change what they are given.
    """

    @wraps(compute)
    def once(study: StudyData, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (compute.__qualname__, repr(args), repr(kwargs))
        if key not in study._known:
            study._known[key] = compute(study, *args, **kwargs)
        known: R = study._known[key]
        return known

    return once


@dataclass(frozen=True)
class StudyFiles:
    """Paths of the tables of one study.

    Mappings go from GPU to path, and from model to path; a model's path is its folder.
    """

    folder: Path
    sweeps: Mapping[str, Path]
    judged: Mapping[str, Path]
    profiles: Mapping[str, Path]
    training: Path
    removed: Path
    evaluation: Path
    curves: Path
    facts: Path
    times: Path
    models: Mapping[str, Path]
    counters: Mapping[str, Path]
    described: Mapping[str, Path]
    pairs: Mapping[str, Path]
    peers: Mapping[str, Path]
    blind: Mapping[str, Path]
    scores: Mapping[str, Path]
    published: Path | None = None
    answers: Path | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> StudyFiles:
        """From the same names as plain texts; names that are no field are left alone."""

        def paths(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: Path(path) for name, path in value.items()}
            return None if value is None else Path(value)

        return cls(**{field_.name: paths(given[field_.name]) for field_ in fields(cls)})


def read_study(
    name: str,
    settings: Study,
    entries: Mapping[str, ModelEntry],
    files: StudyFiles,
    kept_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> StudyData:
    """Read and check every table of a study.

    Parameters
    ----------
    kept_out
        GPU to why its rows are flagged and not among the study's.

    Raises
    ------
    UserError
        When a file is missing, truncated or does not fit its schema.
    """
    spec = load_spec(files.folder.parents[1])
    measurements = measurement_schema(spec)
    first = {"split": next(iter(settings.splits))}
    judged = _of_gpus(files.judged, times_schema(spec))
    wanted = [name for name in measurements.columns if name not in LISTS]
    sweeps = _of_gpus(files.sweeps, measurements, wanted)
    found = StudyData(
        name=name,
        folder=files.folder,
        settings=settings,
        spec=spec,
        entries={model: entries[model] for model in settings.models},
        profiles={gpu: read_profile(path, gpu) for gpu, path in files.profiles.items()},
        sweeps={
            gpu: with_judged_times(rows, judged[gpu], spec, files.judged[gpu])
            for gpu, rows in sweeps.items()
        },
        pairs=_of_gpus(files.pairs, pairs_schema(spec)),
        peers=_of_gpus(files.peers, peers_schema(spec)),
        blind={gpu: read_sealed_json(path) for gpu, path in files.blind.items()},
        scores={gpu: read_scores(path, spec) for gpu, path in files.scores.items()},
        tested=_tested(judged),
        training=of_split(tables.read_table(files.training, training_schema(spec)), first["split"]),
        removed=tables.read_table(files.removed, removed_schema(spec), only=first),
        evaluation=tables.read_table(files.evaluation, evaluation_schema(spec)),
        curves=tables.read_table(files.curves, curves_schema()),
        predictions=read_predictions(spec, files.times, settings),
        sweep_facts={gpu: tables.read_facts(path) for gpu, path in files.sweeps.items()},
        models={
            model: read_sealed_json(path / "summary.json") for model, path in files.models.items()
        },
        facts=read_sealed_json(files.facts),
        counters=_of_gpus(files.counters, counters_schema(spec)),
        published_times=None
        if files.published is None
        else tables.read_table(files.published, published_times_schema(spec)),
        published_facts={} if files.published is None else tables.read_facts(files.published),
        described={gpu: read_profile(path, gpu) for gpu, path in files.described.items()},
        kept_out=kept_out,
        answers=_answers(files.answers),
    )
    return _of_measured(found)


def _of_measured(study: StudyData) -> StudyData:
    """Without GPUs whose sweeps hold problems of other studies alone, if there is another GPU."""
    asked = [gpu for gpu, rows in study.sweeps.items() if asked_about(study.settings, rows).any()]
    if 0 < len(asked) < len(study.sweeps):
        return replace(study.limited_to(asked), left_out=())
    return study


def _tested(judged: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """GPU to the judged times of its blind test."""
    return {gpu: rows[rows["blind"]] for gpu, rows in judged.items() if rows["blind"].any()}


def _answers(path: Path | None) -> list[dict[str, Any]] | None:
    """What the study's product answers; None where it answers nothing."""
    if path is None:
        return None
    answers: list[dict[str, Any]] = read_sealed_json(path, "answers")["answers"]
    return answers


def _of_gpus(
    paths: Mapping[str, Path], schema: pa.DataFrameSchema, columns: Sequence[str] | None = None
) -> dict[str, pd.DataFrame]:
    """GPU to the table in its file."""
    return {gpu: tables.read_table(path, schema, columns) for gpu, path in paths.items()}


def read_scores(path: Path, spec: Spec) -> pd.DataFrame:
    """Scores of a blind test, problem by problem."""
    texts = {
        name: str
        for name, one in spec.problem.items()
        if any(isinstance(value, str) for value in one.values or ())
    }
    return pd.read_csv(path, dtype=texts)


def read_predictions(spec: Spec, path: Path, settings: Study) -> pd.DataFrame:
    """Predicted times of every candidate in the first split, the only one that is drawn."""
    split = next(iter(settings.splits))
    schema = predicted_times_schema(spec, tables.read_facts(path)["models"])
    return tables.read_table(path, schema, only={"split": split})
