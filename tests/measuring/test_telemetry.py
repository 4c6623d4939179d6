"""Telemetry: what samples of a card say of a span of time, and that sampling harms nobody."""

import contextlib
import itertools
import logging
import math
import threading
import time
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchwise.measuring.cards import NoNvml
from launchwise.measuring.telemetry import KEEP_S, MEANS, REASONS, Sample, Telemetry


def played(samples):
    """Telemetry that has seen these samples and has ended."""
    waiting, seen = iter(samples), threading.Event()

    def source():
        for sample in waiting:
            return sample
        seen.set()
        raise NoNvml("all samples are played")

    with Telemetry(source, period_s=0) as telemetry:
        assert seen.wait(10)
    return telemetry


gaps = st.floats(0.001, 0.03)
starts = st.floats(0, 1e6)
shares = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)
anywhere = st.floats(-0.2, 1.2)


@st.composite
def sampled_times(draw, least=2):
    """Moments of a sampler that does not keep to its period."""
    steps = draw(st.lists(gaps, min_size=least, max_size=60))
    return list(itertools.accumulate(steps, initial=draw(starts)))


@st.composite
def counted(draw):
    """A constant power, samples of a counter that moves now and then, and when it moved."""
    power = draw(st.floats(1, 1000))
    times = draw(sampled_times(least=40))
    steps = draw(st.lists(st.floats(0.02, 0.1), min_size=1))
    moved = [times[0] - 0.1]
    for step in itertools.cycle(steps):
        if moved[-1] + step > times[-1]:
            break
        moved.append(moved[-1] + step)
    samples = []
    for at in times:
        last = max((moment for moment in moved if moment <= at), default=moved[0])
        samples.append(Sample(at, energy_j=power * (last - moved[0])))
    return power, samples, max(b - a for a, b in itertools.pairwise(times)), moved


@given(counted(), shares | st.tuples(anywhere, anywhere))
def test_energy_of_a_constant_power_is_right_within_a_sample(case, share):
    power, samples, gap, moved = case
    times = [sample.at for sample in samples]
    began, ended = (times[0] + part * (times[-1] - times[0]) for part in share)
    found = played(samples).energy_j(began, ended)
    # A move of the counter is seen by the next sample, which may see two at once.
    seen = {times[bisect_left(times, moment)] for moment in moved if moment > times[0]}
    enough = sum(began <= at <= ended for at in seen) >= 2
    if enough and min(seen) <= began and ended <= max(seen):
        assert abs(found - power * (ended - began)) <= power * gap * (1 + 1e-6)
    else:
        assert found is None


def test_energy_is_interpolated_between_changes_of_the_counter():
    # The counter moves at 0.1, 0.2, ... by 10, 20, 30, ... J and is seen five times each.
    times = [n / 50 for n in range(51)]
    samples = [Sample(at, energy_j=5.0 * (n := int(at * 10 + 1e-9)) * (n + 1)) for at in times]
    telemetry = played(samples)
    assert telemetry.energy_j(0.15, 0.45) == pytest.approx(10 + 30 + 40 + 25)
    assert telemetry.energy_j(0.1, 1.0) == pytest.approx(550 - 10)
    assert telemetry.energy_j(0.2, 0.3) == pytest.approx(30)


def test_energy_across_a_counter_that_begins_anew_is_refused():
    readings = [1000 + 30 * n for n in range(20)] + [30 * n for n in range(20)]
    telemetry = played([Sample(n / 10, energy_j=float(j)) for n, j in enumerate(readings)])
    assert telemetry.energy_j(1.0, 3.0) is None
    assert telemetry.energy_j(2.5, 3.5) == pytest.approx(300)


def test_energy_across_a_hole_in_the_samples_is_refused():
    times = [n / 10 for n in range(10)] + [3 + n / 10 for n in range(10)]
    with_counter = played([Sample(at, energy_j=300 * at) for at in times])
    without = played([Sample(at, power_w=300.0) for at in times])
    for telemetry in (with_counter, without):
        assert telemetry.energy_j(0.2, 0.8) == pytest.approx(180)
        assert telemetry.energy_j(3.2, 3.8) == pytest.approx(180)
        assert telemetry.energy_j(0.2, 3.8) is None
        assert telemetry.energy_j(2.0, 3.8) is None
        assert telemetry.energy_j(0.2, 2.0) is None


@given(sampled_times(least=5), st.floats(1, 1000), st.floats(-500, 500), shares)
def test_without_a_counter_energy_is_the_integral_of_power(times, power, slope, share):
    first, last = times[0], times[-1]
    # The trapezoid rule is exact for a power that rises or falls evenly.
    telemetry = played([Sample(at, power_w=power + slope * (at - first)) for at in times])
    began, ended = (first + part * (last - first) for part in share)
    found = telemetry.energy_j(began, ended)
    if sum(began <= at <= ended for at in times) < 2:
        assert found is None
    else:
        span, middle = ended - began, (began + ended) / 2 - first
        assert found == pytest.approx(span * (power + slope * middle), rel=1e-6, abs=1e-6)


def test_a_wait_for_energy_ends_with_the_next_change_or_with_sampling():
    began = time.monotonic()

    def source():
        at = time.monotonic()
        if at > began + 1.5:
            raise NoNvml("over")
        return Sample(at, energy_j=300.0 * int((at - began) / 0.05))

    with Telemetry(source, period_s=0.005) as telemetry:
        time.sleep(0.5)
        ended = time.monotonic()
        assert telemetry.energy_j(began + 0.1, ended) is None
        found = telemetry.energy_j(began + 0.1, ended, wait_s=20)
        waited = time.monotonic() - ended
        assert telemetry.energy_j(began + 0.1, began + 99, wait_s=20) is None
        assert time.monotonic() - began < 10
    assert found == pytest.approx(6000 * (ended - began - 0.1), rel=0.5)
    assert waited < 1


