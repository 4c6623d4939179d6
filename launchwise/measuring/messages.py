"""What nvcc says against a source, in the words of its author."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from launchwise.measuring.symbols import demangled

_ERROR = re.compile(
    r"^(?P<file>[^\n]+?)(?:\((?P<line>\d+)\)|:(?P<other>\d+)(?::\d+)?): *"
    r"(?:catastrophic |fatal )?error(?: #[\w-]+)?: *(?P<text>[^\n]*)$",
    re.MULTILINE,
)
_MORE = re.compile(r" {8,}(\S.*)")
"""Lines of nvcc that go on with a message: candidates of a call, types of its arguments."""

_DECLARED = re.compile(r" \(declared at line \d+ of [^()]*\)")
_TEMPORARY = re.compile(r"(?:\S*/)?(?:tmpxft_\S*|kernel\.(?:cu|ptx|cubin))\b")
_INSTANCE = re.compile(r"\b(?P<name>\w+)<(?P<given>[^<>]*)>")

MOST_ERRORS = 3
MOST_CANDIDATES = 3


def refusal(said: str, error: Exception, folder: Path) -> str:
    """First errors of nvcc, in one line: ``nvcc failed: file.cu:12: identifier "x" is undefined``.

    Up to :data:`MOST_ERRORS` of different lines of the source, with semicolons between them.

    Parameters
    ----------
    said
        Output of nvcc.
    error
        What is told if nvcc said nothing.
    folder
        Folder of the workload: paths of files inside are relative to it.
    """
    by_place: dict[str, str] = {}
    for match in _ERROR.finditer(said):
        what = match["text"].removeprefix("#error ")
        if more := _continued(said[match.end() :]):
            what = f"{what.removesuffix(':')}: {more}"
        place = f"{match['file'].strip()}:{match['line'] or match['other']}"
        by_place.setdefault(as_user_knows(place, folder), as_user_knows(what, folder))
    if by_place:
        told = [f"{place}: {what}" for place, what in by_place.items()]
        return f"nvcc failed: {'; '.join(told[:MOST_ERRORS])}"
    lines = [line.strip() for line in said.splitlines() if "error" in line or "fatal" in line]
    text = lines[0] if lines else (said.strip() or repr(error))[:500]
    return f"nvcc failed: {as_user_knows(text, folder)}"


def of_another_build(said: str, kernels: Iterable[str]) -> str:
    """What to add to a refusal of an instantiation that a build does not ask for; '' for nothing.

    Parameters
    ----------
    said
        As :func:`refusal` tells it.
    kernels
        Those of the build, such as ``gemm<32, true>``. Only numbers are compared.
    """
    asked: dict[str, set[tuple[str, ...]]] = {}
    for kernel in kernels:
        if named := _INSTANCE.search(kernel):
            asked.setdefault(named["name"], set()).add(_numbers(named["given"]))
    for named in _INSTANCE.finditer(said):
        given, known = _numbers(named["given"]), asked.get(named["name"], set())
        plain = all(each.isdigit() for one in (given, *known) for each in one)
        if known and plain and given not in known:
            return "; this build does not ask for it: host code of the file instantiates it"
    return ""


def _numbers(given: str) -> tuple[str, ...]:
    """Template arguments, truth values as 0 and 1."""
    plain = (each.strip().rstrip("uUlL") for each in re.sub(r"\(\w+\)", "", given).split(","))
    return tuple({"true": "1", "false": "0"}.get(each, each) for each in plain)


def _continued(rest: str) -> str:
    """What the lines after an error add to it; the source and its caret are left out."""
    lines = rest.splitlines()[1:]
    more: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        match = _MORE.match(line)
        if match is None or set(line.strip()) <= {*"^~"} or after.strip() == "^":
            break
        more.append(_DECLARED.sub("", match[1]))
    if len(more) > MOST_CANDIDATES + 1:
        more = [*more[:MOST_CANDIDATES], f"{len(more) - MOST_CANDIDATES - 1} more", more[-1]]
    return ", ".join(more)


def as_user_knows(text: str, folder: Path) -> str:
    """A message without the names that a build adds, and with paths inside the folder."""
    for place in (folder.resolve(), folder):
        text = text.replace(f"{place}/", "")
    text = re.sub(r"\b_Z\w+", lambda match: demangled(match[0]) or match[0], text)
    text = _TEMPORARY.sub("unit", text)
    text = re.sub(r"\bbuild_[0-9a-f]{16}(?:::|\b)", "", text)
    return re.sub(r"_[0-9a-f]{16}\b", "", text)
