"""``launchwise new`` from a Python file with functions of Triton, as people write them."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.workloads.loading import load_workload
from launchwise.workloads.spec import load_spec
from launchwise.workloads.usual import usual_configuration

DATA = Path(__file__).parent / "data"
KERNELS = DATA / "triton"
DRAFTS: dict[str, Any] = read_yaml(DATA / "triton_drafts.yaml")

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton (launchwise[triton])"
)
needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")

PROBLEMS = {
    "attention": "Z=1 H=2 N_CTX=70 HEAD_DIM_Q=64",
    "dropout": "n=3000",
    "expert_matmul": "M=40 N=33 K=50 E=4",
    "histogram": "n=3000 num_bins=32",
    "layer_norm": "M=3 N=300",
    "matmul": "M=65 N=33 K=64",
    "quantise": "rows=5 n_cols=100",
    "softmax": "n_rows=3 n_cols=100",
    "vector_add": "n_elements=1500",
}
"""File to a problem on which its draft is checked."""

HEAD = "import triton\nimport triton.language as tl\n"
BODY = """
@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)
"""


def drafted(folder: Path, file: Path, *options: str) -> dict[str, Any]:
    """Spec that is drafted from a file; its baseline has a build."""
    assert main(["new", str(folder), "--from", str(file), *options]) == 0
    raw: dict[str, Any] = read_yaml(folder / "spec.yaml")
    if "file" in raw["reference"]:
        (folder / "reference.py").write_text("def expected(**given):\n    return None\n")
    spec = load_spec(folder)
    problem = {name: (one.values or [one.minimum])[0] for name, one in spec.problem.items()}
    load_workload(folder, spec).build(problem, spec.baseline)
    return raw


def of_text(tmp_path: Path, text: str, *options: str) -> dict[str, Any]:
    """Spec that is drafted from a file with this text."""
    file = tmp_path / "kernel.py"
    file.write_text(text)
    return drafted(tmp_path / "mine", file, *options)


def fill_in(folder: Path, name: str) -> None:
    """What the draft asks for: a reference."""
    own = DATA / "triton_references" / f"{name}.py"
    if not own.exists():
        return
    shutil.copy(own, folder / "reference.py")
    if "def same(" in own.read_text():
        spec = folder / "spec.yaml"
        text = spec.read_text()
        spec.write_text(
            text.replace('file: "reference.py:expected"', 'compare: "reference.py:same"')
        )


@needs_triton
@needs_gxx
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_draft_whose_reference_is_filled_in_is_verified_on_the_cpu(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name
    assert main(["new", str(folder), "--from", str(KERNELS / f"{name}.py")]) == 0
    fill_in(folder, name)
    monkeypatch.setenv("PATH", str(Path(str(shutil.which("g++"))).parent))
    status = main(["check", str(folder), *PROBLEMS[name].split(), "--cpu"])
    told = capsys.readouterr().out.splitlines()
    if old := [line for line in told if "fails with NumPy" in line]:
        pytest.skip(old[0].rpartition(": the ")[2])
    assert status in (0, None), told
    assert any(line.startswith("ok       cpu: ") for line in told), told


def test_the_kernels_here_are_those_that_are_checked() -> None:
    assert {path.stem for path in KERNELS.glob("*.py")} == {*PROBLEMS}


EXPECTED: dict[str, dict[str, Any]] = {
    "attention": {
        "problem": ["HEAD_DIM_Q", "Z", "H", "N_CTX"],
        "tunables": {
            **{"BLOCK_M": [64, 128], "BLOCK_N": [32, 64], "num_warps": [4, 8]},
            "num_stages": [2, 3],
        },
        "macros": {"HEAD_DIM": "HEAD_DIM_Q"},
        "grid": ["ceil_div(N_CTX, BLOCK_M)", "Z * H", "1"],
        "roles": {"L": "output", "Out": "output"},
        "types": {"float16": 4, "float32": 2},
    },
    "dropout": {
        "problem": ["n"],
        "tunables": {"BLOCK": [512, 1024], "num_warps": [2, 4]},
        "grid": ["ceil_div(n, BLOCK)"],
        "roles": {"out_ptr": "output", "counter_ptr": "inout"},
        "types": {"float32": 3},
    },
    "expert_matmul": {
        "problem": ["M", "N", "K", "E"],
        "macros": {"compute_type": "'tl.float16'"},
        "grid": ["ceil_div(M, BLOCK_M)", "ceil_div(N, BLOCK_N)"],
        "roles": {"c_ptr": "output"},
        "types": {"float16": 3},
    },
    "histogram": {
        "problem": ["n", "num_bins"],
        "tunables": {"BLOCK": [256, 512, 1024], "num_warps": [4]},
        "grid": ["ceil_div(n, BLOCK)"],
        "roles": {"hist_ptr": "inout"},
        "types": {"float32": 0},
    },
    "layer_norm": {
        "problem": ["N", "M"],
        "macros": {"BLOCK_SIZE": "min(16384, next_power_of_2(N))"},
        "grid": ["M"],
        "roles": {"Y": "output", "Mean": "output", "Rstd": "output"},
        "types": {"float32": 7},
    },
    "matmul": {
        "problem": ["M", "N", "K"],
        "tunables": {
            **{"BLOCK_SIZE_M": [32, 64, 128], "BLOCK_SIZE_N": [64, 128, 256]},
            **{"BLOCK_SIZE_K": [32, 64], "GROUP_SIZE_M": [8]},
            **{"num_warps": [2, 4, 8], "num_stages": [3, 4, 5]},
        },
        "macros": {"EVEN_K": "K % BLOCK_SIZE_K == 0", "ACTIVATION": "''"},
        "grid": ["ceil_div(M, BLOCK_SIZE_M) * ceil_div(N, BLOCK_SIZE_N)"],
        "roles": {"c_ptr": "output"},
        "types": {"float16": 3},
    },
    "quantise": {
        "problem": ["n_cols", "rows"],
        "tunables": {"num_warps": [1, 2, 4, 8]},
        "macros": {"BLOCK": "next_power_of_2(n_cols)"},
        "grid": ["rows"],
        "roles": {"q_ptr": "output", "scale_ptr": "output"},
        "types": {"int8": 1, "float32": 2},
    },
    "softmax": {
        "problem": ["n_cols", "n_rows"],
        "tunables": {"num_warps": [1, 2, 4, 8]},
        "macros": {"BLOCK_SIZE": "next_power_of_2(n_cols)"},
        "grid": ["n_rows"],
        "roles": {"output_ptr": "output"},
        "types": {"float32": 2},
    },
    "vector_add": {
        "problem": ["n_elements"],
        "tunables": {"BLOCK_SIZE": [256, 512, 1024, 2048, 4096], "num_warps": [1, 2, 4, 8]},
        "grid": ["ceil_div(n_elements, BLOCK_SIZE)"],
        "roles": {"output_ptr": "output"},
        "types": {"float32": 3},
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_says_arguments_tunables_and_grid(name: str, tmp_path: Path) -> None:
    spec, expected = drafted(tmp_path / name, KERNELS / f"{name}.py"), EXPECTED[name]
    (variant,) = spec["variants"].values()
    assert [*spec["problem"]] == expected["problem"]
    assert spec.get("macros", {}) == expected.get("macros", {})
    assert variant["grid"] == expected["grid"]
    arguments = spec["arguments"]
    assert {n: a["role"] for n, a in arguments.items() if "role" in a} == expected["roles"]
    for kind, count in expected["types"].items():
        assert sum(one["type"] == kind for one in arguments.values()) == count, kind
    if "tunables" in expected:
        found = {tunable: one["values"] for tunable, one in spec["tunables"].items()}
        assert found == expected["tunables"]


@pytest.mark.parametrize("name", DRAFTS)
def test_drafts(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = DRAFTS[name]
    spec = of_text(tmp_path, case["source"])
    (variant,) = spec["variants"].values()
    tunables = {one: spec["tunables"][one]["values"] for one in variant["tunables"]}
    wanted = case.get("tunables", tunables)
    assert (tunables if isinstance(wanted, dict) else [*tunables]) == wanted
    assert variant["grid"] == case.get("grid", variant["grid"])
    assert spec.get("macros", {}) == case.get("macros", spec.get("macros", {}))
    assert [*spec["problem"]] == case.get("problem", [*spec["problem"]])
    for key, wanted in case.get("arguments", {}).items():
        assert {one: spec["arguments"][key][one] for one in wanted} == wanted
    lines = (tmp_path / "mine" / "spec.yaml").read_text().splitlines()
    asked = {line.split(":")[0].strip() for line in lines if "  # ? " in line}
    assert asked >= {*case.get("open", ())}
    assert not asked & {*case.get("closed", ())}
    copied = (tmp_path / "mine" / "kernel.py").read_text()
    assert all(part in copied for part in case.get("has", ()))
    assert not any(part in copied for part in case.get("lacks", ()))
    compile(copied, "kernel.py", "exec")
    said = capsys.readouterr().out
    notes = [line for line in lines if line.startswith("# ?")]
    assert len(notes) == len(case.get("notes", ()))
    for part in case.get("notes", ()):
        assert any(part in note for note in notes)
        assert part in said


HARMS = {
    "a file is written": "open('written', 'w').write('x')",
    "a file is made": "import os\nos.open('written', os.O_CREAT)",
    "a file is removed": "import os\nos.remove('kept')",
    "a folder is removed": "import shutil\nshutil.rmtree('.')",
    "a process is started": "import subprocess\nsubprocess.run(['touch', 'written'])",
    "a shell is started": "import os\nos.system('touch written')",
    "a fork writes": "import os\nif not os.fork():\n    open('written', 'w')",
    "the network is asked": "import socket\nsocket.create_connection(('127.0.0.1', 9))",
    "it never ends": "while True:\n    pass",
    "it takes much memory": "huge = [0] * (1 << 40)",
    "it prints": "import sys\nsys.stdout.write('}')\nprint('}')",
    "it ends": "import sys\nsys.exit(3)",
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_runs_harms_nothing(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_text("kept")
    monkeypatch.chdir(tmp_path)
    place = f"import os\nos.chdir({str(tmp_path)!r})\n"
    assert of_text(tmp_path, f"{HEAD}{place}{HARMS[harm]}\n{BODY}")["tunables"]["BLOCK"]
    assert (tmp_path / "kept").read_text() == "kept"
    assert not (tmp_path / "written").exists()


ENDS = {
    "by a signal of its own": "import signal\nsignal.raise_signal(9)",
    "after a computation that nothing interrupts": "x = 3 ** (10 ** 8) % 7\n" * 40,
    "without a word": "import os\nos._exit(0)",
}


@pytest.mark.parametrize(
    "end",
    [
        # As long as the limit of CPU time: another way in which the process ends.
        pytest.param(end, marks=pytest.mark.slow if "computation" in end else ())
        for end in ENDS
    ],
)
def test_a_file_that_ends_its_process_is_one_line(
    end: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(f"{HEAD}{ENDS[end]}\n{BODY}")
    assert main(["new", str(tmp_path / "mine"), "--from", str(file)]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"launchwise: {file}: ")
    assert not (tmp_path / "mine").exists()


def test_indices_stay_inside_what_they_reach(tmp_path: Path) -> None:
    arguments = drafted(tmp_path / "mine", KERNELS / "expert_matmul.py")["arguments"]
    assert arguments["b_ptr"]["shape"] == ["E", "K", "N"]
    assert arguments["expert_ids_ptr"]["fill"] == {"uniform": [0, "E"]}
    assert arguments["stride_be"]["value"] == "K * N"


def test_only_what_a_build_needs_of_a_file_is_copied(tmp_path: Path) -> None:
    drafted(tmp_path / "mine", KERNELS / "matmul.py")
    text = (tmp_path / "mine" / "matmul.py").read_text()
    assert "torch" not in text
    assert "autotune" not in text
    compile(text, "matmul.py", "exec")
    assert "def leaky_relu(x):" in text
    whole = KERNELS / "dropout.py"
    drafted(tmp_path / "other", whole)
    assert (tmp_path / "other" / "dropout.py").read_text() == whole.read_text()


# Host code

ROWS = """
@triton.jit
def twice(x_ptr, y_ptr, rows, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + i, mask=i < cols)
        tl.store(y_ptr + row * stride + i, 2 * x, mask=(i < cols) & (row < rows))
