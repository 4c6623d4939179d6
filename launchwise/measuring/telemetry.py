"""Telemetry of a card during a sweep: clocks, temperature, power, energy, throttling.

The timing path never calls NVML. A thread of the supervisor samples the card, and samples are
assigned to rows by time: ``time.monotonic()`` is one clock
for all processes of a host.
"""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from statistics import fmean
from typing import Any

import numpy as np

from launchwise.measuring.cards import NoNvml, nvml

log = logging.getLogger("launchwise")

KEEP_S = 600.0  # Age, relative to the newest, at which samples are dropped, s
MAX_SAMPLE_GAP_S = 1.0  # Largest gap between a sample and a row, or between two samples, s

REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x100: "display_clock",
    0x200: "board_limit",
    0x400: "reliability",
}
"""NVML's clocks-event reasons: bit -> name."""

NO_REASONS = 0x1 | 0x2
"""Bits that do not mean throttling: idle card, clocks set by an administrator."""

THROTTLED = frozenset({"sw_power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"})
"""Reasons that make a row doubtful, because the card ran below its full clocks."""

HINDERED = THROTTLED - {"sw_power_cap"}
"""Reasons that are not the card's own limit: heat, or too weak a supply of power."""


def reasons_in(throttle: str) -> set[str]:
    """Names of the reasons in a text that joins them by ``+``; empty for a card at full clocks."""
    return set(throttle.split("+")) - {""}


@dataclass(frozen=True)
class Sample:
    """One sample of a card; NaN or None for unsupported quantities."""

    at: float  # `time.monotonic()`, in seconds
    # Current values, in the units of their names.
    sm_clock_mhz: float = math.nan
    memory_clock_mhz: float = math.nan
    temperature_c: float = math.nan
    power_w: float = math.nan
    energy_j: float | None = None  # counter of the energy that the card has used, in joules
    throttle: int | None = None  # bit mask of NVML's clocks-event reasons


Source = Callable[[], Sample]

MEANS = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w")
"""Quantities of which :meth:`Telemetry.during` gives means."""


def nvml_source(uuid: str) -> Source:
    """Source that samples the card with this UUID through NVML. NVML is loaded at the first call,
    which raises :class:`.NoNvml` where there is none. A quantity that NVML refuses becomes NaN or
    None and leaves the others alone."""
    opened = cache(_open)
    return lambda: opened(uuid)()


def clock_reasons(uuid: str) -> Callable[[], set[str]]:
    """Source of a card's current reasons for low clocks (see :data:`REASONS`). Asks NVML at once,
    so it is for moments in which nothing is timed; always empty without NVML."""
    try:
        pynvml = nvml()
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except Exception:  # Not installed, no driver, no such card: then there is nothing to rest for.
        return set

    def ask() -> set[str]:
        try:
            mask = int(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))
        except pynvml.NVMLError:
            return set()
        return reasons_in(_named(mask))

    return ask


