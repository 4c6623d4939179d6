"""The paper's times beside ours: the published experiment, and the gain per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Table, Text
from launchwise.report.fields import THEIRS, Field, field, grouped, printed, table_of

from ...host.launches import PERSISTENT
from .measured import GIVEN, TOKENS, Measured, Row, first_of, repeats_of, time_of, transfer_of

NAIVE = ("separate", "naive")
SHARED = ("separate_tiled", "tiled")
"""Variants of the published implementations; those with a kernel per step come first."""

CPUS = {"eigen_one_core": "C++ with Eigen on one core", "pytorch_cpu": "PyTorch on all cores"}
"""Rows of ``peers.csv`` that speed-ups over the CPU are relative to, in words: the paper's, or what
was measured instead."""
CPUS_BESIDE = ("eigen_all_cores", "numpy_cpu")  # rows below that of the paper's program
CPP = "CPU (C++ with Eigen)"  # the paper's program on the CPU, as its tables name it
PUBLISHED_INPUT = "embeddings"  # form of the input in the paper: another one is named

Way = tuple[Row | None, Row | None]  # an implementation: all reviews from host memory, and one


@dataclass(frozen=True)
class Ours:
    """Our entries of the table: texts and times."""

    name: str
    what: str = MISSING
    all_s: float | None = None  # seconds for all reviews; None without such a measurement
    one_ms: float | None = None  # milliseconds for one review; None without such a measurement
    repeats: str = MISSING  # repeats of all reviews, and of one


def beside_paper(case: Measured, published: Mapping[str, Records]) -> Iterator[Block]:
    """The table of all implementations, then that of the steps between them."""
    times = {record["implementation"]: record for record in published.get("times", [])}
    if not times:
        return
    facts = facts_of(published)
    cases = int(facts["cases"])
    peers = {row["name"]: row for row in published.get("peers", []) if row["gpu"] == case.gpu}
    published_ways = _published_ways(case, cases)
    yield _comparison(case, times, peers, published_ways, cases)
    yield Text(_recorded(case.gpu, peers), "note")
    yield Text(
        "Theirs: initialisation, allocation, transfers and inference; of one review the inference "
        "alone. Ours: from the first copy to the last answer, everything allocated before; "
        "medians, without rows of one launch. Variants separate and separate_tiled have a kernel "
        f"per step, as published. A review has {1.2 * TOKENS:.0f} kB of embeddings or {2 * TOKENS} "
        "B of word numbers.",
        "note",
    )
    yield _steps(case, times, facts, published_ways, cases)
    yield Text(
        f"Section 2 of the paper calls {facts['gain_shared_usage_percent']} % a use of shared "
        f"memory and {facts['gain_coalescing_percent']} % memory coalescing; section 6 has both "
        "for shared memory. A single review has no second one to overlap with, so streams cannot "
        "speed it up.",
        "note",
    )


def _recorded(gpu: str, peers: Mapping[str, Mapping[str, str]]) -> str:
    """What speed-ups are over, and which results the times of the host's programs come from."""
    base = _base(peers)
    if base is None:
        return f"No program was timed on the host of {gpu}: speed-ups over its CPU are missing."
    sources = sorted({peers[key]["source"] for key in (*CPUS, *CPUS_BESIDE) if key in peers})
    return f"Speed-ups of {gpu} are over {CPUS[base]}; its host's times: {wording.listed(sources)}."


def _base(peers: Mapping[str, Mapping[str, str]]) -> str | None:
    return next((name for name in CPUS if name in peers), None)


