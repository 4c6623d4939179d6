"""``config.yaml`` and its overlays as typed data, checked against the workloads that exist."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field, StringConstraints, field_validator, model_validator

from launchwise.checks import check_space
from launchwise.errors import UserError, unknown
from launchwise.space import ONLY, Problem, problems
from launchwise.spec import SPEC_FILE, Spec, Value, find_workloads, load_spec
from launchwise.typed import Strict, read_yaml, validated

Selection = dict[str, Annotated[list[Value], Field(min_length=1)]]
Block = dict[str, Annotated[list[Value], Field(min_length=1)] | Selection]
"""Problem parameters to values; under ``only``, tunables to the values that are measured."""

GpuName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.]*$")]
StudyName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]


SHORTEST_ENERGY_MS = 200.0
"""Energy counters of cards step every 20 to 100 ms."""


class Slurm(Strict):
    """Where Slurm finds a GPU."""

    partition: str
    gres: str | None = None
    constraint: str | None = None


class Gpu(Strict):
    """One GPU: recorded, or measured live."""

    source: Literal["recorded", "live"]
    path: str | None = Field(None, description="folder of a recorded GPU; data/recorded/<gpu>")
    arch: str | None = Field(None, pattern=r"^sm_\d+[af]?$", description="such as sm_90")
    device: str | None = Field(None, description="part of the device's name, if kinds are mixed")
    shards: int = Field(1, ge=1, le=1000, description="jobs that a sweep is cut into")
    compile: Literal["beforehand", "alongside"] = Field(
        "beforehand",
        description="by a rule of its own (also on hosts without a GPU), or while measuring",
    )
    slice_sms: int | None = Field(None, ge=1, description="measure on about this many SMs only")
    problems: dict[str, list[Block]] = Field(
        {}, description="workload -> problems to measure here instead of the common ones"
    )
    slurm: Slurm | None = None


class Repeats(Strict):
    """How often one configuration is timed, and when that is enough."""

    minimum: int = Field(5, ge=1, le=1000)
    maximum: int = Field(25, ge=1, le=10000)
    precision: float = Field(0.005, gt=0, lt=1, description="relative standard error of the median")
    budget_ms: float = Field(60.0, gt=0, description="device time spent on one configuration")
    few: int = Field(3, ge=1, description="repeats of a launch that is long or far from the best")
    near: float = Field(0.1, ge=0, description="how far above the best is still near it")
    coarse: float = Field(0.02, gt=0, lt=1, description="precision of what is not near the best")

    @model_validator(mode="after")
    def _order(self) -> Repeats:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {self.minimum} is above maximum {self.maximum}")
        return self


class Guesses(Strict):
    """What a fitted recommender thinks is best, measured before anything else but the baseline."""

    model: str = Field(description="folder of a fitted model, such as results/models/<study>/knn")
    count: int = Field(5, ge=1, le=1000, description="recommendations taken of each problem")


class Strategy(Strict):
    """Which configurations of a problem a sweep measures."""

    kind: Literal["exhaustive", "random", "tpe"] = "exhaustive"
    budget: int | None = Field(None, ge=1, description="rows of each problem, unless exhaustive")
    guesses: Guesses | None = None

    @model_validator(mode="after")
    def _fitting(self) -> Strategy:
        if self.kind != "exhaustive":
            if self.budget is None:
                raise ValueError(f"{self.kind} needs a budget (rows of each problem)")
        elif strange := [key for key in ("budget", "guesses") if getattr(self, key) is not None]:
            raise ValueError(f"exhaustive measures everything: take {strange[0]} out")
        return self


class Method(Strict):
    """How a sweep measures."""

    strategy: Strategy = Strategy()

    repeats: Repeats = Repeats()
    slow_factor: float = Field(3.0, gt=1, description="a first launch so far off ends it")
    timeout_s: float = Field(60.0, gt=0, description="longest silence of the measuring process")
    graph_below_us: float = Field(
        20.0, ge=0, description="shorter launches are timed as replayed graphs; 0 for none"
    )
    control_s: float = Field(
        2.0, ge=0, description="between two measurements of the control; 0 for no control"
    )
    drift: float = Field(0.02, gt=0, lt=1, description="control off by more: measured again once")
    rest: bool = Field(True, description="pause while the card is throttled")
    energy_ms: float = Field(
        300.0, ge=0, description="length of a loop whose energy is measured; 0 for none"
    )

    @field_validator("energy_ms")
    @classmethod
    def _long_enough(cls, value: float) -> float:
        if 0 < value < SHORTEST_ENERGY_MS:
            raise ValueError(f"{value:g} is too short for a card's counter, take 200 or more, or 0")
        return value


class Sweep(Method):
    """What is measured of one workload, and how."""

    problems: list[Block] = Field(min_length=1, description="measured in this order")


class Fences(Strict):
    """Tukey's fences on training rows."""

    scope: Literal["problem", "global"] = "problem"
    factor: float = Field(1.5, gt=0)


class ProblemSplit(Strict):
    """Training and test problems by the values of one or more problem parameters."""

    kind: Literal["problems"] = "problems"
    title: str
    train: Selection = Field(min_length=1)
    test: Selection = Field(min_length=1)


