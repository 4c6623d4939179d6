"""A question asked of sweeps: ``kernels/<workload>/studies/<study>/study.yaml`` as typed data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from launchwise.base.expressions import Expression
from launchwise.base.names import GPU
from launchwise.base.typed import Strict
from launchwise.experiment.method import Selection
from launchwise.workloads.parts import Value
from launchwise.workloads.usual import Usual

GpuName = Annotated[str, StringConstraints(pattern=GPU)]
StudyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


class Fences(Strict, title="Tukey filter"):
    """Filter of training rows with outlying times."""

    scope: Literal["problem", "global"] = "problem"
    """rows whose quartiles are taken: those of each problem on each GPU, or all"""
    factor: float = Field(1.5, gt=0)
    """allowed distance from the quartiles, in interquartile ranges"""
    sides: Literal["upper", "both"] = "upper"
    """limits that filter. upper: nothing makes a kernel faster by chance, and the fastest rows are
    the goal; both: as published"""


class ProblemSplit(Strict, title="split by problems"):
    """Training and test problems, by values of problem parameters."""

    kind: Literal["problems"] = Field(description="held-out problems")
    title: str = Field(description="question of the split, for the report")
    train: Selection = Field(
        min_length=1, description="problem parameters to the values of training problems"
    )
    test: Selection = Field(
        min_length=1, description="problem parameters to the values of test problems"
    )


class TransferSplit(Strict, title="split by GPUs"):
    """One fold per GPU: it is left out of training and tested."""

    kind: Literal["leave_one_gpu_out"] = Field(description="held-out cards, slices with them")
    title: str = Field(description="question of the split, for the report")
    among: Selection = Field(
        {},
        description="problem parameters to the values of training and test problems; default: all",
    )


Split = Annotated[ProblemSplit | TransferSplit, Field(discriminator="kind")]


class Counters(Strict, title="hardware counters"):
    """Configurations whose hardware counters are read: the fastest of each group."""

    by: list[str] = Field(min_length=1)
    """tunables (`variant` is one): each combination of their values is a group"""
    among: Selection = Field({})
    """problem parameters to the values of problems that are run; default: all"""


class Design(Strict, title="design"):
    """A part of the candidates, such as those that somebody chooses among who tunes one thing."""

    title: str
    """name of the part in the report"""
    candidates: Selection = Field({})
    """tunables to the values that belong to it; all when left out"""
    constraints: list[Expression] = Field([])
    """conditions on problem and configuration that belong to it"""


class Goals(Strict, title="goals"):
    """Figures to reach, such as published ones; the report says which are reached."""

    mean_speed_up: float = Field(gt=0)
    """mean of baseline time divided by recommended time, to be exceeded"""
    improved_percent: float = Field(ge=0, le=100)
    """problems that are faster than the baseline, %"""
    best_percent: float = Field(ge=0, le=100)
    """geometric mean of best time divided by recommended time, %"""


class ModelEntry(Strict, title="model"):
    """A recommender with its hyper-parameters."""

    kind: str
    """module in `launchwise/learning/recommenders` or the workload's `recommenders`"""
    title: str
    """name of the model in the report"""
    parameters: dict[str, float | int | str | bool | None] = Field({})
    """hyper-parameters by name; the search leaves them as they are"""
    trials: int | None = Field(None, ge=0)
    """trials of the search; `search.trials` of `config.yaml` when left out"""


class Range(Strict, title="range"):
    """Whole numbers between two limits."""

    minimum: int = Field(description="smallest value")
    maximum: int = Field(description="largest value")
    scale: Literal["linear", "logarithmic"] = Field(
        "linear", description="whether values or their logarithms are equally likely"
    )

    @model_validator(mode="after")
    def _order(self) -> Range:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        if self.scale == "logarithmic" and self.minimum < 1:
            raise ValueError(f"minimum {self.minimum} has no logarithm")
        return self


class Blind(Strict, title="blind test"):
    """Problems that are drawn at random and measured after the answers were given."""

    problems: int = Field(40, ge=1, le=1000)
    """number of problems"""
    parameters: dict[str, Range | Annotated[list[Value], Field(min_length=1)]] = Field(min_length=1)
    """every problem parameter to its range, or to values that are equally likely"""

    @property
    def sizes(self) -> list[str]:
        """Parameters that have a range."""
        return [name for name, one in self.parameters.items() if isinstance(one, Range)]

    def holds(self, problem: Mapping[str, Any]) -> bool:
        """Whether a problem lies in the ranges."""
        return all(
            values.minimum <= int(problem[name]) <= values.maximum
            if isinstance(values, Range)
            else problem[name] in values
            for name, values in self.parameters.items()
        )


