"""The paper's times beside ours: the published experiment, and the gain per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Table, Text
from launchwise.report.fields import THEIRS, Field, field, grouped, printed, table_of

from ...host.launches import PERSISTENT
from .measured import GIVEN, TOKENS, Measured, Row, first_of, repeats_of, time_of, transfer_of

NAIVE = ("separate", "naive")
SHARED = ("separate_tiled", "tiled")
"""Variants of the published implementations; those with a kernel per step come first."""

CPUS = {"eigen_one_core": "C++ with Eigen", "pytorch_cpu": "PyTorch on a CPU"}
"""Rows of ``peers.csv`` that speed-ups over the CPU are relative to: the first that was timed on
any host, the paper's program before others, so that all cards are compared with one host."""
CPUS_BESIDE = ("eigen_all_cores", "numpy_cpu", "pytorch_cpu")  # rows of the card's own host
CPP = "CPU (C++ with Eigen)"  # the paper's program on the CPU, as its tables name it
PUBLISHED_INPUT = "embeddings"  # form of the input in the paper: another one is named

Way = tuple[Row | None, Row | None]  # an implementation: all reviews from host memory, and one
Peer = Mapping[str, str]  # a row of ``peers.csv``


@dataclass(frozen=True)
class Time:
    """A time and the run that it is of, in words."""

    ms: float
    of: str


@dataclass(frozen=True)
class Ours:
    """An implementation of ours: its times for all reviews and for one; None for not measured."""

    name: str
    all: Time | None = None
    one: Time | None = None


def beside_paper(case: Measured, published: Mapping[str, Records]) -> Iterator[Block]:
    """The table of all implementations, then that of the steps between them."""
    times = {record["implementation"]: record for record in published.get("times", [])}
    if not times:
        return
    facts = facts_of(published)
    cases = int(facts["cases"])
    peers = published.get("peers", [])
    base = next((row for name in CPUS for row in peers if row["name"] == name), None)
    ways = _published_ways(case, cases, graph=0)
    own = {row["name"]: row for row in peers if row["gpu"] == case.gpu}
    yield _comparison(case, times, own, base, cases)
    yield Text(_recorded(own, base), "note")
    yield Text(
        "Theirs: initialisation, allocation, transfers and inference; of one review the inference "
        "alone. Ours: from the first copy to the last answer, everything allocated before; "
        "medians, without rows of one launch. Below each time stands the run that it is of. The "
        "host queues every copy and launch anew, as published, but where a line says that a CUDA "
        "graph is replayed: compare graphs with graphs. Variants separate and separate_tiled have "
        f"a kernel per step, as published. A review has {1.2 * TOKENS:.0f} kB of embeddings or "
        f"{2 * TOKENS} B of word numbers.",
        "note",
    )
    yield _steps(case, times, facts, ways, cases)
    yield Text(
        f"Section 2 of the paper calls {facts['gain_shared_usage_percent']} % a use of shared "
        f"memory and {facts['gain_coalescing_percent']} % memory coalescing; section 6 has both "
        "for shared memory. A single review has no second one to overlap with, so streams cannot "
        "speed it up.",
        "note",
    )


def _recorded(own: Mapping[str, Peer], base: Peer | None) -> str:
    """What speed-ups are over, and which results the times of the host's programs come from."""
    if base is None:
        return "No program was timed on a CPU: speed-ups over it are missing."
    sources = sorted({row["source"] for row in (base, *own.values())})
    return (
        f"× CPU: over {CPUS[base['name']]} on {_device(base)}, for every card. Times of programs "
        f"on hosts and of PyTorch: {wording.listed(sources)}."
    )


def _device(peer: Peer) -> str:
    return peer["device"].replace("the GPU's host", f"the host of {peer['gpu']}")


def _published_ways(case: Measured, cases: int, graph: int) -> dict[str, Way]:
    def one_by_one(names: Sequence[str], several: bool) -> Row | None:
        """All reviews one by one over one stream, or over the best number of several."""
        counts = case.spec.tunables["streams"].values
        streams = tuple(count for count in counts if (int(str(count)) > 1) == several)
        named = {"batch": cases, "chunk": 1, "graph": graph, "streams": streams}
        return _of_variants(case, names, memory="pinned", **named)

    naive, shared = (
        (one_by_one(names, False), _of_variants(case, names, memory="pinned", batch=1, graph=graph))
        for names in (NAIVE, SHARED)
    )
    return {
        "CUDA naive": naive,
        "CUDA shared memory": shared,
        "CUDA streams": (one_by_one(SHARED, True) or one_by_one(NAIVE, True), None),
    }


