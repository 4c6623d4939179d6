"""``launchwise new`` from a Python file that gives CUDA text to CuPy; files that it refuses."""

from pathlib import Path

from command_line import complaint, launchwise

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main

KERNELS = Path(__file__).parent / "data" / "cupy_kernels.py"
KERNEL = "'extern \"C\" __global__ void k(float *x, int n) { x[blockIdx.x * B] = n; }'"


def drafted(folder, *options):
    """Spec that is drafted from :data:`KERNELS`."""
    assert main(["new", str(folder), "--from", str(KERNELS), *options]) == 0
    return read_yaml(folder / "spec.yaml")


def test_a_raw_kernel_becomes_a_workload_that_passes_its_check(tmp_path):
    done = launchwise("new", "mine", "--from", str(KERNELS), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "kernel vector_add: chosen" in done.stdout
    assert "kernel scale: take it with --kernel scale" in done.stdout
    assert "kernel made: code is made of side, which is known only when it runs" in done.stdout
    spec = read_yaml(tmp_path / "mine" / "spec.yaml")
    assert spec["compiler_options"] == ["--std=c++20", "--use_fast_math"]
    assert spec["baseline"] == {"variant": "vector_add", "block_size_x": 256, "ITEMS": 2}
    source = (tmp_path / "mine" / "cupy_kernels.cu").read_text()
    assert source.startswith("// The CUDA text of cupy_kernels.py, line 16.\n#ifndef ITEMS\n")
    assert source.endswith(KERNELS.read_text().split('"""')[3].lstrip("\n"))
    # Compilation by nvcc has tests of its own.
    reference = "def expected(a, b):\n    return a + b\n"
    (tmp_path / "mine" / "reference.py").write_text(reference)
    asked = ("check", "mine", "n=1100", "--cpu")
    done = launchwise(*asked, folder=tmp_path, PATH="/usr/bin:/bin")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "cpu: " in done.stdout


def test_a_module_gives_types_and_numbers(tmp_path):
    spec = drafted(tmp_path / "mine", "--kernel", "scale")
    (variant,) = spec["variants"].values()
    assert variant["kernel"] == "scale<dtype, N>"
    assert spec["tunables"]["N"]["values"] == [2, 4]
    assert spec["problem"]["dtype"]["values"] == ["float32", "float64"]
    assert "compiler_options" not in spec


def test_a_kernel_that_is_refused_is_told_when_it_is_asked_for(tmp_path):
    asked = ["new", "mine", "--from", str(KERNELS), "--kernel"]
    assert "line 34: code is made of side" in complaint(launchwise(*asked, "made", folder=tmp_path))
    unknown = complaint(launchwise(*asked, "mode", folder=tmp_path))
    assert "unknown kernel 'mode', did you mean 'made'?" in unknown
    assert not (tmp_path / "mine").exists()


def test_of_two_kernels_of_one_name_the_first_is_taken(tmp_path):
    file = tmp_path / "kernel.py"
    second = KERNEL.replace("float", "double")
    file.write_text(f"a = cp.RawKernel({KERNEL}, 'k')\nb = cp.RawKernel({second}, 'k')\n")
    assert main(["new", str(tmp_path / "mine"), "--from", str(file)]) == 0
    assert "float *x" in (tmp_path / "mine" / "kernel.cu").read_text()


def test_each_kernel_of_a_text_has_the_options_of_its_own_call(tmp_path):
    file = tmp_path / "kernel.py"
    both = f"{KERNEL} {KERNEL.replace(' k(', ' other(')}"
    file.write_text(
        f"t = {both}\n"
        "a = cp.RawKernel(t, 'other', ('--fmad=false', '-DB=64'))\n"
        "b = cp.RawKernel(t, 'k', ('-lineinfo', '-DB=32'))\n"
    )
    for options, kernel, own, side in (
        ((), "other", ["--fmad=false"], 64),
        (("--kernel", "k"), "k", ["-lineinfo"], 32),
    ):
        assert main(["new", str(tmp_path / kernel), "--from", str(file), *options]) == 0
        spec = read_yaml(tmp_path / kernel / "spec.yaml")
        assert spec["baseline"]["variant"] == kernel
        assert spec["compiler_options"] == own
        assert f"#define B {side}\n" in (tmp_path / kernel / "kernel.cu").read_text()


def test_a_file_of_that_name_with_other_content_stays(tmp_path):
    (tmp_path / "cupy_kernels.cu").write_text("mine")
    told = complaint(launchwise("new", ".", "--from", str(KERNELS), folder=tmp_path))
    assert told == "cupy_kernels.cu: exists and differs from cupy_kernels.py, line 16"
    assert (tmp_path / "cupy_kernels.cu").read_text() == "mine"
