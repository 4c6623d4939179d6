"""The solver as a library function, with its kernels' own sources on the CPU."""

import gc
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from test_tridiagonal import error, system

from kernels.calling.arrays import read_capsule, stream_handle
from kernels.tridiagonal.host.accuracy import InaccurateSolution
from kernels.tridiagonal.solver import NotDominant, TooLittleMemory, solve
from kernels.tridiagonal.solver.from_host import insist_on_dominance
from kernels.tridiagonal.solver.plans import Plan, PlanCache, Shape
from kernels.tridiagonal.solver.solving import DeviceSolver, usual_choice
from tests.support.host_machine import HostMachine

FITS = {"float64": 1e-14, "float32": 1e-5}


@pytest.fixture
def machine(device):
    return HostMachine(device)


@pytest.fixture
def solver(machine):
    return DeviceSolver(lambda number: machine, lambda pointer: 0, lambda device, stream: None)


def on_device(array, **facts):
    return SimpleNamespace(
        __cuda_array_interface__={
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": array.strides,
            "version": 3,
            **facts,
        },
        keeps=array,
    )


def batch_of(n, batch, dtype):
    systems = [system(n, dtype, number) for number in range(batch)]
    stacked = [np.stack(each) for each in zip(*systems, strict=True)]
    stacked[0][:, 0] = stacked[2][:, -1] = 0
    return stacked


def interleaved_of(stacked):
    return [np.ascontiguousarray(each.T) for each in stacked]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [2, 3, 1000, 20011])
def test_one_system(solver, rows, dtype):
    arrays, x = system(rows, dtype, rows), np.full(rows, np.nan, dtype)
    place = on_device(x)
    assert solver.solve(*map(on_device, arrays), place, check=True) is place
    assert error(x, arrays) < FITS[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "batch"), [(2, 3), (5, 200), (64, 7), (65, 7), (131, 5), (3000, 2)])
def test_both_orders_of_a_batch_give_the_same(solver, n, batch, dtype):
    stacked = batch_of(n, batch, dtype)
    x = np.full((batch, n), np.nan, dtype)
    solver.solve(*map(on_device, stacked), on_device(x), check=True)
    turned = interleaved_of(stacked)
    # What systems hold outside of themselves is not used.
    turned[0][0] = turned[2][-1] = np.nan
    other = np.full((n, batch), np.nan, dtype)
    solver.solve(*map(on_device, turned), on_device(other), interleaved=True, check=True)
    for number in range(batch):
        arrays = [each[number] for each in stacked]
        assert error(x[number], arrays) < FITS[dtype]
        assert error(other[:, number], arrays) < FITS[dtype]


@pytest.mark.parametrize("interleaved", [False, True])
def test_the_solution_may_take_the_place_of_d(solver, interleaved):
    stacked = batch_of(300, 4, "float64")
    given = interleaved_of(stacked) if interleaved else stacked
    a, b, c, d = map(on_device, given)
    solver.solve(a, b, c, d, d, interleaved=interleaved)
    found = given[3].T if interleaved else given[3]
    for number in range(4):
        whole = batch_of(300, 4, "float64")
        assert error(found[number], [each[number] for each in whole]) < 1e-14


def test_every_stream_has_its_plan(solver, machine):
    arrays, x = [on_device(each) for each in system(100, "float64", 1)], np.empty(100)
    for stream in (0, 1, 5, 7, 5):
        solver.solve(*arrays, on_device(x), stream)
    # 0 and 1 are both the default stream.
    assert len(solver.plans[0]) == 3
    assert machine.queued == [0, 0, 5, 7, 5]
    solver.solve(*(on_device(each.keeps, stream=9) for each in arrays), on_device(x, stream=9))
    assert machine.queued[-1] == 9


def test_the_per_thread_stream_is_another_one_in_every_thread(solver):
    arrays, x = [on_device(each) for each in system(100, "float64", 1)], np.empty(100)
    solver.solve(*arrays, on_device(x), 2)
    thread = threading.Thread(target=lambda: solver.solve(*arrays, on_device(x), 2))
    thread.start()
    thread.join()
    assert len(solver.plans[0]) == 2


