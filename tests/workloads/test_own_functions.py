"""Inputs, references and comparisons by own functions: what fits, and what is told."""

import shutil
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml
from mistakes import planted

from launchwise.base.errors import UserError
from launchwise.cpu.device import CpuDevice
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.declared.own_functions import check_own_functions
from launchwise.workloads.device import LaunchFailed, OutOfMemory
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.spec import load_spec
from tests.support.spec_changes import MISTAKES, changed

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

OWN = Path(__file__).parent / "data" / "own"
COMPARISONS = yaml.safe_load((OWN.parent / "comparisons.yaml").read_text())
KERNEL, REFERENCE = ((OWN / name).read_text() for name in ("own.cu", "reference.py"))
PROBLEM = {"n": 100}
BASELINE = {"variant": "own", "threads": 64}


@pytest.fixture
def folder(tmp_path):
    """A workload with inputs, a reference by name, and shapes by a tunable, to change."""
    return Path(shutil.copytree(OWN, tmp_path / "own"))


def verdict(folder, device=None, threads=64):
    """What verification finds on the CPU device."""
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = device or CpuDevice(folder, spec.headers)
    configuration = {**BASELINE, "threads": threads}
    session = workload.open(device, PROBLEM, workload.layout(configuration), 1)
    try:
        work = session.launch(configuration)
        session.poison()
        shapes = launch_shapes(spec, PROBLEM, configuration)
        for launch, shape in zip(work.launches, shapes, strict=True):
            assert (shape.block, shape.grid) == (launch.block, launch.grid)
            assert shape.shared_bytes == launch.shared_bytes
            device.launch(launch)
        return session.check()
    finally:
        session.close()


@pytest.mark.parametrize("threads", [32, 64])
@pytest.mark.parametrize("guards", [True, False])
def test_shapes_and_references_may_read_tunables(folder, threads, guards):
    device = CpuDevice(folder, [])
    device.guards_buffers = guards
    assert verdict(folder, device, threads).wrong == ""


def test_a_file_beside_the_folder_that_has_its_name_is_not_its_python(folder):
    """As after `launchwise new own --from own.py`."""
    (folder.parent / "own.py").write_text("import cupy_that_is_nowhere\n")
    assert verdict(folder).wrong == ""


@pytest.mark.parametrize(
    ("dtype", "name"), [("float32", "float"), ("float64", "double"), ("int32", "int")]
)
def test_a_reference_may_change_its_inputs(folder, dtype, name):
    changed(folder, {"arguments.weight.type": dtype})
    kernel = KERNEL.replace("float *weight", f"{name} *weight")
    (folder / "own.cu").write_text(kernel.replace("weight[i] * ", "(float)weight[i] * "))
    # Once what it returns is computed.
    spoiling = "    weight *= 0\n    values *= 0\n    return {"
    (folder / "reference.py").write_text(REFERENCE.replace("    return {", spoiling))
    assert verdict(folder).wrong == ""


@pytest.mark.parametrize("what", MISTAKES["inputs"])
def test_a_mistake_of_inputs_is_one_line(folder, what):
    body, said = MISTAKES["inputs"][what]
    (folder / "inputs.py").write_text(
        f"import numpy as np\n\ndef make(generator, n, problem):\n    {body}\n"
    )
    with pytest.raises(UserError) as refused:
        verdict(folder)
    assert said in str(refused.value)


def test_a_declared_shape_is_insisted_on(folder):
    changed(folder, {"arguments.values.shape": ["n"]})
    with pytest.raises(UserError, match=r"gives values with shape \(99,\), must be \(100,\)"):
        verdict(folder)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("reference.py", "def expected(w): return w", "expected takes 'w': unknown name 'w'"),
        ("reference.py", "def expected(problem): return 1", "unknown name 'problem'"),
        ("inputs.py", "def make(generator, problem, sums, m): return {}", "unknown name 'm'"),
    ],
)
def test_parameters_are_checked_before_a_function_is_called(folder, file, text, said):
    check_own_functions(folder, load_spec(folder))
    (folder / file).write_text(text)
    # What was imported stays imported.
    other = shutil.copytree(folder, folder.parent / "again" / "own")
    with pytest.raises(UserError, match=f"{file}: .*{said}"):
        check_own_functions(other, load_spec(other))


