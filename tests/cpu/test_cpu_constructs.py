"""Numbers of 16 bits, cooperative groups, host code and templates by name on the CPU device."""

import shutil

import numpy as np
import pytest

from launchwise.base.arrays import element_type
from launchwise.cpu.device import ORDERS
from launchwise.cpu.toolchain import CannotCompile
from launchwise.workloads.builds import Build
from launchwise.workloads.device import LaunchFailed
from tests.cpu.runs import KERNELS, device_for, launch

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not on the PATH")

ONE = (1, 1, 1)
bfloat16_number = element_type("bfloat16").type
HALF, BFLOAT16 = "arithmetic<half>", "arithmetic<__nv_bfloat16>"
NARROW = Build.of(
    "narrow.cu", {}, [HALF, BFLOAT16, "convert", "scale", "total", "multiply", "functions", "sum"]
)
GROUPS = Build.of("groups.cu", {}, ["softmax", "tiles", "neighbours"])
CLEARED = {
    "clear<__half>": np.float16,
    "clear<__nv_bfloat16>": np.uint16,
    "clear<cuFloatComplex>": np.complex64,
}
APPLICATION = Build.of(
    "application.cu",
    {},
    [
        *("smooth<3, float>", "smooth<1,float>", "copy", "inner::map<Doubled>"),
        *("outer::shift<float>", *CLEARED),
    ],
)


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """A device with the kernels of these tests, compiled at the same time."""
    folder = tmp_path_factory.getbasetemp() / "constructs"
    builds = [NARROW, GROUPS, APPLICATION]
    made = device_for(folder, {each.source: (KERNELS / each.source).read_text() for each in builds})
    made.prepare(*builds)
    return made


# Numbers of 16 bits


