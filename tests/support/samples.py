"""Small valid data, and a copy of the project to break: what many tests start from."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from forks import forked, run_snakemake

from launchwise.gpus.datasheets import CARDS_FILE, REFERENCE_PROFILE
from launchwise.gpus.profile import GpuProfile, write_profile
from launchwise.importing.device_names import DEVICE_NAMES_FILE
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space
from launchwise.workloads.metrics import SWEEP, absent
from launchwise.workloads.spec import Spec, load_spec

ROOT = Path(__file__).resolve().parents[2]
COPIED = (
    *("Snakefile", "config.yaml", "rules", "scripts", "launchwise", "kernels", "report"),
    "profiles",
    CARDS_FILE,
    DEVICE_NAMES_FILE,
    REFERENCE_PROFILE,
)
SAXPY = ROOT / "docs" / "tutorial" / "example" / "saxpy"
"""The tutorial's workload: the small one where any will do."""
STENCIL = ROOT / "tests" / "support" / "kernels" / "stencil"
"""The tests' own workload: variants, build and launch tunables, a cost model, made-up times."""
SMALL: list[dict[str, list[Any]]] = [{"n": [64, 100], "dtype": ["float32"], "order": [2, 8]}]
"""Problems of the small tables: one size with aligned rows and one without."""
SAMPLES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("samples.yaml").read_text()
)
"""Of a row, what is the same in all; a profile."""


def measurements(
    spec: Spec, blocks: list[dict[str, list[Any]]] | None = None, gpu: str = "test"
) -> pd.DataFrame:
    """A valid sweep: every configuration of every problem, times made up and all different.

    ``blocks``: problems as in the settings; :data:`SMALL` when left out.
    """
    rows = []
    for problem in space.problems(spec, blocks or SMALL):
        points = spec.value(spec.work.items, problem)
        for place, configuration in enumerate(space.configurations(spec, problem)):
            time_ms = points * 1e-10 * 1e3 * (1.0 + (37 * place % 1009) / 500)
            times = {
                "time_ms": time_ms,
                "times_ms": np.array([time_ms, 0.99 * time_ms, 1.01 * time_ms]),
                "spread_ms": 0.005 * time_ms,
                "first_ms": 1.2 * time_ms,
            }
            # Of metrics that no sample has, nothing is known.
            known = {**absent(SWEEP), **SAMPLES["row"], "gpu": gpu, "workload": spec.workload}
            rows.append({**problem, **configuration, **known, **times})
    return pd.DataFrame(rows)


def profile(name: str = "test", **changes: Any) -> GpuProfile:
    """A valid profile of a made-up GPU."""
    return GpuProfile.model_validate({**SAMPLES["profile"], "name": name, **changes})


@dataclass(frozen=True)
class Project:
    """A copy of the project that a test may break."""

    folder: Path

    def config(self) -> dict[str, Any]:
        """What ``config.yaml`` holds."""
        content: dict[str, Any] = yaml.safe_load((self.folder / "config.yaml").read_text())
        return content

    def configure(self, config: dict[str, Any]) -> None:
        """Replace ``config.yaml``."""
        (self.folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    @property
    def _study(self) -> Path:
        """Folder of the only study."""
        (path,) = self.folder.glob("kernels/*/studies/*/study.yaml")
        return path.parent

    def study(self) -> dict[str, Any]:
        """What the only study asks."""
        content: dict[str, Any] = yaml.safe_load((self._study / "study.yaml").read_text())
        return content

    def ask(self, study: dict[str, Any]) -> None:
        """Ask this instead."""
        (self._study / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))

    def snakemake(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake in the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), **variables}
        return forked(run_snakemake, [*arguments], self.folder, environment, seconds=300)


def _uncopied(folder: str, names: list[str]) -> set[str]:
    """Tests, and workloads: every start of Snakemake would read them."""
    is_kernels = Path(folder) == ROOT / "kernels"
    return set(names) - {"common"} if is_kernels else {"tests"} & set(names)


def copy_project(folder: Path, study: Path = STENCIL / "studies" / "stencil_block") -> Project:
    """A copy of the project in ``folder`` whose only GPU, ``test``, has a small recorded sweep.

    ``study``: the only study; the only workload is the one in whose folder it lies.
    """
    folder.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            # With its bytecode: times of files are copied, too.
            shutil.copytree(ROOT / name, folder / name, ignore=_uncopied)
        elif (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    workload = study.parents[1]
    own = folder / "kernels" / workload.name
    shutil.copytree(workload, own, ignore=shutil.ignore_patterns("tests", "studies"))
    shutil.copytree(study, own / "studies" / study.name)
    found = Project(folder)
    asked = found.study()
    # Not the two that take longest.
    models = [name for name in asked["models"] if name not in ("forest", "xgboost")]
    found.ask({**asked, "models": models})
    settings = {"workloads": ["kernels"], "gpus": {"test": {"source": "recorded"}}}
    found.configure({**found.config(), **settings})
    spec = load_spec(own)
    recorded = folder / "data" / "recorded" / "test"
    write_table(
        recorded / f"{spec.workload}.parquet",
        measurements(spec),
        measurement_schema(spec),
        {"made": "up"},
    )
    write_profile(recorded / "profile.json", profile())
    return found
