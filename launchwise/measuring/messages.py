"""What nvcc says against a source, in the words of its author."""

from __future__ import annotations

import re
from pathlib import Path

from launchwise.measuring.symbols import demangled

_ERROR = re.compile(
    r"^(?P<file>[^\n]+?)(?:\((?P<line>\d+)\)|:(?P<other>\d+)(?::\d+)?): *"
    r"(?:catastrophic |fatal )?error(?: #[\w-]+)?: *(?P<text>[^\n]*)$",
    re.MULTILINE,
)
_TEMPORARY = re.compile(r"(?:\S*/)?(?:tmpxft_\S*|kernel\.(?:cu|ptx|cubin))\b")


def refusal(said: str, error: Exception, folder: Path) -> str:
    """First error of nvcc: ``nvcc failed: file.cu:12: identifier "x" is undefined``.

    Parameters
    ----------
    said
        Output of nvcc.
    error
        What is told if nvcc said nothing.
    folder
        Folder of the workload: paths of files inside are relative to it.
    """
    if match := _ERROR.search(said):
        what = match["text"].removeprefix("#error ")
        text = f"{match['file'].strip()}:{match['line'] or match['other']}: {what}"
    else:
        lines = [line.strip() for line in said.splitlines() if "error" in line or "fatal" in line]
        text = lines[0] if lines else (said.strip() or repr(error))[:500]
    return f"nvcc failed: {as_user_knows(text, folder)}"


def as_user_knows(text: str, folder: Path) -> str:
    """A message without the names that a build adds, and with paths inside the folder."""
    for place in (folder.resolve(), folder):
        text = text.replace(f"{place}/", "")
    text = re.sub(r"\b_Z\w+", lambda match: demangled(match[0]) or match[0], text)
    text = _TEMPORARY.sub("unit", text)
    text = re.sub(r"\bbuild_[0-9a-f]{16}(?:::|\b)", "", text)
    return re.sub(r"_[0-9a-f]{16}\b", "", text)
