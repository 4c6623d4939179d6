"""Recorded blind tests: what was asked, what answers may learn from, and how answers are judged."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.ablated import Material
from harness.projects import ROOT
from launchwise.gpus.profile import read_profile
from launchwise.learning.blind.answering import Frozen, problem_of, read_frozen
from launchwise.learning.blind.scoring import check_measured_after
from launchwise.learning.evaluate import Truth
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema

RECORDED = ROOT / "data" / "recorded"


@dataclass(frozen=True)
class Test:
    """A recorded blind test.

    Attributes
    ----------
    sweep
        Measurements of its problems.
    """

    gpu: str
    study: str
    frozen: Frozen
    sweep: pd.DataFrame
    domain: Domain

    @property
    def cases(self) -> list[Case]:
        """Its problems, in the order of the answers."""
        spec = self.domain.spec
        return [Case(self.gpu, problem_of(each, spec)) for each in self.frozen.answers]

    @property
    def truth(self) -> Truth:
        """Its measurements, by case."""
        return Truth({self.gpu: self.sweep}, self.domain)

    def known(self, material: Material) -> dict[str, pd.DataFrame]:
        """Today's rows of the GPUs that the recorded answers were learnt from."""
        gpus = self.frozen.product["gpus"]
        return {gpu: rows for gpu, rows in material.sweeps.items() if gpu in gpus}


def recorded_tests() -> list[tuple[str, str]]:
    """GPU and study of every blind test that was measured."""
    paths = sorted(RECORDED.glob("*/blind/*.sweep.parquet"))
    return [(path.parents[1].name, path.name.partition(".")[0]) for path in paths]


def read_test(gpu: str, study: str, material: Material) -> Test:
    """A blind test, and a domain that knows its GPU."""
    folder = RECORDED / gpu / "blind"
    frozen = read_frozen(folder / f"{study}.frozen.json")
    path = folder / f"{study}.sweep.parquet"
    sweep = read_table(path, measurement_schema(material.spec))
    check_measured_after(frozen, {str(path): sweep})
    material.profiles[gpu] = read_profile(RECORDED / gpu / "profile.json", gpu)
    return Test(gpu, study, frozen, sweep, material.domain())
