"""The time that no run can beat: by hand, and against every recorded sweep."""

import numpy as np
import pandas as pd
import pytest

from launchwise.base.storage import read_json
from launchwise.experiment.experiment import DOUBTS
from launchwise.gpus.machine import Machine, full_tensor_gflops
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


SPECS = [*ROOT.glob("kernels/*/spec.yaml"), *ROOT.glob("data/public/workloads/*/spec.yaml")]
FOLDERS = {path.parent.name: path.parent for path in SPECS}
FOLDERS |= {path.name: path.parents[1] for path in ROOT.glob("kernels/*/studies/*/")}
"""Workload or study, of which a blind test has its name, to the folder of the workload."""


def named(path):
    return path.name.removesuffix(".parquet").removesuffix(".sweep")


PLACES = ("data/recorded/*/*", "data/public/gpus/*/*", "data/recorded/*/blind/*.sweep")
SWEEPS = sorted(
    path
    for place in PLACES
    for path in ROOT.glob(f"{place}.parquet")
    if named(path) in FOLDERS and is_believed(path)
)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: "-".join(path.parts[-3:]))
def test_no_recorded_run_is_faster(path):
    spec = load_spec(FOLDERS[named(path)])
    folder = path.parents["blind" in path.parts]
    rows = read_table(path, measurement_schema(spec))
    rows = rows[rows["time_ms"].notna()].reset_index(drop=True)
    known = {folder.name: read_profile(folder / "profile.json", folder.name)}
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


def test_a_slice_has_its_share_of_the_tensor_cores():
    whole, half = (full_tensor_gflops(profile(sms=sms), "float16") for sms in (132, 66))
    assert half == whole / 2 > 0
