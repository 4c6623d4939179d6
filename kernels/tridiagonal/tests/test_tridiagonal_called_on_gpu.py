"""The solver as a library function on a real GPU: streams, threads, arrays of other libraries."""

import threading
import time

import numpy as np
import pytest

from kernels.tridiagonal.host.accuracy import allowed_error, backward_error
from kernels.tridiagonal.solver import TooLittleMemory, clear_plans, solve

pytestmark = pytest.mark.gpu


def system(n, dtype="float64", seed=0, batch=1):
    """Row-dominant systems, shape (n,), or (batch, n) for more than one."""
    dice = np.random.default_rng(seed)
    shape = (n,) if batch == 1 else (batch, n)
    a, c, d = dice.uniform(-1, 1, (3, *shape))
    a[..., 0] = c[..., -1] = 0
    b = (np.abs(a) + np.abs(c) + dice.uniform(0.1, 1, shape)) * dice.choice([-1, 1], shape)
    return [each.astype(dtype) for each in (a, b, c, d)]


def fits(arrays, x):
    """Whether x solves the systems: arrays of shape (n,) or (batch, n)."""
    flat = [each.reshape(-1) for each in arrays]
    return backward_error(flat, x.reshape(-1)) <= allowed_error(arrays[0].dtype)


class Cupy:
    def __init__(self):
        self.module = pytest.importorskip("cupy")

    def array(self, values):
        return self.module.asarray(values)

    def host(self, array):
        return array.get()

    def stream(self):
        return self.module.cuda.Stream(non_blocking=True)

    def on(self, stream):
        return stream

    def done(self, stream):
        return bool(stream.done)

    def synchronize(self):
        self.module.cuda.Device().synchronize()


class Torch:
    def __init__(self):
        self.module = pytest.importorskip("torch")

    def array(self, values):
        return self.module.as_tensor(values, device="cuda")

    def host(self, array):
        return array.cpu().numpy()

    def stream(self):
        return self.module.cuda.Stream()

    def on(self, stream):
        return self.module.cuda.stream(stream)

    def done(self, stream):
        return bool(stream.query())

    def synchronize(self):
        self.module.cuda.synchronize()


@pytest.fixture(params=[Cupy, Torch])
def gpu(request):
    return request.param()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 3, 1000, 2049, 10**4 + 1, 300_001, 10**6 + 1])
def test_systems_of_all_sizes(gpu, n, dtype):
    arrays = system(n, dtype)
    x = solve(*map(gpu.array, arrays), check=True)
    assert type(x) is type(gpu.array(arrays[1]))
    assert fits(arrays, gpu.host(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "batch"), [(2, 5), (100, 1000), (5001, 33), (70, 20_000)])
def test_both_orders_of_a_batch(gpu, n, batch, dtype):
    arrays = system(n, dtype, 1, batch)
    assert fits(arrays, gpu.host(solve(*map(gpu.array, arrays), check=True)))
    turned = [np.ascontiguousarray(each.T) for each in arrays]
    x = solve(*map(gpu.array, turned), interleaved=True, check="sample", check_dominance=True)
    assert fits(arrays, np.ascontiguousarray(gpu.host(x).T))


@pytest.mark.parametrize("how", ["current", "stream", "handle"])
def test_work_runs_in_the_order_of_its_stream(gpu, how):
    arrays = system(10**5)
    a, b, c, d = map(gpu.array, arrays)
    late, x = gpu.array(np.full(10**5, np.nan)), gpu.array(np.full(10**5, np.nan))
    ballast = gpu.array(np.ones(1 << 26, np.float32))
    stream = gpu.stream()
    handle = stream.ptr if hasattr(stream, "ptr") else stream.cuda_stream
    named = {"current": {}, "stream": {"stream": stream}, "handle": {"stream": handle}}[how]

    def queue():
        if how == "current":
            with gpu.on(stream):
                solve(a, b, c, late, x, **named)
        else:
            solve(a, b, c, late, x, **named)

    queue()
    gpu.synchronize()
    with gpu.on(stream):
        for _ in range(100):
            ballast *= 1
        late[:] = d
    queue()
    waited = gpu.done(stream)
    with gpu.on(stream):
        twice = x * 2
        # What comes later must not reach the system.
        late[:] = 0
    gpu.synchronize()
    assert not waited
    assert fits(arrays, gpu.host(x))
    assert np.array_equal(gpu.host(twice), 2 * gpu.host(x))


