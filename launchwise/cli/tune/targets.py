"""Files of ``launchwise tune``: where Snakemake's rules have them, and in their order of time.

Snakemake finds files that it did not make up to date when none of them is older than its inputs.
What it remembers of earlier files of the same names it must forget.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.names import SPEC_FILE
from launchwise.base.places import ROOT
from launchwise.measuring.describing import MEASURING
from launchwise.measuring.source_states import deciding_files
from launchwise.workflow.records import note_made

LONGEST_NAME = 254
"""Most characters of a part of the name of Snakemake's record of a file."""


@dataclass(frozen=True)
class Targets:
    """Paths of what is made of one workload on one GPU.

    Parameters
    ----------
    folder
        Where Snakemake runs.
    workload_folder
        The workload's own folder.
    known
        Sweeps of other GPUs that a search starts from.
    """

    folder: Path
    workload_folder: Path
    workload: str
    gpu: str
    arch: str
    known: Sequence[Path] = ()

    def path(self, name: str) -> Path:
        """Path of a file below the folder."""
        return self.folder / name

    @property
    def check(self) -> str:
        """Driver, toolkit and libraries of the machine."""
        return f"results/checks/{self.gpu}.json"

    @property
    def profile(self) -> str:
        """Profile of the GPU."""
        return f"results/gpus/{self.gpu}.json"

    @property
    def bundle(self) -> str:
        """Compiled kernels."""
        return f"results/build/{self.workload}/{self.arch}.cubins"

    @property
    def prior(self) -> str:
        """Rows of other GPUs, where there are some."""
        return f"results/priors/{self.gpu}/{self.workload}.parquet"

    @property
    def shard(self) -> str:
        """Rows of the only shard."""
        return f"results/sweeps/{self.gpu}/{self.workload}/1.parquet"

    @property
    def sweep(self) -> str:
        """All rows."""
        return f"results/sweeps/{self.gpu}/{self.workload}.parquet"

    @property
    def facts(self) -> str:
        """Answers."""
        return f"results/answers/{self.gpu}/{self.workload}.json"

    @property
    def page(self) -> str:
        """Page of the answers."""
        return f"results/answers/{self.gpu}/{self.workload}.html"

    @property
    def journal(self) -> str:
        """Journal of the only shard: no target."""
        return f"results/journal/{self.gpu}/{self.workload}/1.jsonl"

    @property
    def all(self) -> list[str]:
        """Every target."""
        return [outputs for stage, _ in self._stages() for outputs in stage]

    def _stages(self) -> Iterator[tuple[list[str], list[Path]]]:
        """Outputs and inputs of each stage, in order."""
        sources, spec = deciding_files(self.workload_folder), self.workload_folder / SPEC_FILE
        profile, bundle, shard, sweep = map(
            self.path, (self.profile, self.bundle, self.shard, self.sweep)
        )
        yield [self.check], []
        yield [self.profile], [*ROOT.glob(f"{MEASURING}.cu")]
        yield [self.bundle], sources
        prior = [self.prior] if self.known else []
        if prior:
            yield prior, [spec, *self.known]
        yield [self.shard], [profile, bundle, *map(self.path, prior), *sources]
        yield [self.sweep], [spec, shard]
        yield [self.facts, self.page], [spec, sweep, profile]

    @contextlib.contextmanager
    def kept_if_equal(self) -> Iterator[None]:
        """For a block that writes targets: those whose content stays keep their time."""
        before = {name: _state(self.path(name)) for name in self.all}
        yield
        for name, known in before.items():
            now = _state(self.path(name))
            if known and now and known[0] == now[0] and known[1] != now[1]:
                os.utime(self.path(name), ns=(known[1], known[1]))

    def settle(self) -> None:
        """Give each target a time that is not before its inputs', for Snakemake to take it so.

        What it remembers of earlier ones it must forget.
        """
        for outputs, inputs in self._stages():
            newest = max((path.stat().st_mtime_ns for path in inputs if path.is_file()), default=0)
            for name in outputs:
                if self.path(name).stat().st_mtime_ns < newest:
                    self.path(name).touch()
        forget(self.folder, self.all)
        note_made(self.folder, self.all)


def _state(path: Path) -> tuple[str, int] | None:
    """Digest of a file's content and its time; None where it is missing."""
    if not path.is_file():
        return None
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns


def forget(folder: Path, names: Iterable[str]) -> None:
    """Remove what Snakemake remembers of files, such as the parameters that they were made with.

    Parameters
    ----------
    folder
        Where Snakemake runs.
    names
        Files as its rules name them.
    """
    for name in names:
        text = base64.urlsafe_b64encode(name.encode()).decode()
        parts = [text[at : at + LONGEST_NAME] for at in range(0, len(text), LONGEST_NAME)]
        folders = [f"@{part}" for part in parts[:-1]]
        for records in ("metadata", "incomplete"):
            path = folder.joinpath(".snakemake", records, *folders, parts[-1])
            path.unlink(missing_ok=True)