class TransferSplit(Strict):
    """Every GPU in turn left out of training and tested."""

    kind: Literal["leave_one_gpu_out"]
    title: str


Split = Annotated[ProblemSplit | TransferSplit, Field(discriminator="kind")]


class Study(Strict):
    """A question asked of sweeps."""

    workload: str
    title: str
    question: str
    gpus: list[GpuName] | None = Field(None, min_length=1, description="all GPUs when left out")
    candidates: Selection = Field({}, description="configurations by the values of their tunables")
    fences: Fences = Fences()
    near_best_percent: float = Field(2.0, ge=0, description="what classifiers learn as best")
    random_draws: list[int] = Field([1, 5, 20], description="k of the random search baseline")
    splits: dict[StudyName, Split] = Field(min_length=1)
    models: list[str] = Field(min_length=1)


class ModelEntry(Strict):
    """A recommender with what is fixed and what is searched."""

    kind: str
    title: str
    parameters: dict[str, float | int | str | bool | None] = Field({}, description="held fixed")
    trials: int | None = Field(None, ge=0, description="overrides search.trials")


class Search(Strict):
    """Optuna's hyper-parameter search."""

    trials: int = Field(6, ge=0, le=100000)
    folds: int = Field(3, ge=2, le=20)
    max_rows: int = Field(3000, ge=100, description="rows that one trial may learn from")


class Settings(Strict):
    """Everything in ``config.yaml``."""

    seed: int = Field(2026, ge=0, lt=2**31)
    workloads: list[str] = Field(["kernels"], min_length=1, description="folders of workloads")
    gpus: dict[GpuName, Gpu] = Field(min_length=1)
    sweeps: dict[str, Sweep]
    models: dict[StudyName, ModelEntry] = Field(min_length=1)
    search: Search = Search()
    studies: dict[StudyName, Study] = Field(min_length=1)


