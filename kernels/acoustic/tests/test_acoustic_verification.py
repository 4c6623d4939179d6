"""Variants against NumPy, and mutants that verification must reject."""

from pathlib import Path

import numpy as np
import pytest
from host_device import HostDevice

from launchwise.workloads import space
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import FunctionRun
from tests.support.mistakes import mistakes, planted
from tests.support.slow_cases import first_of

ORDERS = (2, 8, 16)
FOLDER = Path(__file__).resolve().parents[1]
DTYPES = ("float32", "float64")


def wrong_configurations(folder, problem, cache, variants=None):
    """Every configuration's label with what verification says of it ('' when right)."""
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = HostDevice(folder, spec.headers, cache=cache)
    assert workload.self_check(device, problem, seed=3) == ""
    for layout in (0, 1):
        session = workload.open(device, problem, layout, seed=11)
        for configuration in space.configurations(spec, problem):
            if workload.layout(configuration) != layout:
                continue
            if variants is not None and configuration["variant"] not in variants:
                continue
            session.poison()
            work = session.launch(configuration)
            if isinstance(work, FunctionRun):
                work.run()
            else:
                (shape,) = launch_shapes(spec, problem, configuration)
                assert (shape.block, shape.grid) == (work.block, work.grid)
                assert (shape.shared_bytes or 0) == work.shared_bytes
                device.launch(work)
            yield space.label(configuration, spec), session.check().wrong
        session.close()


@pytest.mark.parametrize("order", first_of(ORDERS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_variant_agrees_with_numpy_on_an_odd_grid(acoustic_copy, kernel_cache, order, dtype):
    problem = {"n": order + 11, "dtype": dtype, "order": order}
    found = dict(wrong_configurations(acoustic_copy, problem, kernel_cache))
    assert {label.split()[0] for label in found} == {"linear", "block3d", "omp_tile", "openmp"}
    assert any("row_padding=1" in label for label in found) or problem["n"] % 16 == 0
    assert set(found.values()) == {""}


@pytest.mark.parametrize(("which", "dtype"), [*enumerate(2 * DTYPES + DTYPES[:1])])
def test_one_weight_off_by_a_thousandth_is_rejected(acoustic_copy, kernel_cache, which, dtype):
    spot = "    values[0] *= 3.0\n"
    planted(acoustic_copy, "host/stencil.py", spot, f"{spot}    values[{which}] += 1e-3\n")
    problem = {"n": 21, "dtype": dtype, "order": 8}
    found = dict(wrong_configurations(acoustic_copy, problem, kernel_cache, {"linear", "openmp"}))
    assert found
    assert all("points off" in wrong for wrong in found.values())


MISTAKES = zip(mistakes(FOLDER), 4 * DTYPES, strict=False)


@pytest.mark.parametrize(("mistake", "dtype"), first_of(MISTAKES), ids=str)
def test_a_mistake_in_a_kernel_is_found(acoustic_copy, kernel_cache, mistake, dtype):
    planted(acoustic_copy, mistake.file, mistake.right, mistake.wrong)
    named = Path(mistake.file)
    variants = {"linear", "block3d"} if named.suffix == ".cuh" else {named.stem}
    problem = {"n": 13, "dtype": dtype, "order": 2}
    found = dict(wrong_configurations(acoustic_copy, problem, kernel_cache, variants))
    assert found
    assert all(found.values()), f"{mistake} passed as right in {found}"


def test_a_broken_reference_is_found_before_anything_is_measured(acoustic_copy, kernel_cache):
    planted(acoustic_copy, "check.cu", "2.0 * (double)u[at]", "2.001 * (double)u[at]")
    spec = load_spec(acoustic_copy)
    workload = load_workload(acoustic_copy, spec)
    device = HostDevice(acoustic_copy, spec.headers, cache=kernel_cache)
    problem = {"n": 200, "dtype": "float32", "order": 2}
    assert "reference is off" in workload.self_check(device, problem, seed=1)


def test_inputs_are_the_same_bits_in_numpy_and_on_the_device(acoustic, kernel_cache):
    spec, workload = acoustic
    device = HostDevice(workload.folder, spec.headers, cache=kernel_cache)
    problem = {"n": 21, "dtype": "float64", "order": 2}
    session = workload.open(device, problem, 1, seed=5)
    on_device = np.empty((21, 21, session.pitch))
    device.download(session.velocity, on_device)
    # The module is loaded from its folder and has no name to import it by.
    expected = type(workload).open.__globals__["inputs"](21, "float64", 5)[2]
    assert np.array_equal(on_device[:, :, :21], expected)
    assert np.isnan(on_device[:, :, 21:]).all()
