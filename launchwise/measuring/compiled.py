"""Outcomes of compilers, before they are members of a bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from launchwise.workloads.builds import Build


@dataclass(frozen=True)
class Apart:
    """A build with a member of the bundle of its own: its name and content, and its index entry."""

    build: Build
    member: str
    content: bytes
    kernels: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Compiled:
    """Outcome of compiling a group of builds."""

    cubins: list[tuple[list[Build], bytes]]
    """Builds that were compiled together, with their cubin."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Key of a build to what its compiler says against it."""
    apart: list[Apart] = field(default_factory=list)
    """Builds that are compiled one by one, not by nvcc."""


def joined(parts: list[Compiled]) -> Compiled:
    """Outcome of several groups."""
    refused = {key: said for part in parts for key, said in part.refused.items()}
    return Compiled(
        [each for part in parts for each in part.cubins],
        refused,
        [each for part in parts for each in part.apart],
    )