def _of_variants(case: Measured, names: Sequence[str], **named: object) -> Row | None:
    best = [case.fastest(given=given, tokens=TOKENS, **named) for given in GIVEN]
    return first_of(rows.get(name) for rows in best for name in names)


def _queued(case: Measured, cases: int) -> Ours:
    named = {"memory": "pinned", "graph": 0}
    many, one = (_of_variants(case, (PERSISTENT,), batch=n, **named) for n in (cases, 1))
    return _ours("one launch", (many, one))


def _best(case: Measured, cases: int, given: str, graph: int) -> Ours:
    named = {"tokens": TOKENS, "given": given, "memory": "pinned", "variant": tuple(case.exact)}
    many, one = (
        first_of(case.fastest_by("given", batch=n, graph=graph, **named).values())
        for n in (cases, 1)
    )
    return _ours(f"fastest on {GIVEN[given]}{REPLAYED[graph]}", (many, one))


REPLAYED = ("", ", graph replayed")  # end of a line's name by its value of ``graph``


def _ours(name: str, way: Way) -> Ours:
    def time(row: Row | None) -> Time | None:
        if row is None:
            return None
        return Time(
            time_of(row), f"{row['variant']}: {transfer_of(row)}; {_repeats(repeats_of(row))}"
        )

    return Ours(name, *map(time, way))


def _repeats(count: str) -> str:
    return wording.plural(int(count), "repeat") if count.isdecimal() else count


def _of_peer(row: Peer | None, name: str) -> Ours:
    if row is None:
        return Ours(name)
    one = None
    if row["one_case_ms"]:
        said = f"{row['one_case_transferred']}; {_repeats(row['one_case_repeats'])}"
        one = Time(float(row["one_case_ms"]), said)
    every = Time(
        1e3 * float(row["total_s"]), f"{row['transferred']}; {_repeats(row['total_repeats'])}"
    )
    return Ours(f"{row['implementation']} ({_device(row)})", every, one)


def _comparison(
    case: Measured,
    times: Mapping[str, Peer],
    peers: Mapping[str, Peer],
    base: Peer | None,
    cases: int,
) -> Table:
    is_theirs = base is not None and base["name"] == "eigen_one_core"
    pairs: list[tuple[str, Ours]] = [
        (CPP, _of_peer(base if is_theirs else None, "C++ with Eigen")),
        *(("", _of_peer(peers[key], "")) for key in CPUS_BESIDE[:2] if key in peers),
        ("PyTorch on a CPU", _of_peer(peers.get("pytorch_cpu"), "PyTorch on the CPU")),
    ]
    for graph in (0, 1):
        pairs += [
            ("" if graph else name, _ours(f"as {name.removeprefix('CUDA ')}{REPLAYED[graph]}", way))
            for name, way in _published_ways(case, cases, graph).items()
            if not graph or any(way)
        ]
    pairs += [("", _queued(case, cases))]
    pairs += [("PyTorch on MPS", _of_peer(peers.get("pytorch_gpu"), "PyTorch on the GPU"))]
    pairs += [("", _of_peer(peers.get("pytorch_gpu_one_by_one"), ""))]
    pairs += [("", _best(case, cases, given, graph)) for given in GIVEN for graph in (0, 1)]
    rows = [
        {"theirs": times.get(name), "ours": one}
        for name, one in pairs
        if name or one.all or one.one
    ]
    fields = [*_theirs(cases, times[CPP]), *_of_ours(cases, _of_peer(base, ""), case.gpu)]
    return table_of(f"The paper's implementations beside ours, {case.gpu}", fields, rows)


