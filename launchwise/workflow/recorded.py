"""What is recorded of a workload: files of the job that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from launchwise.base.typed import Strict


class Copied(Strict):
    """A recorded file, and where it goes."""

    source: Path
    target: Path


class BlindTest(Strict):
    """Files of a blind test, and where its scores go."""

    frozen: Path
    sweep: Path
    pairs: Path
    rows: Path
    summary: Path


class RecordedStudy(Strict):
    """What a study has of recorded GPUs, by GPU."""

    entry: dict[str, Any]  # the study without titles
    question: dict[str, Any]  # what it asks (`launchwise.learning.features.read_domain`)
    usual: list[dict[str, Any]] | None  # its own rules for the usual choice
    pairs: dict[str, Copied]
    peers: dict[str, Copied]
    times: dict[str, Path]  # where judged times go, of GPUs that have a sweep
    blind: dict[str, BlindTest]


class RecordedWorkload(Strict):
    """Recorded sweeps of a workload by GPU, and its studies."""

    sweeps: dict[str, Copied]
    studies: dict[str, RecordedStudy]

    def _copied(self) -> Iterator[Copied]:
        yield from self.sweeps.values()
        for study in self.studies.values():
            yield from (*study.pairs.values(), *study.peers.values())

    def _blind(self) -> Iterator[tuple[str, BlindTest]]:
        for study in self.studies.values():
            yield from study.blind.items()

    def sources(self) -> list[str]:
        """Recorded files."""
        tests = [path for _, one in self._blind() for path in (one.frozen, one.sweep, one.pairs)]
        return list(dict.fromkeys(map(str, [*(each.source for each in self._copied()), *tests])))

    def targets(self) -> list[str]:
        """Files that the job of the workload writes."""
        found = [each.target for each in self._copied()]
        found += [path for study in self.studies.values() for path in study.times.values()]
        found += [path for _, one in self._blind() for path in (one.rows, one.summary)]
        return list(map(str, found))

    def tested(self) -> list[str]:
        """GPUs that blind tests of its studies asked about."""
        return list(dict.fromkeys(gpu for gpu, _ in self._blind()))
