"""Functions for the Snakefile: settings, what rules and scripts depend on, folders of a run."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from packaging.version import InvalidVersion, Version

import launchwise
from launchwise.base.errors import UserError
from launchwise.base.places import PACKAGE, SHIPPED, library_files, shipped
from launchwise.base.storage import (
    FULL,
    digest,
    read_json_object,
    user_cache,
    why_not_written,
    write_json,
)
from launchwise.base.typed import read_yaml
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.published import RUN_TIMES
from launchwise.learning.recommenders import source
from launchwise.measuring.cards import arch_here, cards
from launchwise.measuring.source_states import deciding_files
from launchwise.workloads.space import Problem


def fitted_model(method: Mapping[str, Any]) -> str:
    """Folder that a sweep's guesses come from, as a rule makes it."""
    return f"{str(method['strategy']['guesses']['model']).rstrip('/')}/final.json"


def stop(error: UserError) -> NoReturn:
    """Print one line and end the process."""
    where = _short(Path(error.where)) if Path(error.where).is_absolute() else error.where
    print(f"launchwise: {UserError(where, error.key, error.message)}", file=sys.stderr)
    raise SystemExit(1)


def settings_of(path: str | Path, overlays: Collection[str | Path]) -> list[Path]:
    """Files of the settings, the last one strongest (see :func:`start`)."""
    files = [Path(path)] if Path(path).exists() else []
    return files + [_short(Path(name)) for name in overlays]


def settings_to_name(path: str, overlays: Collection[str | Path]) -> list[str]:
    """Files that commands must name: none for ``config.yaml`` alone, which is their default."""
    names = [str(each) for each in settings_of(path, overlays)]
    found = list(dict.fromkeys(reversed(names)))[::-1]  # Each once, where it decides
    return [] if found == ["config.yaml"] else found


def _short(path: Path) -> Path:
    path = path.resolve()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def architectures(experiment: Experiment) -> dict[str, str]:
    """Architecture of every live GPU: as written in its entry, or read off this machine's card."""
    found: dict[str, str] = {}
    for name, gpu in experiment.settings.gpus.items():
        if gpu.source == "live":
            try:
                found[name] = gpu.arch or arch_here(gpu.device, cards())
            except ValueError as error:
                stop(experiment.error(f"gpus.{name}", str(error)))
    return found


def project_file(path: str) -> str:
    """A file of the project, given from its root, as :func:`from_here` gives it."""
    return from_here(shipped(path))


def from_here(path: Path) -> str:
    """A path for a rule: short where Snakemake runs in the project, absolute in other folders."""
    if Path.cwd() != SHIPPED:
        return str(path.resolve())
    return str(path.relative_to(SHIPPED) if path.is_relative_to(SHIPPED) else path)


def own_rules(experiment: Experiment) -> list[str]:
    files = (folder / "rules.smk" for folder in experiment.folders.values())
    return [str(path) for path in files if path.is_file()]


@cache
def sources(folder: str) -> list[str]:
    """Files that determine what the kernels of a workload compute and how they run."""
    return sorted(map(from_here, deciding_files(SHIPPED / folder)))


def problems_for(
    experiment: Experiment, archs: Mapping[str, str], workload: str, arch: str
) -> list[Problem]:
    """Problems that any live GPU of an architecture measures of a workload."""
    found: dict[str, Problem] = {}
    for gpu, its_arch in archs.items():
        if its_arch == arch and workload in experiment.workloads_of(gpu):
            found |= {str(problem): problem for problem in experiment.problems_of(gpu, workload)}
    return list(found.values())


FLOP_PER_BYTE = 4.0
"""FLOP that take as long as one byte, for the order of problems: between 1, which fits sweeps of a
stencil on an H200, and 8 or more, which GPUs can reach."""


def in_order(experiment: Experiment, gpu: str, workload: str, shards: int) -> list[Problem]:
    """Problems of a sweep in the order in which they are measured. One shard: the order of the
    settings. Several shards: the longest first, so that no shard ends with a long one."""
    spec = experiment.specs[workload]
    problems = experiment.problems_of(gpu, workload)
    if shards == 1:
        return problems

    def weight(problem: Problem) -> float:
        flop = float(spec.value(spec.work.flop, problem))
        return float(spec.value(spec.work.bytes, problem)) + flop / FLOP_PER_BYTE

    return sorted(problems, key=weight, reverse=True)


def pattern(names: Any) -> str:
    """Regular expression that matches exactly ``names`` (nothing when there are none)."""
    return "|".join(re.escape(str(name)) for name in names) or "(?!)"


@cache
def model_source(kind: str, folder: str) -> str:
    """Source file of a kind of model; an edit of what it imports retrains this kind only."""
    return from_here(source(kind, SHIPPED / folder))


def section_sources(folder: str) -> list[str]:
    """Source files of a study's section for the report."""
    return sorted(map(from_here, (SHIPPED / folder).glob("*.py")))


def published_tables(folder: str) -> list[str]:
    """Tables that a study's section reads: published ones, elements of the paper, recorded runs."""
    patterns = ("published/*.csv", "published/*.yaml", "recorded/*.json")
    found = (path for pattern in patterns for path in (SHIPPED / folder).glob(pattern))
    return sorted(map(from_here, found))


