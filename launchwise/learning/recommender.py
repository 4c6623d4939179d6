"""Protocol of recommenders: models and baselines.

A recommender gives each candidate of a problem its *scores*; the lowest comes first. Whatever it
is (a regressor of times, a classifier of configurations, a baseline), it is fitted on measurements
and asked with a GPU and problems.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast, get_args

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from launchwise.base.arrays import read_arrays, write_arrays
from launchwise.base.errors import UserError, unknown
from launchwise.base.storage import digest_files, read_sealed_json, write_sealed_json
from launchwise.base.typed import first_problem, validated
from launchwise.base.work import one_thread
from launchwise.learning.answers import AnyState, RecommenderFacts
from launchwise.learning.features import Domain, without_features
from launchwise.learning.row_arrays import ranked
from launchwise.learning.splits import Case, case_numbers
from launchwise.workloads.space import Problem

TRIED = "tried"  # Mark of a field that a search tries


class Hyperparameters(BaseModel):
    """Hyper-parameters of a kind; a subclass adds its own, each with a type, default and limits."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    seed: int = Field(0, ge=0, le=2**32 - 1)  # within what every library takes

    @classmethod
    def misfit(cls, given: Mapping[str, Any]) -> tuple[str, str] | None:
        """Name of the first value that does not fit, and what is wrong with it; None if all fit."""
        try:
            cls.model_validate(given)
        except ValidationError as error:
            return first_problem(error, cls, given)
        return None

    @classmethod
    def suggested(cls, trial: Any) -> dict[str, Any]:
        """Values that an Optuna ``trial`` tries of the fields made by :func:`tried`, own first."""
        inherited = [name for base in cls.__bases__ for name in getattr(base, "model_fields", ())]
        found = {}
        for name in sorted(cls.model_fields, key=lambda name: name in inherited):
            field = cls.model_fields[name]
            if not isinstance(field.json_schema_extra, dict):
                continue
            low, high, log = cast("list[Any]", field.json_schema_extra[TRIED])
            if low is None:
                values = [True, False] if field.annotation is bool else get_args(field.annotation)
                found[name] = trial.suggest_categorical(name, list(values))
            else:
                suggest = trial.suggest_int if isinstance(low, int) else trial.suggest_float
                found[name] = suggest(name, low, high, log=log)
        return found


def tried(
    default: Any, low: Any = None, high: Any = None, *, log: bool = False, **limits: Any
) -> Any:
    """A hyper-parameter that a search tries from ``low`` to ``high``, else at all of its values.

    ``log``: by ratio. ``limits`` are those of :func:`pydantic.Field`.
    """
    return Field(default, json_schema_extra={TRIED: [low, high, log]}, **limits)


FACTS_FILE = "recommender.json"
ARRAYS_FILE = "arrays.npz"

LIMITED = ("fit", "judge", "load_model")
"""Methods that compute: they run on one thread, whichever class they are of."""

UNFIT = (TypeError, ValueError, KeyError, AttributeError, IndexError)
"""Failures of a model that does not fit the workload, or that somebody changed."""


@dataclass(frozen=True)
class Judgement:
    """Scores and predicted times of some rows."""

    # float64, shape (rows, criteria). Rows of one case are compared criterion by criterion from
    # the left, and the smallest is recommended.
    scores: np.ndarray
    predicted_ms: np.ndarray  # float64, ms, shape (rows,); NaN where no time is predicted
    # Expected time of what is usual divided by the row's, and the deviation of its logarithm
    # among members: float64, shape (rows, 2); NaN where none is expected.
    gains: np.ndarray | None = None
    # Log time but for a constant of the case: float64, shape (rows,); None: of the predicted time.
    losses: np.ndarray | None = None

    @classmethod
    def by_time(cls, times_ms: np.ndarray, is_baseline: np.ndarray) -> Judgement:
        """Order by predicted time, baseline first in ties; both arguments have shape (rows,)."""
        return cls(np.column_stack([times_ms, ~is_baseline]).astype(float), times_ms)

    @classmethod
    def without_times(cls, *criteria: np.ndarray, losses: np.ndarray | None = None) -> Judgement:
        """Order by one or more criteria, each of shape (rows,), without times."""
        scores = np.column_stack(criteria).astype(float)
        return cls(scores, np.full(len(scores), np.nan), losses=losses)


