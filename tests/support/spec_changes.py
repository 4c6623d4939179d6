"""Specs with changes by dotted keys, and the mistakes of ``tests/workloads/data/mistakes.yaml``."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).resolve().parents[1] / "workloads" / "data" / "mistakes.yaml"
MISTAKES: dict[str, dict[str, list[Any]]] = yaml.safe_load(FILE.read_text())
"""For each kind of file: the mistake in words, the mistake itself, and parts of what is told."""


def with_changes(content: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``content`` with other values at dotted keys; without a key whose value is None."""
    for key, value in changes.items():
        *above, last = key.split(".")
        places = [int(name) if name.isdigit() else name for name in above]
        part = reduce(operator.getitem, places, content)
        if value is None:
            del part[last]
        else:
            part[last] = value
    return content


def changed(folder: Path, changes: Mapping[str, Any]) -> Path:
    """The folder, with :func:`with_changes` of its spec."""
    path = folder / "spec.yaml"
    content = with_changes(yaml.safe_load(path.read_text()), changes)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return folder