def _published_ways(case: Measured, cases: int) -> dict[str, Way]:
    def one_by_one(names: Sequence[str], several: bool) -> Row | None:
        """All reviews one by one over one stream, or over the best number of several."""
        counts = case.spec.tunables["streams"].values
        streams = tuple(count for count in counts if (int(str(count)) > 1) == several)
        named = {"batch": cases, "chunk": 1, "graph": 0, "streams": streams}
        return _of_variants(case, names, memory="pinned", **named)

    naive, shared = (
        (one_by_one(names, False), _of_variants(case, names, memory="pinned", batch=1, graph=0))
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
    many, one = (_of_variants(case, (PERSISTENT,), memory="pinned", batch=n) for n in (cases, 1))
    return _ours("one launch: ", (many, one))


def _best(case: Measured, cases: int, given: str) -> Ours:
    named = {"tokens": TOKENS, "given": given, "memory": "pinned", "variant": tuple(case.exact)}
    many, one = (first_of(case.fastest_by("given", batch=n, **named).values()) for n in (cases, 1))
    return _ours("fastest: ", (many, one))


def _ours(title: str, way: Way) -> Ours:
    many, one = way
    row = many or one
    if row is None:
        return Ours(MISSING)
    return Ours(
        f"{title}{row['variant']}",
        transfer_of(row),
        None if many is None else time_of(many) / 1e3,
        None if one is None else time_of(one),
        "; ".join(MISSING if each is None else repeats_of(each) for each in way),
    )


def _of_peer(row: Mapping[str, str] | None, name: str) -> Ours:
    if row is None:
        return Ours(name)
    alone = row["one_case_transferred"]
    one = "" if alone in ("", row["transferred"]) else f"; one review: {alone}"
    return Ours(
        f"{row['implementation']} ({row['device']})",
        f"{row['transferred']}{one}",
        float(row["total_s"]),
        float(row["one_case_ms"]) if row["one_case_ms"] else None,
        f"{row['total_repeats']}; {row['one_case_repeats'] or MISSING}",
    )


def _comparison(
    case: Measured,
    times: Mapping[str, Mapping[str, str]],
    peers: Mapping[str, Mapping[str, str]],
    ways: Mapping[str, Way],
    cases: int,
) -> Table:
    pairs: list[tuple[str, Ours]] = [
        (CPP, _of_peer(peers.get("eigen_one_core"), "C++ with Eigen")),
        *(("", _of_peer(peers[key], "")) for key in CPUS_BESIDE if key in peers),
        ("PyTorch on a CPU", _of_peer(peers.get("pytorch_cpu"), "PyTorch on the CPU")),
        *((name, _ours("", way)) for name, way in ways.items()),
        *(("", one) for one in [_queued(case, cases)] if one.name != MISSING),
        ("PyTorch on MPS", _of_peer(peers.get("pytorch_gpu"), "PyTorch on the GPU")),
    ]
    if "pytorch_gpu_one_by_one" in peers:
        pairs.append(("", _of_peer(peers["pytorch_gpu_one_by_one"], "")))
    best = [_best(case, cases, given) for given in ("embeddings", "tokens")]
    pairs += [("", one) for one in best if one.what != MISSING]
    key = _base(peers)
    base = _of_peer(peers[key], "") if key else Ours("")
    rows = [{"theirs": times.get(name), "ours": one} for name, one in pairs]
    fields = [*_theirs(cases, times[CPP]), *_of_ours(cases, base, case.gpu)]
    return table_of(f"The paper's implementations beside ours, {case.gpu}", fields, rows)


def _theirs(cases: int, cpu: Mapping[str, str]) -> list[Field]:
    """The paper's columns: blank where it has no such implementation."""

    def told(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: printed(row["theirs"][key]) if row["theirs"] else ""

    def name(row: Mapping[str, Any]) -> str:
        record = row["theirs"]
        return f"{record['implementation']}, {record['device']}" if record else ""

    def speed_up_of_one(row: Mapping[str, Any]) -> str:
        # Of one review the paper prints none: by its table 2, on the machine of its table 1.
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
        field("speed-up", speed_up_of_one, unit="× CPU", number=True),
        role=THEIRS,
    )


def _of_ours(cases: int, cpu: Ours, gpu: str) -> list[Field]:
    def of(name: str) -> Callable[[Mapping[str, Any]], Any]:
        return lambda row: getattr(row["ours"], name)

    def gain(name: str) -> Callable[[Mapping[str, Any]], float | None]:
        own, base = of(name), getattr(cpu, name)
        return lambda row: None if own(row) is None or base is None else base / own(row)

    return grouped(
        f"ours, {gpu}",
        field("implementation", of("name")),
        field(f"{wording.count(cases)} reviews", of("all_s"), wording.number, "s"),
        field("speed-up", gain("all_s"), _times, "× CPU"),
        field("one review", of("one_ms"), wording.number, "ms"),
        field("speed-up", gain("one_ms"), _times, "× CPU"),
        field("transferred", of("what")),
        field("repeats", of("repeats"), unit="all; one"),
    )


def _times(gain: float | None) -> str:
    return "1" if gain == 1 else wording.number(gain)


def _steps(
    case: Measured,
    times: Mapping[str, Mapping[str, str]],
    facts: Mapping[str, str],
    ways: Mapping[str, Way],
    cases: int,
) -> Table:
    naive, shared, streams = ways.values()
    device = {
        count: [
            _of_variants(case, (name,), batch=count, memory="device") for name in ("naive", "tiled")
        ]
        for count in (cases, 1)
    }
    lines: list[tuple[str, str, str, Saved | None, Saved | None]] = [
        (
            "shared memory, all reviews",
            f"{facts['gain_shared_all_percent']} %; {facts['gain_shared_conclusions_percent']} %",
            _saved_in(times, "naive", "shared memory", "total_s"),
            _saved(naive[0], shared[0]),
            _saved(*device[cases]),
        ),
        (
            "shared memory, one review",
            f"{facts['gain_shared_one_percent']} %",
            _saved_in(times, "naive", "shared memory", "one_case_ms"),
            _saved(naive[1], shared[1]),
            _saved(*device[1]),
        ),
        (
            "streams, all reviews",
            "slight",
            _saved_in(times, "shared memory", "streams", "total_s"),
            _saved(shared[0], streams[0]),
            None,
        ),
        (
            "streams, one review",
            MISSING,
            _saved_in(times, "shared memory", "streams", "one_case_ms"),
            None,
            None,
        ),
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
            f"ours, {case.gpu}",
            field("from the host", lambda line: line[3] or MISSING, unit=saved),
            field("on the device", lambda line: line[4] or MISSING, unit=saved),
            field("conflict", lambda line: _conflict(*line[3:])),
        ),
    ]
    return table_of(f"Gain by each step, {case.gpu}", fields, lines)


