"""Every variant of the acoustic workload on every architecture, by nvcc."""

import pytest

from launchwise.measuring.bundle import Bundle
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads import space
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.workload import builds_in_order
from tests.support.nvcc import kept_nvcc
from tests.support.slow_cases import first_of

ARCHITECTURES = ("sm_90", "sm_75", "sm_100")

REAL_PROBLEMS = [{"n": [64, 1300], "dtype": ["float32", "float64"], "order": [2, 8, 16]}]
"""At 1300 an array has more than 2^31 elements: its indices are long long."""


@pytest.fixture(scope="module")
def acoustic_builds(acoustic_folder, acoustic_spec):
    """Builds of a small and of a large problem, all orders and types.

    Of the many of a kernel that streams, three for each order and type, over the whole range of its
    tunables: the recorded sweeps compiled all of them.
    """
    workload = load_workload(acoustic_folder, acoustic_spec)
    alike = {}
    for build in builds_in_order(workload, space.problems(acoustic_spec, REAL_PROBLEMS)):
        if build.offloads:
            continue  # for Clang
        defines = dict(build.defines)
        kind = (build.source, str(defines["REAL"]), str(defines.get("RADIUS")))
        alike.setdefault(kind, []).append(build)
    return {each for own in alike.values() for each in own[:: max(1, len(own) // 3)]}


@pytest.mark.parametrize("arch", first_of(ARCHITECTURES))
class TestWithNvcc:
    pytestmark = kept_nvcc

    def test_every_variant_compiles_and_spills_nothing(
        self, arch, tmp_path, acoustic_folder, acoustic_spec, acoustic_builds
    ):
        from kernels.acoustic.host.workload import STREAMING

        path = tmp_path / "x.cubins"
        compile_bundle(acoustic_folder, acoustic_spec, acoustic_builds, arch, path, 2)
        bundle = Bundle(path)
        assert bundle.arch == arch
        sources = {variant.source: name for name, variant in acoustic_spec.variants.items()}
        for build in acoustic_builds:
            if build.source in sources:
                kernels = [sources[build.source]]
            else:
                kernels = ["fill", "reference", "compare"]
            for name in kernels:
                kernel = bundle.kernel(build, name)
                assert kernel.symbol == build.symbol(name)
                assert kernel.symbol.encode() in bundle.cubin(kernel.cubin)
                # Before sm_90, what needs the copy engine stops at once.
                least = 1 if name == "stream_tensor" and arch == "sm_75" else 8
                assert least <= kernel.registers <= 255
                # Where registers are limited on purpose, a sweep measures what a spill costs.
                if name not in (*STREAMING, "shared_tile"):
                    assert kernel.spill_bytes == 0, (name, build)
                assert kernel.shared_bytes == 0
