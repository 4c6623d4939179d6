"""What commands share: options and what they name (settings, a workload), runs of Snakemake."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.base.places import ROOT, shipped
from launchwise.base.storage import user_cache, why_not_written

Workload = Annotated[
    str, typer.Argument(help="Folder with a spec.yaml, or a workload of kernels/.")
]
Cores = Annotated[
    int | None, typer.Option(min=1, help="Cores for compilation.", show_default="all")
]
Study = Annotated[str, typer.Argument(help="A study of the settings.")]
Load = Annotated[
    str | None,
    typer.Option(metavar="LOAD", help="A load, or its file.", show_default="that of the study"),
]
"""Option ``--load``."""
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
ConfigFiles = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        show_default="config.yaml",
        help="Settings file; repeated, each overrides those before it.",
    ),
]
"""Option ``--configfile``."""


def settings_files(given: Sequence[Path] | None) -> list[Path]:
    """Files of ``--configfile``, or the one that is read without it. Raises UserError when neither
    is there."""
    usual = Path("config.yaml")
    if not given and not usual.is_file():
        for path in sorted(Path("kernels").glob("*/settings.yaml")):
            raise UserError(usual, "", f"is missing: name settings, such as --configfile {path}")
        message = "is missing: run this in the folder of your settings, name them by --configfile,"
        raise UserError(usual, "", f"{message} or begin one with launchwise init DIR")
    return list(given or [usual])


def workload_folder(named: str) -> Path:
    """Folder of a workload: a path that holds ``spec.yaml``, or a name below ``kernels/``. That is
    the folder here, then launchwise's own. Raises UserError when there is none."""
    path = Path(named)
    if path.name == SPEC_FILE:
        path = path.parent
    for folder in (path, Path("kernels", named), shipped("kernels") / named):
        if (folder / SPEC_FILE).is_file():
            return folder.resolve()
    message = f"is neither a folder with {SPEC_FILE} nor a workload of kernels/"
    if path.is_file():
        message = f"is no workload: launchwise new {path.stem} --from {named} makes one"
    raise UserError(named, "", message)


@contextlib.contextmanager
def _cache() -> Iterator[dict[str, str]]:
    """Variables by which Snakemake, which does not start without a cache, finds a folder for it."""
    usual = user_cache().parent
    with contextlib.suppress(OSError):
        usual.mkdir(parents=True, exist_ok=True)
    if why_not_written(usual) is None:
        yield {}
    else:
        with tempfile.TemporaryDirectory(prefix="launchwise-") as folder:
            yield {"XDG_CACHE_HOME": folder}


def snakemake_line(
    targets: Iterable[str | Path], cores: int, *options: str, files: Sequence[Path] = ()
) -> list[str]:
    """Words that make targets with launchwise's workflow; ``files`` are settings."""
    settings = ["--configfile", *map(str, files)] if files else []
    words = ["snakemake", "--snakefile", str(shipped("Snakefile")), *options, *settings]
    quiet = ["--quiet", "rules", "progress", "host"]
    return [*words, "--cores", str(cores), *quiet, "--", *map(str, targets)]


def print_line(line: Sequence[str]) -> None:
    """Print a command as a shell reads it, on standard error."""
    print(shlex.join(line), file=sys.stderr, flush=True)


START = (
    "import sys; say = sys.excepthook; sys.excepthook = lambda kind, *rest: "
    "kind is KeyboardInterrupt or say(kind, *rest); from snakemake.cli import main; main()"
)
"""Runs Snakemake, without a traceback where Ctrl-C comes before it is loaded."""


def run_snakemake(line: Sequence[str], say: bool = True) -> None:
    """Print a line that begins with ``snakemake``, unless that was done, and run it. Raises
    SystemExit with Snakemake's exit code when it fails; it has said why."""
    if say:
        print_line(line)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    with _cache() as cache:
        environment = {**os.environ, **cache, "PYTHONPATH": path}
        # What the command answers goes alone to standard output.
        made = subprocess.Popen([sys.executable, "-c", START, *line[1:]], env=environment, stdout=2)
        try:
            code = made.wait()
        except KeyboardInterrupt:
            # Snakemake hears of Ctrl-C, too: it ends its jobs and, once it is loaded, says so.
            if (code := made.wait()) < 0:
                raise
    if code:
        raise SystemExit(code)
