"""``config.yaml`` and its overlays as typed data, and which file holds a key.

What they leave to the folders of workloads, and whether all of it fits together, is checked by
:mod:`launchwise.experiment.experiment`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from launchwise.base.errors import UserError
from launchwise.base.literals import whole
from launchwise.base.typed import Strict, read_yaml
from launchwise.experiment.method import Confirmation, ProblemBlock, Recheck
from launchwise.experiment.study import GpuName, ModelEntry, StudyName

GRES = re.compile(r"gpu(:(?P<model>[0-9]*[A-Za-z_.][A-Za-z0-9_.]*))?(:1)?")
"""One GPU, of a kind or of any, as Slurm writes it; gpu:4 is four of any kind."""

WORD = r"^[A-Za-z0-9_][A-Za-z0-9_.,:@%+/-]*$"
"""Name of something of Slurm's, or several with commas."""

OPTION = re.compile(r"--(?P<name>[a-z][a-z-]*)(=[!-~]+)?")  # One word for sbatch

OF_KEYS = {
    **{key: key for key in ("account", "partition", "qos", "reservation", "constraint", "gres")},
    **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"), "gres"),
}
"""Options of sbatch to the keys of the settings that stand for them."""

OF_SNAKEMAKE = (
    *("array", "chdir", "clusters", "comment", "cpus-per-gpu", "cpus-per-task", "error", "export"),
    *("export-file", "job-name", "mem", "mem-per-cpu", "mem-per-gpu", "no-requeue", "nodes"),
    *("ntasks", "ntasks-per-gpu", "ntasks-per-node", "output", "parsable", "requeue", "test-only"),
    *("time", "wait", "workdir", "wrap"),
)
"""Options of sbatch that Snakemake gives, or that it could not work with."""


class Slurm(Strict, title="Slurm"):
    """Where Slurm finds a GPU. A slice has the entry of its card."""

    partition: str = Field(pattern=WORD)
    """Slurm partition of the GPU's nodes, or several with commas"""
    gres: str = "gpu"
    """one GPU as Slurm's gres: `gpu`, or `gpu:h200` if a partition mixes GPU models"""
    constraint: str | None = Field(None, min_length=1)
    """feature that the node must have"""
    account: str | None = Field(None, pattern=WORD)
    """account that pays; that of the profile when left out"""
    qos: str | None = Field(None, pattern=WORD)
    """quality of service; that of the profile when left out"""
    reservation: str | None = Field(None, pattern=WORD)
    """reservation to run in"""
    extra: list[str] = Field([])
    """further options of sbatch, such as `--exclusive` or `--exclude=node17`"""
    modules: list[Annotated[str, StringConstraints(pattern=WORD)]] = Field([])
    """environment modules that jobs of the GPU load, such as `cuda/13.0`"""

    @field_validator("gres")
    @classmethod
    def _one_gpu(cls, value: str) -> str:
        if not GRES.fullmatch(value):
            raise ValueError("must ask for one GPU, such as gpu, gpu:h200 or gpu:h200:1")
        return value

    @field_validator("extra")
    @classmethod
    def _free_options(cls, words: list[str]) -> list[str]:
        for word in words:
            found = OPTION.fullmatch(word)
            if found is None:
                example = "such as --exclusive or --exclude=node17"
                raise ValueError(f"{word!r} is no option of sbatch in one word, {example}")
            name = found["name"]
            # sbatch takes what an option begins with for the option.
            if key := next((OF_KEYS[each] for each in OF_KEYS if each.startswith(name)), None):
                raise ValueError(f"--{name} has a key of its own: {key}")
            if any(each.startswith(name) for each in OF_SNAKEMAKE):
                raise ValueError(f"--{name} is Snakemake's: remove it, or see the profile")
        return words

    @property
    def options(self) -> str | None:
        """Options of sbatch that have no resource of Snakemake's, as a shell reads them."""
        reserved = [] if self.reservation is None else [f"--reservation={self.reservation}"]
        return shlex.join([*reserved, *self.extra]) or None

    @property
    def loaded(self) -> str | None:
        """Modules in one text."""
        return " ".join(self.modules) or None

    @property
    def model(self) -> str | None:
        """Kind of GPU as Slurm calls it; None for any."""
        found = GRES.fullmatch(self.gres)
        return found["model"] if found else None


_OF_SOURCES = {
    "live": ("extend", "workloads"),
    "recorded": ("trusted",),
    "described": ("card", "host_gbs"),
}
"""Source of a GPU to the keys that it alone has."""


