"""One visit of a job to its contests: from their order to a journal, and tables."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.places import now, versions
from launchwise.base.robust import Ratio
from launchwise.base.storage import digest
from launchwise.experiment.method import (
    PEER,
    Confirmation,
    Contest,
    Entrant,
    Role,
    peer_of,
    read_contests,
)
from launchwise.gpus.profile import GpuProfile
from launchwise.measuring.job import Ready, builds_for
from launchwise.measuring.journal import Journal
from launchwise.measuring.pairs.confirming import Rounds, confirm, rounds_of
from launchwise.measuring.pairs.present_usual import UNKNOWN, limits_of
from launchwise.measuring.progress import Progress
from launchwise.measuring.shard import Shard
from launchwise.measuring.source_states import source_state
from launchwise.measuring.sweep import seconds_of
from launchwise.measuring.telemetry import Telemetry, nvml_source
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema, pairs_schema, peers_schema
from launchwise.tables.schema import Schema
from launchwise.workloads.builds import Build
from launchwise.workloads.metrics import BACK_TO_BACK
from launchwise.workloads.spec import Spec
from launchwise.workloads.workload import Workload

_REFERENCES: tuple[Role, ...] = ("best", "usual", "baseline")


def pairs_table(
    shard: Shard,
    contests: Iterable[Contest],
    how: Confirmation,
    notes: list[dict[str, Any]],
    sweep_ms: Mapping[tuple[Any, ...], float],
) -> pd.DataFrame:
    """Paired times of every configuration. ``notes``: of the journal. ``sweep_ms``: values of a
    problem and a configuration, in the order of the spec, to their time in the sweep, ms; an
    entrant that the sweep lacks has none. Returns as
    :func:`launchwise.tables.measurements.pairs_schema` declares it, sorted by key."""
    spec = shard.spec
    rows = [
        {**row, "sweep_ms": sweep_ms.get(tuple(row[name] for name in spec.key_columns[1:]))}
        for row in _rows(contests, how, notes, of_peers=False)
    ]
    return _table(shard, rows, pairs_schema(spec), spec.key_columns)


def peers_table(
    shard: Shard, contests: Iterable[Contest], how: Confirmation, notes: list[dict[str, Any]]
) -> pd.DataFrame:
    """Paired times of every library (:func:`launchwise.tables.measurements.peers_schema`), from
    the ``notes`` of the journal."""
    rows = list(_rows(contests, how, notes, of_peers=True))
    key = ["gpu", *shard.spec.problem_columns, PEER]
    return _table(shard, rows, peers_schema(shard.spec), key)


def _table(
    shard: Shard, rows: list[dict[str, Any]], schema: Schema, key: list[str]
) -> pd.DataFrame:
    if not rows:
        return schema.empty()
    columns = schema.columns
    table = pd.DataFrame([{**shard.labels, **row} for row in rows], columns=list(columns))
    real = [name for name, column in columns.items() if column.kind == "float64"]
    table[real] = table[real].astype(float)
    for name in ("times_ms", "clocks_mhz"):
        table[name] = table[name].map(lambda values: np.asarray(values, dtype=float))
    return table.sort_values(key, ignore_index=True)


def _rows(
    contests: Iterable[Contest], how: Confirmation, notes: list[dict[str, Any]], of_peers: bool
) -> Iterator[dict[str, Any]]:
    for contest in contests:
        rounds = rounds_of(contest, notes)
        best, usual, default = (_place(contest, rounds, role) for role in _REFERENCES)
        for place, entrant in enumerate(contest.entrants):
            peer = peer_of(entrant.configuration)
            if (peer is not None) != of_peers:
                continue
            names: dict[str, Any]
            pairs: dict[str, tuple[int | None, int | None]]
            if of_peers:
                names = {"peer": peer, "version": ""}
                pairs = {"speedup": (place, best), "usual_speedup": (place, usual)}
            else:
                names = {**entrant.configuration, "roles": "+".join(entrant.roles)}
                # If the usual choice is missing or fails, the baseline stands in for it.
                pairs = {
                    "gain": (default if usual is None else usual, place),
                    "improvement": (default, place),
                }
            ratios = {column: _ratio(rounds, *pair, how) for column, pair in pairs.items()}
            row = {**contest.problem, **names, **_measured(rounds, place)}
            row["thrown"] = max(ratio.thrown for ratio in ratios.values())
            for column, ratio in ratios.items():
                row |= limits_of(column, ratio)
            yield row


def _measured(rounds: Rounds, place: int) -> dict[str, Any]:
    ran = _ran(rounds, place)
    found = rounds.found[place]
    times_ms = rounds.times_ms[place]
    kept_ms = rounds.kept_ms(place)
    if found["status"] == "ok" and not ran:
        found = {**found, "reason": "there is nothing to compare it with"}
    elif ran and not kept_ms:
        found = {**found, "reason": "something held the card back in every round (throttle)"}
    return {
        **found,
        "time_ms": statistics.median(kept_ms or times_ms) if ran else None,
        "times_ms": times_ms,
        "clocks_mhz": rounds.clocks_mhz[place],
        "rounds": len(times_ms),
        "throttle": "+".join(rounds.throttle[place]),
        "measured_at": now(),
        **dict.fromkeys(BACK_TO_BACK),
        **rounds.sustained[place],
        **rounds.origin,
    }


def _place(contest: Contest, rounds: Rounds, role: Role) -> int | None:
    """Place of the entrant of a role, if its result was right."""
    places = (place for place, each in enumerate(contest.entrants) if role in each.roles)
    return next((place for place in places if _right(rounds, place)), None)


def _right(rounds: Rounds, place: int) -> bool:
    return rounds.found[place]["status"] == "ok"


def _ran(rounds: Rounds, place: int) -> bool:
    return _right(rounds, place) and bool(rounds.times_ms[place])


def _ratio(rounds: Rounds, reference: int | None, place: int | None, how: Confirmation) -> Ratio:
    if reference is None or place is None:
        return UNKNOWN
    if reference == place and _right(rounds, place):
        pairs = len(rounds.kept_ms(place))
        thrown = len(rounds.times_ms[place]) - pairs
        own = math.nan if thrown and not pairs else 1.0
        return Ratio(own, own, own, pairs, thrown)
    if not _ran(rounds, reference) or not _ran(rounds, place):
        return UNKNOWN
    return rounds.ratio(reference, place, how.clock_tolerance)


@dataclass(frozen=True)
class Confirmed:
    """Contests that were run, and what their journal holds after the visit."""

    shard: Shard
    contests: Sequence[Contest]
    how: Confirmation
    fingerprint: str
    notes: list[dict[str, Any]]


def visit_contests(
    shard: Shard,
    contests: list[Contest],
    how: Confirmation,
    profile: GpuProfile,
    ready: Ready,
    journal_path: Path,
    once: bool = False,
) -> Confirmed:
    """Run what the journal of some contests lacks; ``once``: whether it is of one driver, toolkit
    and card. Raises UserError, Interrupted: see
    :func:`launchwise.measuring.pairs.confirming.confirm`."""
    # Which configurations take part is a matter of the contests.
    ways = how.model_dump(include={"precision", "seconds", "clock_tolerance"})
    machine = [ready.card.driver, ready.parts.toolkit, ready.card.mark] if once else []
    fingerprint = digest([shard.fingerprint(profile, ready.parts.fingerprint), ways, *machine])
    patient = "SLURM_JOB_ID" in os.environ
    with contextlib.ExitStack() as stack:
        telemetry = stack.enter_context(Telemetry(nvml_source(ready.card.uuid)))
        journal = stack.enter_context(
            Journal(journal_path, fingerprint, shard.spec.key_columns, patient)
        )
        progress = stack.enter_context(
            Progress(len(contests), f"{profile.name}, pairs", unit="problems")
        )
        confirm(shard, contests, how, journal, telemetry, progress)
        return Confirmed(shard, contests, how, fingerprint, list(journal.notes))


def write_pairs(
    found: Confirmed,
    sweep: Path,
    output: Path,
    peers: Path | None = None,
    earlier: Path | None = None,
) -> None:
    """Write the table of the contests, and that of the libraries that took part. ``sweep``: the
    sweep whose times chose the entrants. ``earlier``: pairs of an earlier visit."""
    shard, spec = found.shard, found.shard.spec
    state = source_state(shard.folder, spec).as_facts()
    facts = {
        "fingerprint": found.fingerprint,
        "how": found.how.model_dump(mode="json"),
        "versions": versions(),
        "seconds": seconds_of(found.notes),
        "states": {shard.labels["commit"]: state},
    }
    notes = found.notes
    table = pairs_table(shard, found.contests, found.how, notes, times_of(sweep, spec))
    if earlier:
        table = beside_earlier(table, read_table(earlier, pairs_schema(spec)), spec)
    write_table(output, table, pairs_schema(spec), facts)
    if peers:
        libraries = peers_table(shard, found.contests, found.how, notes)
        write_table(peers, libraries, peers_schema(spec), facts)


def beside_earlier(pairs: pd.DataFrame, earlier: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    """Pairs with the gains that an ``earlier`` visit found; none of problems of which another
    configuration was the usual choice then."""
    keys = [*spec.problem_columns, *spec.tunable_columns]
    gains = earlier[[*keys, "gain"]].rename(columns={"gain": "earlier_gain"})
    found = pairs.drop(columns="earlier_gain").merge(gains, on=keys, how="left")
    same = (found["gain"] == 1) & (found["earlier_gain"] == 1)
    known = same.groupby([found[name] for name in spec.problem_columns]).transform("any")
    return found.assign(earlier_gain=found["earlier_gain"].where(known))[list(pairs.columns)]


def contests_in_order(path: Path, spec: Spec, gpu: str) -> list[Contest]:
    """Contests of a file, their names in the order of the spec. Raises UserError when they are of
    another workload or GPU, or name what the workload does not have."""
    found = read_contests(path)
    if (found.workload, found.gpu) != (spec.workload, gpu):
        message = f"are of {found.workload} on {found.gpu}, not of {spec.workload} on {gpu}"
        raise UserError(path, "contests", message)
    ordered = []
    for contest in found.contests:
        try:
            problem = {name: contest.problem[name] for name in spec.problem_columns}
            entrants = [_in_order(each, spec) for each in contest.entrants]
        except KeyError as error:
            raise UserError(path, "contests", f"{error} is missing") from error
        ordered.append(Contest(problem=problem, entrants=entrants))
    return ordered


def _in_order(entrant: Entrant, spec: Spec) -> Entrant:
    given = entrant.configuration
    if peer_of(given) is not None:
        return entrant
    configuration = {name: given[name] for name in spec.tunable_columns}
    return entrant.model_copy(update={"configuration": configuration})


def builds_of(workload: Workload, contests: list[Contest]) -> list[Build]:
    """Every build that the contests need, once, in the order of need."""
    asked = ((one.problem, [each.configuration for each in one.entrants]) for one in contests)
    return list(builds_for(workload, asked))


def times_of(sweep: Path, spec: Spec) -> dict[tuple[Any, ...], float]:
    """Values of problem and configuration to their time in a sweep, ms."""
    columns = [*spec.problem_columns, *spec.tunable_columns]
    rows = read_table(sweep, measurement_schema(spec), [*columns, "time_ms"]).dropna()
    keys = rows[columns].itertuples(index=False, name=None)
    return dict(zip(keys, rows["time_ms"].tolist(), strict=True))