"""
HOSTS = {
    "names of sizes": (
        "M, N = x.shape\n"
        "y = torch.empty_like(x)\n"
        "twice[(M,)](x, y, M, N, x.stride(0), 256)",
        ["M"], ["M", "N"], "float32",
    ),
    "sizes without a name": (
        "y = torch.zeros(x.size(0), x.size(1), dtype=torch.float16)\n"
        "twice[x.size(0), 1](x, y, x.size(0), x.size(1), x.stride()[0], BLOCK=256)",
        ["rows", "1"], ["rows", "cols"], "float16",
    ),
    "a view": (
        "flat = x.view(-1, x.shape[-1])\n"
        "R, C = flat.shape\n"
        "y = torch.empty_like(flat)\n"
        "grid = (R,)\n"
        "twice[grid](flat, y, R, C, flat.stride(0), BLOCK=256, num_warps=4)",
        ["R"], ["R", "C"], "float32",
    ),
    "a function": (
        "R, C = x.shape[0], x.shape[1]\n"
        "y = x.new_empty((R, C))\n"
        "def grid(meta):\n"
        "    return (min(R, (C + meta['BLOCK'] - 1) // meta['BLOCK']),)\n"
        "twice[grid](x, y, R, C, y.stride(0), BLOCK=256)",
        ["min(R, (C + BLOCK - 1) // BLOCK)"], ["R", "C"], "float32",
    ),
    "equal sizes": (
        "R, C = x.shape\n"
        "Q, D = y.shape\n"
        "assert R == Q and C == D, 'sizes'\n"
        "twice[(Q,)](x, y, R, D, y.stride(0), BLOCK=256)",
        ["R"], ["R", "C"], "float32",
    ),
    "a name that a sweep has": (
        "time_ms, gpu = x.shape\n"
        "twice[(time_ms,)](x, torch.empty_like(x), time_ms, gpu, x.stride(0), BLOCK=256)",
        ["time_ms_size"], ["time_ms_size", "gpu_size"], "float32",
    ),
    "arguments in a tuple": (
        "R, C = x.shape\n"
        "assert y.shape == x.shape\n"
        "twice[(R,)](x, y, *(R, C) if R else (0, 0), x.stride(0), BLOCK=256)",
        ["R"], ["R", "C"], "float32",
    ),
    "none": ("pass", ["rows"], ["rows", "cols"], "float32"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTS)
def test_the_launch_says_shapes_strides_and_grid(case: str, tmp_path: Path) -> None:
    host, grid, shape, kind = HOSTS[case]
    lines = "".join(f"    {line}\n" for line in host.splitlines())
    spec = of_text(tmp_path, f"import torch\n{HEAD}{ROWS}\ndef run(x, y):\n{lines}")
    (variant,) = spec["variants"].values()
    arguments = spec["arguments"]
    assert variant["grid"] == grid
    assert arguments["x_ptr"]["shape"] == shape
    assert arguments["stride"]["value"] == shape[1]
    assert (arguments["cols"]["value"], arguments["rows"]["value"]) == (shape[1], shape[0])
    assert arguments["y_ptr"]["role"] == "output"
    if "y.shape" in host or "y =" in host:
        assert arguments["y_ptr"]["shape"] == shape
    assert arguments["y_ptr"]["type"] == kind
    assert set(spec["problem"]) == set(shape)


NORM = """
@triton.heuristics({"HAS_RES": lambda args: args["res_ptr"] is not None})
@triton.jit
def norm(
    x_ptr, res_ptr, y_ptr, stride_x, stride_res, n_cols, BLOCK: tl.constexpr, HAS_RES: tl.constexpr
):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + i, mask=i < n_cols)
    if HAS_RES:
        x += tl.load(res_ptr + row * stride_res + i, mask=i < n_cols)
    tl.store(y_ptr + row * stride_x + i, x, mask=i < n_cols)