@pytest.mark.parametrize("what", MISTAKES["reference"])
def test_a_mistake_of_a_reference_is_one_line(folder, what):
    text, said = MISTAKES["reference"][what]
    (folder / "reference.py").write_text(text + "\n")
    with pytest.raises(UserError) as refused:
        verdict(folder)
    assert said in str(refused.value)


@pytest.mark.parametrize(("mask", "said"), [(True, ""), (False, "sums[1] is ")])
def test_masked_elements_and_none_are_not_compared(folder, mask, said):
    (folder / "reference.py").write_text(
        "import numpy as np\n\n"
        "def expected(values):\n"
        f"    return np.ma.array([2 * values[:64].sum(), 0.0], mask=[False, {mask}]), None\n"
    )
    wrong = verdict(folder).wrong
    assert wrong.startswith(said)
    assert bool(wrong) == bool(said)


@pytest.mark.parametrize("case", COMPARISONS.values(), ids=COMPARISONS)
def test_a_comparison_of_ones_own_decides(folder, case):
    changed(folder, {"reference.compare": "reference.py:same"})
    with (folder / "reference.py").open("a") as file:
        file.write(f"\n\ndef same(found, expected, n):\n{case['body']}")
    assert verdict(folder).wrong == ""
    planted(folder, "own.cu", "= all;", "= all + 7.0f;")
    assert verdict(folder).wrong == case["said"]


def test_a_comparison_that_gives_no_truth_value_is_told(folder):
    changed(folder, {"reference.compare": "reference.py:same"})
    with (folder / "reference.py").open("a") as file:
        file.write("\n\ndef same(found, expected):\n    return 1\n")
    message = r"reference\.py: same: returns int, must return True, False or a text that says what"
    with pytest.raises(UserError, match=message):
        verdict(folder)


def test_what_does_not_fit_twice_is_told(folder):
    changed(folder, {"arguments.total.shape": ["1024 * n"], "arguments.total.type": "float64"})
    (folder / "reference.py").write_text("def expected(n): return None, [1.0] * (1024 * n)\n")
    small = CpuDevice(folder, [], memory_bytes=1_000_000)
    with pytest.raises(OutOfMemory, match=r"arguments\.total: does not fit twice.*restore: false"):
        verdict(folder, small)


def test_nothing_is_restored_that_need_not_be(folder):
    spec = load_spec(folder)
    workload = load_workload(folder, spec)
    device = CpuDevice(folder, [])
    session = workload.open(device, PROBLEM, workload.layout(BASELINE), 1)
    (restored,) = session.launch(BASELINE).restores
    assert restored.array.nbytes == 4
    session.close()
    changed(folder, {"arguments.total.restore": False})
    workload = load_workload(folder, load_spec(folder))
    session = workload.open(device, PROBLEM, workload.layout(BASELINE), 1)
    assert session.launch(BASELINE).restores == ()
    session.close()