def _saved_in(times: Mapping[str, Mapping[str, str]], before: str, after: str, column: str) -> str:
    first, second = (float(times[f"CUDA {name}"][column]) for name in (before, after))
    return f"{wording.percent(1 - second / first)} %"


@dataclass(frozen=True)
class Saved:
    """Share of the time that a step saves, with the compared configurations."""

    share: float
    what: str

    def __str__(self) -> str:
        return f"{wording.percent(self.share)} % ({self.what})"


def _saved(before: Row | None, after: Row | None) -> Saved | None:
    """None where one is missing, or where they have other inputs."""
    if before is None or after is None or before["given"] != after["given"]:
        return None
    what = f"{before['variant']} to {after['variant']}"
    if before["variant"] == after["variant"]:
        what = f"{before['variant']}, {before['streams']} to {after['streams']} streams"
    if before["given"] != PUBLISHED_INPUT:
        what += f", {GIVEN[str(before['given'])]}"
    return Saved(1 - time_of(after) / time_of(before), what)


def _conflict(host: Saved | None, device: Saved | None) -> str:
    slower = [
        name
        for name, saved in (("from the host", host), ("on the device", device))
        if saved is not None and saved.share < 0
    ]
    if slower:
        return f"slower here {wording.listed(slower)}"
    return "no: faster here, too" if host or device else MISSING
