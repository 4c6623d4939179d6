"""An experiment: settings that fit the workloads they name, checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from launchwise.base.errors import UserError, unknown
from launchwise.base.expressions import names_in
from launchwise.base.typed import read_yaml, validated
from launchwise.experiment.settings import Block, Selection, Settings, Study, TransferSplit
from launchwise.workloads.feasibility import check_space
from launchwise.workloads.space import ONLY, Problem, problems
from launchwise.workloads.spec import SPEC_FILE, Spec, find_workloads, load_spec


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
        self._listed: dict[str, list[Problem]] = {}
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
                if not self._is_measured(gpu):
                    message = f"{gpu} is described, nobody measured it: a study needs its sweep"
                    self._fail(f"{key}.gpus", f"{message}, take it out")
            for model in study.models:
                if model not in self.settings.models:
                    self._fail(f"{key}.models", unknown("model", model, self.settings.models))
            spec = self.specs[study.workload]
            self._check_columns(spec, study.candidates, f"{key}.candidates")
            for variant in study.candidates.get("variant", []):
                if not spec.variants[str(variant)].verified:
                    message = f"{variant!r} is not verified: it cannot be recommended"
                    self._fail(f"{key}.candidates.variant", message)
            self._check_constraints(spec, study.constraints, f"{key}.constraints")
            for name in study.counters:
                if name not in spec.tunable_columns:
                    self._fail(f"{key}.counters", unknown("tunable", name, spec.tunable_columns))
            self._check_splits(key, study, spec)
        if self.settings.gpus and not any(map(self._is_measured, self.settings.gpus)):
            self._fail("gpus", "all are described, and studies need one that is recorded or live")

    def _is_measured(self, gpu: str) -> bool:
        return self.settings.gpus[gpu].source != "described"

    def _check_constraints(self, spec: Spec, texts: list[str], key: str) -> None:
        """Insist that expressions stand on the problem and the configuration alone."""
        known = [*spec.problem_columns, *spec.tunable_columns, *spec.derived]
        for text in texts:
            try:
                strange = sorted(names_in(text) - set(known))
            except ValueError as error:
                self._fail(key, str(error))
            if strange:
                self._fail(key, f"{text!r}: {unknown('name', strange[0], known)}")

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
            parts = ("among",) if isinstance(split, TransferSplit) else ("train", "test")
            for part in parts:
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
        """GPUs of a study, in the order of the settings; none that is only described."""
        named = self.settings.studies[study].gpus
        return [
            gpu
            for gpu in self.settings.gpus
            if (named is None or gpu in named) and self._is_measured(gpu)
        ]

    def workloads_of(self, gpu: str) -> list[str]:
        """Workloads that the studies need from a GPU, in the order of the studies."""
        wanted = [
            study.workload
            for study in self.settings.studies.values()
            if self._is_measured(gpu) and (study.gpus is None or gpu in study.gpus)
        ]
        return list(dict.fromkeys(wanted))

    def problems_of(self, gpu: str, workload: str) -> list[Problem]:
        """Problems that a live sweep measures, in order."""
        blocks = self.blocks_of(gpu, workload)
        # Hundreds of GPUs may share one list of blocks.
        key = f"{workload} {blocks}"
        if key not in self._listed:
            self._listed[key] = problems(self.specs[workload], blocks)
        return list(self._listed[key])

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
