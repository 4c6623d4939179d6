"""Supervisor of pairs: keeps a measuring process busy until every ratio is known.

The journal gets one note per visit of a problem (``visit``: rounds with times and clocks, and what
launches back to back took of those in :data:`BACK_TO_BACK_ROLES`), written when the visit is over,
so a problem that a kill interrupts is visited again. A configuration whose process dies gets a note
(``lost``) and takes part no longer. A library that waits for the device cannot be captured in a
graph, and may end the process when it is: its contest gets a note (``unreplayed``), and all that
take part are timed by events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from operator import not_
from typing import Any

from launchwise.base.places import now
from launchwise.base.robust import Ratio, paired_ratio
from launchwise.experiment.method import PEER, Confirmation, Contest, peer_of
from launchwise.measuring.journal import ROUND, Journal
from launchwise.measuring.listening import ENERGY_KNOWN_S, Listener, supervise
from launchwise.measuring.progress import Progress
from launchwise.measuring.shard import Shard
from launchwise.measuring.sweep import stop_requests
from launchwise.measuring.telemetry import HINDERED, Telemetry, reasons_in
from launchwise.workloads.metrics import UNKNOWN

VISIT, LOST, UNREPLAYED = "visit", "lost", "unreplayed"

BACK_TO_BACK_ROLES = {"baseline", "usual", "best", "peer"}

ORIGIN = ("card", "driver", "commit")
"""Labels that another job of the same contests may have changed."""

UNTIMED = {"timer": "", "l2": ""}

MOST_VISITS = 3  # A problem is visited again while pairs that were discarded leave a ratio unknown


@dataclass(frozen=True)
class Rounds:
    """Rounds of one contest on one card, over all visits."""

    # Of each configuration in each round; the clock is 0 where it is unknown.
    times_ms: list[list[float]]
    clocks_mhz: list[list[float]]
    throttle: list[list[str]]  # reasons for low clocks of each configuration, sorted
    # ``status`` and ``reason`` of each configuration, and how it was timed: ``timer``, ``l2``.
    found: list[dict[str, str]]
    visits: int  # how often the problem was visited
    # Of each round: whether something from outside held the card back while one of the
    # configurations ran.
    hindered: list[bool]
    # Of the last visit: ``card``, ``driver``, ``commit``, ``measured_at``; empty without any.
    origin: Mapping[str, str] = field(default_factory=dict)
    replays: bool = True  # whether launches may be replayed in graphs
    # Of each configuration that ran back to back in the last visit: ``sustained_ms`` and
    # ``energy_j`` per launch; empty for the others.
    sustained: list[Mapping[str, float | None]] = field(default_factory=list)

    def kept_ms(self, place: int) -> list[float]:
        """Times of the entrant at ``place`` in the rounds in which nothing held the card back."""
        return list(compress(self.times_ms[place], map(not_, self.hindered)))

    def ratio(self, reference: int, place: int, clock_tolerance: float) -> Ratio:
        """Time of the entrant at ``reference`` over that of the entrant at ``place``."""
        return paired_ratio(
            self.times_ms[reference],
            self.times_ms[place],
            self.clocks_mhz[reference],
            self.clocks_mhz[place],
            clock_tolerance,
            self.hindered,
        )


def confirm(
    shard: Shard,
    contests: list[Contest],
    how: Confirmation,
    journal: Journal,
    telemetry: Telemetry | None,
    progress: Progress | None = None,
) -> None:
    """Compare the entrants of every contest in pairs, as far as ``journal`` (open) lacks them.
    Raises UserError, Interrupted: see :func:`launchwise.measuring.listening.supervise`."""

    def tasks() -> list[dict[str, Any]]:
        return [
            task
            for contest in contests
            if (task := _task(contest, rounds_of(contest, journal.notes), how, card))
        ]

    card = str(shard.labels["card"])
    if any(peer_of(each.configuration) for contest in contests for each in contest.entrants):
        # Compilers beside it would keep busy the host that calls a library: all are waited for.
        shard.parts.wait()
    with stop_requests() as stop:
        supervise(
            "confirm", tasks, lambda: PairsListener(shard, journal, stop, telemetry, progress, list)
        )


def _task(contest: Contest, rounds: Rounds, how: Confirmation, card: str) -> dict[str, Any] | None:
    """Task of a contest whose ratios are not known yet; None for one that is done."""
    taking_part = [place for place, each in enumerate(rounds.found) if each["status"] == "ok"]
    references = [
        number
        for number, place in enumerate(taking_part)
        if {"baseline", "usual"} & {*contest.entrants[place].roles}
    ]
    # What another card left unknown begins anew on this one.
    visits = rounds.visits if rounds.origin.get("card") == card else min(rounds.visits, 1)
    if visits >= MOST_VISITS or len(taking_part) < 2:
        return None
    if rounds.visits and not _spoilt(rounds, references, taking_part, how):
        return None
    return {
        "problem": contest.problem,
        "configurations": [contest.entrants[place].configuration for place in taking_part],
        "pairs": {
            "precision": how.precision,
            "seconds": how.seconds,
            "references": references or [0],
            "replays": rounds.replays,
            "back_to_back": [
                number
                for number, place in enumerate(taking_part)
                if BACK_TO_BACK_ROLES & {*contest.entrants[place].roles}
            ],
        },
    }


def _spoilt(
    rounds: Rounds, references: list[int], taking_part: list[int], how: Confirmation
) -> bool:
    """Whether a ratio is unknown because of discarded pairs."""
    for number in references:
        reference = taking_part[number]
        for place in taking_part:
            if not rounds.times_ms[place] or not rounds.times_ms[reference]:
                continue
            ratio = rounds.ratio(reference, place, how.clock_tolerance)
            if ratio.thrown and ratio.half_width > how.precision:
                return True
    return False


def _is_whole(note: Mapping[str, Any]) -> bool:
    """Whether a visit tells of each configuration, and of each that ran in every round."""
    ran = sum(each["status"] == "ok" for each in note["found"])
    counts = {len(each[name]) for each in note["rounds"] for name in ROUND}
    told = all(isinstance(each, dict) for each in note.get("sustained", []))
    return len(note["found"]) == len(note["configurations"]) and counts <= {ran} and told


def rounds_of(contest: Contest, notes: Iterable[dict[str, Any]]) -> Rounds:
    """Rounds and verifications of a contest, from the notes of a journal. Visits with other
    configurations do not count, nor do those on other cards than the last one's: configurations are
    compared within one round only, on one card."""
    entrants = [each.configuration for each in contest.entrants]
    found = [{"status": "ok", "reason": "", **UNTIMED} for _ in entrants]
    throttle: list[set[str]] = [set() for _ in entrants]
    sustained: list[Mapping[str, float | None]] = [{} for _ in entrants]
    # Rounds that belong together, and the places of those that ran in them.
    rounds: list[dict[str, Any]] = []
    running: list[int] = []
    visits, origin, replays = 0, dict[str, str](), True
    for note in notes:
        if note["note"] not in (VISIT, LOST, UNREPLAYED) or note["problem"] != contest.problem:
            continue
        right = [n for n, one in enumerate(found) if one["status"] == "ok"]
        if note["note"] == UNREPLAYED:
            # Two timers are not compared with each other.
            replays, origin = False, {}
        elif note["note"] == LOST:
            if note["configuration"] in entrants:
                place = entrants.index(note["configuration"])
                found[place] = {"status": note["status"], "reason": note["reason"], **UNTIMED}
        elif note["configurations"] == [entrants[place] for place in right] and _is_whole(note):
            if note["card"] != origin.get("card"):
                visits, rounds, throttle = 0, [], [set() for _ in entrants]
            # Older notes lack the time: their rows have that of the table.
            origin = {name: note[name] for name in (*ORIGIN, "measured_at") if name in note}
            visits += 1
            for place, one in zip(right, note["found"], strict=True):
                found[place] = one
            before, running = running, [n for n in right if found[n]["status"] == "ok"]
            # Of fewer than before: rounds of different sets do not belong together.
            rounds = [*(rounds if running == before else []), *note["rounds"]]
            for place, last in zip(running, note.get("sustained", []), strict=False):
                sustained[place] = last
            for each in note["rounds"]:
                for place, why in zip(running, each["throttle"], strict=True):
                    throttle[place] |= {why} - {""}

    def of_each(name: str) -> list[list[float]]:
        ran = {place: [each[name][n] for each in rounds] for n, place in enumerate(running)}
        return [ran.get(place, []) for place in range(len(entrants))]

    reasons = [sorted(each) for each in throttle]
    hindered = [any(HINDERED & reasons_in(why) for why in each["throttle"]) for each in rounds]
    measured = of_each("times_ms"), of_each("clocks_mhz")
    return Rounds(*measured, reasons, found, visits, hindered, origin, replays, sustained)


class PairsListener(Listener):
    """Turns the events of rounds into one note per visit."""

    _entered: dict[str, Any] | None = None
    _visited: list[dict[str, Any]]
    _sustained: dict[int, dict[str, Any]]

    def _hear(self, event: dict[str, Any]) -> str:
        kind = str(event["event"])
        if kind == "problem":
            self._entered, self._visited, self._sustained = None, [], {}
        elif kind == "entered":
            self._entered = event
            self.in_hand = None
            return kind
        elif kind == "round":
            self._visited.append(self._with_clocks(event))
            self.in_hand = None
            self.maybe_stop()
            return kind
        elif kind == "sustained":
            self._sustained[event["place"]] = event
            self.in_hand = None
            return kind
        elif kind == "done":
            self._note_visit(event["problem"])
            heard = super()._hear(event)
            # Contests without a round end here, too.
            self.maybe_stop()
            return heard
        return super()._hear(event)

    def _kept(self) -> str:
        return f"{sum(note['note'] == VISIT for note in self.journal.notes)} visits of problems"

    def _with_clocks(self, event: dict[str, Any]) -> dict[str, Any]:
        during = [
            self.telemetry.during(began, ended) if self.telemetry else {}
            for began, ended in event["when"]
        ]
        throttle = [one.get("throttle") for one in during]
        return {
            "times_ms": event["times_ms"],
            "clocks_mhz": [round(float(one.get("sm_clock_mhz") or 0.0), 1) for one in during],
            "throttle": [UNKNOWN if each is None else each for each in throttle],
        }

    def _note_visit(self, problem: dict[str, Any]) -> None:
        assert self._entered is not None
        self.rows += 1
        running = sum(each["status"] == "ok" for each in self._entered["found"])
        self.journal.note(
            VISIT,
            problem=problem,
            **{name: self._entered[name] for name in ("configurations", "found")},
            **{name: self.shard.labels[name] for name in ORIGIN},
            measured_at=now(),
            rounds=self._visited,
            sustained=[self._back_to_back(place) for place in range(running)],
        )
        if self.progress:
            self.progress.row("ok", None, f"{len(self._visited)} rounds")

    def _back_to_back(self, place: int) -> dict[str, float | None]:
        event = self._sustained.get(place)
        if event is None:
            return {}
        span = event["began"], event["ended"]
        spent = self.telemetry and self.telemetry.energy_j(*span, wait_s=ENERGY_KNOWN_S)
        energy = spent / event["launches"] if spent else None
        return {"sustained_ms": event["time_ms"], "energy_j": energy}

    def _write_blame(self, names: dict[str, Any], found: dict[str, Any]) -> None:
        spec = self.shard.spec
        tunables = [PEER] if PEER in names else spec.tunable_columns
        of = {
            "problem": {name: names[name] for name in spec.problem_columns},
            "configuration": {name: names[name] for name in tunables},
        }
        self.rows += 1
        entered = self._entered["found"] if self._entered else []
        if PEER in names and any(each["timer"] == "graph" for each in entered):
            # Launches were replayed in graphs when a library ended the process.
            self.journal.note(UNREPLAYED, **of)
        else:
            self.journal.note(LOST, **of, **found)
