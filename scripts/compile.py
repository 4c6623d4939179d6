"""Compile every build that the sweeps of one workload need on one architecture."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import run
from launchwise.measuring.compile import compile_bundle, nvcc_release
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.workload import builds_in_order


def main(
    folder: Path, problems: list[dict[str, Any]], arch: str, threads: int, output: Path
) -> None:
    """Write the cubin bundle of the workload in ``folder``."""
    spec = load_spec(folder)
    # Report a missing compiler first: listing the builds of a large sweep takes many seconds.
    nvcc_release()
    builds = builds_in_order(load_workload(folder, spec), problems)
    compile_bundle(folder, spec, builds, arch, output, threads)


if __name__ == "__main__":
    run(main)
