"""Names of files and workloads, paths that a file names, names in Python's syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from launchwise.base.errors import LONGEST_NAME, UserError

SPEC_FILE = "spec.yaml"  # Specification of a workload, in its folder
WORKLOAD = r"^[a-z][a-z0-9_]*$"  # Pattern of the names of workloads
GPU = r"^[A-Za-z0-9_][A-Za-z0-9_.]*$"  # Pattern of the names of GPUs, which are folders of results


def assigned(values: Mapping[str, object]) -> str:
    """Names with their values, such as ``n=64, dtype=float32``."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def named_values(
    words: Iterable[str],
    command: str,
    flag: str = "",
    parted: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> dict[str, str]:
    """Words ``NAME=VALUE`` of a command as a mapping. ``flag``: what the words belong to, for the
    message; the word itself when left out. ``parted``: parts a word at an equals sign; the last one
    where names are paths. Raises UserError when a word has no equals sign, no name or no value, or
    a name is given twice."""
    found: dict[str, str] = {}
    for word in words:
        name, _, value = (part.strip() for part in parted(word, "="))
        if not name or not value:
            raise UserError(command, flag or word, f"must be NAME=VALUE (got {word!r})")
        if name in found:
            raise UserError(command, flag or word, f"{name} is given twice")
        found[name] = value
    return found


def inside(folder: Path, name: str, where: str | Path, key: str) -> Path:
    """The file that data name, in the folder that the data lie in.

    Data are passed on: what stands in them leads nowhere else, through links neither. Paths that
    the user types, on the command line or in the settings, are not checked by this.

    ``folder``: of the workload, the study or the import. ``name``: relative to it, as the data have
    it. ``where``, ``key``: file and key that name it, for the message. Raises UserError when it is
    absolute, leads out of the folder, or holds what no source file can name.
    """
    path = folder / name
    if not name.isprintable() or set(name) & {'"', "\\"} or not name.strip():
        raise UserError(where, key, f"{name!r} is no name of a file")
    try:
        whole, top = path.resolve(), folder.resolve()
    except (OSError, RuntimeError) as error:
        raise UserError(where, key, f"{name!r} cannot be followed: {error}") from error
    if Path(name).is_absolute() or ".." in Path(name).parts or not whole.is_relative_to(top):
        message = f"{name!r} leads out of {folder}: name a file inside, as it may be passed on"
        raise UserError(where, key, message)
    return path


def beside(folder: Path, name: str) -> Path:
    """A file of a folder with a name of ours, which may be missing (:func:`inside`)."""
    return inside(folder, name, folder / name, "")


def check_folder_name(folder: Path) -> None:
    """Insist that a folder's name is one that a workload may have. Raises UserError when it is not,
    with a name near to it."""
    name = folder.name
    if len(name) > LONGEST_NAME:
        message = f"names the workload: is longer than {LONGEST_NAME} characters"
        raise UserError(folder, "", message)
    if not re.fullmatch(WORKLOAD, name):
        near = re.sub(r"[^a-z0-9_]", "_", name.lower()).lstrip("0123456789_") or "kernel"
        message = "names the workload: lower-case letters, digits and _, a letter first"
        raise UserError(folder, "", f"{message}; such as {near}")


def last_name(node: ast.AST) -> str:
    """``jit`` of ``triton.jit``, ``jit`` and ``triton.jit(...)``."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Constant):
        return str(node.value).rpartition(".")[2]
    return getattr(node, "attr", getattr(node, "id", ""))