def run_threads(work, count):
    """Run ``work`` in threads, and raise what one of them raises."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("streams", ["own", "default"])
def test_threads_do_not_disturb_each_other(gpu, streams):
    systems = [system(20_000, seed=number) for number in range(4)]
    given = [[gpu.array(each) for each in arrays] for arrays in systems]
    places = [[gpu.array(np.full(20_000, np.nan)) for _ in range(50)] for _ in systems]
    own = [gpu.stream() for _ in systems]
    gpu.synchronize()

    def work(number):
        named = {"stream": own[number]} if streams == "own" else {}
        for place in places[number]:
            solve(*given[number], place, **named)

    run_threads(work, len(systems))
    gpu.synchronize()
    for arrays, found in zip(systems, places, strict=True):
        first = gpu.host(found[0])
        assert fits(arrays, first)
        assert all(np.array_equal(gpu.host(each), first) for each in found)


@pytest.mark.parametrize("n", [1000, 10**4, 10**6])
def test_repeated_calls_read_their_arrays_anew(gpu, n):
    arrays = system(n)
    a, b, c, d = map(gpu.array, arrays)
    places = [solve(a, b, c, d) for _ in range(2)]
    kept = []
    # Addresses repeat, change and return; what lies there changes between all calls.
    for number, place in enumerate((0, 0, 0, 1, 1, 0, 1, 1, 1)):
        d *= -1
        d += number
        kept.append((gpu.host(d).copy(), solve(a, b, c, d, places[place]) * 1))
    gpu.synchronize()
    for right, x in kept:
        assert fits([*arrays[:3], right], gpu.host(x))


class ByDlpack:
    def __init__(self, array):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream=None):
        return self._array.__dlpack__(stream=stream)


class ByInterface:
    """An array that has ``__cuda_array_interface__`` alone."""

    def __init__(self, array):
        self._array = array

    @property
    def __cuda_array_interface__(self):
        return self._array.__cuda_array_interface__


@pytest.mark.parametrize("kind", [ByDlpack, ByInterface])
def test_general_interfaces(gpu, kind):
    arrays = system(5000)
    x = gpu.array(np.full(5000, np.nan))
    given = [kind(gpu.array(each)) for each in arrays]
    solve(*given, kind(x))
    gpu.synchronize()
    assert fits(arrays, gpu.host(x))
    with pytest.raises(ValueError, match="x= must be given"):
        solve(*given)


def test_what_requires_a_gradient_is_refused():
    gpu = Torch()
    a, b, c, d = map(gpu.array, system(100))
    with pytest.raises(ValueError, match="d requires a gradient"):
        solve(a, b, c, d.requires_grad_())


@pytest.mark.times
def test_too_little_memory_says_how_much_is_needed():
    gpu = Cupy()
    cupy = gpu.module
    clear_plans()
    n, batch = 4096, 8192
    arrays = [cupy.zeros((n, batch)) for _ in range(5)]
    arrays[1] += 1
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.cuda.Device().synchronize()
    free, _ = cupy.cuda.runtime.memGetInfo()
    hog = cupy.cuda.runtime.malloc(free - (200 << 20))
    try:
        with pytest.raises(TooLittleMemory, match=r"device 0 has \d+ bytes free, solving needs"):
            solve(*arrays, interleaved=True)
    finally:
        cupy.cuda.runtime.free(hog)
    solve(*arrays, interleaved=True, check="sample")
    clear_plans()


def test_a_warm_call_does_not_wait(gpu):
    arrays = [gpu.array(each) for each in system(10**7)]
    x = solve(*arrays)
    gpu.synchronize()
    begin = time.perf_counter()
    for _ in range(50):
        solve(*arrays, x)
    queued = time.perf_counter() - begin
    gpu.synchronize()
    assert queued < 0.5 * (time.perf_counter() - begin)