def test_writes_on_another_stream_are_waited_for(machine):
    waited = []
    solver = DeviceSolver(
        lambda number: machine, lambda pointer: 0, lambda *which: waited.append(which)
    )
    a, b, c, d = system(100, "float64", 1)
    x = np.empty(100)
    given = on_device(a, stream=4), on_device(b, stream=6), on_device(c, stream=6)
    solver.solve(*given, on_device(d, stream=None), on_device(x))
    assert waited == [(0, 4)]


def test_the_cache_forgets_what_was_not_used_for_longest(machine, device):
    free = device.free_bytes
    plans = PlanCache(machine, most_plans=2)

    def find(rows):
        shape = Shape(rows, 1, np.dtype("float64"), False)
        problem = {"n": rows, "batch": 1, "dtype": "float64", "memory": "device"}
        return plans.find(rows, lambda: (shape, usual_choice(problem), 0))

    first, second = find(5000), find(6000)
    assert find(5000) is first
    find(7000)
    assert (first.closed, second.closed, len(plans)) == (False, True, 2)
    # What another thread still holds queues nothing.
    assert not second.run((0,) * 5)
    assert find(6000) is not second
    assert first.closed
    plans.clear()
    assert device.free_bytes == free


def test_the_cache_is_bounded_by_its_memory(machine):
    shape = Shape(1000, 4, np.dtype("float64"), True)
    plans = PlanCache(machine, most_bytes=100_000)
    made = [plans.find(each, lambda: (shape, None, 0)) for each in range(5)]
    assert sum(plan.nbytes for plan in made if not plan.closed) <= 100_000
    assert not made[-1].closed


def test_too_little_memory_says_how_much_is_needed(device, solver):
    stacked, x = batch_of(300, 100, "float64"), np.full((100, 300), 7.0)
    solver.solve(*map(on_device, stacked), on_device(x))
    solved, device.free_bytes = x.copy(), 1000
    given = [on_device(each) for each in (*interleaved_of(stacked), x.reshape(300, 100))]
    # A word per row, and four arrays of 18 interface rows per system.
    needed = 8 * 100 * (300 + 4 * 18)
    with pytest.raises(TooLittleMemory, match=f"needs {needed} bytes beside the arrays"):
        solver.solve(*given, interleaved=True)
    assert np.array_equal(x, solved)


def test_a_system_that_is_not_dominant_is_not_touched(solver):
    stacked = batch_of(50, 3, "float64")
    stacked[1][2, 7] = 1e-3
    stacked[1][2, 9] = np.nan
    said = "2 of 150 rows, the first is row 7 of system 2"
    for interleaved in (False, True):
        arrays = interleaved_of(stacked) if interleaved else stacked
        x = np.full(arrays[0].shape, 7.0)
        given, order = map(on_device, (*arrays, x)), {"interleaved": interleaved}
        with pytest.raises(NotDominant, match=said):
            solver.solve(*given, **order, check_dominance=True)
        with pytest.raises(NotDominant, match=said):
            insist_on_dominance(arrays, **order)
        assert (x == 7).all()


def test_a_dominant_system_passes(solver):
    arrays, x = system(1000, "float32", 1), np.empty(1000, np.float32)
    # Equality is enough, and what stands outside the system does not count.
    arrays[0][0] = arrays[2][-1] = 0
    arrays[1][:] = np.abs(arrays[0]) + np.abs(arrays[2]) + np.float32(0.01)
    arrays[0][0] = arrays[2][-1] = np.nan
    insist_on_dominance(arrays, interleaved=False)
    arrays[0][0] = arrays[2][-1] = 50
    solver.solve(*map(on_device, arrays), on_device(x), check_dominance=True)


def test_a_coupled_batch_is_found(solver):
    stacked = batch_of(50, 3, "float64")
    stacked[0][1, 0] = 0.01
    x = np.full((3, 50), 7.0)
    with pytest.raises(NotDominant, match=r"must be zero: 1 of 6 are not"):
        solver.solve(*map(on_device, stacked), on_device(x), check_dominance=True)
    assert (x == 7).all()
    stacked[0][1, 0] = 1.0
    with pytest.raises(InaccurateSolution):
        solver.solve(*map(on_device, stacked), on_device(x), check=True)