def bfloat16_bits(values):
    """Bits of the nearest bfloat16, ties to even."""
    nearest = values.astype(np.float32)
    # Cut to float32, with a bit set for what is cut off, a value is still on its side of a tie.
    cut = np.where(abs(nearest) > abs(values), np.nextafter(nearest, np.float32(0)), nearest)
    bits = cut.view(np.uint32).astype(np.uint64) | (cut != values)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bfloat16(bits):
    """Values of bfloat16 numbers."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def operations(x, y):
    """What ``arithmetic`` computes, in float64."""
    a, b = x.astype(np.float64), y.astype(np.float64)
    return np.stack([a + b, a - b, a * b, a / b, a * b + a, np.sqrt(abs(a)), np.maximum(a, -b)])


def test_half_precision_is_rounded_once(device):
    generator = np.random.default_rng(5)
    exponents = generator.integers(-12, 8, (2, 500))
    a, b = (generator.uniform(-2, 2, (2, 500)) * 2.0**exponents).astype(np.float16)
    with np.errstate(over="ignore"):
        expected = operations(a, b).astype(np.float16)
    arguments = [np.zeros((7, 500), np.float16), a, b, np.int32(500)]
    found = launch(device, NARROW, HALF, (4, 1, 1), (128, 1, 1), arguments)[0]
    assert np.array_equal(found, expected)


def test_bfloat16_is_rounded_once(device):
    generator = np.random.default_rng(6)
    a, b = bfloat16_bits(generator.normal(size=(2, 300)))
    expected = bfloat16_bits(operations(from_bfloat16(a), from_bfloat16(b)))
    arguments = [np.zeros((7, 300), np.uint16), a, b, np.int32(300)]
    found = launch(device, NARROW, BFLOAT16, (3, 1, 1), (128, 1, 1), arguments)[0]
    assert np.array_equal(found, expected)


def test_numbers_are_converted_as_numpy_does(device):
    values = np.array(
        [0, -0.0, 1, -2.5, 65504, 65520, 1e-8, 6e-8, 3e-5, 2049, 2051, np.inf, -np.inf, 0.1, 1e30],
        np.float32,
    )
    n = len(values)
    arguments = [np.zeros(n, np.float16), np.zeros(n, np.uint16)]
    arguments += [np.zeros((2, n), np.float32), values, np.int32(n)]
    half, bfloat16, back, *_ = launch(device, NARROW, "convert", ONE, (32, 1, 1), arguments)
    with np.errstate(over="ignore"):
        assert np.array_equal(half.view(np.uint16), values.astype(np.float16).view(np.uint16))
    assert np.array_equal(bfloat16, bfloat16_bits(values))
    assert np.array_equal(back, [half.astype(np.float32), from_bfloat16(bfloat16)])


def test_functions_of_half_and_complex_numbers(device, capfd):
    (failures,) = launch(device, NARROW, "functions", ONE, ONE, [np.zeros(1, np.int32)])
    assert failures[0] == 0, capfd.readouterr().out
    ones = np.ones(64, np.float16)
    out = launch(device, NARROW, "total", ONE, (64, 1, 1), [np.zeros(4, np.float16), ones])[0]
    assert out.tolist() == [64, 0, 32, 32]
    a = np.array([1 + 2j, 3 - 1j], np.complex64)
    arguments = [np.zeros(2, np.complex64), a, np.complex64(3 + 4j), np.int32(2)]
    found = launch(device, NARROW, "multiply", ONE, (32, 1, 1), arguments)[0]
    assert np.allclose(found, a * (3 + 4j) + a.conj() / 5)


COMPLEX = np.zeros(2, np.complex64)
PAIR = np.array([(1.0, 2.0)], [("re", "f4"), ("im", "f4")])[0]
TRIPLE = np.array([(1.0, 2.0, 3)], [("re", "f4"), ("im", "f4"), ("n", "i4")])[0]
RIGHT = {
    "scale": [np.arange(8, dtype="f2"), np.float16(3), bfloat16_number(0.5), np.int32(4)],
    "multiply": [COMPLEX, COMPLEX, PAIR, np.int32(2)],
    "sum": [
        *(np.zeros(1, "f4"), np.ones(1, "f4"), np.int32(1), np.int64(2), np.float32(3)),
        *(np.bool_(True), np.array([(5, 6)], [("a", "i4"), ("b", "i4")])[0]),
    ],
}


def test_right_arguments_reach_the_kernel(device):
    found = {name: launch(device, NARROW, name, ONE, (32, 1, 1), RIGHT[name])[0] for name in RIGHT}
    assert np.array_equal(found["scale"], np.arange(8) * np.float16(1.5))
    assert found["sum"] == 19


@pytest.mark.parametrize(
    ("kernel", "number", "wrong", "said"),
    [
        ("scale", 2, np.uint16(3), "is uint16, the parameter a floating-point number of 2 B"),
        ("scale", 2, bfloat16_number(1), "is bfloat16, the parameter a floating-point number"),
        ("scale", 3, np.float16(1), "is float16, the parameter a bfloat16 of 2 B"),
        ("multiply", 3, TRIPLE, "is a structure of 12 B, the parameter a structure of 8 B"),
        ("multiply", 3, np.float64(1), "is float64, the parameter a structure of 8 B"),
        ("multiply", 3, np.complex128(1), "is complex128, the parameter a structure of 8 B"),
        ("sum", 3, np.int64(1), "is int64, the parameter an integer of 4 B"),
        ("sum", 4, np.int32(1), "is int32, the parameter an integer of 8 B"),
        ("sum", 5, np.float64(1), "is float64, the parameter a floating-point number of 4 B"),
        ("sum", 5, np.int32(1), "is int32, the parameter a floating-point number of 4 B"),
        ("sum", 3, np.zeros(1), "is a buffer, the parameter an integer"),
        ("sum", 2, np.float64(0), "is float64, the parameter a buffer of 8 B"),
    ],
)
def test_arguments_have_the_types_of_the_parameters(device, kernel, number, wrong, said):
    arguments = [*RIGHT[kernel][: number - 1], wrong, *RIGHT[kernel][number:]]
    with pytest.raises(LaunchFailed, match=f"^{kernel}: argument {number} {said}"):
        launch(device, NARROW, kernel, ONE, (32, 1, 1), arguments)
    count = len(arguments)
    with pytest.raises(LaunchFailed, match=f"{kernel}: {count - 1} arguments, it has {count} para"):
        launch(device, NARROW, kernel, ONE, ONE, RIGHT[kernel][:-1])


# Cooperative groups


def softmax(device, build=GROUPS, threads=128):
    """Whether a softmax over the rows of a matrix is right."""
    values = np.random.default_rng(3).normal(size=(3, 300)).astype(np.float32)
    arguments = [np.zeros_like(values), values, np.int32(300)]
    found = launch(device, build, "softmax", (3, 1, 1), (threads, 1, 1), arguments)[0]
    powers = np.exp(values - values.max(1, keepdims=True))
    return np.allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_a_softmax_of_groups_is_right_in_every_order(device):
    assert all(softmax(device) for _ in ORDERS)
    assert all(softmax(device, threads=48) for _ in ORDERS)


@pytest.mark.parametrize("barrier", ["block.sync();  // 1", "block.sync();  // 2", "// 3"])
def test_a_missing_barrier_between_operations_of_warps_is_found(tmp_path, barrier):
    text = (KERNELS / "groups.cu").read_text()
    lines = [line for line in text.splitlines() if barrier not in line]
    device = device_for(tmp_path, {"groups.cu": "\n".join(lines)})
    assert not all(softmax(device) for _ in ORDERS)


@pytest.mark.parametrize("reader", [0, 7])
def test_warps_do_not_wait_for_each_other_at_shuffles(tmp_path, reader):
    values = np.arange(256, dtype=np.float32)

    def right(device):
        arguments = [np.zeros(1, np.float32), values]
        build = Build.of("sum.cu", {"READER": reader}, ["sum"])
        found = launch(device, build, "sum", ONE, (256, 1, 1), arguments)[0]
        return float(found[0]) == values.sum()

    text = (KERNELS / "sum.cu").read_text()
    device = device_for(tmp_path / "right", {"sum.cu": text})
    assert all(right(device) for _ in ORDERS)
    device = device_for(tmp_path / "wrong", {"sum.cu": text.replace("__syncthreads();", "")})
    assert not all(right(device) for _ in ORDERS)


def test_tiles_and_active_lanes(device):
    thread = np.arange(48)
    rank, first = thread % 8, thread // 8 * 8
    ones = np.array([sum(1 << k for k in range(8) if (f + k) % 3 == 0) for f in first])
    # Lanes of a warp with thread % 3 == 1: the warp begins at 0 or 32.
    warps = [[t for t in range(w, min(w + 32, 48)) if t % 3 == 1] for w in (0, 32)]
    active = np.full(48, -1)
    for lanes in warps:
        for place, lane in enumerate(lanes):
            active[lane] = lanes[1] * 10000 + len(lanes) * 100 + place
    expected = [
        first + 3,
        np.where(rank >= 1, thread - 1, thread),
        np.where(rank < 6, thread + 2, thread),
        thread ^ 5,
        ones,
        (first == 8) * 1 + 2 * (thread < 24),
        thread // 8 * 100 + 6,
        first + 2,
        first,
        np.full(48, 255),
        2 * (rank + 1),
        rank * (rank - 1) // 2,
        first + 7,
        200 + 40 + thread % 2,
        active,
        40 + thread % 4,
        np.full(48, 2),
        thread + 48,
    ]
    for _ in ORDERS:
        arguments = [np.zeros((48, 18), np.int32), np.int32(18)]
        found = launch(device, GROUPS, "tiles", ONE, (48, 1, 1), arguments)[0]
        for column, values in enumerate(expected):
            assert np.array_equal(found[:, column], values), column


def test_a_missing_barrier_of_a_warp_is_found(device, tmp_path):
    lane, first = np.arange(64) % 32, np.arange(64) // 32 * 32
    expected = 2 * first + (lane + 1) % 32 + (lane + 31) % 32

    def right(with_kernel):
        arguments = [np.zeros(64, np.int32)]
        found = launch(with_kernel, GROUPS, "neighbours", ONE, (64, 1, 1), arguments, 256)[0]
        return np.array_equal(found, expected)

    assert all(right(device) for _ in ORDERS)
    text = (KERNELS / "groups.cu").read_text().replace("warp.sync();", "")
    wrong = device_for(tmp_path, {"groups.cu": text})
    assert not any(right(wrong) for _ in ORDERS)


def test_each_launch_of_a_round_has_the_order_of_the_round(tmp_path):
    source = "__global__ void f(int *out) { *out = threadIdx.x; }"
    device = device_for(tmp_path, {"f.cu": source})
    build = Build.of("f.cu", {}, ["f"])
    last = {}
    for number in range(2):
        device.begin_round(number)
        for _ in range(3):
            zero = [np.zeros(1, np.int32)]
            found = launch(device, build, "f", ONE, (32, 1, 1), zero)[0]
            last.setdefault(number, []).append(int(found[0]))
    assert last == {0: [31] * 3, 1: [0] * 3}


# Host code and templates


def test_kernels_of_a_whole_program_run(device):
    values = np.arange(9, dtype=np.float32)
    blended = 0.5 * values[:-1] + 0.25 * values[1:]
    for kernel, expected in (
        ("smooth<3, float>", 6 * blended),
        ("smooth<1,float>", 2 * blended),
        ("copy", values[:-1]),
    ):
        arguments = [np.zeros(8, np.float32), values, np.int32(8)]
        found = launch(device, APPLICATION, kernel, ONE, (32, 1, 1), arguments)[0]
        assert np.array_equal(found, expected)
    arguments = [np.ones(32, np.float32)]
    found = launch(device, APPLICATION, "inner::map<Doubled>", ONE, (32, 1, 1), arguments)[0]
    assert (found == 2).all()


def test_host_code_does_not_share_names_with_variables_of_a_kernel(device):
    values = np.arange(9, dtype=np.float32)
    arguments = [np.zeros(9, np.float32), values, np.int32(8)]
    found = launch(device, APPLICATION, "outer::shift<float>", ONE, (32, 1, 1), arguments)[0]
    assert np.array_equal(found, [*(2 * values[:8] + 1), 0])


@pytest.mark.parametrize("kernel", CLEARED)
def test_types_of_template_arguments_are_known(device, kernel):
    ones = np.ones(5, CLEARED[kernel])
    found = launch(device, APPLICATION, kernel, ONE, (4, 1, 1), [ones])[0]
    assert found.tolist() == [0, 0, 0, 0, 1]


def test_builds_are_compiled_before_they_are_launched(tmp_path):
    source = "__global__ void f(int *out) { *out = N; }"
    device = device_for(tmp_path, {"f.cu": source})
    builds = [Build.of("f.cu", {"N": value}, ["f"]) for value in (1, "typo", 2)]
    with pytest.raises(CannotCompile, match=r"^f\.cu:1: 'typo' was not declared"):
        device.prepare(*builds)
    assert len(list((tmp_path / "compiled").glob("*.so"))) == 2