def _theirs(cases: int, cpu: Mapping[str, str]) -> list[Field]:
    """The paper's columns: blank where it has no such implementation."""

    def told(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: printed(row["theirs"][key]) if row["theirs"] else ""

    def name(row: Mapping[str, Any]) -> str:
        record = row["theirs"]
        return f"{record['implementation']}, {record['device']}" if record else ""

    def speed_up_of_one(row: Mapping[str, Any]) -> str:
        record = row["theirs"]
        if not record or not record["speed_up"]:
            return MISSING if record else ""
        return wording.number(float(cpu["one_case_ms"]) / float(record["one_case_ms"]))

    return grouped(
        "paper",
        field("implementation", name),
        field(f"{wording.count(cases)} reviews", told("total_s"), unit="s", number=True),
        field("speed-up", told("speed_up"), unit="× CPU", number=True),
        field("one review", told("one_case_ms"), unit="ms", number=True),
        field("not printed: by its table 2", speed_up_of_one, unit="× CPU", number=True),
        role=THEIRS,
    )


def _of_ours(cases: int, cpu: Ours, gpu: str) -> list[Field]:
    def timed(title: str, name: str, scale: float, unit: str) -> Iterator[Field]:
        base: Time | None = getattr(cpu, name)

        def cell(row: Mapping[str, Any]) -> Cell:
            time: Time | None = getattr(row["ours"], name)
            if time is None:
                return Cell(MISSING)
            return Cell(wording.number(scale * time.ms), role="run", detail=time.of)

        def gain(row: Mapping[str, Any]) -> float | None:
            time: Time | None = getattr(row["ours"], name)
            return None if time is None or base is None else base.ms / time.ms

        yield field(title, cell, unit=unit, number=True)
        yield field("speed-up", gain, _times, "× CPU")

    return grouped(
        f"ours, {gpu}",
        field("implementation", lambda row: row["ours"].name),
        *timed(f"{wording.count(cases)} reviews", "all", 1e-3, "s"),
        *timed("one review", "one", 1, "ms"),
    )


def _times(gain: float | None) -> str:
    return "1" if gain == 1 else wording.number(gain)


def _steps(
    case: Measured,
    times: Mapping[str, Peer],
    facts: Mapping[str, str],
    ways: Mapping[str, Way],
    cases: int,
) -> Table:
    naive, shared, streams = ways.values()
    named = {"memory": "device", "graph": 0}
    device = {
        count: [_of_variants(case, (name,), batch=count, **named) for name in ("naive", "tiled")]
        for count in (cases, 1)
    }

    def by_tables(before: str, after: str, column: str) -> str:
        first, second = (float(times[f"CUDA {name}"][column]) for name in (before, after))
        return f"{wording.percent(1 - second / first)} %"

    tiles, several = ("naive", "shared memory"), ("shared memory", "streams")
    everything = (
        f"{facts['gain_shared_all_percent']} %; {facts['gain_shared_conclusions_percent']} %"
    )
    one = f"{facts['gain_shared_one_percent']} %"
    lines = [
        (
            *("shared memory, all reviews", everything, by_tables(*tiles, "total_s")),
            *(_saved(naive[0], shared[0]), _saved(*device[cases])),
        ),
        (
            *("shared memory, one review", one, by_tables(*tiles, "one_case_ms")),
            *(_saved(naive[1], shared[1]), _saved(*device[1])),
        ),
        (
            *("streams, all reviews", "slight", by_tables(*several, "total_s")),
            *(_saved(shared[0], streams[0]), MISSING),
        ),
        ("streams, one review", MISSING, by_tables(*several, "one_case_ms"), MISSING, MISSING),
    ]
    saved = "time saved"
    fields = [
        field("step", 0),
        *grouped(
            "paper",
            field("claimed in the text", 1, unit=saved, number=True),
            field("by its tables", 2, unit=saved, number=True),
        ),
        *grouped(
            f"ours, {case.gpu}; below 0 is slower",
            field("from the host", 3, unit=saved),
            field("on the device", 4, unit=saved),
        ),
    ]
    return table_of(f"Gain by each step, {case.gpu}", fields, lines)


def _saved(before: Row | None, after: Row | None) -> str:
    """Share of the time that a step saves, with the compared configurations; a dash where one is
    missing, or where they have other inputs."""
    if before is None or after is None or before["given"] != after["given"]:
        return MISSING
    what = f"{before['variant']} to {after['variant']}"
    if before["variant"] == after["variant"]:
        what = f"{before['variant']}, {before['streams']} to {after['streams']} streams"
    if before["given"] != PUBLISHED_INPUT:
        what += f", {GIVEN[str(before['given'])]}"
    return f"{wording.percent(1 - time_of(after) / time_of(before))} % ({what})"