class Drawn(Strict, title="drawn problems"):
    """Problems that are spread evenly over the ranges of `blind.parameters`, categories crossed,
    and measured beside those of `sweep.yaml`, every candidate of each."""

    problems: int = Field(ge=1, le=1000)
    """number of problems; with more, those before stay"""
    seed: int = Field(0, ge=0)
    """where the design begins"""
    multiples: list[Annotated[int, Field(ge=1)]] = Field([1, 8, 64], min_length=1)
    """numbers that sizes are multiples of, each as often"""


def _checked_doi(value: str) -> str:
    if not re.fullmatch(r"10\.\d{4,9}/[^\s\"<>]+", value):
        raise ValueError("must be a DOI without an address, such as 10.5281/zenodo.15364124")
    return value


class StudyFile(Strict, title="study.yaml"):
    """Study of one workload: question, candidates, GPUs, splits and models."""

    title: str
    """name of the study in the report"""
    question: str
    """the question that the study answers, one sentence"""
    doi: Annotated[str, AfterValidator(_checked_doi)] | None = None
    """DOI of the publication that the study repeats, or of its data, such as
    `10.5281/zenodo.15364124`; pages of the study link to it"""
    gpus: list[GpuName] | None = Field(None, min_length=1)
    """GPUs of the study; every GPU with rows of the workload when left out"""
    candidates: Selection = Field({})
    """tunables to the values that may be recommended; all when left out"""
    constraints: list[Expression] = Field([])
    """conditions on problem and configuration that candidates satisfy"""
    usual: list[Usual] | None = Field(None, min_length=1)
    """usual configurations, instead of those of the workload's `usual.yaml`, such as where these
    are no candidates"""
    leave_out: dict[GpuName, Selection] = Field({})
    """GPU to problems that take no part on it, such as those of which its sweep measured a few
    candidates for another study"""
    features: list[str] | None = Field(None, min_length=1)
    """features that models use, by name; all when left out"""
    train_on: Literal["all", "candidates"] = "all"
    """measured rows that models learn from"""
    fences: Fences = Fences()
    """Tukey filter of training rows"""
    near_best_percent: float = Field(2.0, ge=0)
    """excess over the best time up to which a configuration counts as best, %"""
    counters: Counters | None = None
    """configurations that run once under Nsight Compute; none when left out"""
    random_draws: list[int] = Field([1, 5, 20])
    """numbers of random draws; each number is one heuristic of the evaluation"""
    splits: dict[StudyName, Split] = Field(min_length=1)
    """splits into training and test by name"""
    models: list[str] = Field(min_length=1)
    """names in `own_models` or in `models` of `config.yaml`, or kinds of models"""
    further_models: list[str] = Field([])
    """models that take part only with `further_models: true` in the settings"""
    own_models: dict[StudyName, ModelEntry] = Field({})
    """models of this study only, by name"""
    goals: Goals | None = None
    """figures to reach; none when left out"""
    peers: list[str] = Field([])
    """libraries of the workload that run in the same pairs as its configurations; a workload's
    README says which it has"""
    peer_kinds: dict[str, Expression] = Field({})
    """kinds of problems that a library serves by different functions: title to condition on the
    problem; the first that holds. Tables never average over several kinds"""
    designs: dict[StudyName, Design] = Field({})
    """parts of the candidates: the fastest of each runs in the same pairs as the fastest of all,
    and the report says what the whole gains"""
    blind: Blind | None = None
    """blind test of the model that answers users; none when left out"""
    drawn: Drawn | None = None
    """problems that are drawn, not listed; none when left out"""
    load: str | None = Field(None, min_length=1)
    """CSV file of `launchwise load`, launches of each problem: these are answered beforehand, blind
    tests draw from them, and means over test problems count each by the launches nearest to it"""

    @property
    def asked(self) -> dict[str, Any]:
        """What it asks about, as JSON holds it: :class:`launchwise.learning.features.Domain`."""
        plain = self.model_dump(mode="json")
        plain["only_features"] = plain["features"]
        names = ("candidates", "constraints", "near_best_percent", "only_features", "usual")
        return {name: plain[name] for name in names if plain[name] is not None}


class Study(StudyFile, title="study"):
    """A study with its workload."""

    workload: str = Field(description="workload whose folder holds the study")
    spread: list[dict[str, Value]] = Field([], description="its drawn problems")
