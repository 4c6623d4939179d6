"""The paper's times beside ours: the published experiment, and the gain per step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Table, Text
from launchwise.report.fields import THEIRS, Field, field, grouped, of_texts, printed, table_of

from ...host.launches import PERSISTENT
from .measured import GIVEN, TOKENS, Measured, Row, first_of, time_of

NAIVE = ("separate", "naive")
SHARED = ("separate_tiled", "tiled")
"""Variants of the published implementations; those with a kernel per step come first."""

PEERS = {
    "eigen_one_core": ("C++ with Eigen, one core", "CPU (C++ with Eigen)"),
    "pytorch_cpu": ("PyTorch on the CPU", "PyTorch on a CPU"),
    "pytorch_gpu": ("PyTorch on the GPU", "PyTorch on MPS"),
}
"""Rows of ``peers.csv``: their title, and the paper's implementation."""
CPUS = ("eigen_one_core", "pytorch_cpu")
"""Speed-ups are over the first of them that was timed on any host, for every card."""
PUBLISHED_INPUT = "embeddings"  # form of the input in the paper: another one is named

Peer = Mapping[str, str]  # a row of a published table


@dataclass(frozen=True)
class Time:
    """A time, ms, and the run that it is of, in words."""

    ms: float
    of: str = ""


Way = tuple[Time | None, Time | None]
"""Times of an implementation: all reviews from host memory, and one; None for not measured."""

NOT_TIMED: Way = (None, None)


@dataclass(frozen=True)
class Line:
    """An implementation: the paper's, if it has it, and ours by GPU."""

    name: str
    theirs: Peer | None
    ours: Mapping[str, Way]


def beside_paper(every: Sequence[Measured], published: Mapping[str, Records]) -> Iterator[Block]:
    """The table of all implementations, then that of the steps between them."""
    times = {record["implementation"]: record for record in published.get("times", [])}
    if not times:
        return
    facts = facts_of(published)
    cases = int(facts["cases"])
    peers = published.get("peers", [])
    base = next((row for name in CPUS for row in peers if row["name"] == name), None)
    lines = [*_of_peers(every, times, peers), *_of_kernels(every, times, cases)]
    fields = [field("implementation", lambda line: line.name), *_theirs(cases)]
    for case in every:
        fields += _of_ours(case.gpu, cases, base)
    yield table_of(
        "The paper's implementations beside ours",
        fields,
        [one for one in lines if one.theirs or any(filter(None, sum(one.ours.values(), ())))],
    )
    over = "No program was timed on a CPU: speed-ups over it are missing."
    if base is not None:
        device = base["device"].partition(",")[0].replace("the GPU", base["gpu"])
        over = f"× CPU: {base['implementation']} on {device}, for every card."
    yield Text(
        "Theirs: with initialisation and allocation; of one review the inference alone. Ours: "
        "kernels from the first copy to the last answer, Eigen and PyTorch from the input below a "
        "time, copied if page-locked; medians, without rows of one launch. Published ways: "
        "separate and separate_tiled, a kernel per step, embeddings one by one from page-locked "
        f"memory. {over} A replayed graph compares with a replayed graph alone.",
        "note",
    )
    yield _steps(every, times, facts, cases)
    yield _conclusions([case.gpu for case in every], lines, base, facts)


def _conclusions(
    gpus: Sequence[str], lines: Sequence[Line], base: Peer | None, facts: Mapping[str, str]
) -> Table:
    """Speed-ups over a program on the CPU, ``base``, and over PyTorch that the paper's text claims,
    those of its ways here, and on how many GPUs the claim holds."""
    ways = [line for line in lines if line.name.startswith("CUDA") and line.theirs]
    torch = [line for line in lines if line.name == PEERS["pytorch_gpu"][0]]

    def least(gpu: str, place: int, of: Sequence[Line]) -> float:
        times = [way.ours.get(gpu, NOT_TIMED)[place] for way in of]
        return min((time.ms for time in times if time), default=math.nan)

    def row(claim: str, paper: str, bound: float, found: Mapping[str, float]) -> list[str]:
        known = {gpu: ratio for gpu, ratio in found.items() if not math.isnan(ratio)}
        here = "; ".join(f"{gpu} {wording.number(ratio)}×" for gpu, ratio in known.items())
        held = f"{sum(ratio >= bound for ratio in known.values())} of {len(known)}"
        return [claim, f"{paper}×", here or MISSING, held]

    rows = []
    for place, what, told, name, unit in (
        (1, "One review", "speed_up_claimed", "one_case_ms", 1.0),
        (0, "All reviews", "speed_up_all_claimed", "total_s", 1e3),
    ):
        cpu_ms = unit * float(base[name]) if base and base[name] else math.nan
        gains = {gpu: cpu_ms / least(gpu, place, ways) for gpu in gpus}
        rows.append(row(f"{what}: faster than the CPU", facts[told], float(facts[told]), gains))
    slower = {gpu: least(gpu, 1, ways) / least(gpu, 1, torch) for gpu in gpus}
    paper = f"{facts['slower_than_pytorch_least']} to {facts['slower_than_pytorch_most']}"
    rows.append(row("One review: slower than PyTorch", paper, 1.0, slower))
    return of_texts("Conclusions of the paper", ("conclusion", "paper", "here", "holds"), rows)


