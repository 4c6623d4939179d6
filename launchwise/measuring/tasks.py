"""Remaining tasks of a shard, from its journal, for a measuring process.

A task is the dictionary that :class:`launchwise.measuring.serving.Task` is made from. Rows whose
reference kernel drifted are measured once more.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from launchwise.measuring.journal import Journal
from launchwise.measuring.shard import Shard
from launchwise.measuring.telemetry import THROTTLED, reasons_in
from launchwise.workloads.near_problems import Measured, own_prior
from launchwise.workloads.space import Problem, baseline
from launchwise.workloads.spec import Spec

CONTROL_SHARE = 1 / 32
"""Share of the card's memory that the reference kernel may hold during a sweep."""


def remaining(
    shard: Shard, journal: Journal, problems: list[Problem] | None = None
) -> list[dict[str, Any]]:
    """Tasks (see :class:`launchwise.measuring.serving.Task`) for every configuration without a row,
    of all problems of the shard or of some. Of problems that are searched from others' rows, the
    first: what it brings is known to the next."""
    wanted = shard.problems if problems is None else problems
    if shard.method.strategy.searches:
        found = _to_explore(shard, journal, wanted)
        return list(itertools.islice(found, 1 if shard.searches_from_others else None))
    marks = _marks(shard.spec, journal.rows)
    tasks = []
    for problem in wanted:
        todo = [
            configuration
            for configuration in shard.configurations(problem)
            if {"gpu": shard.labels["gpu"], **problem, **configuration} not in journal
        ]
        if todo:
            known = marks.get(tuple(problem.values()), {})
            tasks.append({"problem": problem, "configurations": todo, **known})
    # The reference kernel comes first: drift is relative to its first time.
    control = control_problem(shard)
    return sorted(tasks, key=lambda task: task["problem"] != control)


def _to_explore(
    shard: Shard, journal: Journal, problems: list[Problem]
) -> Iterator[dict[str, Any]]:
    """Tasks for problems whose budget is not spent and whose space has not come to an end."""
    spec, strategy = shard.spec, shard.method.strategy
    ended = [
        note["problem"]
        for note in journal.notes
        if note["note"] == "explored"
        and note["budget"] >= (shard.budget or 0)
        # None is without end, and a limit that nothing is below.
        and _or(note.get("minutes"), math.inf) >= _or(strategy.minutes, math.inf)
        and _or(strategy.stop_below_percent, -math.inf)
        >= _or(note.get("stop_below_percent"), -math.inf)
    ]
    rows = _by_problem(spec, journal.rows)
    marks = _marks(spec, journal.rows)
    measured = _measured(shard, rows) if shard.searches_from_others else {}
    for problem in problems:
        if problem in ended:
            continue
        key = tuple(problem.values())
        known = [
            [{name: row[name] for name in spec.tunable_columns}, row["time_ms"]]
            for row in rows.get(key, [])
        ]
        guesses = shard.guesses(problem) if shard.guesses else []
        if shard.extension:
            known = [*map(list, shard.extension.told(problem)), *known]
            guesses = [*shard.extension.anchors(problem), *guesses]
        explore: dict[str, Any] = {
            "kind": strategy.kind,
            "budget": shard.budget,
            "seconds": shard.problem_seconds,
            "guesses": guesses,
            "known": known,
            "gpu_facts": dict(shard.gpu_facts),
        }
        if shard.searches_from_others:
            others = shard.prior(problem) if shard.prior else []
            explore["prior"] = [*others, *own_prior(key, measured)]
            explore["gpu"] = dict(shard.gpu)
        if strategy.stop_below_percent is not None:
            explore["options"] = {"stop_below_percent": strategy.stop_below_percent}
        yield {"problem": problem, "configurations": [], "explore": explore, **marks.get(key, {})}


