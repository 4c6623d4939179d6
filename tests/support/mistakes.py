"""Mistakes planted in the sources of a workload, from the file ``mistakes.yaml`` of its tests."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import yaml


@dataclass(frozen=True)
class Mistake:
    file: str
    right: str
    wrong: str
    name: str = ""
    variants: list[str] = field(default_factory=list)  # that run what is changed

    def __str__(self) -> str:
        return self.name or self.right


def mistakes(folder: Path) -> list[Mistake]:
    """Those of a workload, whose folder this is."""
    listed = yaml.safe_load((folder / "tests" / "mistakes.yaml").read_text(encoding="utf-8"))
    return [Mistake(**one) for one in listed]


def planted(copy: Path, file: str, right: str, wrong: str) -> Path:
    """``copy``, the copy of a workload's folder, with a mistake in one of its files."""
    text = (copy / file).read_text()
    assert right in text
    (copy / file).write_text(text.replace(right, wrong))
    return copy


def with_mistake(folder: Path, tmp_path: Path, file: str, right: str, wrong: str) -> Path:
    """A copy of a workload's folder with a mistake in one of its files."""
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("tests"))
    return planted(copy, file, right, wrong)
