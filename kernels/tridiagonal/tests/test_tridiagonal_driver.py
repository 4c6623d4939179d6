"""What the solver hands to the CUDA driver, and its kernels as nvcc compiles them."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from samples import ROOT

from kernels.tridiagonal.host.launches import LAYOUTS, build
from kernels.tridiagonal.solver.interleaved import interleaved_words
from kernels.tridiagonal.solver.opening import CHECKS, FOLDER, INTERLEAVED, kernels
from kernels.tridiagonal.solver.plans import SOURCE
from launchwise.base.errors import UserError
from launchwise.measuring.bundle import Bundle, write_bundle
from launchwise.measuring.compile import compile_bundle
from launchwise.workloads.builds import Build, real_macro
from launchwise.workloads.spec import load_spec

ADDRESSES = [0x7F8000000000 + 0x10000 * number for number in range(5)]
STREAM = 0x5566778899AA
CAPTURED = 0xCA97  # the stub says of this stream that it is being captured

CHILD = """
import sys, threading
from types import SimpleNamespace
from kernels.calling.driver import Card, located
from kernels.calling.driver import CudaError
from kernels.tridiagonal.solver.plans import TooLittleMemory
from kernels.tridiagonal.solver.solving import DeviceSolver

card = Card(0)
card.take_kernels(sys.argv[1])
solver = DeviceSolver(lambda number: card, located, lambda device, stream: card.wait(stream))

def array(address, shape=(1000,)):
    facts = {"shape": shape, "typestr": "<f8", "data": (address, False), "version": 3}
    return SimpleNamespace(__cuda_array_interface__=facts)

addresses = [int(each) for each in sys.argv[3:]]
given = [array(each) for each in addresses]
stream = int(sys.argv[2])
solver.solve(*given, stream)
# Another thread, which has no context, and an array that moved.
moved = [*given[:4], array(addresses[4] + 8192)]
thread = threading.Thread(target=solver.solve, args=(*moved, stream))
thread.start()
thread.join()
solver.solve(*[array(each * 16, (20000,)) for each in addresses], stream)
solver.solve(*given, stream, check_dominance=False, check="sample")
print(card.arch, card.sms, card.shared_limit, len(solver.plans[0]))
try:
    solver.solve(*(array(each << 10, (40000, 8000)) for each in addresses), interleaved=True)
except TooLittleMemory as error:
    print(error)
try:
    card.driver("cuFuncSetAttribute", 0, 7, 7)
except CudaError as error:
    print(error)
solver.clear()
"""


@pytest.fixture
def bundle(tmp_path):
    dtype = np.dtype("float64")
    named = {build(layout, dtype): ("reduce", "substitute") for layout in LAYOUTS}
    named[build("finish", dtype)] = ("finish",)
    named[Build.of(SOURCE, real_macro("float64"))] = ("dominance", "residual")
    resources = {"registers": 1, "spill_bytes": 0, "shared_bytes": 0}
    index = {
        "arch": "sm_90",
        "toolkit": "13.0",
        "fingerprint": "none",
        "cubins": ["0.cubin"],
        "builds": {
            each.key: {
                name: {"cubin": "0.cubin", "symbol": each.symbol(name), **resources}
                for name in names
            }
            for each, names in named.items()
        },
    }
    path = tmp_path / "empty.cubins"
    write_bundle(path, index, {"0.cubin": b"\x7fELF"})
    return path


def logged(program, bundle, folder, *streams):
    """Launches that a driver without a GPU writes down for a program, and what that prints."""
    stub, log = folder / "libcuda.so.1", folder / "log"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(stub)]
    subprocess.run([*command, str(ROOT / "tests/support/cuda_stub.c")], check=True)
    places = {"LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(bundle), *map(str, (*streams, *ADDRESSES))],
        env={**os.environ, **places, "LAUNCHWISE_STUB_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return log.read_text().splitlines(), done.stdout.splitlines()


REPEATED = """
import sys
from types import SimpleNamespace
from kernels.calling.driver import Card, located
from kernels.tridiagonal.solver.solving import DeviceSolver

