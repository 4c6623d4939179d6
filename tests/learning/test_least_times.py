"""The time that no run can beat: by hand, and against every recorded sweep."""

import numpy as np
import pandas as pd
import pytest

from launchwise.base.storage import read_json
from launchwise.experiment.experiment import DOUBTS
from launchwise.gpus.machine import Machine
from launchwise.gpus.profile import read_profile
from launchwise.learning.row_arrays import least_ms
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec
from tests.support.samples import ROOT, profile


def is_believed(path):
    """Whether the import found nothing impossible in a sweep."""
    known = path.with_suffix(".provenance.json")
    return not (known.is_file() and read_json(known).get(DOUBTS))


PLACES = [ROOT / "kernels", ROOT / "data/public/workloads"]


def has_workload(name):
    """Whether the workload of a recorded sweep is there."""
    return any((place / name / "spec.yaml").is_file() for place in PLACES)


SWEEPS = sorted(
    path
    for pattern in ("data/recorded/*/*.parquet", "data/public/gpus/*/*.parquet")
    for path in ROOT.glob(pattern)
    if "." not in path.stem and is_believed(path) and has_workload(path.stem)
)

BLIND_SWEEPS = sorted(
    path
    for path in ROOT.glob("data/recorded/*/blind/*.sweep.parquet")
    if has_workload(path.name.split("_")[0])
)


def workload_folder(name):
    return next(place / name for place in PLACES if (place / name).is_dir())


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_recorded_run_is_faster(path):
    check(path, path.stem, path.parent)


@pytest.mark.parametrize("path", BLIND_SWEEPS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_no_run_of_a_blind_test_is_faster(path):
    check(path, path.name.split("_")[0], path.parents[1])


def check(path, workload, folder):
    spec = load_spec(workload_folder(workload))
    gpu = folder.name
    rows = read_table(path, measurement_schema(spec))
    rows = rows[rows["time_ms"].notna()].reset_index(drop=True)
    known = {gpu: read_profile(folder / "profile.json", gpu)}
    assert (rows["time_ms"].to_numpy() > least_ms(rows, spec, known)).all()


def test_what_fits_the_cache_passes_it_once(stencil_spec):
    small, big = 32, 1002
    one = profile("one")
    rows = pd.DataFrame(
        [{"gpu": "one", "n": n, "dtype": "float32", "order": 2} for n in (small, big)]
    )
    machine = Machine.of(one)
    moved = 16 * np.array([small - 2, big - 2], dtype=float) ** 3
    assert moved[0] < one.l2_bytes < moved[1]
    assert machine.dram_gbs < one.memory_bandwidth_gbs
    outside = (moved[1] - one.l2_bytes) / one.memory_bandwidth_gbs
    assert outside > moved[1] / machine.l2_gbs
    launch_us = min(machine.launch_us, machine.host_launch_us)
    expected = np.array([moved[0] / machine.l2_gbs, outside]) / 1e6 + launch_us / 1e3
    assert least_ms(rows, stencil_spec, {"one": one}) == pytest.approx(expected)
