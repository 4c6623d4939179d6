"""The tables of one study, side by side, and the facts of the run that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from launchwise.base.places import commit, now, versions
from launchwise.experiment.load import Load
from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.entries import named_answers
from launchwise.exporting.table import AnswerTable
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.features import Domain
from launchwise.learning.merit import geometric_mean
from launchwise.learning.row_arrays import records_of
from launchwise.learning.splits import asked_about
from launchwise.report import wording
from launchwise.tables.rows import is_baseline
from launchwise.tables.times import SWEEP
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

MODELS = "{study}.models.csv"  # Metrics per model and split, below the report's folder
CONFIGURATIONS = "{study}.configurations.csv"  # Best fixed configuration per GPU, below the folder

P = ParamSpec("P")

R = TypeVar("R")

OF_GPUS = (
    *("profiles", "sweeps", "counters", "pairs", "peers"),
    *("blind", "drawn", "scores", "tested"),
)
"""Fields of a study that map a GPU to something."""


@dataclass
class StudyData:
    """Everything the report knows of a study; mappings go from GPU where nothing else is said."""

    name: str
    settings: Study
    spec: Spec
    entries: Mapping[str, ModelEntry]
    profiles: Mapping[str, GpuProfile]
    sweeps: Mapping[str, pd.DataFrame]  # measurements, with launchwise.tables.times.JUDGED
    evaluation: pd.DataFrame
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # training records
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the evaluation, by split and GPU
    counters: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # of fastest configurations
    folder: Path | None = None  # that of study.yaml
    published_times: pd.DataFrame | None = None  # predicted: launchwise.tables.learning
    described: Mapping[str, GpuProfile] = field(default_factory=dict)  # datasheet-only GPUs
    kept_out: Mapping[str, Sequence[str]] = field(default_factory=dict)  # to why, no part uses them
    pairs: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # tables.measurements
    blind: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # figures of blind tests
    drawn: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of later ones
    scores: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # the same by problem
    tested: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # judged times of blind tests
    frozen: Sequence[str] = ()  # GPUs whose frozen answers are not measured yet
    peers: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # tables.measurements
    curves: pd.DataFrame | None = None  # quality against number of measurements
    table: AnswerTable | None = None  # answers of the product
    load: Load | None = None  # launches, by which means count problems
    left_out: Sequence[str] = ()  # GPUs that limited_to left out
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Rows that were not judged have the error of their repeats."""
        own: dict[str, Any] = {
            "error": lambda rows: rows.get("relative_error", np.nan),
            "basis": SWEEP,
        }
        self.sweeps = {
            gpu: rows.assign(**{name: own[name] for name in own if name not in rows})
            for gpu, rows in self.sweeps.items()
        }

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

        def own(found: Mapping[str, Any]) -> dict[str, Any]:
            return {gpu: found[gpu] for gpu in gpus if gpu in found}

        parts: dict[str, Any] = {name: own(getattr(self, name)) for name in OF_GPUS}
        rows = self.evaluation[self.evaluation["gpu"].isin(kept)]
        parts["evaluation"] = rows.reset_index(drop=True)
        left_out = [gpu for gpu in self.gpus if gpu not in kept]
        return replace(self, **parts, left_out=left_out, _known={})

    @cached_property
    def answers(self) -> list[dict[str, Any]]:
        """Answers of the product by names (:func:`launchwise.exporting.entries.named_answers`)."""
        return named_answers(self.table.stored) if self.table else []

    def mean(self, rows: pd.DataFrame, name: str = "fraction") -> float:
        """Geometric mean of a column over problems, by their launches where the study has a load.
        ``rows``: columns of the problems, too."""
        weights = None if self.load is None else self.load.weights(rows)
        return geometric_mean(rows[name].to_numpy(), weights)

    def evaluated(self, split: str, gpu: str, model: str) -> pd.DataFrame:
        """Rows of the evaluation of one model on the problems of a split and GPU."""
        rows = self.evaluation
        return rows[(rows["split"] == split) & (rows["gpu"] == gpu) & (rows["model"] == model)]

    @property
    def cards(self) -> int:
        """Number of models of cards behind the GPUs."""
        return len({self.profiles[gpu].card_model for gpu in self.gpus})

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Measurements of every GPU in one table: candidates of the study, on its problems. A sweep
        may hold more, for other studies of the same workload."""
        rows = self._asked_about
        return rows[self._domain.is_candidate(rows)].reset_index(drop=True)

    @cached_property
    def _domain(self) -> Domain:
        return Domain.of(self.settings, self.spec, self.profiles)

    def candidates(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Some of :attr:`rows` without the baseline where it is no candidate: it is shown anywhere.
        ``rows`` have an index without duplicates."""
        asked, untuned = self.settings, rows[is_baseline(rows, self.spec)]
        own = self._domain.is_of(untuned, asked.candidates, asked.constraints)
        return rows.drop(index=untuned.index[~own])

    @cached_property
    def unverified(self) -> pd.DataFrame:
        """Rows of variants that are not verified, on the study's problems: shown, never chosen."""
        rows = self._asked_about
        verified = rows["variant"].isin(list(self.spec.recommendable.variants))
        return rows[~verified].reset_index(drop=True)

    @cached_property
    def swept(self) -> dict[str, pd.DataFrame]:
        """GPU to all measurements of its sweep, without the columns of :data:`UNREAD`; ``by_host``
        says whether the host's clock timed a row, ``card`` numbers the GPU's cards."""
        # The copy stores columns of one type together: selections of rows are faster by far.
        return {
            gpu: table.drop(columns=list(UNREAD), errors="ignore").assign(
                by_host="timer" in table and table["timer"] == "host",
                card=pd.factorize(table["card"])[0] if "card" in table else 0,
            )
            for gpu, table in self.sweeps.items()
        }

    @cached_property
    def _asked_about(self) -> pd.DataFrame:
        rows = pd.concat(self.swept.values(), ignore_index=True)
        rows = rows[asked_about(self.settings, rows)]
        return rows.assign(is_usual=self._domain.is_usual(rows))

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

    @cached_property
    def usual_reasons(self) -> str:
        """Why usual choices are usual at the study's problems; empty where these have none."""
        if not self.gpus:
            return ""
        problems = records_of(self.rows[self.problem_columns].drop_duplicates())
        rules, value = self._domain.usual_rules, self.spec.value
        met = ([rule.reason for rule in rules if value(rule.when, each)][:1] for each in problems)
        return "; ".join(dict.fromkeys(reason for first in met for reason in first))

    def title(self, model: str) -> str:
        """A model's or baseline's name for people."""
        if model in self.entries:
            return self.entries[model].title
        said = self.facts.get("models", {}).get(model, {}).get("title", model.replace("_", " "))
        return str(said).removesuffix(" measurements, expected")

    def split_title(self, split: str) -> str:
        found = self.settings.splits.get(split)
        return found.title if found else split


