"""The tables of one study, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from launchwise.experiment.study import ModelEntry, Study
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.features import Domain
from launchwise.learning.splits import asked_about
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.spec import Spec

NEVER_SHOWN = ("times_ms", "workload", "reason")
"""Columns of a sweep that no page needs: lists and texts are slow to carry about."""

UNREAD = (
    *NEVER_SHOWN,
    *("throttle", "timer", "card", "driver", "toolkit", "backend", "commit", "measured_at"),
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
        (:func:`launchwise.tables.pairs.peers_schema`).
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
    def swept(self) -> dict[str, pd.DataFrame]:
        """GPU to all measurements of its sweep, without the columns of :data:`UNREAD`."""
        # The copy stores columns of one type together: selections of rows are faster by far.
        return {
            gpu: table.drop(columns=list(UNREAD), errors="ignore").copy()
            for gpu, table in self.sweeps.items()
        }

    @cached_property
    def _asked_about(self) -> pd.DataFrame:
        rows = pd.concat(self.swept.values(), ignore_index=True)
        return rows[asked_about(self.settings, rows)].copy()

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
