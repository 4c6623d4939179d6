"""What the Snakefile asks the library: settings, and the files that a script stands on."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from launchwise.cards import cards
from launchwise.compile import SOURCES
from launchwise.errors import UserError
from launchwise.settings import Experiment, Settings, load_experiment
from launchwise.space import Problem, cut

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "launchwise"


def start(config: Mapping[str, Any], files: list[str]) -> Experiment:
    """Check the settings before any rule is made; stop with one line when something is wrong."""
    paths = [_short(Path(name)) for name in files] or [Path("config.yaml")]
    try:
        return load_experiment(config, paths, ROOT)
    except UserError as error:
        stop(error)


def stop(error: UserError) -> NoReturn:
    """Print one line and end the process."""
    print(f"launchwise: {error}", file=sys.stderr)
    raise SystemExit(1)


def _short(path: Path) -> Path:
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def architectures(settings: Settings) -> dict[str, str]:
    """Architecture of every live GPU: as written in its entry, or read off this machine's card."""
    found: dict[str, str] = {}
    for name, gpu in settings.gpus.items():
        if gpu.source == "live":
            found[name] = gpu.arch or _arch_here(name, gpu.device)
    return found


def _arch_here(name: str, device: str | None) -> str:
    present = [card for card in cards() if device is None or device in card.device_name]
    kinds = sorted({(card.arch, card.device_name) for card in present})
    if len(kinds) == 1:
        return kinds[0][0]
    if not kinds:
        message = "source is live, but this machine has no such NVIDIA GPU; give its arch to"
        message += " measure on another machine, or take the entry out"
    else:
        message = f"this machine has several kinds of GPU ({kinds}): name one by device"
    stop(UserError("config.yaml", f"gpus.{name}", message))


def folders(experiment: Experiment) -> dict[str, str]:
    """Folder of every workload, relative to the project where it lies inside."""
    return {name: str(_inside(folder)) for name, folder in experiment.folders.items()}


def _inside(path: Path) -> Path:
    """A path as seen from the project, where it lies inside."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def sources(folder: str) -> list[str]:
    """Files of a workload that its kernels are made from."""
    found = [path for glob in SOURCES for path in (ROOT / folder).glob(glob)]
    return sorted(str(_inside(path)) for path in found)


def problems_for(
    experiment: Experiment, archs: Mapping[str, str], workload: str, arch: str
) -> list[Problem]:
    """Problems that any live GPU of an architecture measures of a workload."""
    found: dict[str, Problem] = {}
    for gpu, its_arch in archs.items():
        if its_arch == arch and workload in experiment.workloads_of(gpu):
            found |= {str(problem): problem for problem in experiment.problems_of(gpu, workload)}
    return list(found.values())


def shard_of(experiment: Experiment, gpu: str, workload: str, shard: str) -> list[Problem]:
    """Problems of one shard, numbered from 1; shards cost about the same."""
    spec = experiment.specs[workload]
    problems = experiment.problems_of(gpu, workload)
    weights = [float(spec.value(spec.work.bytes, problem)) for problem in problems]
    return cut(problems, weights, experiment.settings.gpus[gpu].shards)[int(shard) - 1]


def pattern(names: Any) -> str:
    """Regular expression that matches exactly ``names`` (nothing when there are none)."""
    return "|".join(re.escape(str(name)) for name in names) or "(?!)"


@cache
def code(script: str) -> list[str]:
    """Library files that a script stands on, found by following its imports.

    Snakemake sees an edited script and not an edited import, so every rule lists these as inputs.

    Parameters
    ----------
    script
        Path from the root of the project, such as ``scripts/clean.py``.
    """
    found: set[Path] = set()
    queue = [ROOT / script]
    while queue:
        path = queue.pop()
        for module in _imports(path):
            for file in _files_of(module):
                if file not in found:
                    found.add(file)
                    queue.append(file)
    return sorted(str(path.relative_to(ROOT)) for path in found)


@cache
def _imports(path: Path) -> frozenset[str]:
    """Names of this package that a file imports anywhere, functions included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            # `from package import name`: the name may be a module of its own.
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(name for name in names if name.split(".")[0] == PACKAGE)


def _files_of(module: str) -> list[Path]:
    """The file of a module and the ``__init__`` of every package above it."""
    parts = module.split(".")
    files = [ROOT.joinpath(*parts[:depth], "__init__.py") for depth in range(1, len(parts) + 1)]
    files.append(ROOT.joinpath(*parts).with_suffix(".py"))
    return [path for path in files if path.is_file()]
