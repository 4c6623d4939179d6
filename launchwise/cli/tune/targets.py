"""Files of ``launchwise tune``: where Snakemake's rules have them, and in their order of time.

Snakemake finds files that it did not make up to date when none of them is older than its inputs. Of
those that it made itself with other settings, it makes the tables again, from the same journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from launchwise.base.names import SPEC_FILE
from launchwise.base.places import ROOT
from launchwise.measuring.describing import MEASURING
from launchwise.measuring.source_states import deciding_files


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

    def settle(self) -> None:
        """Give each target a time that is not before its inputs', for Snakemake to take it so."""
        for outputs, inputs in self._stages():
            newest = max((path.stat().st_mtime_ns for path in inputs if path.is_file()), default=0)
            for name in outputs:
                if self.path(name).stat().st_mtime_ns < newest:
                    self.path(name).touch()
