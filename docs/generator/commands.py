"""The reference page of the command ``launchwise``, from the Typer app."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from docs.generator.markdown import escaped, page_head, table
from launchwise.cli.app import NAME, app


def command_page() -> str:
    """Page of the command ``launchwise``."""
    about = (
        f"`{NAME}` lies in `.venv/bin`; `python -m {NAME}` is the same. What is a file of the "
        "pipeline is a [target of Snakemake](command_line.md#snakemake) instead. A mistake is one "
        f"line on stderr, `{NAME}: file: key: what`, and exit code 2."
    )
    return "\n".join([*page_head(NAME, about), *_command_sections()])


def _command_sections() -> list[str]:
    """Markdown lines: a section per command, in the order of ``launchwise --help``."""
    group: Any = get_command(app)
    lines = ["## Options without a command", "", *_parameters(group)]
    for name, command in group.commands.items():
        usage = " ".join([NAME, name, *_usage(command)])
        about = [" ".join(part.split()) for part in str(command.help).split("\n\n")]
        lines += [f"## {NAME} {name}", "", "```text", usage, "```", ""]
        lines += [line for part in about for line in (escaped(part), "")]
        lines += _parameters(command)
    return lines


def _usage(command: Any) -> list[str]:
    """Words after the command: required ones, then the rest in brackets."""
    words = []
    for parameter in command.params:
        word = _shown(parameter)
        words.append(word if parameter.required else f"[{word}]")
    return words


def _shown(parameter: Any) -> str:
    """``--top N``, ``--json``, ``STUDY``."""
    value = str(parameter.metavar or parameter.name.strip("_").upper())
    if parameter.param_type_name == "argument":
        return value
    return str(parameter.opts[0]) if parameter.is_flag else f"{parameter.opts[0]} {value}"


def _described(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    words = get_args(kind) if get_origin(kind) is Literal else ()
    listed = ", ".join(f"`{word}`" for word in words)
    return escaped(f"{parameter.help or ''}{f' One of {listed}.' if listed else ''}")


def _parameters(command: Any) -> list[str]:
    rows = [
        (f"`{_shown(one)}`", _default(one), _described(one))
        for one in command.params
        if not getattr(one, "hidden", False)
    ]
    return [*table(("argument or option", "default", "description"), rows), ""]


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        shown = parameter.show_default
        return shown if " " in shown else f"`{shown}`"
    if getattr(parameter, "is_flag", False) or parameter.default is None:
        return ""
    return f"`{parameter.default}`"
