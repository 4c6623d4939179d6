"""``config.yaml`` and its overlays as typed data.

What they leave to the folders of workloads, and whether all of it fits together, is checked by
:mod:`launchwise.experiment.experiment`.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from launchwise.base.typed import Strict
from launchwise.experiment.method import ProblemBlock
from launchwise.experiment.study import GpuName, ModelEntry, StudyName

GRES = re.compile(r"gpu(:(?P<model>[0-9]*[A-Za-z_.][A-Za-z0-9_.]*))?(:1)?")
"""One GPU, of a kind or of any, as Slurm writes it; gpu:4 is four of any kind."""


class Slurm(Strict):
    """Where Slurm finds a GPU; a slice stands where its card does."""

    partition: str = Field(min_length=1, description="partition of the GPU's nodes")
    gres: str = Field(
        "gpu", description="one GPU as Slurm's gres, such as gpu:h200 where kinds are mixed"
    )
    constraint: str | None = Field(None, min_length=1, description="feature that a node must have")

    @field_validator("gres")
    @classmethod
    def _one_gpu(cls, value: str) -> str:
        if not GRES.fullmatch(value):
            raise ValueError("must ask for one GPU, such as gpu, gpu:h200 or gpu:h200:1")
        return value

    @property
    def model(self) -> str | None:
        """Kind of GPU as Slurm calls it; None for any."""
        found = GRES.fullmatch(self.gres)
        return found["model"] if found else None


class Gpu(Strict):
    """One GPU: recorded, measured live, or described by its datasheet alone."""

    source: Literal["recorded", "live", "described"] = Field(
        description="recorded sweeps, measured by this run, or known from its datasheet alone"
    )
    studies: list[StudyName] | None = Field(
        None, min_length=1, description="studies that it takes part in; all when left out"
    )
    card: str | None = Field(
        None, min_length=1, description="described GPU: its name in data/cards.csv"
    )
    path: str | None = Field(
        None, description="recorded GPU: its folder; data/recorded/<gpu> when left out"
    )
    arch: str | None = Field(
        None,
        pattern=r"^sm_\d+[af]?$",
        description="architecture, such as sm_90; this machine's when left out",
    )
    device: str | None = Field(
        None, description="part of the device's name, where a machine has several kinds"
    )
    shards: int | None = Field(
        None, ge=1, le=1000, description="jobs that share a sweep; estimated when left out"
    )
    compile: Literal["beforehand", "alongside"] = Field(
        "beforehand",
        description="by a rule of its own (also on hosts without a GPU), or while measuring",
    )
    slice_sms: int | None = Field(
        None, ge=1, description="measure on about this many SMs of the card only"
    )
    problems: dict[str, list[ProblemBlock]] = Field(
        {}, description="workload to the problems measured here instead of those of sweep.yaml"
    )
    slurm: Slurm | None = Field(None, description="where Slurm finds the GPU")

    @model_validator(mode="after")
    def _fits_its_source(self) -> Gpu:
        if self.source != "described":
            if self.card is not None:
                raise ValueError(f"card: names a described GPU, and source is {self.source}")
        elif strange := sorted(self.model_fields_set - {"source", "card"}):
            raise ValueError(f"{strange[0]}: a described GPU is never measured: take it out")
        return self

    @model_validator(mode="after")
    def _compiles_once(self) -> Gpu:
        if self.compile == "alongside" and (self.shards or 1) > 1:
            message = "alongside is for one shard: each would compile everything"
            raise ValueError(f"compile: {message}, and there are {self.shards}")
        return self


class Search(Strict):
    """Optuna's hyper-parameter search."""

    trials: int = Field(6, ge=0, le=100000, description="trials per model; the first: defaults")
    folds: int = Field(3, ge=2, le=20, description="folds of training problems that judge a trial")
    max_rows: int = Field(3000, ge=100, description="rows that one trial may learn from")


class Settings(Strict):
    """Everything in ``config.yaml``."""

    seed: int = Field(2026, ge=0, lt=2**31, description="seed of inputs, models and searches")
    workloads: list[str] = Field(
        ["kernels"], min_length=1, description="folders that hold workloads, one folder each"
    )
    gpus: dict[GpuName, Gpu] = Field(min_length=1, description="GPUs by name")
    models: dict[StudyName, ModelEntry] = Field({}, description="models by name; studies name them")
    search: Search = Field(Search(), description="hyper-parameter search")
    sweeps: dict[str, dict[str, Any] | None] = Field(
        {}, description="workload to what is laid over its sweep.yaml"
    )
    studies: dict[StudyName, dict[str, Any] | None] = Field(
        {}, description="study to what is laid over its study.yaml; null leaves the study out"
    )