def run_time_tables(folder: str) -> list[str]:
    """Files that a study's published run times are read from; none where it has no such times."""
    if not (SHIPPED / folder / RUN_TIMES).is_file():
        return []
    unread = "elements.yaml"
    return [path for path in published_tables(folder) if Path(path).name != unread]


class Code:
    def __init__(self) -> None:
        self._digests: dict[frozenset[str], str] = {}

    def __call__(self, *start: str) -> str:
        """Digest of some files and of all library files that they import, directly or indirectly.
        Names and places of the files do not count: the digest is the same in every folder, and in a
        wheel. Nor does the file with launchwise's version, which no result follows from. ``start``:
        Python files: absolute, or from the root of the project, such as ``scripts/clean.py``.
        Raises FileNotFoundError when one of them is missing."""
        key = frozenset(start)
        if key not in self._digests:
            named = [shipped(path) for path in key]
            files = {*named, *library_files(named)} - {shipped(f"{PACKAGE}/__init__.py")}
            self._digests[key] = digest(sorted(map(_content, files)))
        return self._digests[key]


@cache
def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


_SPEC_TEXTS = ("title", "description")
_PART_TEXTS = {
    "problem": ("description",),
    "tunables": ("description",),
    "arguments": ("description",),
    "variants": ("title",),
}
"""Section of a spec to the texts of each of its entries."""


def spec_digest(path: Path) -> str:
    """Digest of what a ``spec.yaml`` says, without titles, descriptions, comments and layout. The
    order of its keys counts: candidates are listed in it. Raises UserError when the file is no
    YAML."""
    content = read_yaml(path)
    if isinstance(content, Mapping):
        content = {key: value for key, value in content.items() if key not in _SPEC_TEXTS}
        for part, texts in _PART_TEXTS.items():
            if isinstance(content.get(part), Mapping):
                content[part] = {
                    name: _without(entry, texts) for name, entry in content[part].items()
                }
    text = json.dumps(content, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without(entry: Any, texts: tuple[str, ...]) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {key: value for key, value in entry.items() if key not in texts}


RECORD = Path("results/launchwise.json")
"""In the folder that Snakemake runs in; written where a run begins."""

KEY = "version"


def check_version(path: Path = RECORD) -> None:
    """Insist that no newer version made the results; those of an older one are brought up to date.
    Raises UserError when a newer version made them: this one may misread what it does not know."""
    _insist_on_folder(path.parent)
    if not path.is_file():
        return
    made = str(read_json_object(path, KEY)[KEY])
    try:
        theirs = Version(made)
    except InvalidVersion as error:
        raise UserError(path, KEY, f"{made!r} is no version: remove the file") from error
    own = launchwise.__version__
    if theirs > Version(own):
        message = (
            f"{made} made these results, this is {own}: install launchwise {made} or newer, or "
            "name another folder with --directory"
        )
        raise UserError(path, KEY, message)


def _insist_on_folder(path: Path) -> None:
    if path.is_symlink() and not path.exists():
        message = f"is a link to {path.readlink()}, which is missing: make that folder first"
        raise UserError(path, "", message)
    if path.exists() and not path.is_dir():
        raise UserError(path, "", "is no folder: move it away, results go there")


def record_version(path: Path = RECORD) -> None:
    """Note that this version writes results here; a stage says where nothing can be written."""
    with contextlib.suppress(UserError):
        if not path.is_file() or read_json_object(path, KEY)[KEY] != launchwise.__version__:
            write_json(path, {KEY: launchwise.__version__})


def check_temporary_folder() -> None:
    """Insist that ``TMPDIR`` is not full: Snakemake's scheduler writes there what it solves. Of one
    that is missing or may not be written to, everybody takes ``/tmp`` instead. Raises UserError
    when it is."""
    named = os.environ.get("TMPDIR")
    refused = why_not_written(Path(named)) if named else None
    if refused is not None and refused.errno in FULL:
        message = f"cannot be written: {refused.strerror}: free space, or set another TMPDIR"
        raise UserError(f"TMPDIR={named}", "", message)


def is_one_word(path: str | Path) -> bool:
    """Whether a shell takes a path as one word without quotes."""
    return shlex.quote(str(path)) == str(path)


def name_in_one_word() -> None:
    """Let ``sys.executable`` be a path without spaces: through a link to this environment. The link
    lies in the user's cache, which nodes of a cluster share, or else in a temporary folder of this
    process. Where neither can be had, the path stays."""
    if is_one_word(sys.executable):
        return
    # One folder above that of the interpreter: there Python looks for its packages by the path
    # that it is called by.
    python = Path(sys.executable).absolute()
    environment = python.parents[1]
    link = user_cache() / "environments" / digest(str(environment))
    if not is_one_word(link) or not _linked(link, environment):
        folder = tempfile.TemporaryDirectory(prefix="launchwise-")
        atexit.register(folder.cleanup)
        link = Path(folder.name, "environment")
        if not is_one_word(link) or not _linked(link, environment):
            return
    sys.executable = str(link / python.relative_to(environment))


def _linked(link: Path, environment: Path) -> bool:
    with contextlib.suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(environment)
    with contextlib.suppress(OSError):
        return os.readlink(link) == str(environment)
    return False