def remembered(
    compute: Callable[Concatenate[StudyData, P], R],
) -> Callable[Concatenate[StudyData, P], R]:
    """Compute a table of a study once; several parts of the page share it. Callers must not change
    what they are given."""

    @wraps(compute)
    def once(study: StudyData, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (compute.__qualname__, repr(args), repr(kwargs))
        if key not in study._known:
            study._known[key] = compute(study, *args, **kwargs)
        known: R = study._known[key]
        return known

    return once


AUTHOR = "launchwise authors"
TITLE = "launchwise: launch parameters of CUDA kernels, measured, learnt and recommended"
"""As in CITATION.cff, which an installed copy lacks."""


@dataclass(frozen=True)
class Run:
    """Facts of the run that wrote the report."""

    commit: str
    written_at: str
    seed: int
    packages: Mapping[str, str]
    least_gain: float | None = None  # that must be sure; None where the expected one decides
    settings_files: Sequence[str] = ()  # none where config.yaml is all

    @classmethod
    def of(cls, settings: Mapping[str, Any], files: Sequence[str] = ()) -> Run:
        """This run, of settings that hold ``seed`` and ``least_gain`` among others."""
        return cls(commit(), now(), settings["seed"], versions(), settings["least_gain"], files)

    @property
    def _note(self) -> str:
        return f"Commit {wording.short(self.commit)}, report of {wording.moment(self.written_at)}"

    @property
    def citation(self) -> str:
        """Citation of this run's report."""
        name, _, rest = TITLE.partition(": ")
        return f"{name} {self.packages['launchwise']}: {rest}. {self._note}."

    @property
    def bibtex(self) -> str:
        """The citation as an entry of BibTeX."""
        year = self.written_at[:4]
        known = {"author": f"{{{AUTHOR}}}", "title": TITLE, "note": self._note, "year": year}
        known |= {"version": self.packages["launchwise"]}
        fields = "".join(f"  {name} = {{{value}}},\n" for name, value in known.items())
        return f"@software{{launchwise{year},\n{fields}}}\n"