class Gpu(Strict, title="GPU"):
    """One GPU: recorded, measured live, or known from its datasheet only."""

    source: Literal["recorded", "live", "described"]
    """recorded: sweeps in a folder; live: measured by this run; described: datasheet only, run
    times are predicted"""
    studies: list[StudyName] | None = Field(None, min_length=1)
    """studies that use this GPU; all when left out"""
    workloads: list[str] = Field([])
    """live GPU: workloads that it measures beside those of its studies"""
    card: str | None = Field(None, min_length=1)
    """datasheet-only GPU: its row in `data/cards.csv`; the GPU's name when left out"""
    host_gbs: float | None = Field(None, gt=0)
    """datasheet-only GPU: copy rate between host and GPU, 1e9 B/s, such as 12 (PCIe 3.0), 25 (PCIe
    4.0) or 50 (PCIe 5.0); when left out, no run with copies is predicted"""
    path: str | None = None
    """recorded or extended GPU: the folder of its rows; `data/recorded/<name>` when left out"""
    trusted: bool = False
    """recorded GPU: its rows take part in studies although the import flagged them as impossible"""
    held_out: bool = False
    """no study learns from this GPU or is tested on it; only blind tests measure it, and judge the
    answers for a GPU without a sweep"""
    extend: bool = False
    """live GPU: its recorded rows and profile stay; missing rows of the sweeps are measured and
    joined"""
    arch: str | None = Field(None, pattern=r"^sm_\d+[af]?$")
    """architecture that nvcc compiles for; that of this machine's GPU when left out"""
    device: str | None = None
    """part of the device name; selects the GPU on a machine with several models"""
    shards: int | None = Field(None, ge=1, le=1000)
    """jobs per sweep; estimated when left out"""
    compile: Literal["beforehand", "alongside"] = "beforehand"
    """beforehand: by a rule of its own, without a GPU; alongside: while measuring"""
    slice_sms: int | None = Field(None, ge=1)
    """measure on a slice of the card with about this many SMs; all when left out"""
    problems: dict[str, list[ProblemBlock]] = Field({})
    """workload to problem blocks, measured here instead of those of `sweep.yaml`"""
    slurm: Slurm | None = None
    """where Slurm finds the GPU, and what its jobs ask for"""

    @model_validator(mode="after")
    def _fits_its_source(self) -> Gpu:
        for source, keys in _OF_SOURCES.items():
            for key in keys:
                if getattr(self, key) and self.source != source:
                    raise ValueError(f"{key}: needs source {source}, not {self.source}")
        if self.path is not None and self.source == "live" and not self.extend:
            raise ValueError("path: a live GPU has recorded rows only with extend: true")
        strange = sorted(self.model_fields_set - {"source", *_OF_SOURCES["described"]})
        if self.source == "described" and strange:
            message = "a datasheet-only GPU is never measured: remove this key"
            raise ValueError(f"{strange[0]}: {message}")
        if self.compile == "alongside" and (self.shards or 1) > 1:
            message = "alongside needs one shard, because each shard would compile every build"
            raise ValueError(f"compile: {message} (shards: {self.shards})")
        return self


class Search(Strict, title="search"):
    """Hyper-parameter search by Optuna."""

    trials: int = Field(6, ge=0, le=100000)
    """trials per model; the first has the defaults"""
    folds: int = Field(3, ge=2, le=20)
    """cross-validation folds per trial"""
    max_rows: int = Field(3000, ge=100)
    """most training rows per trial"""
    objective: Literal["regret", "time_error"] = "regret"
    """minimised on held-out problems. regret: of the recommendations, and the defaults stay unless
    a trial is clearly better; time_error: mean absolute percentage error of predicted times, and
    the best trial wins"""


def _null_too(schema: dict[str, Any]) -> None:
    schema["additionalProperties"] = {"anyOf": [schema["additionalProperties"], {"type": "null"}]}


OBJECTIVE = r"^(?:time|(sustained time|energy)(?: within (\d+(?:\.\d+)?) ?%)?)$"
"""What `objective` of the settings is written like."""


