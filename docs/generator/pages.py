"""Pages of the reference that describe one YAML file each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from docs.generator.schemas import MODELS, nested_models
from launchwise.experiment.method import ProblemBlock, Selection
from launchwise.workloads.cost import Uses, Waits


@dataclass(frozen=True)
class Page:
    """A page of the reference that describes one file."""

    name: str  # of the page, without its suffix
    file: str  # of `docs.generator.schemas.MODELS`
    about: str  # where the file lies and what it is
    types: tuple[Any, ...] = ()  # types of the page that are no models
    # Modules with models of the page, beside that of the file's model.
    modules: tuple[str, ...] = ()

    @property
    def model(self) -> type[BaseModel]:
        """Of the file's content."""
        return MODELS[self.file]

    @property
    def models(self) -> list[type[BaseModel]]:
        """Models that the page describes: those of its model's module and of its own ones."""
        every = nested_models(self.model)
        modules = (self.model.__module__, *self.modules)
        return [each for each in every if each.__module__ in modules]


MODEL_PAGES = (
    Page(
        "settings",
        "config",
        "Overlays (`config/*.yaml`) have the same keys. Snakemake merges them over `config.yaml` "
        "key by key.",
        modules=("launchwise.experiment.method",),
    ),
    Page(
        "sweep",
        "sweep",
        "The file lies in the folder of its workload: `kernels/<workload>/sweep.yaml`. "
        "`sweeps.<workload>` of [config.yaml](settings.md) overrides single keys.",
        types=(ProblemBlock, Selection),
    ),
    Page(
        "study",
        "study",
        "The folder names the study: `kernels/<workload>/studies/<study>/study.yaml`. "
        "`studies.<study>` of [config.yaml](settings.md) overrides single keys.",
    ),
    Page(
        "elements",
        "elements",
        "The file lies in the folder of a study: `published/elements.yaml`. The report shows it as "
        "a table and warns of a file that does not exist. A line per element or group of elements "
        "is enough; no text holds a figure, because the page computes them.",
    ),
    Page(
        "run_times",
        "run_times",
        "The file lies in the folder of a study: `published/run_times.yaml`. It says which columns "
        "of the published tables beside it (`published/*.csv`) hold run times. The stage `predict` "
        "predicts them on datasheet-only GPUs of the same cards; the report shows both "
        "([how to](../how-to/predict_times.md#published-run-times)).",
    ),
    Page(
        "spec",
        "spec",
        "The folder names the workload: `kernels/<workload>/spec.yaml`. Features may lie beside it "
        "in `features.yaml` ([example](expressions.md)), the cost in [cost.yaml](cost.md). With "
        "`arguments` and `reference` the file is all that a kernel needs.",
        modules=("launchwise.workloads.parts", "launchwise.workloads.arguments"),
    ),
    Page(
        "cost",
        "cost",
        "The file lies beside `spec.yaml`: `kernels/<workload>/cost.yaml`. Without it, a run "
        "counts as one kernel that moves the least bytes.",
        types=(Uses, Waits),
    ),
    Page(
        "usual",
        "usual",
        "The file lies beside `spec.yaml`: `kernels/<workload>/usual.yaml`. It names the "
        "configuration that a competent person takes without measuring: what a recommendation has "
        "to beat. Without it that is the baseline of [spec.yaml](spec.md). A study may have "
        "[choices of its own](study.md).",
    ),
)
