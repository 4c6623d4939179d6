"""Finds the time among the measurements of T4, whatever its objectives are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.importing.sweep import as_times
from launchwise.importing.time_names import (
    TO_MS,
    is_overhead_name,
    is_time_name,
    time_unit,
    unit_in_name,
)

MEASUREMENTS = ("time", "kernel_time", "runtime", "kernel_runtime", "duration")
"""Measurements that are read as the time, the first that a file has, if no objective is one."""

REPEATS = ("runtimes", "kernel_times", "times", "runtime", "kernel_time", "time")
"""Keys of ``times`` that hold the times of repeats."""


@dataclass(frozen=True)
class TimeSource:
    """Where the time of each result stands.

    Parameters
    ----------
    measurement
        Name of a measurement; empty where none is a time.
    objectives
        What was optimised; a failure's words may stand there.
    unit
        The one unit of that measurement in all results; empty where it states none, or several.
    unit_of_name
        Unit that its name ends with; empty without one.
    complaint
        Why no measurement is a time; empty where one is.
    """

    measurement: str
    objectives: tuple[str, ...]
    unit: str
    unit_of_name: str
    complaint: str

    def repeats(self, entry: Mapping[str, Any], unit: str) -> tuple[float, ...]:
        """Times of the repeats of a result, ms.

        Parameters
        ----------
        unit
            Unit of times that state none.
        """
        times = entry.get("times")
        if not isinstance(times, Mapping):
            return as_times(times, TO_MS[unit])
        for name in REPEATS:
            if name in times:
                listed = times[name] if isinstance(times[name], list) else [times[name]]
                return as_times(listed, TO_MS[unit])
        return ()


def measured_in(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Name, value and unit of each measurement of a result."""
    listed = entry.get("measurements")
    if isinstance(listed, Mapping):
        yield from ((str(name), value, "") for name, value in listed.items())
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, Mapping):
            yield str(each.get("name")), each.get("value"), str(each.get("unit") or "")


def time_source(results: Sequence[Mapping[str, Any]], notes: list[str]) -> TimeSource:
    """Where the results of a file hold their time.

    An objective that is a time, by its unit or else by its name; otherwise the first of
    :data:`MEASUREMENTS`; otherwise any measurement that is one. ``notes`` gets a sentence where it
    is no objective.
    """
    units: dict[str, set[str]] = {}
    objectives: dict[str, None] = {}
    for entry in results:
        named = entry.get("objectives")
        listed = named if isinstance(named, list) else [named] if named else []
        objectives.update(dict.fromkeys(str(name) for name in listed))
        for name, _, unit in measured_in(entry):
            units.setdefault(name, set()).add(unit.strip())
    times = [name for name, own in units.items() if _is_time(name, own)]
    wanted = [*objectives, *MEASUREMENTS, *times]
    chosen = next((name for name in wanted if name in times), "")
    told = ", ".join(objectives) or "none"
    if chosen and objectives and chosen not in objectives:
        notes.append(f"the objective is {told}, no time: {chosen} is read as the time")
    own = {time_unit(unit) or unit_in_name(chosen) or "" for unit in units.get(chosen, ())}
    measured = ", ".join(_with_units(name, own) for name, own in units.items()) or "none"
    return TimeSource(
        measurement=chosen,
        objectives=tuple(objectives),
        unit=own.pop() if len(own) == 1 else "",
        unit_of_name=unit_in_name(chosen) or "",
        complaint="" if chosen else f"hold no time: objectives {told}; measurements {measured}",
    )


def _is_time(name: str, units: set[str]) -> bool:
    """Whether all units of a measurement are of a time, or else its name is that of one."""
    stated = {unit for unit in units if unit}
    if not stated:
        return is_time_name(name)
    return all(time_unit(unit) for unit in stated) and not is_overhead_name(name)


def _with_units(name: str, units: set[str]) -> str:
    stated = " or ".join(sorted(unit for unit in units if unit and unit != name))
    return f"{name} in {stated}" if stated else name