def _measured(shard: Shard, rows: Mapping[tuple[Any, ...], list[dict[str, Any]]]) -> Measured:
    """What this GPU measured of each problem, in recorded rows and in the journal's."""
    names, found = shard.spec.tunable_columns, {}
    for problem, times in (shard.extension.times if shard.extension else {}).items():
        found[problem] = [(list(key), time_ms) for key, time_ms in times.items()]
    for problem, of_problem in rows.items():
        told = [([row[name] for name in names], row["time_ms"]) for row in of_problem]
        found[problem] = [*found.get(problem, []), *told]
    return found


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def control_problem(shard: Shard) -> Problem | None:
    """Problem of the reference kernel: the largest within :data:`CONTROL_SHARE`. A long kernel has
    a steady time."""
    if not shard.method.control_s:
        return None
    spec = shard.spec
    small = [problem for problem in shard.problems if _leaves_room(shard, problem)]
    return max(small, key=lambda problem: spec.value(spec.work.bytes, problem), default=None)


def _leaves_room(shard: Shard, problem: Problem) -> bool:
    capacity = shard.gpu_facts["gpu_memory_bytes"]
    footprint = shard.spec.value(shard.spec.work.footprint_bytes, problem)
    return bool(footprint <= CONTROL_SHARE * capacity)


def claim_control(shard: Shard) -> None:
    """Let a shard that claims problems one by one begin with one for its reference kernel. The
    heaviest are taken first, and those may be too large to stay on the card meanwhile."""
    if shard.claims is None or not shard.method.control_s or control_problem(shard):
        return
    for problem in shard.claims.free():
        if _leaves_room(shard, problem) and shard.claims.claim(problem):
            shard.problems.append(problem)
            return


def control_of(shard: Shard, journal: Journal) -> dict[str, Any] | None:
    """Input of :class:`Watched`: the baseline of one problem. None where none is wanted, or where
    it was measured and is not right. The first time that this card took for it is the reference,
    also in a later visit; another card of the same model has a reference of its own."""
    problem = control_problem(shard)
    if problem is None:
        return None
    spec = shard.spec
    configuration = baseline(spec)
    names = {"gpu": shard.labels["gpu"], **problem, **configuration}
    found = [
        row for row in journal.rows if all(row[name] == names[name] for name in spec.key_columns)
    ]
    if found and found[0]["status"] != "ok":
        return None
    times = [
        note["time_ms"]
        for note in journal.notes
        if note["note"] == "control"
        and (note["card"], note["problem"]) == (shard.labels["card"], problem)
    ]
    return {
        "problem": problem,
        "configuration": configuration,
        "known": bool(found),
        "reference_ms": times[0] if times else None,
    }


