"""The Granger workload on a real GPU."""

from contextlib import closing

import pytest
from gpu_runs import described, measured
from test_granger import FOLDER, PUBLISHED_SIZE

from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import configurations, gpu_facts
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def profile():
    return described(None)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("county", "countx", "rows", "cols"),
    [(1, 2, 12, 2), (7, 3, 100, 10), (1000, 2, 100, 10), (3333, 2, 41, 16), (200, 5, 1000, 32)],
)
def test_every_configuration_is_right(profile, tmp_path, county, countx, rows, cols, dtype):
    problem = {**{"county": county, "countx": countx, "rows": rows, "cols": cols, "dtype": dtype}}
    found = measured(FOLDER, profile, [problem], tmp_path)
    verified = [row for row in found if row["variant"] != "published"]
    assert {row["status"] for row in verified} <= {"ok", "slow"}, [
        (row["variant"], row["threads"], row["status"], row["reason"])
        for row in verified
        if row["status"] not in ("ok", "slow")
    ][:3]
    # All five, but where no block's shared memory holds a regression of this size.
    possible = configurations(load_spec(FOLDER), problem, gpu_facts(profile.model_dump()))
    variants = {each["variant"] for each in possible} - {"published"}
    assert {row["variant"] for row in verified} == variants
    assert max(row["max_error"] for row in verified) <= verified[0]["tolerance"]


def test_the_published_launch_is_timed_and_what_it_erred_is_kept(profile, tmp_path):
    found = measured(FOLDER, profile, [PUBLISHED_SIZE], tmp_path)
    published = [row for row in found if row["variant"] == "published"]
    assert [row["status"] for row in published] == ["unverified"]
    assert published[0]["time_ms"] > 0
    assert published[0]["reason"].startswith("not verified")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("county", "countx", "rows", "cols"), [(1, 2, 12, 2), (1000, 5, 100, 10), (200, 5, 1000, 32)]
)
def test_cublas_fits_the_same_regressions(profile, tmp_path, county, countx, rows, cols, dtype):
    from launchwise.cuda.device import CudaDevice

    problem = {"county": county, "countx": countx, "rows": rows, "cols": cols, "dtype": dtype}
    spec = load_spec(FOLDER)
    workload = load_workload(FOLDER, spec)
    bundle, checks = tmp_path / "kernels.cubins", workload.check_builds(problem)
    compile_bundle(FOLDER, spec, checks, profile.arch, bundle, 1)
    with closing(CudaDevice()) as device:
        device.add_bundle(bundle)
        with closing(workload.open(device, problem, False, 1)) as session:
            peer = session.peer("cublas")
            assert peer.version.startswith("cuBLAS ")
            for _ in range(2):
                session.poison()
                peer.restore()
                peer.queue(None)
                assert session.check().wrong
                peer.deliver()
                assert not session.check().wrong
