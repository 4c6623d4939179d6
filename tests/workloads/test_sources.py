"""Which files CUDA sources include, and which headers a translation unit includes first."""

import pytest

from launchwise.workloads import sources
from launchwise.workloads.sources import included_files, unit_headers


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files below a project's ``kernels/`` and give the folder of the workload ``mine``."""
    kernels = tmp_path / "project" / "kernels"
    monkeypatch.setattr(sources, "PROJECT_KERNELS", kernels)
    monkeypatch.setattr(sources, "COMMON", kernels / "common")

    def make(files):
        for name, text in files.items():
            path = kernels / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return kernels / "mine"

    return make


def names(folder, *start):
    """What is included, relative to ``kernels/``."""
    return [path.relative_to(folder.parent).as_posix() for path in included_files(folder, start)]


def test_includes_are_followed_wherever_they_lead_and_once(write):
    folder = write(
        {
            "mine/a.cu": '#include "b.cuh"\n#include <cuda_fp16.h>\n#include "common/one.cuh"\n',
            "mine/b.cuh": '  #  include "deep/c.cuh"\n#include "a.cu"\n// #include "unused.cuh"\n',
            "mine/deep/c.cuh": '#include "d.cuh"\n#include "mma.h"\n',
            "mine/deep/d.cuh": '#include "../b.cuh"\n',
            "mine/unused.cuh": "",
            "common/one.cuh": '#include "two.cuh"\n',
            "common/two.cuh": "",
            "common/three.cuh": "",
        }
    )
    own = ["mine/a.cu", "mine/b.cuh", "mine/deep/c.cuh", "mine/deep/d.cuh"]
    assert names(folder, "a.cu") == [*own, "common/one.cuh", "common/two.cuh"]
    assert names(folder, "unused.cuh", "missing.cu") == ["mine/unused.cuh"]


def test_a_workloads_own_file_is_found_before_the_projects(write):
    folder = write(
        {
            "mine/a.cu": '#include "common/one.cuh"\n',
            "mine/common/one.cuh": "",
            "common/one.cuh": "",
        }
    )
    assert names(folder, "a.cu") == ["mine/a.cu", "mine/common/one.cuh"]
    assert unit_headers(folder, ["a.cu"], []) == []


def test_a_unit_includes_the_common_headers_of_its_own_files_first(write):
    folder = write(
        {
            "mine/a.cu": '#include "common/one.cuh"\n',
            "mine/b.cu": "",
            "mine/own.cuh": '#include "common/two.cuh"\n',
            "common/one.cuh": "",
            "common/two.cuh": "",
        }
    )
    expected = ["common/two.cuh", "common/one.cuh", "own.cuh"]
    assert unit_headers(folder, ["a.cu", "b.cu"], ["own.cuh"]) == expected
    assert unit_headers(folder, ["b.cu"], []) == []