def test_inputs_are_made_once_per_problem(folder):
    with (folder / "inputs.py").open("a") as file:
        file.write(
            "\nmade = make\n\ndef make(generator, n, problem):\n"
            f"    with open({str(folder / 'calls')!r}, 'a') as file:\n"
            "        file.write(f'{n} ')\n    return made(generator, n, problem)\n"
        )
    spec = load_spec(folder)
    workload, device = load_workload(folder, spec), CpuDevice(folder, [])
    for n, threads in ((100, 64), (100, 32), (90, 64)):
        layout = workload.layout({**BASELINE, "threads": threads})
        workload.open(device, {"n": n}, layout, 1).close()
    # The first time twice: they must be the same.
    assert (folder / "calls").read_text().split() == ["100", "100", "90"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (np.ones(100, np.float32), "holds float32, the argument is int32"),
        (np.ones(99, np.int32), r"has shape \(99,\), the argument \(100,\)"),
        (None, "is missing"),
    ],
    ids=["another type", "another length", "no file"],
)
def test_a_file_that_does_not_hold_the_argument_is_refused(folder, content, said):
    if content is not None:
        np.save(folder / "weight.npy", content)
    fill = {"file": "weight.npy"}
    changed(folder, {"arguments.weight.type": "int32", "arguments.weight.fill": fill})
    with pytest.raises(UserError, match=rf"weight\.npy: {said}"):
        verdict(folder)


def test_a_struct_of_another_size_than_the_parameter_is_told(folder):
    kernel = (folder / "own.cu").read_text()
    (folder / "own.cu").write_text(
        "struct Limits { double low; int last; };\n"
        + kernel.replace("int entries)", "Limits limits)").replace("entries", "limits.last")
    )
    limits = {"type": {"low": "float64", "last": "int32"}, "value": {"low": 0, "last": "entries"}}
    given = ["sums", "total", "values", "weight", "limits"]
    changed(folder, {"arguments.limits": limits, "variants.own.arguments": given})
    assert verdict(folder).wrong == ""
    changed(folder, {"arguments.limits.type.low": "float32"})
    with pytest.raises(UserError, match=r"arguments\.limits: is a struct of 8 B, .* has 16 B"):
        verdict(folder)


@pytest.mark.parametrize("guards", [True, False])
def test_a_copy_from_beyond_one_array_to_beyond_another_is_found(folder, guards):
    changed(folder, {"arguments.sums.shape": ["n"], "arguments.values.shape": ["n"]})
    (folder / "inputs.py").write_text(
        "def make(generator, n): return {'values': generator.uniform(size=n), 'entries': n}\n"
    )
    (folder / "reference.py").write_text("def expected(values, n): return values, [n]\n")
    (folder / "own.cu").write_text(
        "__global__ void own(float *sums, int *total, const float *values, const float *, int n)\n"
        "{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i <= n) sums[i] = values[i];\n    if (i == 0) *total = n;\n}\n"
    )
    device = CpuDevice(folder, [], orders=("backward",))
    device.guards_buffers = guards
    if guards:
        with pytest.raises(LaunchFailed, match="beyond the end of a buffer of 400 B"):
            verdict(folder, device)
    else:
        assert "beyond the end of sums (400 B)" in verdict(folder, device).wrong


def test_a_kernel_that_reads_what_another_left_in_scratch_memory_is_wrong(folder):
    one = {"type": "float32", "shape": [1], "role": "scratch"}
    own = yaml.safe_load((OWN / "spec.yaml").read_text())["variants"]["own"]
    own["arguments"] = ["sums", "total", "values", "weight", "entries", "one"]
    variants = {"own": own, "forgetful": own | {"source": "forgetful.cu"}}
    changed(folder, {"arguments.one": one, "variants": variants})
    reading = KERNEL.replace("int entries)", "int entries, float *one)")
    reading = reading.replace("= all;", "= all * *one;")
    (folder / "forgetful.cu").write_text(reading)
    (folder / "own.cu").write_text(reading.replace("all = 0.0f;", "all = 0.0f, *one = 1.0f;"))
    spec = load_spec(folder)
    workload, device = load_workload(folder, spec), CpuDevice(folder, spec.headers)
    with closing(workload.open(device, PROBLEM, workload.layout(BASELINE), 1)) as session:
        said = []
        for variant in ("own", "forgetful", "own"):
            work = session.launch({**BASELINE, "variant": variant})
            session.poison()
            for launch in work.launches:
                device.launch(launch)
            said.append(session.check().wrong)
    assert (said[0], said[2]) == ("", "")
    assert "sums" in said[1]