def _open(uuid: str) -> Source:
    pynvml = nvml()
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError as error:
        raise NoNvml(f"NVML: {error}") from error

    def ask(question: Callable[..., int], *arguments: int) -> float:
        try:
            return float(question(handle, *arguments))
        except pynvml.NVMLError:
            return math.nan

    def instant_power(handle: Any) -> int:
        found = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_POWER_INSTANT])[0]
        if found.nvmlReturn != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(found.nvmlReturn)
        return int(found.value.uiVal)

    def read() -> Sample:
        energy = ask(pynvml.nvmlDeviceGetTotalEnergyConsumption)
        # Questions take up to milliseconds: the moment belongs to the counter, which needs it most.
        at = time.monotonic()
        # GetPowerUsage is a mean over one second since Ampere, longer than most rows.
        power = ask(instant_power)
        if math.isnan(power):
            power = ask(pynvml.nvmlDeviceGetPowerUsage)
        reasons = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        if math.isnan(reasons):  # Drivers before 535 know the question by its old name only.
            reasons = ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return Sample(
            at=at,
            sm_clock_mhz=ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
            memory_clock_mhz=ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
            temperature_c=ask(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            power_w=power / 1e3,
            energy_j=None if math.isnan(energy) else energy / 1e3,
            throttle=None if math.isnan(reasons) else int(reasons),
        )

    return read


class _Series:
    """One quantity over time, oldest first."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.values: list[float] = []

    def append(self, at: float, value: float) -> None:
        self.times.append(at)
        self.values.append(value)

    def forget(self, before: float) -> None:
        old = bisect_left(self.times, before)
        del self.times[:old]
        del self.values[:old]

    def _inside(self, began: float, ended: float) -> slice:
        return slice(bisect_left(self.times, began), bisect_right(self.times, ended))

    def around(self, began: float, ended: float) -> list[float]:
        """Values inside the interval; without any, the nearest one within the largest gap."""
        inside = self._inside(began, ended)
        if found := self.values[inside]:
            return found
        beside = range(max(inside.start - 1, 0), min(inside.start + 1, len(self.times)))
        distances = {n: max(began - self.times[n], self.times[n] - ended) for n in beside}
        nearest = min(distances, key=distances.__getitem__, default=None)
        if nearest is None or distances[nearest] > MAX_SAMPLE_GAP_S:
            return []
        return [self.values[nearest]]

    def reaches(self, at: float) -> bool:
        return bool(self.times) and self.times[-1] >= at

    def covers(self, began: float, ended: float) -> bool:
        """Two values inside at least, one on either side, and no gap too wide to bridge."""
        inside = self._inside(began, ended)
        if inside.stop - inside.start < 2 or self.times[0] > began or not self.reaches(ended):
            return False
        used = self.times[max(inside.start - 1, 0) : inside.stop + 1]
        return all(after - before <= MAX_SAMPLE_GAP_S for before, after in itertools.pairwise(used))

    def values_at(self, times: Sequence[float]) -> np.ndarray:
        """Values by linear interpolation at times inside the series."""
        return np.interp(times, self.times, self.values)

    def integral(self, began: float, ended: float) -> float:
        """Integral over the interval by the trapezoid rule; the values must cover it."""
        times = [began, *self.times[self._inside(began, ended)], ended]
        return float(np.trapezoid(self.values_at(times), times))


class Telemetry:
    """A thread that samples a card, and what its samples say of a span of time. A context manager:
    sampling begins with the block and ends with it; the samples stay. A source that fails is no
    failure of the sweep: that is logged once and sampling ends. ``source``: gives the present state
    of the card, later moments in later calls. ``period_s``: pause between two samples, s."""

    def __init__(self, source: Source, period_s: float = 0.02) -> None:
        self._source = source
        self._period_s = period_s
        self._means = {name: _Series() for name in MEANS}
        self._throttle = _Series()
        self._updates = _Series()  # of the energy counter, each when it was first seen
        self._counter_j: float | None = None
        self._over = False
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def __enter__(self) -> Telemetry:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        # A driver that hangs must not hang the sweep; the thread is a daemon and dies with it.
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        try:
            while True:
                self._keep(self._source())
                if self._stop.wait(self._period_s):
                    return
        except Exception as error:
            log.warning("telemetry stops: %s", str(error) or type(error).__name__)
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _keep(self, sample: Sample) -> None:
        with self._changed:
            for name, series in self._means.items():
                if math.isfinite(value := getattr(sample, name)):
                    series.append(sample.at, value)
            if sample.throttle is not None:
                self._throttle.append(sample.at, sample.throttle)
            if sample.energy_j is not None:
                self._count(sample.at, sample.energy_j)
            for series in (*self._means.values(), self._throttle, self._updates):
                series.forget(sample.at - KEEP_S)
            self._changed.notify_all()

    def _count(self, at: float, energy_j: float) -> None:
        """Record a change of the counter. Its first value is skipped: its start is unknown."""
        if self._counter_j is not None and energy_j > self._counter_j:
            self._updates.append(at, energy_j)
        elif self._counter_j is not None and energy_j < self._counter_j:
            self._updates = _Series()  # The counter began anew, as when the driver is reloaded.
        self._counter_j = energy_j

    def during(self, began: float, ended: float) -> dict[str, float | str | None]:
        """Means and throttling between two times of ``time.monotonic()``.

        Returns ``sm_clock_mhz``, ``memory_clock_mhz``, ``temperature_c``, ``power_w``: means of the
        samples inside; without any, the nearest sample within :data:`MAX_SAMPLE_GAP_S`.
        ``throttle``: names of the reasons in the same samples, sorted and joined by ``+``; ``''``
        when the card was not throttled. None where unknown.
        """
        with self._changed:
            found = {name: series.around(began, ended) for name, series in self._means.items()}
            masks = [int(mask) for mask in self._throttle.around(began, ended)]
        means = {name: fmean(values) if values else None for name, values in found.items()}
        return {**means, "throttle": _named(reduce(or_, masks)) if masks else None}

    def energy_j(self, began: float, ended: float, *, wait_s: float = 0.0) -> float | None:
        """Energy of the card between two times of ``time.monotonic()``, J.

        From the card's counter, which moves every 20 to 100 ms only: by linear interpolation
        between its changes, whose moments are known to a sampling period. Where a card has no
        counter: the integral of the sampled power. ``wait_s``: how long to wait for the change
        after ``ended`` without which the answer is not known, s. Returns None when the span is not
        covered, or holds fewer than two changes (or samples).
        """
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._meter().reaches(ended), wait_s)
            meter = self._meter()
            if not meter.covers(began, ended):
                return None
            if meter is self._updates:
                return float(np.diff(meter.values_at([began, ended]))[0])
            return meter.integral(began, ended)

    def _meter(self) -> _Series:
        return self._means["power_w"] if self._counter_j is None else self._updates


def _named(mask: int) -> str:
    """Reasons of a mask as text; an unknown bit by its number."""
    bits = [1 << n for n in range(mask.bit_length()) if mask & ~NO_REASONS & 1 << n]
    return "+".join(sorted(REASONS.get(bit, f"reason_{bit:#x}") for bit in bits))