@dataclass(frozen=True)
class Ranking:
    """Candidates of some cases in the order in which they are recommended."""

    order: np.ndarray  # numbers of the rows by case (as they came), then rank: int64, shape (rows,)
    rank: np.ndarray  # rank of each row in its case, from 1: int64, shape (rows,)
    # See `Judgement`; of each row as they came.
    predicted_ms: np.ndarray
    gains: np.ndarray | None = None
    losses: np.ndarray | None = None

    def first(self, count: int) -> np.ndarray:
        """Numbers of the rows of the first ``count`` ranks, in the order of :attr:`order`."""
        return self.order[self.rank[self.order] <= count]


class Recommender(ABC):
    """Recommends a configuration for a problem on a GPU.

    To add one, put a subclass into ``learning/recommenders/<kind>.py`` and name that kind in the
    settings: ``models: {mine: {kind: <kind>, title: …}}``. Raises UserError when a hyper-parameter
    is unknown, of a wrong type or out of range.

    Parameters
    ----------
    domain
        Workload, GPUs and candidates.
    **parameters
        Hyper-parameters, by the names of :attr:`Parameters`.
    """

    Parameters: ClassVar[type[Hyperparameters]] = Hyperparameters
    """Hyper-parameters with their types, defaults and limits."""

    cross_validated: ClassVar[bool] = False
    """Whether training also reports a ten-fold score, as is the custom for classifiers."""

    Fitted: ClassVar[type[BaseModel]] = AnyState
    """What a fit found, but for files of its own: a model that is stored as JSON."""

    fitted: Any = AnyState()
    """That of this recommender."""

    arrays: ClassVar[tuple[str, ...]] = ()
    """Attributes with arrays of the fit, which are stored in ``arrays.npz``."""

    def __init_subclass__(cls, **named: Any) -> None:
        """Limit the threads of the class's own :data:`LIMITED` methods."""
        super().__init_subclass__(**named)
        for name in LIMITED:
            if name in vars(cls):
                setattr(cls, name, one_thread()(vars(cls)[name]))
        if "judge" in vars(cls):
            cls.judge = _naming_its_file(cls.judge)  # type: ignore[method-assign]

    source: Path | None = None
    """File that it was read from."""

    def __init__(self, domain: Domain, **parameters: Any) -> None:
        if misfit := self.Parameters.misfit(parameters):
            raise UserError("config.yaml", f"models.parameters.{misfit[0]}", misfit[1])
        self.domain = domain
        self.parameters = self.Parameters(**parameters).model_dump()

    def fit(self, measurements: pd.DataFrame) -> Self:
        """Learn; what needs no rows does nothing.

        Parameters
        ----------
        measurements
            Columns ``gpu``, the problem's and the configuration's (text or int64) and ``time_ms``
            (float64, ms); one row a measured configuration, from training cases only. Of a
            workload with stages also their times (``spec.stage_columns``: float64, ms, or NaN), and
            of sweeps ``status`` (``ok`` or ``slow``) and ``registers`` and ``spill_bytes`` of their
            builds (int64).
        """
        return self

    @abstractmethod
    def judge(self, rows: pd.DataFrame) -> Judgement:
        """Score rows that hold a GPU, a problem and a configuration."""

    def recommend(self, gpu: str, problems: list[Problem]) -> pd.DataFrame:
        """Every feasible candidate of every problem, the recommended one first.

        ``gpu``: A GPU of the domain; it needs a profile and no measurement. ``problems``: what the
        user has. Raises UserError when the GPU is unknown or a problem is not of this workload.
        Returns columns ``gpu``, the problem's, ``rank`` (int64 from 1), the configuration's and
        ``predicted_ms`` (float64, NaN where the recommender predicts no time); sorted by problem,
        then rank. The baseline is always among the rows.
        """
        if gpu not in self.domain.profiles:
            raise UserError("recommend", "gpu", unknown("GPU", gpu, self.domain.profiles))
        for problem in problems:
            if complaint := self.domain.spec.check_problem(problem):
                raise UserError("recommend", "problem", complaint)
        return self.rank(self.domain.choices([Case(gpu, problem) for problem in problems]))

    def rank(self, rows: pd.DataFrame) -> pd.DataFrame:
        """``rows`` sorted by case (as they came) and score, with ``rank`` and ``predicted_ms``."""
        ranking = self.ranking(rows)
        table = without_features(rows).assign(predicted_ms=ranking.predicted_ms)
        table["rank"] = ranking.rank
        return table.iloc[ranking.order].reset_index(drop=True)

    def ranking(self, rows: pd.DataFrame) -> Ranking:
        """Rank of every row among those of its case, and predicted times."""
        found = self.judge(rows)
        order, rank = ranked(case_numbers(rows, self.domain.spec), *found.scores.T)
        return Ranking(order, rank, found.predicted_ms, found.gains, found.losses)

    @property
    def members(self) -> Sequence[Recommender]:
        """Recommenders that it is made of, if it is."""
        return ()

    def summary(self) -> dict[str, Any]:
        """JSON-able facts of the fit, for the report."""
        return {}

    def state(self) -> dict[str, Any]:
        """What was fitted as JSON values; arrays and trees have their own files."""
        return dict(self.fitted.model_dump(mode="json"))

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 (nothing to do is fine)
        """Take over the result of an own :meth:`state`.

        Called with it when :attr:`fitted` and the model's files are there.
        """

    def save_model(self, folder: Path) -> None:
        """Write the fitted model's own files, in a format that cannot run code."""
        if self.arrays:
            found = {name: getattr(self, name) for name in self.arrays}
            write_arrays(folder / ARRAYS_FILE, found)

    def load_model(self, folder: Path) -> None:
        """Read the files that :meth:`save_model` wrote."""
        if self.arrays:
            found = read_arrays(folder / ARRAYS_FILE, "a model")
            for name in self.arrays:
                setattr(self, name, found[name])

    def save(self, folder: Path) -> None:
        """Write the fitted recommender into ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        self.save_model(folder)
        facts = {
            "class": type(self).__name__,
            "parameters": self.parameters,
            "state": self.state(),
            "files": {path.name: digest_files([path]) for path in _own_files(folder)},
        }
        write_sealed_json(folder / FACTS_FILE, facts)

    @classmethod
    def load(cls, folder: Path, domain: Domain) -> Self:
        """Read a fitted recommender.

        Raises UserError when the folder holds none, one of another class, or a damaged one.
        """
        path = folder / FACTS_FILE
        facts = validated(RecommenderFacts, read_sealed_json(path), path)
        if facts.name != cls.__name__:
            raise UserError(path, "class", f"holds a {facts.name}, not a {cls.__name__}")
        # Libraries written in C++ may end the whole process when they read a truncated model.
        whole = {each.name: digest_files([each]) for each in _own_files(folder)}
        for name, written in facts.files.items():
            if whole.get(name) != written:
                message = "cannot be read as a model: it is missing, truncated or changed"
                raise UserError(folder / name, "", message)
        if misfit := cls.Parameters.misfit(facts.parameters):
            raise UserError(path, f"parameters.{misfit[0]}", misfit[1])
        fitted = validated(cls.Fitted, facts.state, path)
        try:
            found = cls(domain, **facts.parameters)
            found.fitted = fitted
            found.load_model(folder)
            found.restore(fitted.model_dump())
        except UNFIT as error:
            raise UserError(path, "", f"cannot be read as a model: {error}") from error
        found.source = path
        return found


def _naming_its_file(judge: Any) -> Any:
    """:meth:`Recommender.judge` whose failures name the file that the model was read from."""

    @functools.wraps(judge)
    def told(self: Recommender, rows: pd.DataFrame) -> Any:
        try:
            return judge(self, rows)
        except UNFIT as error:
            if self.source is None:
                raise
            raise UserError(self.source, "", f"does not fit the workload: {error}") from error

    return told


def _own_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != FACTS_FILE)