@pytest.mark.parametrize("check", [True, "sample"])
def test_an_inaccurate_solution_is_found(solver, check):
    # b of 1e-9 before couplings of 1: elimination without pivots loses everything.
    rows = 4000
    a, c, b = np.ones(rows), np.ones(rows), np.full(rows, 1e-9)
    d, x = np.random.default_rng(1).uniform(-1, 1, rows), np.empty(rows)
    with pytest.raises(InaccurateSolution, match="row-dominant"):
        solver.solve(*map(on_device, (a, b, c, d)), on_device(x), check=check)


@pytest.mark.parametrize("interleaved", [False, True])
def test_samples_look_at_all_rows_in_time(machine, interleaved):
    n, batch = 130, 63
    stacked = batch_of(n, batch, "float64")
    arrays = interleaved_of(stacked) if interleaved else stacked
    shape = Shape(n, batch, np.dtype("float64"), interleaved)
    plan = Plan(machine, shape, None if interleaved else usual_choice(
        {"n": n, "batch": batch, "dtype": "float64", "memory": "device"}), 0)  # fmt: skip
    x = np.empty_like(arrays[1])
    pointers = [each.ctypes.data for each in (*arrays, x)]
    plan.run(pointers)
    whole = plan.backward_error(pointers, sample=False)
    assert whole < 1e-15
    samples = [plan.backward_error(pointers, sample=True) for _ in range(200)]
    assert 0 < max(filter(None, samples)) < 1e-14
    assert len(set(samples)) > 16
    x.reshape(-1)[4321] += 1
    found = [plan.backward_error(pointers, sample=True) for _ in range(200)]
    # Each looks at about one row of sixteen; the neighbours' residuals show it, too.
    assert 3 <= sum(error is not None and error > 1e-3 for error in found) <= 60
    x[...] = np.nan
    assert plan.backward_error(pointers, sample=True) == np.inf
    plan.close()
    assert plan.backward_error(pointers, sample=True) is None


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        ({0: np.ones(9)}, {}, r"must be alike, not a float64 \(9,\) on device 0"),
        ({1: np.ones(10, np.float32)}, {}, r"must be alike.* b float32 \(10,\)"),
        ({2: np.ones((1, 10))}, {}, "must be alike"),
        ({3: np.ones(20)[::2]}, {}, r"d must be contiguous, not of shape \(10,\) strides \(16,\)"),
        (dict.fromkeys(range(5), np.ones(10, int)), {}, "float32 or float64, not int64"),
        (dict.fromkeys(range(5), np.ones((2, 2, 2))), {}, r"\(n,\) or \(batch, n\)"),
        (dict.fromkeys(range(5), np.ones(0)), {}, r"at least one system of 2 rows, not \(0,\)"),
        (dict.fromkeys(range(5), np.ones((0, 4))), {}, r"at least one system.*not \(0, 4\)"),
        (dict.fromkeys(range(5), np.ones(1)), {}, "n = 1 row"),
        (dict.fromkeys(range(5), np.ones((1, 4))), {"interleaved": True}, "n = 1 row"),
        ({}, {"interleaved": True}, r"\(n, batch\)"),
        ({}, {"how": {"layout": "stagged"}}, "unknown layout 'stagged'"),
        ({}, {"how": {"sizes": (2,)}}, "m = 2 is below 3"),
        ({}, {"how": {"thread": 32}}, "unknown argument 'thread'"),
        ({}, {"how": {"finish_on_host": True}}, "host memory"),
        ({}, {"stream": "first"}, "stream= takes a stream or its handle"),
        ({}, {"stream": -1}, "stream= takes a stream or its handle"),
    ],
)
def test_bad_input_is_said_and_nothing_changes(solver, machine, changed, options, said):
    arrays = [*system(10, "float64", 1), np.full(10, 7.0)]
    for number, array in changed.items():
        arrays[number] = array
    with pytest.raises(ValueError, match=said) as caught:
        solver.solve(*map(on_device, arrays), **options)
    assert "\n" not in str(caught.value)
    assert machine.queued == []


