"""A workload that its spec alone describes, on the CPU device, with all that a spec can say."""

import json
import shutil
from itertools import islice

import pytest
from declared_workloads import WORKLOADS, written

from launchwise.base.errors import UserError
from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check.on_cpu import outcome
from launchwise.cpu.device import CpuDevice
from launchwise.workloads import space
from launchwise.workloads.loading import load_workload
from launchwise.workloads.space import baseline
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

CONVOLUTION = ROOT / "docs" / "tutorial" / "example" / "convolution"


def complaints(folder, kept):
    """What is wrong with the first configurations of a small problem; '' where nothing is."""
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers, cache=kept)
    problem = {"w": 61, "h": 40}
    found = []
    for configuration in islice(space.configurations(spec, problem), 3):
        session = workload.open(device, problem, workload.layout(configuration), 1)
        session.poison()
        device.launch(session.launch(configuration))
        found.append(session.check().wrong)
        session.close()
    return found


def test_an_untouched_file_is_right(tmp_path):
    assert complaints(CONVOLUTION, tmp_path) == ["", "", ""]


def test_a_transposed_filter_is_wrong(tmp_path):
    folder = tmp_path / "convolution"
    shutil.copytree(CONVOLUTION, folder)
    (source,) = folder.glob("*.cu")
    text = source.read_text()
    assert text.count("filter[r * FILTER + c]") == 1
    source.write_text(text.replace("filter[r * FILTER + c]", "filter[c * FILTER + r]"))
    assert all(complaints(folder, tmp_path))


def test_the_first_configuration_is_compared_with_the_variant_not_with_itself(tmp_path):
    folder = written("constant", tmp_path)
    source = folder / "blocked.cu"
    source.write_text(source.read_text().replace("start - 1.0f", "start + 1.0f"))
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, spec.headers, cache=tmp_path)
    session = workload.open(device, {"n": 100}, (), 1)
    session.poison()
    device.launch(session.launch({"variant": "blocked", "block_size_x": 64}))
    assert "output[" in session.check().wrong
    session.close()


def run_on_cpu(folder, cache):
    """Outcome of the baseline at n=1000."""
    spec = load_spec(folder)
    device = CpuDevice(folder, spec.headers, cache=cache)
    chosen = baseline(spec)
    return outcome(load_workload(folder, spec), spec, device, {"n": 1000}, chosen, 1)


SUMS = 'shape: ["ceil_div(n, BLOCK)"], role: scratch'


class TestNoElements:
    """Null pointers, and arrays without elements, in a workload that scans in three launches."""

    def folder(self, place, old, new):
        """The workload with one passage of its spec replaced."""
        path = place / "running_total"
        shutil.copytree(ROOT / "tests" / "strangers" / "running_total", path)
        text = (path / "spec.yaml").read_text()
        assert text.count(old) >= 1
        (path / "spec.yaml").write_text(text.replace(old, new))
        return path

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            (SUMS, "shape: [0], role: scratch", "arguments.sums.shape: has no element"),
            (SUMS, "shape: [n - 1000]", "arguments.sums.shape: shape (0,) has no element"),
            (SUMS, "shape: [n - 1000], role: inout", "arguments.sums.shape: shape (0,)"),
        ],
    )
    def test_an_array_without_elements_is_refused(self, tmp_path, old, new, said):
        folder = self.folder(tmp_path, old, new)
        with pytest.raises(UserError) as refused:
            run_on_cpu(folder, tmp_path)
        assert said in str(refused.value)
        assert "nullptr among a kernel's arguments" in str(refused.value)

    def test_a_write_to_scratch_memory_without_elements_is_beyond_its_end(self, tmp_path):
        folder = self.folder(tmp_path, SUMS, "shape: [n - 1000], role: scratch")
        found = run_on_cpu(folder, tmp_path)
        assert "writes byte 0, beyond the end of a buffer of 0 B" in found["reason"]

    def test_a_null_pointer_for_a_number_is_refused(self, tmp_path, capsys):
        folder = self.folder(tmp_path, "nullptr, blocks", "nullptr, nullptr")
        assert main(["check", str(folder)]) == 2
        assert "nullptr is given, the kernel takes a number: running_total(n)" in (
            capsys.readouterr().err
        )


@pytest.fixture
def without_nvcc(monkeypatch):
    """Compilation by nvcc has tests of its own."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize("name", WORKLOADS)
def test_it_runs_rightly(name, tmp_path, capsys):
    assert main(["check", str(written(name, tmp_path)), "--cpu", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)
    runs = [step for step in steps if step["name"] == "cpu"]
    assert len(runs) >= 4
    assert all(step["passed"] for step in runs), runs


@pytest.mark.usefixtures("without_nvcc")
@pytest.mark.parametrize(
    ("name", "file", "old", "new"),
    [
        ("steps", "steps.cu", "factor * values[i]", "factor + values[i]"),
        ("steps", "steps.cu", "        __syncthreads();\n", ""),
        ("steps", "spec.yaml", "threads_of_sum * (8 if", "threads_of_sum / 2 * (8 if"),
        ("steps", "spec.yaml", 'value: "2"', 'value: "3"'),
        ("steps", "reference.py", "2 * values", "2 * values + 1"),
        ("constant", "blocked.cu", "__syncthreads();", ""),
        ("constant", "blocked.cu", "d_weights[k]", "d_weights[0]"),
    ],
)
def test_a_mistake_in_it_is_found(name, file, old, new, tmp_path, capsys):
    path = written(name, tmp_path) / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    code = main(["check", str(path.parent), "--cpu"])
    said = capsys.readouterr()
    assert code == 2, said.out
    assert said.err.count("\n") == 1
    assert "on the CPU" in said.err
