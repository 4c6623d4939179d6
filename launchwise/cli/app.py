"""The command ``launchwise``: its commands, and one line per mistake of the user."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Annotated, Any, TextIO

import typer

import launchwise
from launchwise.base.errors import UserError, out_of
from launchwise.base.literals import visible_lines
from launchwise.cli import STOPPED, stopped
from launchwise.cli.answer_commands import export, load, plan, predict, recommend, worth
from launchwise.cli.kernel_commands import check, recheck, tune
from launchwise.cli.sweep_commands import (
    compare,
    data,
    export_sweep,
    import_,
    import_shipped,
    init,
    new,
)

NAME = "launchwise"
MISTAKE = 2  # Exit code for a mistake of the user, that of a wrong option included

# Plain help and plain tracebacks: those of rich take half of the start-up time.
app = typer.Typer(name=NAME, rich_markup_mode=None, pretty_exceptions_enable=False)
COMMANDS = (
    *(check, compare, data, export, export_sweep, import_, import_shipped, init, load, new),
    *(plan, predict, recheck, recommend, tune, worth),
)
for command in COMMANDS:
    app.command(command.__name__.strip("_").replace("_", "-"))(command)


def _print_version(context: typer.Context, wanted: bool) -> None:
    if not wanted:
        return
    if context.params.get("as_json"):
        import json

        from launchwise.base.places import IN_CLONE, SHIPPED, commit, versions

        facts = {"commit": commit(), "files": str(SHIPPED), "in_clone": IN_CLONE}
        print(json.dumps({"version": launchwise.__version__, **facts, "versions": versions()}))
    else:
        print(f"{NAME} {launchwise.__version__}")
    raise typer.Exit


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    as_json: Annotated[
        bool,
        typer.Option("--json", is_eager=True, help="With --version: as JSON, with all versions."),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tune the launch parameters of CUDA kernels.

    Files are Snakemake targets, not commands: sweeps, models, the report.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


class _Plain:
    """A stream on which texts of files steer no terminal, whatever a command prints."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(visible_lines(text).replace("\r", "\\x0d"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. ``arguments``: words after ``launchwise``; those of the process when left out.
    Returns the exit code: 0, or :data:`MISTAKE` after one line on stderr."""
    out: Any = _Plain(sys.stdout)
    err: Any = _Plain(sys.stderr)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = app(args=arguments, prog_name=NAME, standalone_mode=False)
        if code == STOPPED:
            return stopped()
    except UserError as error:
        return _complain(str(error))
    except (MemoryError, RecursionError) as error:
        return _complain(out_of(error))
    except RuntimeError as error:
        # Python before 3.13 says so of a link that leads to itself.
        if not str(error).startswith("Symlink loop"):
            raise
        return _complain(str(error))
    except OSError as error:
        # A path that no file can have, a full disk, or no folder for temporary files.
        where = str(error.filename or "")
        return _complain(str(UserError(where, "", error.strerror or str(error))))
    except typer.TyperException as error:
        return _complain(_usage(error))
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    print(f"{NAME}: {message}", file=sys.stderr)
    return MISTAKE


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else NAME
    command = path.removeprefix(NAME).strip()
    message = " ".join(error.format_message().split()).removesuffix(".")
    message = message.replace(": Value error, ", ": ")
    return f"{f'{command}: ' if command else ''}{message} (see {path} --help)"