card = Card(0)
card.take_kernels(sys.argv[1])
solver = DeviceSolver(lambda number: card, located, lambda device, stream: card.wait(stream))
stream, captured, *addresses = map(int, sys.argv[2:])

def solved(stream, shift):
    facts = [
        {"shape": (20000,), "typestr": "<f8", "data": (16 * each + shift, False), "version": 3}
        for each in addresses
    ]
    given = [SimpleNamespace(__cuda_array_interface__=each) for each in facts]
    solver.solve(*given, stream)

for shift in (0, 0, 0, 64, 0, 64, 64, 64):
    solved(stream, shift)
for _ in range(3):
    solved(captured, 0)
solver.clear()
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_repeated_calls_are_replayed(bundle, tmp_path):
    calls = logged(REPEATED, bundle, tmp_path, STREAM, CAPTURED)[0]
    assert len(calls) == 11 * 3
    each = [calls[3 * number : 3 * number + 3] for number in range(11)]
    # A graph is made when the same addresses come a second time, and follows others likewise.
    replayed = ["replayed" in call[0] for call in each]
    assert replayed == [False, True, True, False, True, False, True, True, False, False, False]
    alone = [[line.removesuffix(" replayed") for line in call] for call in each]
    assert alone[0] == alone[1] == alone[2] == alone[4]
    assert alone[3] == alone[5] == alone[6] == alone[7] != alone[0]
    assert all(hex(CAPTURED) in line for call in alone[8:] for line in call)
    for call in each:
        assert len({"replayed" in line for line in call}) == 1
        assert [line.split()[0] for line in call] == ["reduce", "finish", "substitute"]


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_driver_is_given_whole_addresses(bundle, tmp_path):
    launches, printed = logged(CHILD, bundle, tmp_path, STREAM)
    facts, memory, refused = printed
    assert facts == "sm_90 132 232448 2"
    needed = 8 * interleaved_words(40000, 8000)
    assert memory.startswith(f"device 0 has 1073741824 bytes free, solving needs {needed} bytes")
    assert refused == "cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE (1)"
    first, moved, *cut, again, residual = [line.split() for line in launches]
    # 1000 rows in one block of as many threads in whole warps; six words of shared memory a row.
    shape = ["1", "1", "1", "1024", "1", "1", str(6 * 1000 * 8), hex(STREAM)]
    addresses = [f"{each:x}" for each in ADDRESSES]
    assert first == ["finish", *shape, *addresses, "1000", "0"]
    assert moved == ["finish", *shape, *addresses[:4], f"{ADDRESSES[4] + 8192:x}", "1000", "0"]
    assert again == first
    assert residual[0] == "residual"
    assert [line[0] for line in cut] == ["reduce", "finish", "substitute"]
    inner, outer = cut[1], cut[2]
    assert cut[0][9:13] == outer[9:13] == [f"{16 * each:x}" for each in ADDRESSES[:4]]
    # 2500 sub-systems of 8 rows, 64 to a block, leave two rows of each of 40 blocks.
    assert (cut[0][1], cut[0][4], inner[-2:]) == ("40", "64", ["80", "0"])
    # The interface's solution takes the place of its right-hand side.
    assert inner[12] == inner[13] == outer[13]


needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")

KERNELS = {
    CHECKS: ("dominance", "residual"),
    INTERLEAVED: ("reduce_interleaved", "substitute_interleaved", "thomas_interleaved"),
}


@pytest.mark.nvcc
@needs_nvcc
def test_kernels_beside_the_measured_ones_are_compiled(tmp_path):
    builds = [
        Build.of(source, real_macro(np.dtype(dtype).name))
        for source in KERNELS
        for dtype in ("float32", "float64")
    ]
    path = tmp_path / "some.cubins"
    compile_bundle(FOLDER, load_spec(FOLDER), builds, "sm_90", path, 1)
    bundle = Bundle(path)
    for each in builds:
        for name in KERNELS[each.source]:
            assert bundle.kernel(each, name).spill_bytes == 0


@pytest.mark.nvcc
@needs_nvcc
def test_an_architecture_without_a_kernel_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError) as caught:
        kernels("sm_20")
    assert re.search(r"sm_20.*nvcc failed", str(caught.value))
    assert list(tmp_path.rglob("*.cubins")) == []