def run(x, res=None):
    shape = x.shape
    x = x.reshape(-1, shape[-1])
    M, N = x.shape
    RES
    y = torch.empty_like(x)
    norm[(M,)](x, res, y, x.stride(0), res.stride(0), N, triton.next_power_of_2(N))
"""
SECOND = {
    "a view": "res = res.reshape(-1, shape[-1])",
    "named sizes": "res = res.view(M, N)",
    "a tuple": "res = res.view((M, N))",
    "equal shapes": "assert res.shape == x.shape",
    "where it is given": "if res is not None:\n        res = res.reshape(-1, x.shape[-1])",
    "nothing": "if res is not None:\n        res = res.contiguous()",
}


@pytest.mark.parametrize("case", SECOND)
def test_a_second_matrix_has_rows_of_the_same_length(case: str, tmp_path: Path) -> None:
    text = NORM.replace("    RES\n", f"    {SECOND[case]}\n")
    spec = of_text(tmp_path, f"import torch\n{HEAD}{text}")
    arguments = spec["arguments"]
    assert arguments["res_ptr"]["shape"] == ["M", "N"]
    assert arguments["stride_res"]["value"] == "N"
    assert set(spec["problem"]) == {"M", "N"}
    assert spec["macros"]["HAS_RES"] == "1"


PAGED = """
@triton.jit
def paged(out_ptr, table_ptr, pages_ptr, n, d, stride_page, stride_out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    page = tl.load(table_ptr + row)
    i = tl.arange(0, BLOCK)
    value = tl.load(pages_ptr + page * stride_page + i, mask=i < d)
    tl.store(out_ptr + row * stride_out + i, value, mask=(i < d) & (row < n))


def run(table, pages):
    count, d = pages.shape
    n = table.numel()
    dtype = pages.dtype
    out = MADE
    paged[(n,)](out, table, pages, n, d, pages.stride(0), out.stride(0), BLOCK=256)


pages = torch.randn(512, 256, dtype=torch.float16)
"""


@pytest.mark.parametrize(
    "made",
    [
        "torch.empty((n, d), dtype=pages.dtype, device=pages.device)",
        "torch.empty((n, d), dtype=dtype)",
        "torch.zeros(n, d).to(pages.dtype)",
        "pages.new_empty((n, d))",
    ],
)
def test_an_output_has_the_type_and_words_are_no_dimensions(made: str, tmp_path: Path) -> None:
    spec = of_text(tmp_path, f"import torch\n{HEAD}{PAGED.replace('MADE', made)}")
    out = spec["arguments"]["out_ptr"]
    assert (out["type"], out["shape"]) == ("float16", ["n", "d"])
    assert spec["arguments"]["stride_page"]["value"] == "d"
    assert set(spec["problem"]) == {"n", "d", "count"}


def test_strides_that_are_words_name_no_size_without_a_launch(tmp_path: Path) -> None:
    kernel = PAGED.partition("\n\ndef run")[0]
    problem = of_text(tmp_path, f"{HEAD}{kernel}")["problem"]
    assert not any(name.startswith("size_") for name in problem)


def test_an_array_that_the_launch_leaves_out_is_not_there(tmp_path: Path) -> None:
    text = NORM.replace("    RES\n", "").replace("(x, res, y", "(x, None, y")
    text = text.replace("res.stride(0)", "0")
    assert of_text(tmp_path, f"import torch\n{HEAD}{text}")["macros"]["HAS_RES"] == "0"


def test_a_grid_that_asks_the_card_is_a_question_with_its_line(tmp_path: Path) -> None:
    host = (
        "def run(x, y):\n"
        "    R, C = x.shape\n"
        "    sms = torch.cuda.get_device_properties(0).multi_processor_count\n"
        "    twice[(min(R, sms),)](x, y, R, C, x.stride(0), BLOCK=256)\n"
    )
    of_text(tmp_path, f"import torch\n{HEAD}{ROWS}\n{host}")
    text = (tmp_path / "mine" / "spec.yaml").read_text()
    (line,) = (each for each in text.splitlines() if each.startswith("    grid:"))
    said = "torch.cuda.get_device_properties(0).multi_processor_count"
    assert line.startswith("    grid: [R]  # ? line 15: ")
    assert said in line


def test_a_constexpr_that_is_the_number_of_sms_may_stand_in_the_grid(tmp_path: Path) -> None:
    kernel = ROWS.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, NUM_SMS: tl.constexpr")
    host = (
        "def run(x, y):\n"
        "    R, C = x.shape\n"
        "    NUM_SMS = torch.cuda.get_device_properties(0).multi_processor_count\n"
        "    grid = lambda META: (min(NUM_SMS, R),)\n"
        "    twice[grid](x, y, R, C, x.stride(0), BLOCK=256, NUM_SMS=NUM_SMS)\n"
    )
    spec = of_text(tmp_path, f"import torch\n{HEAD}{kernel}\n{host}")
    assert spec["variants"]["twice"]["grid"] == ["min(NUM_SMS, R)"]
    assert "NUM_SMS" in spec["tunables"]


DESCRIPTORS = {
    "of the device": (
        "tl.make_tensor_descriptor(x_ptr, [n], [1], [BLOCK]).load([0])",
        "kernel.py: line 7: a tensor descriptor made on the device needs scratch memory",
    ),
    "of the host": (
        "x_ptr.load([0])",
        "kernel.py: line 7: a tensor descriptor of the host, which no launch here makes",
    ),
}


@pytest.mark.parametrize("case", DESCRIPTORS)
def test_descriptors_are_told_with_their_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load, said = DESCRIPTORS[case]
    body = BODY.replace("tl.load(x_ptr + i, mask=i < n)", load)
    of_text(tmp_path, f"{HEAD}{body}")
    assert any(line.startswith(said) for line in capsys.readouterr().out.splitlines())


def test_a_function_whose_store_is_not_found_has_a_question(tmp_path: Path) -> None:
    of_text(tmp_path, f"{HEAD}{BODY.replace('tl.store(', 'unknown(')}")
    text = (tmp_path / "mine" / "spec.yaml").read_text()
    assert "role: output}  # ? role: no store of scale was found" in text


def test_a_block_that_no_loop_steps_by_holds_the_row(tmp_path: Path) -> None:
    body = ROWS.replace("    for start in range(0, cols, BLOCK):\n", "    if rows:\n")
    spec = of_text(tmp_path, f"{HEAD}{body.replace('start + ', '')}")
    assert spec["macros"] == {"BLOCK": "next_power_of_2(cols)"}
    assert "BLOCK" not in spec["tunables"]


# Configurations

CONFIGS = {
    "a list": "[triton.Config({'BLOCK': 64}, num_warps=2), triton.Config({'BLOCK': 128}, 4)]",
    "a comprehension": "[triton.Config({'BLOCK': b}, num_warps=w)"
    " for b in [64, 128] for w in (2, 4)]",
    "itertools": "[triton.Config({'BLOCK': b}, num_warps=w)"
    " for b, w in itertools.product([64, 128], [2, 4])]",
    "a range": "[triton.Config(dict(BLOCK=2**i), num_warps=2 * j)"
    " for i in range(6, 8) for j in range(1, 3)]",
    "a function": "made()",
    "a name": "listed",
    "keywords": "[triton.Config(kwargs={'BLOCK': b}, **more) for b in (64, 128)"
    " for more in ({'num_warps': 2}, {'num_warps': 4})]",
    "a sum": "[*listed] + [] if len(listed) == 4 else None",
}
ABOVE = """
import itertools, os

def made(most=128):
    \"\"\"Blocks.\"\"\"
    found = []
    for block in [32, 64, 128, 256]:
        if block < 64:
            continue
        if block > most:
            break
        for warps in (2, 4):
            kwargs = {}
            kwargs["BLOCK"] = block
            found.append(triton.Config(kwargs, num_warps=warps))
    return found

listed = []
for pair in zip((64, 64, 128, 128), (2, 4) + (2, 4)):
    listed += [triton.Config({"BLOCK": pair[0]}, num_warps=pair[1])]
"""


@pytest.mark.parametrize("how", CONFIGS)
def test_configurations_are_those_of_the_run(how: str, tmp_path: Path) -> None:
    decorator = f"@triton.autotune(configs={CONFIGS[how]}, key=['n'])"
    spec = of_text(tmp_path, f"{HEAD}{ABOVE}\n{decorator}{BODY}")
    assert spec["tunables"]["BLOCK"]["values"] == [64, 128]
    assert spec["tunables"]["num_warps"]["values"] == [2, 4]
    assert spec["baseline"] == {"variant": "scale", "BLOCK": 64, "num_warps": 2}
    usual = read_yaml(tmp_path / "mine" / "usual.yaml")["choices"]
    assert usual[-1]["configuration"] == spec["baseline"]


UNREAD = {
    "a call of another file": (
        "from other import configs\n", "configs()",
        "line 5: configs of @triton.autotune: other.configs() is known only when it runs",
    ),
    "the card": (
        "import torch\nx = torch.cuda.get_device_capability()\n",
        "[triton.Config({'BLOCK': 64 if x[0] > 8 else 128})]",
        "line 4: configs of @triton.autotune: torch.cuda.get_device_capability() is known only",
    ),
    "a parameter that there is not": (
        "", "[triton.Config({'BLOCKS': 64})]",
        "line 4: configs of @triton.autotune: the kernel has no constexpr BLOCKS",
    ),
    "a value that some lack": (
        "", "[triton.Config({'BLOCK': 64}), triton.Config({})]",
        "line 4: configs of @triton.autotune: a configuration does not give BLOCK",
    ),
    "a recursion": (
        "def f():\n    return f()\n", "f()",
        "line 4: configs of @triton.autotune: maximum recursion depth exceeded",
    ),
    "a huge number": (
        "", "[triton.Config({'BLOCK': 9**9**9})]",
        "line 4: configs of @triton.autotune: takes more than 1 s of CPU time",
    ),
    "no configuration": ("", "[]", "line 4: configs of @triton.autotune: 0 configurations"),
    "a loop without an end": (
        "def f():\n    while True:\n        pass\n", "f()",
        "line 7: configs of @triton.autotune: takes more than 1 s of CPU time",
    ),
    "mixed values": (
        "", "[triton.Config({'BLOCK': 64}), triton.Config({'BLOCK': 'auto'})]",
        "line 4: configs of @triton.autotune: the values of BLOCK mix numbers and texts",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREAD)
def test_configurations_that_are_not_constant_are_told_with_their_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    above, configs, said = UNREAD[case]
    spec = of_text(tmp_path, f"{HEAD}{above}\n@triton.autotune(configs={configs}, key=['n']){BODY}")
    told = capsys.readouterr().out.splitlines()
    (line,) = (each for each in told if "configs of @triton.autotune" in each)
    assert line.startswith(f"kernel.py: {said}"), line
    assert line.endswith(": write the values by hand under tunables")
    assert f"# ? {line}" in (tmp_path / "mine" / "spec.yaml").read_text().splitlines()
    assert 1024 in spec["tunables"]["BLOCK"]["values"]
    assert not (tmp_path / "mine" / "usual.yaml").exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("{'BLOCK_X': 32}", "the kernel has no constexpr BLOCK_X (did you mean BLOCK?)"),
        ("{'BLOCK': 32, 'STEPS': 2}", "the kernel has no constexpr STEPS"),
        ("{}", "it does not give BLOCK"),
    ],
)
def test_a_wrong_configuration_is_told_with_its_line_and_the_others_stay(
    wrong: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = [f"triton.Config({{'BLOCK': {block}}}, num_warps=4)" for block in (64, 128, 256)]
    configs = ",\n".join([*right[:2], f"triton.Config({wrong}, num_warps=4)", right[2]])
    spec = of_text(tmp_path, f"{HEAD}@triton.autotune(configs=[{configs}], key=['n']){BODY}")
    assert spec["tunables"]["BLOCK"]["values"] == [64, 128, 256]
    note = f"kernel.py: line 5: a configuration of @triton.autotune is left out: {said}"
    assert note in capsys.readouterr().out.splitlines()


def test_the_name_that_is_meant_is_one_that_the_configuration_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = BODY.replace("BLOCK:", "BLOCK_M: tl.constexpr, BLOCK_N:").replace(
        "* BLOCK ", "* BLOCK_N "
    )
    body = body.replace("(0, BLOCK)", "(0, BLOCK_N)")
    right, wrong = "{'BLOCK_M': 1, 'BLOCK_N': 64}", "{'BLOCK_X': 1, 'BLOCK_N': 64}"
    configs = f"[triton.Config({right}), triton.Config({wrong})]"
    of_text(tmp_path, f"{HEAD}@triton.autotune(configs={configs}, key=['n']){body}")
    assert "no constexpr BLOCK_X (did you mean BLOCK_M?)" in capsys.readouterr().out


@settings(max_examples=20)
@given(
    st.lists(
        st.tuples(st.sampled_from([32, 64, 128]), st.sampled_from([1, 2, 4]), st.integers(2, 4)),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_the_space_holds_every_configuration_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, int]]
) -> None:
    made = ", ".join(
        f"triton.Config({{'BLOCK': {b}}}, num_warps={w}, num_stages={s})" for b, w, s in rows
    )
    folder = tmp_path_factory.mktemp("rows")
    spec = of_text(folder, f"{HEAD}@triton.autotune(configs=[{made}], key=['n']){BODY}")
    for place, name in enumerate(("BLOCK", "num_warps", "num_stages")):
        assert spec["tunables"][name]["values"] == sorted({row[place] for row in rows})
    # The comment is a constraint of the variant: the configurations of the file, and no other.
    path = folder / "mine" / "spec.yaml"
    text = path.read_text()
    path.write_text(text.replace("    # constraints:", "    constraints:"))
    limited = load_spec(folder / "mine")
    (variant,) = limited.variants.values()
    values = [spec["tunables"][name]["values"] for name in spec["tunables"]]
    kept = [
        row
        for row in itertools.product(*values)
        if all(
            limited.value(text, {}, dict(zip(spec["tunables"], row, strict=True)))
            for text in variant.constraints
            if text.startswith("(BLOCK")
        )
    ]
    assert sorted(kept) == sorted(rows)


def test_the_usual_choice_is_the_first_whose_blocks_the_problem_fills(tmp_path: Path) -> None:
    drafted(tmp_path / "matmul", KERNELS / "matmul.py")
    spec = load_spec(tmp_path / "matmul")
    chosen = {
        (m, n): usual_configuration(spec.usual, {"M": m, "N": n, "K": 64}, spec)
        for m, n in ((128, 256), (127, 256), (200, 255), (33, 64), (16, 16))
    }
    sides = {key: (one["BLOCK_SIZE_M"], one["BLOCK_SIZE_N"]) for key, one in chosen.items() if one}
    assert sides == {
        **{(128, 256): (128, 256), (127, 256): (64, 256), (200, 255): (128, 128)},
        **{(33, 64): (32, 64), (16, 16): (32, 64)},
    }


def test_options_that_the_host_computes_are_the_usual_choice(tmp_path: Path) -> None:
    for name, problem, warps in (
        ("quantise", {"rows": 9, "n_cols": 4000}, 8),
        ("softmax", {"n_rows": 9, "n_cols": 100}, 4),
        ("layer_norm", {"M": 9, "N": 1000}, 4),
    ):
        drafted(tmp_path / name, KERNELS / f"{name}.py")
        spec = load_spec(tmp_path / name)
        found = usual_configuration(spec.usual, problem, spec)
        assert found is not None
        assert found["num_warps"] == warps


HOOKS = {
    "a lambda": "lambda given: given['x_ptr'].zero_()",
    "several names": "zero(['x_ptr'])",
    "a loop": "looped",
}


@pytest.mark.parametrize("case", HOOKS)
def test_what_a_hook_sets_to_zero_begins_with_zeros(case: str, tmp_path: Path) -> None:
    above = (
        "def zero(names):\n    return lambda given: [given[name].zero_() for name in names]\n"
        "def looped(given):\n    for name in ('x_ptr',):\n        given[name].zero_()\n"
    )
    config = f"triton.Config({{'BLOCK': 64}}, pre_hook={HOOKS[case]})"
    spec = of_text(tmp_path, f"{HEAD}{above}\n@triton.autotune([{config}], ['n']){BODY}")
    assert spec["arguments"]["x_ptr"]["role"] == "inout"
    assert spec["arguments"]["x_ptr"]["fill"] == "zeros"
    assert "pre_hook" not in (tmp_path / "mine" / "spec.yaml").read_text()


@pytest.mark.parametrize(("key", "fill"), [("reset_to_zero", "zeros"), ("restore_value", "normal")])
def test_what_triton_puts_back_is_read_and_written(key: str, fill: str, tmp_path: Path) -> None:
    decorator = f"@triton.autotune([triton.Config({{'BLOCK': 64}})], ['n'], {key}=['x_ptr'])"
    argument = of_text(tmp_path, f"{HEAD}{decorator}{BODY}")["arguments"]["x_ptr"]
    assert (argument["role"], argument["fill"]) == ("inout", fill)


NOTES = {
    "a rule in code": (
        "@triton.heuristics({'BLOCK': lambda args: table[args['n']]})",
        "line 3: the heuristic of BLOCK: table[n] has no expression of spec.yaml: write it under "
        "macros",
    ),
    "a pre_hook": (
        "@triton.autotune([triton.Config({'BLOCK': 64}, pre_hook=lambda args: print(1))], ['n'])",
        "line 3: pre_hook is code of the host, which no launch runs: write what it sets as fill, "
        "value or inputs of the arguments",
    ),
    "what is pruned": (
        "@triton.autotune([triton.Config({'BLOCK': 64})], ['n'], {'top_k': 3})",
        "line 3: prune_configs_by is not read: write what it refuses as constraints of the variant",
    ),
}


@pytest.mark.parametrize("case", NOTES)
def test_what_a_draft_leaves_to_a_person_is_one_line(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decorator, said = NOTES[case]
    of_text(tmp_path, f"{HEAD}{decorator}{BODY}")
    assert f"kernel.py: {said}" in capsys.readouterr().out.splitlines()


SCAN = """
@triton.jit
def both(a, b):
    return a + b


@triton.jit
def prefix(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(x_ptr + i, tl.associative_scan(x, 0, both), mask=i < n)
"""


def test_a_function_that_a_scan_takes_is_no_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = of_text(tmp_path, HEAD + SCAN)
    assert [one["kernel"] for one in raw["variants"].values()] == ["prefix"]
    assert "--kernel both" not in capsys.readouterr().out


OMITTED = """
@triton.autotune(configs=[triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 64})], key=[])
@triton.jit
def scale(x_ptr, n, d, stride_n, stride_d, BLOCK: tl.constexpr, GROUP_M: tl.constexpr = 8):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    for k in range(0, d, GROUP_M):
        at = x_ptr + i * stride_n + k * stride_d
        tl.store(at, 2 * tl.load(at, mask=i < n), mask=i < n)