def _of_peers(every: Sequence[Measured], times: Mapping[str, Peer], peers: Records) -> list[Line]:
    found = []
    for name, (title, theirs) in PEERS.items():
        own = {row["gpu"]: _peer_way(row) for row in peers if row["name"] == name}
        ways = {case.gpu: own[case.gpu] for case in every if case.gpu in own}
        found.append(Line(title, times.get(theirs), ways))
    return found


def _peer_way(row: Peer) -> Way:
    every, of_one = (
        # Where the input was, of the words on what was copied.
        row[name].removeprefix("nothing: ").removeprefix("nothing; ").removesuffix(", all at once")
        for name in ("transferred", "one_case_transferred")
    )
    one = Time(float(row["one_case_ms"]), of_one) if row["one_case_ms"] else None
    return Time(1e3 * float(row["total_s"]), every), one


def _of_kernels(every: Sequence[Measured], times: Mapping[str, Peer], cases: int) -> Iterator[Line]:
    published = {case.gpu: _published_rows(case, cases) for case in every}
    for name in ("CUDA naive", "CUDA shared memory", "CUDA streams"):
        ways = {
            gpu: (_time(rows[name][0], True), _time(rows[name][1]))
            for gpu, rows in published.items()
        }
        yield Line(name, times.get(name), ways)
    named = {"memory": "pinned", "batch": 1, "graph": 1}
    replayed = {case.gpu: (None, _time(_of_variants(case, NAIVE, **named))) for case in every}
    yield Line("CUDA naive, graph replayed", None, replayed)
    yield Line("all in one launch", None, {case.gpu: _queued(case, cases) for case in every})
    for given, words in GIVEN.items():
        for graph, said in enumerate(("", ", graph replayed")):
            ways = {case.gpu: _best(case, cases, given, graph) for case in every}
            yield Line(f"fastest on {words}{said}", None, ways)


def _published_rows(
    case: Measured, cases: int, graph: int = 0
) -> dict[str, tuple[Row | None, Row | None]]:
    """Rows of the published implementations: all reviews one by one, and one review."""

    def one_by_one(names: Sequence[str], several: bool) -> Row | None:
        """Over one stream, or over the best number of several."""
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


def _time(row: Row | None, of_streams: bool = False) -> Time | None:
    """A row's time, and what a line's name leaves open of its run."""
    if row is None:
        return None
    streams = int(str(row["streams"]))
    said = [str(row["variant"])] if row["variant"] not in (NAIVE[0], SHARED[0]) else []
    said += [wording.plural(streams, "stream")] if of_streams and streams > 1 else []
    return Time(time_of(row), ", ".join(said))


def _of_variants(case: Measured, names: Sequence[str], **named: object) -> Row | None:
    named |= {"tokens": TOKENS, "variant": tuple(names)}
    best = (case.fastest(given=given, **named) for given in GIVEN)
    return first_of(rows.get(name) for rows in best for name in names)


def _queued(case: Measured, cases: int) -> Way:
    named = {"memory": "pinned", "graph": 0}
    many, one = (_time(_of_variants(case, (PERSISTENT,), batch=n, **named)) for n in (cases, 1))
    return many, one


