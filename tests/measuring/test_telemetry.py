"""Telemetry: what samples of a card say of a span of time, and that sampling harms nobody."""

import contextlib
import itertools
import logging
import threading
import time

import pytest

from launchwise.measuring.cards import NoNvml
from launchwise.measuring.telemetry import KEEP_S, MEANS, Sample, Telemetry


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


def test_energy_is_interpolated_between_changes_of_the_counter():
    # The counter moves at 0.1, 0.2, ... by 10, 20, 30, ... J and is seen five times each.
    times = [n / 50 for n in range(51)]
    samples = [Sample(at, energy_j=5.0 * (n := int(at * 10 + 1e-9)) * (n + 1)) for at in times]
    telemetry = played(samples)
    assert telemetry.energy_j(0.15, 0.45) == pytest.approx(10 + 30 + 40 + 25)
    assert telemetry.energy_j(0.1, 1.0) == pytest.approx(550 - 10)
    assert telemetry.energy_j(0.2, 0.3) == pytest.approx(30)
    # Two changes lie inside at least, and one on either side.
    for began, ended in ((0.11, 0.19), (0.15, 0.25), (0.05, 0.45), (0.45, 1.05)):
        assert telemetry.energy_j(began, ended) is None


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


def test_without_a_counter_energy_is_the_integral_of_power():
    telemetry = played([Sample(n / 10, power_w=100.0 + 10 * n) for n in range(11)])
    assert telemetry.energy_j(0.25, 0.65) == pytest.approx(0.4 * 145)
    assert telemetry.energy_j(0.25, 0.35) is None


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


NOTHING = {**dict.fromkeys(MEANS), "throttle": None}


def test_means_are_of_known_samples_and_every_throttle_is_told():
    samples = [Sample(0.0, power_w=900.0, throttle=0x40), Sample(1.0, power_w=100.0, throttle=4)]
    samples += [Sample(2.0), Sample(3.0, power_w=300.0, throttle=0x20)]
    found = played(samples).during(0.5, 3.5)
    assert found == {**NOTHING, "power_w": 200.0, "throttle": "sw_power_cap+sw_thermal"}


def test_without_samples_nothing_is_known():
    telemetry = played([])
    assert telemetry.during(3, 4) == NOTHING
    assert telemetry.energy_j(3, 4) is None


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
    [(0x3, ""), (0x2C, "hw_slowdown+sw_power_cap+sw_thermal"), (0x10000, "reason_0x10000")],
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
