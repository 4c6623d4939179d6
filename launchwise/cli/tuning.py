"""What ``launchwise tune`` is asked, how it chooses what it measures, and the settings it writes.

Everything is measured, or what a search proposes, which starts from sweeps of other GPUs: the
project's own, and those that are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.literals import real
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import here_or_shipped, shipped
from launchwise.base.storage import write_text
from launchwise.base.typed import read_yaml, yaml_text
from launchwise.cli.check.signatures import check_signatures
from launchwise.cli.options import snakemake_line, workload_folder
from launchwise.cli.words import block_of
from launchwise.experiment.discovery import SWEEP_FILE, derived_sweep, find_studies
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import load_experiment
from launchwise.experiment.method import STATED_PERCENT, ProblemBlock
from launchwise.measuring.sweep import builds_of
from launchwise.workflow.plan import RECORD, check_version, record_version
from launchwise.workflow.sweeps import nominal_bandwidth_gbs, volume
from launchwise.workloads.declared.own_functions import check_own_functions
from launchwise.workloads.spec import Spec, load_spec

MOST_EVALUATIONS = 10_000  # Rows per problem of a search that ends when it is sure

LONGEST_S = 60.0  # Most that measuring everything may take, where nothing says how to search


@dataclass(frozen=True)
class Question:
    workload: str
    problem: Sequence[str]
    cores: int
    gpu: str = "local"
    device: str | None = None
    known: Sequence[Path] = ()
    evaluations: int | None = None
    minutes: float | None = None
    within: float | None = None
    every: bool = False
    folder: Path | None = None
    dry_run: bool = False


def percent(text: str | None) -> float | None:
    """A number of percent, such as ``1%`` or ``0.5``. Raises UserError when it is none between 0
    and 100."""
    if text is None:
        return None
    number = real(text.strip().removesuffix("%")) or 0.0
    if not 0 < number < 100:
        raise UserError("--within", "", f"{text!r} is no percentage above 0 and below 100")
    return number


def is_search_asked(asked: Question) -> bool:
    """Whether an option says how to search. Raises UserError when another one says that all
    configurations shall be measured."""
    options = ("--known", "--evaluations", "--minutes", "--within")
    given = (asked.known or None, asked.evaluations, asked.minutes, asked.within)
    names = [name for name, value in zip(options, given, strict=True) if value is not None]
    if names and asked.every:
        raise UserError("--all", "", f"measures every configuration: leave {names[0]} out")
    return bool(names)


def strategy_of(
    asked: Question, spec: Spec, blocks: Iterable[ProblemBlock], arch: str
) -> tuple[dict[str, Any], str]:
    """Strategy of a sweep as settings have it, empty where everything is measured; and why a search
    was chosen, where nobody asked for one. ``blocks``: problems as settings have them. ``arch``:
    architecture of the card, such as ``sm_90``; that of the slowest card where it is none."""
    if is_search_asked(asked):
        return _search(asked), ""
    if asked.every:
        return {}, ""
    try:
        found = volume(spec, blocks, None)
    except UserError:
        return _search(asked), "too many configurations to list"
    seconds = found.seconds(nominal_bandwidth_gbs(arch))
    if seconds <= LONGEST_S:
        return {}, ""
    words = f"all {found.rows} configurations would take about {seconds / 60:.0f} min"
    return _search(asked), words


def _search(asked: Question) -> dict[str, Any]:
    unlimited = asked.evaluations is None and asked.minutes is None
    within = STATED_PERCENT if unlimited and asked.within is None else asked.within
    budget = MOST_EVALUATIONS if unlimited else asked.evaluations
    limits = {"budget": budget, "minutes": asked.minutes, "stop_below_percent": within}
    return {"kind": "transfer", **{key: each for key, each in limits.items() if each is not None}}


OWN = {"kernels": "data/recorded", "data/public/workloads": "data/public/gpus"}
"""Folders of the project's workloads to those with their GPUs."""

LAYOUTS = ("{workload}.parquet", "*/{workload}.parquet", "results/sweeps/*/{workload}.parquet")
"""Where sweeps lie in a folder that is named: of a GPU, of several GPUs, of an earlier run."""