class Settings(Strict, title="config.yaml"):
    """Settings: GPUs, models, search, and changes to studies and sweeps."""

    seed: int = Field(2026, ge=0, lt=2**31)
    """seed of input data, models and searches"""
    workloads: list[str] = Field(["kernels"], min_length=1)
    """folders of workloads; each holds one folder per workload"""
    gpus: dict[GpuName, Gpu] = Field(json_schema_extra=_null_too)
    """GPUs by name; null instead of keys leaves one out, as in an overlay"""
    models: dict[StudyName, ModelEntry] = Field({})
    """models by name, for studies to list"""
    search: Search = Search()
    """hyper-parameter search"""
    further_models: bool = False
    """whether the `further_models` of the studies take part (`make full`)"""
    max_rows_per_fit: int | None = Field(25_000, ge=1)
    """most rows that a fit learns from, of up to two models of card, half as many more of each
    further one; of more, configurations of each problem are drawn, beside its fastest and its usual
    choice, then whole problems of each GPU; null: all"""
    confirm: Confirmation | None = Confirmation()
    """how the fastest configurations of live GPUs are compared in pairs; null: not at all, and
    gains rest on single rows of sweeps"""
    recheck: Recheck = Recheck()
    """how `launchwise recheck` measures answers again"""
    incomplete_report: bool = False
    """whether the report is written from the existing tables; it names the studies that lack one,
    and nothing else runs"""
    least_gain: float | None = Field(None, gt=0)
    """gain over the usual choice that must be sure: the measured one, or the lower end of the 90 %
    interval; an answer below it, or without an interval, becomes the usual choice in `recommend`,
    `recheck`, `export` and the report's lookup"""
    objective: str = Field("time", pattern=OBJECTIVE)
    """what answers of `recommend`, `export` and the report take least of at problems where
    configurations ran back to back in pairs: `time`, `sustained time` (back to back) or `energy`;
    `energy within 2%` allows a loss of 2 % of time. A choice changes where another is surely less,
    by what two visits differ; all others, blind tests and `recheck` are by time"""
    prices: str | None = Field(None, min_length=1)
    """CSV file with prices of GPUs for the report: gpu, euro, euro_per_hour, date, source"""
    sweeps: dict[str, dict[str, Any] | None] = Field({})
    """workload to keys of `sweep.yaml` that override its own; null removes a key"""
    studies: dict[StudyName, dict[str, Any] | None] = Field({})
    """study to keys of `study.yaml` that override its own; null removes a key, null instead of keys
    leaves the study out"""

    @field_validator("gpus", mode="before")
    @classmethod
    def _without_those_left_out(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        kept = {name: entry for name, entry in value.items() if entry is not None}
        if not kept:
            raise ValueError("no GPU is left: name one, or leave one less out (null)")
        return kept


COMMAND_LINE = "--config"


@dataclass(frozen=True)
class Beneath:
    """A file of a workload's folder that settings override."""

    path: Path  # the file
    key: str  # dotted key of the settings that its content stands below, such as `studies.tile`


@dataclass(frozen=True)
class Sources:
    """Files that the settings were merged from."""

    files: Sequence[Path]  # settings files, the last one strongest
    # What they were merged to, if parts of it may come from no file.
    config: Mapping[str, Any] | None = None
    _read: dict[Path, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def error(self, key: str, message: str, beneath: Beneath | None = None) -> UserError:
        """Error for ``key`` that names the file that holds it.

        ``key``: dotted key of the settings.
        ``beneath``: the file that the settings of this key override; its own keys are shorter.
        """
        where, depth = self._holder(key)
        if beneath is None or depth > len(beneath.key.split(".")):
            return UserError(where, key, message)
        own = key.removeprefix(beneath.key).removeprefix(".")
        return UserError(beneath.path, own, message)

    def left_out(self, key: str) -> list[str]:
        """Names below ``key`` that the merged settings set to null."""
        below = (self.config or {}).get(key)
        entries = below.items() if isinstance(below, Mapping) else ()
        return [str(name) for name, entry in entries if entry is None]

    def is_lost_null(self, key: str) -> bool:
        """Whether files set ``key`` to null and none gives it a value: a name that is mistyped."""
        depth = len(key.split("."))
        self._holder(key)  # Reads the files.
        held = [_follow(content, key.split(".")) for content in self._read.values()]
        values = [value for found, value in held if found == depth]
        return bool(values) and all(value is None for value in values)

    def _holder(self, key: str) -> tuple[str, int]:
        """The last file that holds ``key`` (or as much of it as any does), and how much it holds.
        :data:`COMMAND_LINE` when no file holds what the merged settings hold."""
        parts = key.split(".") if key else []
        best, depth, held = self.files[0] if self.files else Path("config.yaml"), -1, None
        for path in self.files:
            if path not in self._read:
                self._read[path] = read_yaml(path)
            found, node = _follow(self._read[path], parts)
            if found >= depth:
                best, depth, held = path, found, node
        found, node = _follow(self.config, parts)
        # NaN is not equal to itself, but it is written alike.
        differs = node != held and repr(node) != repr(held)
        changed = found == depth and differs and not isinstance(node, Mapping)
        if self.files and self.config is not None and (found > depth or changed):
            return COMMAND_LINE, found
        return str(best), depth


def _follow(node: Any, parts: list[str]) -> tuple[int, Any]:
    """Number of leading ``parts`` of a dotted key that exist in ``node``, and the value there.
    Names may have dots themselves (``h200.sm72``): the longest name that fits is taken."""
    place = whole(parts[0]) if isinstance(node, list) and parts else None
    if place is not None and 0 <= place < len(node):
        found, inner = _follow(node[place], parts[1:])
        return found + 1, inner
    if isinstance(node, Mapping):
        names = {str(name): name for name in node}
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in names:
                found, inner = _follow(node[names[name]], parts[count:])
                return found + count, inner
    return 0, node
