"""Which files CUDA sources include, and which headers a translation unit includes first."""

import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.workloads import sources
from launchwise.workloads.sources import included_files, unit_headers

CASES = read_yaml(ROOT / "tests/workloads/data/includes.yaml")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_files_that_sources_include(tmp_path, monkeypatch, case):
    kernels = tmp_path / "project" / "kernels"
    monkeypatch.setattr(sources, "PROJECT_KERNELS", kernels)
    monkeypatch.setattr(sources, "COMMON", kernels / "common")
    for name, text in case["files"].items():
        path = kernels / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    mine = kernels / "mine"
    for start, found in case.get("included", []):
        names = [path.relative_to(kernels).as_posix() for path in included_files(mine, start)]
        assert names == found
    for units, own, found in case.get("headers", []):
        assert unit_headers(mine, units, own) == found