def run(x):
    scale[(triton.cdiv(x.shape[0], 128),)](
        x, x.shape[0], x.shape[1], x.stride(0), x.stride(1)
    )
"""


def test_the_usual_choice_has_the_default_of_what_its_configuration_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_text(tmp_path, HEAD + OMITTED)
    usual = tmp_path / "mine" / "usual.yaml"
    assert f"{usual}: what the file's users run, as it says" in capsys.readouterr().out
    spec = load_spec(tmp_path / "mine")
    problem = {name: (one.values or [one.minimum])[0] for name, one in spec.problem.items()}
    chosen = usual_configuration(spec.usual, problem, spec)
    assert chosen is not None
    assert spec.baseline["GROUP_M"] == chosen["GROUP_M"] == 8
    assert spec.tunables["GROUP_M"].neutral != 8


@pytest.mark.parametrize("said", [True, False])
def test_strides_of_a_guessed_shape_are_questions(tmp_path: Path, said: bool) -> None:
    first = "x.shape[0]" if said else "x.stride(2)"
    text = OMITTED.replace("x.stride(0), x.stride(1)", f"x.stride(0), {first}")
    of_text(tmp_path, HEAD + text)
    lines = (tmp_path / "mine" / "spec.yaml").read_text().splitlines()
    asked = [line for line in lines if "# ? stride: the file does not say all sizes of x" in line]
    assert len(asked) == (0 if said else 2)


REFUSED = {
    "no such function": (
        HEAD + BODY, ("--kernel", "scales"), "unknown @triton.jit function 'scales'",
    ),
    "a function below other code": (
        f"{HEAD}if True:\n    @triton.jit\n    def f(x):\n        pass\n", (),
        "line 5: a @triton.jit function below other code is not read: move it to the left",
    ),
    "a function without arrays": (
        f"{HEAD}\n@triton.jit\ndef f(n):\n    pass\n", (), "line 5: f loads and stores nothing",
    ),
    "no Python": (f"{HEAD}{BODY}\n(", (), "line 9: no Python: '(' was never closed"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_be_taken_is_one_line(
    case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, options, said = REFUSED[case]
    file = tmp_path / "kernel.py"
    file.write_text(text)
    assert main(["new", str(tmp_path / "mine"), "--from", str(file), *options]) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert said in line
    assert not (tmp_path / "mine").exists()