def known_sweeps(workload: Path, spec: Spec, gpu: str, named: Sequence[Path]) -> dict[str, Path]:
    """Name of each other GPU to its sweep. ``gpu``: GPU to be measured. ``named``: files and
    folders of the command line; their GPUs come first. Raises UserError when there is no sweep in
    one of them, or a sweep is of another space."""
    found: dict[str, Path] = {}
    for path in named:
        for sweep in _sweeps_in(path, spec.workload):
            name = re.sub(r"[^A-Za-z0-9_.]", "_", sweep.parent.name).lstrip(".") or "known"
            found.setdefault(f"{name}_known" if name == gpu else name, sweep)
    for sweep in found.values():
        _insist_on_space(sweep, spec)
    for sweep in _own(workload, spec.workload):
        if sweep.parent.name != gpu:
            found.setdefault(sweep.parent.name, sweep)
    return found


def _sweeps_in(path: Path, workload: str) -> list[Path]:
    if path.is_file() and path.name == f"{workload}.parquet":
        return [path.resolve()]
    patterns = [pattern.format(workload=workload) for pattern in LAYOUTS]
    found = [each for pattern in patterns for each in sorted(path.glob(pattern))]
    if found:
        return [each.resolve() for each in found]
    if path.is_file():
        message = f"is not named {workload}.parquet, as a sweep of {workload} is"
        message += "; files of other tools come in by launchwise import"
        raise UserError(path, "", message)
    wanted = ", ".join(pattern.replace("*", "GPU") for pattern in patterns)
    raise UserError(path, "", f"holds no sweep of {workload}; expected one of: {wanted}")


def _own(workload: Path, name: str) -> Iterator[Path]:
    for folder, place in OWN.items():
        if workload.parent == shipped(folder):
            yield from sorted(here_or_shipped(place).resolve().glob(f"*/{name}.parquet"))