class Experiment:
    """Settings with the specs they speak of: checked together, asked by the rules.

    Parameters
    ----------
    settings
        Typed settings.
    files
        Files that the settings were merged from, the last one strongest; for messages only.
    root
        Folder that relative paths start from.
    config
        What the settings were read from, if parts of it may come from no file; for messages only.

    Raises
    ------
    UserError
        At the first name or value that does not fit.
    """

    def __init__(
        self,
        settings: Settings,
        files: list[Path],
        root: Path,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = settings
        self._files = files
        self._config = config
        self.root = root
        for folder in settings.workloads:
            if not (root / folder).is_dir():
                self._fail("workloads", f"no folder {folder!r}")
        self.folders = find_workloads([root / folder for folder in settings.workloads])
        self.specs: dict[str, Spec] = {}
        self._check_studies()
        self._check_sweeps()

    def _fail(self, key: str, message: str) -> NoReturn:
        raise self.error(key, message)

    def error(self, key: str, message: str) -> UserError:
        """What is wrong with ``key``, said of the file that holds it."""
        return UserError(blamed(key, self._files, self._config), key, message)

    def _check_studies(self) -> None:
        for name, study in self.settings.studies.items():
            key = f"studies.{name}"
            self._load(study.workload, f"{key}.workload")
            for part in ("gpus", "models"):
                names = getattr(study, part) or []
                if twice := [each for each in names if names.count(each) > 1]:
                    self._fail(f"{key}.{part}", f"{twice[0]!r} is given twice")
            for gpu in study.gpus or []:
                if gpu not in self.settings.gpus:
                    self._fail(f"{key}.gpus", unknown("GPU", gpu, self.settings.gpus))
            for model in study.models:
                if model not in self.settings.models:
                    self._fail(f"{key}.models", unknown("model", model, self.settings.models))
            spec = self.specs[study.workload]
            self._check_columns(spec, study.candidates, f"{key}.candidates")
            self._check_splits(key, study, spec)

    def _check_columns(self, spec: Spec, chosen: Selection, key: str) -> None:
        """Insist that a choice of configurations names tunables with values that they have."""
        for column, values in chosen.items():
            if column not in spec.tunable_columns:
                self._fail(key, unknown("tunable", column, spec.tunable_columns))
            allowed = spec.values_of(column)
            for value in values:
                if value not in allowed:
                    self._fail(f"{key}.{column}", unknown("value", value, allowed))

    def _check_splits(self, key: str, study: Study, spec: Spec) -> None:
        for name, split in study.splits.items():
            if isinstance(split, TransferSplit):
                continue
            for part in ("train", "test"):
                for column, values in getattr(split, part).items():
                    where = f"{key}.splits.{name}.{part}"
                    if column not in spec.problem:
                        self._fail(where, unknown("problem parameter", column, spec.problem))
                    for value in values:
                        if complaint := spec.problem[column].check(value):
                            self._fail(f"{where}.{column}", complaint)

    def _check_sweeps(self) -> None:
        for workload in self.settings.sweeps:
            self._load(workload, f"sweeps.{workload}")
            blocks = self.settings.sweeps[workload].problems
            self._check_problems(workload, blocks, f"sweeps.{workload}.problems", True)
        for name, gpu in self.settings.gpus.items():
            for workload in gpu.problems:
                key = f"gpus.{name}.problems"
                self._load(workload, key)
                self._check_problems(workload, gpu.problems[workload], f"{key}.{workload}", False)
            if gpu.source == "live":
                for workload in self.workloads_of(name):
                    if workload not in self.settings.sweeps:
                        self._fail("sweeps", f"{workload} is missing, but {name} measures it live")

    def _check_problems(
        self, workload: str, blocks: list[Block], key: str, every_variant: bool
    ) -> None:
        spec = self.specs[workload]
        for block in blocks:
            self._check_block(workload, block, key)
        try:
            listed = problems(spec, blocks)
        except ValueError as error:
            self._fail(key, str(error))
        try:
            check_space(spec, listed, every_variant)
        except ValueError as error:
            where = self.folders[workload] / SPEC_FILE
            raise UserError(where, "", f"{error} (asked for by {key})") from error

    def _check_block(self, workload: str, block: Block, key: str) -> None:
        for name, values in block.items():
            if isinstance(values, dict) != (name == ONLY):
                kind = "tunables with their values" if name == ONLY else "a list of values"
                self._fail(f"{key}.{name}", f"must be {kind}")
        only = block.get(ONLY)
        if isinstance(only, dict):
            self._check_columns(self.specs[workload], only, f"{key}.{ONLY}")
            sweep = self.settings.sweeps.get(workload)
            if sweep is not None and sweep.strategy.kind != "exhaustive":
                message = f"goes with an exhaustive sweep, not with {sweep.strategy.kind}"
                self._fail(f"{key}.{ONLY}", message)

    def _load(self, workload: str, key: str) -> None:
        if workload not in self.folders:
            self._fail(key, unknown("workload", workload, self.folders))
        if workload not in self.specs:
            self.specs[workload] = load_spec(self.folders[workload])

    def gpus_of(self, study: str) -> list[str]:
        """GPUs of a study, in the order of the settings."""
        named = self.settings.studies[study].gpus
        return [gpu for gpu in self.settings.gpus if named is None or gpu in named]

    def workloads_of(self, gpu: str) -> list[str]:
        """Workloads that the studies need from a GPU, in the order of the studies."""
        wanted = [
            study.workload
            for study in self.settings.studies.values()
            if study.gpus is None or gpu in study.gpus
        ]
        return list(dict.fromkeys(wanted))

    def problems_of(self, gpu: str, workload: str) -> list[Problem]:
        """Problems that a live sweep measures, in order."""
        return problems(self.specs[workload], self.blocks_of(gpu, workload))

    def blocks_of(self, gpu: str, workload: str) -> list[Block]:
        """Blocks of problems that a live sweep measures, as the settings have them."""
        own = self.settings.gpus[gpu].problems.get(workload)
        return self.settings.sweeps[workload].problems if own is None else own


def load_experiment(config: Mapping[str, Any], files: list[Path], root: Path) -> Experiment:
    """Check merged settings and every file they came from.

    Parameters
    ----------
    config
        The merged mapping (Snakemake's ``config``).
    files
        Where it came from, the strongest last.
    root
        Folder of the Snakefile.

    Raises
    ------
    UserError
        One line: file, key, what is wrong, what is allowed.
    """
    for path in files:
        read_yaml(path)  # Snakemake merges silently; a key given twice must not pass.
    where = files[0] if files else Path("config.yaml")
    try:
        settings = validated(Settings, dict(config), where)
    except UserError as error:
        raise UserError(blamed(error.key, files, config), error.key, error.message) from error
    return Experiment(settings, files, root, config)


COMMAND_LINE = "--config"


def blamed(key: str, files: list[Path], config: Mapping[str, Any] | None = None) -> str:
    """The last of ``files`` that holds ``key`` (or as much of it as any of them does).

    With the merged ``config`` at hand: :data:`COMMAND_LINE` when no file holds what it holds.
    """
    parts = key.split(".") if key else []
    best, depth, held = files[0] if files else Path("config.yaml"), -1, None
    for path in files:
        found, node = _follow(read_yaml(path), parts)
        if found >= depth:
            best, depth, held = path, found, node
    found, node = _follow(config, parts)
    changed = found == depth and node != held and not isinstance(node, Mapping)
    if files and config is not None and (found > depth or changed):
        return COMMAND_LINE
    return str(best)


def _follow(node: Any, parts: list[str]) -> tuple[int, Any]:
    """How many ``parts`` of a dotted key lead into ``node``, and what is there.

    Names may have dots themselves (``h200.sm72``): the longest name that fits is taken.
    """
    if isinstance(node, list) and parts and parts[0].isdigit() and int(parts[0]) < len(node):
        found, inner = _follow(node[int(parts[0])], parts[1:])
        return found + 1, inner
    if isinstance(node, Mapping):
        names = {str(name): name for name in node}
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in names:
                found, inner = _follow(node[names[name]], parts[count:])
                return found + count, inner
    return 0, node