values = st.floats(0, 1e5) | st.just(math.nan)
masks = st.none() | st.integers(0, 0x7FF)


@given(st.data(), sampled_times(), shares)
def test_means_lie_between_the_extremes_and_every_throttle_is_told(data, times, share):
    samples = [
        Sample(at, **{name: data.draw(values) for name in MEANS}, throttle=data.draw(masks))
        for at in times
    ]
    began, ended = (times[0] + part * (times[-1] - times[0]) for part in share)
    found = played(samples).during(began, ended)
    assert set(found) == {*MEANS, "throttle"}
    inside = [sample for sample in samples if began <= sample.at <= ended]
    for name in MEANS:
        known = [v for sample in inside if math.isfinite(v := getattr(sample, name))]
        mean = found[name]
        if known:
            assert isinstance(mean, float)
            assert min(known) * (1 - 1e-9) <= mean <= max(known) * (1 + 1e-9)
            assert mean * len(known) == pytest.approx(sum(known), abs=1e-9)
    reasons = [sample.throttle for sample in inside if sample.throttle is not None]
    if reasons:
        told = found["throttle"]
        assert isinstance(told, str)
        seen = {name for bit, name in REASONS.items() if any(bit & mask for mask in reasons)}
        assert told == "+".join(sorted(seen))


NOTHING = {**dict.fromkeys(MEANS), "throttle": None}


@given(starts, st.floats(0, 10))
def test_without_samples_nothing_is_known(began, span):
    telemetry = played([])
    assert telemetry.during(began, began + span) == NOTHING
    assert telemetry.energy_j(began, began + span) is None


def test_a_row_without_a_sample_takes_the_nearest_within_a_second():
    telemetry = played([Sample(10.0, power_w=100.0, throttle=0x4), Sample(12.0, power_w=200.0)])
    assert telemetry.during(10.2, 10.3)["power_w"] == 100
    assert telemetry.during(11.2, 11.3)["power_w"] == 200
    assert telemetry.during(9.5, 9.6)["power_w"] == 100
    assert telemetry.during(12.9, 13.5)["power_w"] == 200
    assert telemetry.during(13.01, 14)["power_w"] is None
    assert telemetry.during(8, 8.99)["power_w"] is None
    # Each quantity for itself: only the first sample tells the reasons.
    assert telemetry.during(10.9, 11.6)["throttle"] == "sw_power_cap"
    assert telemetry.during(11.2, 11.3)["throttle"] is None


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (0x3, ""),
        (0x2C, "hw_slowdown+sw_power_cap+sw_thermal"),
        (0x10000, "reason_0x10000"),
    ],
)
def test_reasons_have_names_and_an_idle_card_is_not_throttled(mask, told):
    assert played([Sample(1.0, throttle=mask)]).during(0.5, 1.5)["throttle"] == told


def test_old_samples_are_forgotten_and_recent_ones_are_not():
    samples = [Sample(float(at), 1, 2, 3, 100.0, 100.0 * at, 4) for at in range(1000)]
    telemetry = played(samples)
    oldest = 999 - KEEP_S
    assert telemetry.during(0, oldest - 1.5) == NOTHING
    assert telemetry.energy_j(oldest - 50, oldest + 50) is None
    assert telemetry.during(oldest, 999) == {
        **dict(zip(MEANS, (1, 2, 3, 100), strict=True)),
        "throttle": "sw_power_cap",
    }
    assert telemetry.energy_j(oldest + 0.5, 999) == pytest.approx(100 * (KEEP_S - 0.5))


@pytest.mark.parametrize("error", [RuntimeError("the bus is gone"), NoNvml("no driver")])
def test_a_source_that_fails_is_logged_once_and_leaves_what_was_sampled(error, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("launchwise"), "propagate", True)
    calls = itertools.count()
    failed = threading.Event()

    def source():
        if next(calls) < 3:
            return Sample(time.monotonic(), power_w=100.0)
        failed.set()
        raise error

    began = time.monotonic()
    caplog.set_level(logging.INFO, "launchwise")
    with Telemetry(source, period_s=0.001) as telemetry:
        assert failed.wait(10)
        time.sleep(0.05)
        assert telemetry.during(began, time.monotonic())["power_w"] == 100
    assert next(calls) == 4
    assert [record.getMessage() for record in caplog.records] == [f"telemetry stops: {error}"]
    assert telemetry.during(began, time.monotonic())["power_w"] == 100


def test_sampling_keeps_its_period_and_stops_with_the_block():
    calls = []

    def source():
        calls.append(time.monotonic())
        return Sample(calls[-1], power_w=100.0)

    before = set(threading.enumerate())
    began = time.monotonic()
    with contextlib.suppress(KeyError), Telemetry(source, period_s=0.02):
        (thread,) = set(threading.enumerate()) - before
        assert thread.daemon
        time.sleep(0.5)
        raise KeyError
    assert not thread.is_alive()
    assert set(threading.enumerate()) <= before
    count = len(calls)
    # 25 on an idle machine; a busy one may take fewer, none more.
    assert 5 <= count <= (time.monotonic() - began) / 0.02 + 1
    time.sleep(0.1)
    assert len(calls) == count


def test_a_long_period_does_not_delay_the_end_of_the_block():
    sampled = threading.Event()

    def source():
        sampled.set()
        return Sample(time.monotonic())

    began = time.monotonic()
    with Telemetry(source, period_s=60):
        assert sampled.wait(10)
    assert time.monotonic() - began < 4