def _best(case: Measured, cases: int, given: str, graph: int) -> Way:
    named = {"tokens": TOKENS, "given": given, "memory": "pinned", "variant": tuple(case.exact)}
    many, one = (
        _time(first_of(case.fastest_by("given", batch=n, graph=graph, **named).values()))
        for n in (cases, 1)
    )
    return many, one


def _theirs(cases: int) -> list[Field]:
    """The paper's columns: blank where it has no such implementation."""

    def told(key: str) -> Callable[[Line], str]:
        return lambda line: printed(line.theirs[key]) if line.theirs else ""

    return grouped(
        "paper",
        field("on", told("device")),
        field(f"{wording.count(cases)} reviews", told("total_s"), unit="s", number=True),
        field("speed-up", told("speed_up"), unit="× CPU", number=True),
        field("one review", told("one_case_ms"), unit="ms", number=True),
        role=THEIRS,
    )


def _of_ours(gpu: str, cases: int, base: Peer | None) -> list[Field]:
    def timed(title: str, place: int, scale: float, unit: str) -> Field:
        def cell(line: Line) -> Cell:
            time = line.ours.get(gpu, NOT_TIMED)[place]
            if time is None:
                return Cell(MISSING)
            return Cell(wording.number(scale * time.ms), detail=time.of)

        return field(title, cell, unit=unit, number=True)

    def gain(line: Line) -> float | None:
        time = line.ours.get(gpu, NOT_TIMED)[0]
        return None if time is None or base is None else 1e3 * float(base["total_s"]) / time.ms

    return grouped(
        f"ours, {gpu}",
        timed(f"{wording.count(cases)} reviews", 0, 1e-3, "s"),
        field("speed-up", gain, wording.number, "× CPU"),
        timed("one review", 1, 1, "ms"),
    )


def _steps(
    every: Sequence[Measured], times: Mapping[str, Peer], facts: Mapping[str, str], cases: int
) -> Block:
    """Share of the time that each step of the paper saves there and here."""

    def by_tables(before: str, after: str, column: str) -> str:
        first, second = (float(times[f"CUDA {name}"][column]) for name in (before, after))
        return f"{wording.percent(1 - second / first)} %"

    tiles, several = ("naive", "shared memory"), ("shared memory", "streams")
    everything = (
        f"{facts['gain_shared_all_percent']} %; {facts['gain_shared_conclusions_percent']} %"
    )
    lines = [
        ("shared memory, all reviews", everything, by_tables(*tiles, "total_s")),
        (
            "shared memory, one review",
            f"{facts['gain_shared_one_percent']} %",
            by_tables(*tiles, "one_case_ms"),
        ),
        ("streams, all reviews", "slight", by_tables(*several, "total_s")),
    ]
    ours = [_saved_on(case, cases) for case in every]
    fields = [
        field("step", 0),
        *grouped("paper", field("claimed", 1, number=True), field("by its tables", 2, number=True)),
    ]
    for at, case in enumerate(every):
        fields += grouped(
            f"ours, {case.gpu}",
            field("from the host", 3 + 2 * at, number=True),
            field("on the device", 4 + 2 * at, number=True),
        )
    rows = [(*line, *(cell for one in ours for cell in one[at])) for at, line in enumerate(lines)]
    caption = "Time saved by each step, below 0 lost; on the device: naive to tiled"
    return table_of(caption, fields, rows)


def _saved_on(case: Measured, cases: int) -> list[tuple[str | Cell, str | Cell]]:
    naive, shared, streams = _published_rows(case, cases).values()
    named = {"memory": "device", "graph": 0}
    device = [
        [_of_variants(case, (name,), batch=count, **named) for name in ("naive", "tiled")]
        for count in (cases, 1)
    ]
    return [
        (_saved(naive[0], shared[0]), _saved(*device[0])),
        (_saved(naive[1], shared[1]), _saved(*device[1])),
        (_saved(shared[0], streams[0]), MISSING),
    ]


def _saved(before: Row | None, after: Row | None) -> Cell:
    """Share of the time that a step saves, and an input that is not the published one; a dash
    where a row is missing, or where they have other inputs."""
    if before is None or after is None or before["given"] != after["given"]:
        return Cell(MISSING)
    given = str(before["given"])
    other = "" if given == PUBLISHED_INPUT else GIVEN[given]
    return Cell(f"{wording.percent(1 - time_of(after) / time_of(before))} %", detail=other)