def test_arrays_elsewhere_are_refused(solver):
    a, b, c, d = system(10, "float64", 1)
    x = np.empty(10)
    with pytest.raises(ValueError, match="a is in host memory"):
        solver.solve(a, *map(on_device, (b, c, d, x)))
    with pytest.raises(ValueError, match="c is on a device, b is in host memory"):
        solve(a, b, on_device(c), d)
    with pytest.raises(ValueError, match="x may not be written"):
        solver.solve(*map(on_device, (a, b, c, d)), on_device(x, data=(x.ctypes.data, True)))
    with pytest.raises(ValueError, match="c has a mask"):
        solver.solve(on_device(a), on_device(b), on_device(c, mask=x), on_device(d), on_device(x))
    with pytest.raises(ValueError, match="x= must be given"):
        solver.solve(*map(on_device, (a, b, c, d)))


def test_arrays_of_two_devices_are_refused(machine):
    a, b, c, d = system(10, "float64", 1)
    x = np.empty(10)
    solver = DeviceSolver(
        lambda number: machine,
        lambda pointer: 1 if pointer == d.ctypes.data else 0,
        lambda device, stream: None,
    )
    with pytest.raises(ValueError, match=r"d float64 \(10,\) on device 1"):
        solver.solve(*map(on_device, (a, b, c, d, x)))


@pytest.mark.parametrize("onto", [0, 1, 2])
def test_an_overlapping_place_is_refused(solver, onto):
    arrays = [on_device(each) for each in system(10, "float64", 1)]
    with pytest.raises(ValueError, match="x may be d"):
        solver.solve(*arrays, arrays[onto])
    memory = np.ones(15)
    a, b, c, _ = arrays
    with pytest.raises(ValueError, match="x may be d"):
        solver.solve(a, b, c, on_device(memory[:10]), on_device(memory[5:]))


def test_a_capsule_is_read():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    for each in (array, array[:, 1:3], array[1]):
        tensor = read_capsule(each.__dlpack__())
        assert tensor.pointer == each.ctypes.data
        assert tensor.shape == each.shape
        assert tensor.dtype == np.float32
        assert tensor.device_kind == 1
        strides = [size // 4 for size in each.strides]
        assert tensor.strides is None or list(tensor.strides) == strides
    with pytest.raises(ValueError, match="PyCapsule"):
        read_capsule(object())
    # Its memory is its own again.
    del tensor
    gc.collect()
    assert array.sum() == 66


class Exported:
    """Memory of the CPU that says it is on a device, by DLPack alone."""

    def __init__(self, array, kind=2):
        self._array = array
        self._kind = kind
        self.asked = []

    def __dlpack_device__(self):
        return self._kind, 0

    def __dlpack__(self, *, stream):
        self.asked.append(stream)
        return self._array.__dlpack__()


def test_memory_of_the_host_is_refused_by_dlpack(solver):
    b = Exported(np.ones(10))
    assert solver.libraries.of(b) is not solver.libraries.host
    assert solver.libraries.of(Exported(np.ones(10), 1)) is solver.libraries.host
    with pytest.raises(ValueError, match="b is on a device of DLPack kind 1"):
        solver.solve(b, b, b, b, b)
    # 0 has no single meaning for DLPack: the default stream is 1.
    assert b.asked == [1]


def test_streams_of_libraries_have_handles():
    assert stream_handle(SimpleNamespace(ptr=17)) == 17
    assert stream_handle(SimpleNamespace(cuda_stream=17)) == 17
    assert stream_handle(SimpleNamespace(handle=SimpleNamespace(value=None))) == 0
    assert stream_handle(SimpleNamespace(__cuda_stream__=lambda: (0, 17))) == 17
    assert stream_handle(1) == stream_handle(0) == 0


def test_two_threads_share_a_plan(solver):
    wrong = []

    def work(seed):
        for number in range(5):
            arrays, x = system(3001, "float64", 10 * seed + number), np.full(3001, np.nan)
            solver.solve(*map(on_device, arrays), on_device(x))
            if not error(x, arrays) < 1e-14:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(solver.plans[0]) == 1


def test_host_arrays_take_no_stream():
    arrays = system(10, "float64", 1)
    with pytest.raises(ValueError, match="stream= is for arrays on a device"):
        solve(*arrays, stream=0)
