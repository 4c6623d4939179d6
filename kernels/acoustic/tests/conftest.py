"""Of the stencil: recorded rows of walked tiles, a small copy, and the paper's tables."""

import re
import shutil
from pathlib import Path

import pytest

from launchwise.experiment.published import read_tables
from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import FACTS
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec

GPU = "h200.sm16"
SMALL_SPACE = {
    "bx": "[8, 64]",
    "by": "[1, 8]",
    "bz": "[1, 8]",
    "tx": "[1, 2]",
    "ty": "[1, 2]",
    "tz": "[1, 2]",
    "tile_i": "[0, 4]",
    "tile_j": "[0, 1]",
    "tile_k": "[0, 2]",
    # Kernels that stream along z have no such tile.
    "tile_x": "[64]",
    "tile_y": "[8]",
}


@pytest.fixture(scope="session")
def acoustic_folder():
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def acoustic_spec(acoustic_folder):
    return load_spec(acoustic_folder)


@pytest.fixture(scope="module")
def domain(acoustic_spec, root):
    """The acoustic workload on one recorded slice, walked tiles alone."""
    profile = read_profile(root / "data" / "recorded" / GPU / "profile.json")
    return Domain(acoustic_spec, {GPU: profile}, {"variant": ["omp_tile"]})


@pytest.fixture(scope="module")
def rows(domain, root):
    path = root / "data" / "recorded" / GPU / "acoustic.parquet"
    sweep = read_table(path, measurement_schema(domain.spec))
    wanted = sweep["n"].isin([200, 256, 512]) & sweep["time_ms"].notna()
    columns = [*domain.spec.key_columns, "time_ms", *FACTS]
    rows = sweep.loc[wanted & domain.is_candidate(sweep), columns]
    return rows.astype({name: object for name in ("gpu", "dtype", "variant")}).reset_index(
        drop=True
    )


@pytest.fixture
def acoustic_copy(tmp_path, acoustic_folder):
    """A copy of the acoustic workload with a small space, free to be changed."""
    folder = tmp_path / "kernels" / "acoustic"
    # What is usual names values that this smaller space does not have.
    ignored = shutil.ignore_patterns("usual.yaml")
    shutil.copytree(acoustic_folder, folder, ignore=ignored)
    text = (folder / "spec.yaml").read_text()
    for name, values in SMALL_SPACE.items():
        head, name_and_kind, tail = re.split(
            rf"^(  {name}:\n    kind: \w+\n    values: ).*$", text, maxsplit=1, flags=re.MULTILINE
        )
        text = f"{head}{name_and_kind}{values}{tail}"
    (folder / "spec.yaml").write_text(text)
    return folder


@pytest.fixture
def acoustic(acoustic_copy):
    spec = load_spec(acoustic_copy)
    return spec, load_workload(acoustic_copy, spec)


@pytest.fixture
def published(acoustic_folder):
    return read_tables(acoustic_folder / "studies" / "acoustic_tile")