def _insist_on_space(sweep: Path, spec: Spec) -> None:
    """Check that a table has what its problems and variants need; what is newer it may lack."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = set(pq.read_schema(sweep).names)
        names = ["variant"] if "variant" in columns else []
        found = pq.read_table(sweep, columns=names)
        measured = {name for each in found.columns for name in each.unique().to_pylist()}
    except (pa.ArrowException, OSError) as error:
        raise UserError(sweep, "", "is no Parquet file") from error
    own = [each for name, each in spec.variants.items() if name in measured]
    needed = ["variant", *(name for each in own for name in each.tunables)]
    for kind, names in (("tunable", needed), ("problem parameter", spec.problem_columns)):
        if missing := [name for name in dict.fromkeys(names) if name not in columns]:
            message = f"is of another space: {kind} {', '.join(map(repr, missing))} is missing"
            raise UserError(sweep, "", message)


SETTINGS = "config.yaml"
HEADER = "# Written by `launchwise tune`, which writes it anew each time.\n"
SEED = 2026


@dataclass(frozen=True)
class Project:
    """A folder with settings for one workload on one GPU."""

    folder: Path  # where Snakemake runs
    spec: Spec
    gpu: str
    experiment: Experiment  # its settings, checked
    known: list[str]  # other GPUs whose rows a search starts from
    why: str  # why a search was chosen though nobody asked for one; empty otherwise

    @property
    def answers(self) -> str:
        return f"results/answers/{self.gpu}/{self.spec.workload}.json"

    @property
    def pages(self) -> list[Path]:
        """Pages for people: that of the answers, and the report where there is a study."""
        report = [self.folder / "results" / "report" / "index.html"]
        own = self.folder / self.answers.replace(".json", ".html")
        return [own, *(report if self.experiment.studies else [])]


def prepared(asked: Question, arch: str, refusal: UserError | None = None) -> Project:
    """Write the settings of a question. ``arch``: architecture of this machine's card (see
    :func:`strategy_of`). ``refusal``: raised before anything is written, once the question has no
    mistake. Raises UserError when workload or problem do not exist, or the folder holds settings of
    somebody else."""
    workload = workload_folder(asked.workload)
    spec = load_spec(workload)
    check_signatures(workload, spec)
    check_own_functions(workload, spec)
    folder = asked.folder or Path("tuned", spec.workload)
    check_version(folder / RECORD)
    settings = _settings(workload, spec, asked)
    path = folder / SETTINGS
    if path.is_file() and not path.read_text(encoding="utf-8").startswith(HEADER):
        message = "was not written by launchwise tune: name another place with --folder"
        raise UserError(path, "", message)
    experiment = load_experiment(settings, [], folder.resolve())
    blocks = experiment.blocks_of(asked.gpu, spec.workload)
    strategy, why = strategy_of(asked, spec, blocks, arch)
    known: dict[str, Path] = {}
    if strategy:
        known = known_sweeps(workload, spec, asked.gpu, asked.known)
        if known:
            strategy["known"] = {name: str(each) for name, each in known.items()}
        settings.setdefault("sweeps", {}).setdefault(spec.workload, {})["strategy"] = strategy
        # It compiles what it proposes, not the whole space beforehand.
        settings["gpus"][asked.gpu]["compile"] = "alongside"
        experiment = load_experiment(settings, [], folder.resolve())
    if refusal is not None:
        raise refusal
    text = yaml_text(settings)
    folder.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != HEADER + text:
        write_text(path, HEADER + text)
    record_version(folder / RECORD)
    return Project(folder, spec, asked.gpu, experiment, [*known], why)


def _settings(workload: Path, spec: Spec, asked: Question) -> dict[str, Any]:
    # Shards are for clusters: here they would be measured one after the other.
    gpu: dict[str, Any] = {"source": "live", "workloads": [spec.workload], "shards": 1}
    if asked.device is not None:
        gpu["device"] = asked.device
    own = find_studies({spec.workload: workload})
    sweep: dict[str, Any] = {}
    if asked.problem:
        sweep["problems"] = [block_of(spec, asked.problem)]
    elif not (workload / SWEEP_FILE).is_file():
        sweep["problems"] = _derived_problems(workload, spec)
    if not _asks_for_energy(workload):
        # No answer needs energies, which take longer than a small sweep.
        sweep["energy_ms"] = 0
    return {
        "seed": SEED,
        "workloads": [str(workload)],
        "gpus": {asked.gpu: gpu},
        # Its own studies ask for more GPUs and other problems.
        **({"studies": dict.fromkeys(own)} if own else {}),
        **({"sweeps": {spec.workload: sweep}} if sweep else {}),
    }


def _asks_for_energy(workload: Path) -> bool:
    path = workload / SWEEP_FILE
    raw = read_yaml(path) if path.is_file() else None
    return isinstance(raw, Mapping) and "energy_ms" in raw


def _derived_problems(workload: Path, spec: Spec) -> list[dict[str, Any]]:
    try:
        return [dict(block) for block in derived_sweep(spec).problems]
    except ValueError as error:
        message = f"{error}, or name problems on the command line"
        raise UserError(workload / SPEC_FILE, "", message) from error


def extent(project: Project, arch: str) -> str:
    """What a sweep measures, in words; its time is that on the card. ``arch``: see
    :func:`strategy_of`."""
    known, spec = project.experiment, project.spec
    blocks, method = known.blocks_of(project.gpu, spec.workload), known.sweeps[spec.workload]
    problems = known.problems_of(project.gpu, spec.workload)
    found = volume(spec, blocks, method.strategy.budget)
    seconds = found.seconds(nominal_bandwidth_gbs(arch))
    rows = f"rows: {'up to ' * bool(method.strategy.budget)}{found.rows}, problems: {len(problems)}"
    builds: int | str = "what the search proposes"
    if not method.strategy.searches:
        builds = len(builds_of(known.folders[spec.workload], spec, problems, blocks, method))
    return f"{rows}, builds: {builds}, time on the card: about {seconds:.2g} s"


def line_of(project: Project, asked: Question, *, alone: bool = False) -> list[str]:
    """The line that makes everything, for a shell in the current folder; or the answers alone."""
    every = project.experiment.studies and not alone
    options = ["--directory", str(project.folder), *(["--dry-run"] if asked.dry_run else [])]
    return snakemake_line([project.answers, *(["all"] if every else [])], asked.cores, *options)
