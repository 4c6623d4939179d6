"""A question asked of sweeps: ``kernels/<workload>/studies/<study>/study.yaml`` as typed data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from launchwise.base.typed import Strict
from launchwise.experiment.method import Selection

GpuName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.]*$")]
StudyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


class Fences(Strict):
    """The Tukey filter on training rows."""

    scope: Literal["problem", "global"] = Field(
        "problem", description="quartiles of the rows of each problem, or of all training rows"
    )
    factor: float = Field(
        1.5, gt=0, description="interquartile ranges beyond the quartiles that rows may lie"
    )


class ProblemSplit(Strict):
    """Training and test problems by the values of one or more problem parameters."""

    kind: Literal["problems"] = Field("problems", description="held-out problems")
    title: str = Field(description="what the split asks, for the report")
    train: Selection = Field(
        min_length=1, description="problem parameters to the values of training problems"
    )
    test: Selection = Field(
        min_length=1, description="problem parameters to the values of test problems"
    )


class TransferSplit(Strict):
    """Every GPU in turn left out of training and tested."""

    kind: Literal["leave_one_gpu_out"] = Field(description="held-out GPUs")
    title: str = Field(description="what the split asks, for the report")
    among: Selection = Field(
        {}, description="problem parameters to the values that take part; all when left out"
    )


Split = Annotated[ProblemSplit | TransferSplit, Field(discriminator="kind")]


class Goals(Strict):
    """Figures to reach, such as those of a publication: the report says which are reached."""

    mean_speed_up: float = Field(
        gt=0, description="mean of baseline time / time of the recommendation; must be exceeded"
    )
    improved_percent: float = Field(
        ge=0, le=100, description="share of problems faster than the baseline, %"
    )
    best_percent: float = Field(
        ge=0, le=100, description="geometric mean of best time / time of the recommendation, %"
    )


class ModelEntry(Strict):
    """A recommender with what is fixed and what is searched."""

    kind: str = Field(
        description="module of launchwise/learning/recommenders or of the workload's recommenders"
    )
    title: str = Field(description="name of the model in the report")
    parameters: dict[str, float | int | str | bool | None] = Field(
        {}, description="hyper-parameters that are held fixed"
    )
    trials: int | None = Field(
        None, ge=0, description="trials of the hyper-parameter search; search.trials when left out"
    )


class StudyFile(Strict):
    """``study.yaml``: what is asked of which configurations, problems and GPUs, by which models."""

    title: str = Field(description="name of the study in the report")
    question: str = Field(description="the question that the study answers, one sentence")
    gpus: list[GpuName] | None = Field(
        None, min_length=1, description="GPUs; every GPU with rows of the workload when left out"
    )
    candidates: Selection = Field(
        {}, description="tunables to the values that may be recommended; all when left out"
    )
    constraints: list[str] = Field(
        [], description="expressions that candidates satisfy, over problem and configuration"
    )
    fences: Fences = Field(Fences(), description="the Tukey filter on training rows")
    near_best_percent: float = Field(
        2.0, ge=0, description="classifiers learn every configuration this near the best, %"
    )
    counters: list[str] = Field(
        [],
        description=(
            "tunables: the fastest configuration per problem and combination of their values runs "
            "once under Nsight Compute"
        ),
    )
    random_draws: list[int] = Field([1, 5, 20], description="draws of the random-search baselines")
    splits: dict[StudyName, Split] = Field(
        min_length=1, description="how problems and GPUs are split into training and test"
    )
    models: list[str] = Field(
        min_length=1, description="names in models or own_models, or kinds of recommenders"
    )
    own_models: dict[StudyName, ModelEntry] = Field(
        {}, description="models of this study alone, as in models of config.yaml"
    )
    goals: Goals | None = Field(None, description="figures to reach; none when left out")


class Study(StudyFile):
    """A study with the workload whose folder it lies in."""

    workload: str = Field(description="the workload whose folder holds the study")