def second_attempts(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks for rows that were measured once and are in doubt, for one of three reasons. The
    reference kernel drifted (:func:`drifted_rows`); or the card was throttled and its clock was
    lower than the highest of the sweep by more than the method's ``drift``; or the repeats, timed
    by the device, are further apart than the method's ``disturbed`` allows."""
    spec, gpu = shard.spec, shard.labels["gpu"]
    fastest = max((row["sm_clock_mhz"] or 0.0 for row in journal.rows), default=0.0)
    drifted = drifted_rows(journal.notes, shard.method.drift)
    marks = _marks(spec, journal.rows)
    doubtful: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in journal.rows:
        key = tuple(row[name] for name in spec.key_columns)
        held_back = (row["sm_clock_mhz"] or fastest) < (1 - shard.method.drift) * fastest
        throttled = held_back and THROTTLED & reasons_in(row["throttle"])
        # What is not verified is shown with its time, so that is to be as good as any.
        timed = row["status"] in ("ok", "unverified")
        again = timed and row["attempt"] == 1 and row["gpu"] == gpu
        if again and (throttled or key in drifted or _disturbed(row, shard.method.disturbed)):
            problem = tuple(row[name] for name in spec.problem_columns)
            names = {name: row[name] for name in spec.tunable_columns}
            doubtful.setdefault(problem, []).append(names)
    wanted = {tuple(problem.values()): problem for problem in shard.problems}
    return [
        {"problem": wanted[key], "configurations": todo, "attempt": 2, **marks.get(key, {})}
        for key, todo in doubtful.items()
        if key in wanted
    ]


def _disturbed(row: dict[str, Any], limit: float) -> bool:
    """Whether the median of the device's repeats is above the shortest by more than ``limit``."""
    if row["timer"] == "host" or not row["times_ms"]:
        return False
    return bool(row["time_ms"] > (1 + limit) * min(row["times_ms"]))


def energy_tasks(shard: Shard, journal: Journal) -> list[dict[str, Any]]:
    """Tasks for the energy of each problem's best and baseline configurations. They come last,
    because their long loops heat the card."""
    if not shard.method.energy_ms:
        return []
    spec, default = shard.spec, baseline(shard.spec)
    done = [note["problem"] for note in journal.notes if note["note"] == "energies"]
    found = _by_problem(spec, [row for row in journal.rows if row["status"] == "ok"])
    tasks: list[dict[str, Any]] = []
    for problem in shard.problems:
        rows = found.get(tuple(problem.values()), [])
        if problem in done or not rows:
            continue
        best = min(rows, key=lambda row: row["time_ms"])
        wanted = [{name: best[name] for name in spec.tunable_columns}]
        if wanted[0] != default and any(
            all(row[name] == value for name, value in default.items()) for row in rows
        ):
            wanted.append(default)
        tasks.append({"problem": problem, "configurations": wanted, "energy": True})
    return tasks


def _marks(spec: Spec, rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, float]]:
    """``best_ms`` and ``mark_ms`` of problems (see :class:`.measure.ProblemContext`)."""
    ok = _by_problem(spec, [row for row in rows if row["status"] == "ok"])
    return {
        key: {
            "best_ms": min(row["time_ms"] for row in members),
            "mark_ms": min(max(row["time_ms"], row["first_ms"]) for row in members),
        }
        for key, members in ok.items()
    }


def _by_problem(
    spec: Spec, rows: list[dict[str, Any]]
) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in spec.problem_columns), []).append(row)
    return found


LEAST_TIMES = 10  # Fewer times of the reference kernel do not tell its noise

NOISE_MULTIPLE = 3.0
"""Standard deviations beyond which a time of the reference kernel is drift, not noise."""

MEDIAN_TO_SIGMA = 0.954
"""Median absolute difference of two normal values, in their standard deviations."""


def drifted_rows(notes: list[dict[str, Any]], drift: float) -> set[tuple[Any, ...]]:
    """Keys of the rows of a journal that a drifted reference kernel puts in doubt.

    The reference kernel has drifted if its time is off its first one on that card by more than the
    fraction ``drift``. A kernel that the host drives may be noisier than that, and then every row
    would be in doubt: there its time must be off its median by more than ``NOISE_MULTIPLE``
    standard deviations. These come from the differences of successive times, which slow drift
    hardly changes (a Shewhart chart of individual values and moving ranges). Of the notes,
    ``control`` counts: ``card``, ``ratio`` (time / first time on that card) and ``rows`` (keys of
    the rows since the note before).
    """
    by_card: dict[str, list[dict[str, Any]]] = {}
    for note in notes:
        if note["note"] == "control":
            by_card.setdefault(note["card"], []).append(note)
    found: set[tuple[Any, ...]] = set()
    for of_card in by_card.values():
        expected, limit = _expected([note["ratio"] for note in of_card], drift)
        for note in of_card:
            if abs(note["ratio"] - expected) > limit:
                found.update(map(tuple, note["rows"]))
    return found


def _expected(ratios: list[float], drift: float) -> tuple[float, float]:
    """Expected ratio of a card's reference kernel, and the largest deviation that is no drift."""
    if len(ratios) < LEAST_TIMES:
        return 1.0, drift
    steps = [abs(later - earlier) for earlier, later in pairwise(ratios)]
    limit = NOISE_MULTIPLE * statistics.median(steps) / MEDIAN_TO_SIGMA
    return (statistics.median(ratios), limit) if limit > drift else (1.0, drift)
