"""Times of batches in host memory: phases, and effect of streams; held-out reviews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from launchwise.experiment.published import Records
from launchwise.report import wording
from launchwise.report.blocks import Block, Text
from launchwise.report.fields import decimals, field, significant, table_of

from .measured import GIVEN, MEMORY, TOKENS, Measured, is_once, repeats_of, scientific, time_of

REFERENCE = "float64"  # row of the reference in ``published/held_out.csv``


def held_out(case: Measured, published: Mapping[str, Records]) -> Iterator[Block]:
    """A sentence on one GPU, and a table with a row per variant and tool that was compared."""
    rows = [row for row in published.get("held_out", []) if row["gpu"] == case.gpu]
    compared = [row for row in rows if row["name"] != REFERENCE]
    yield Text(sentence(case.gpu, compared, list(case.spec.variants)))
    if compared:
        yield table_of(f"Held-out reviews on {case.gpu}", HELD_OUT, rows)


def sentence(gpu: str, compared: Sequence[Mapping[str, str]], variants: Sequence[str]) -> str:
    """How many variants were compared, which of them flip a class, and which are missing."""
    own = [row for row in compared if row["name"] in variants]
    if not own:
        return f"No variant was compared with float64 on held-out reviews on {gpu}."
    flips = {row["name"]: int(row["class_flips"]) for row in own}
    flipped = [
        f"{name} ({wording.plural(count, 'review')})" for name, count in flips.items() if count
    ]
    said = (
        f"On {gpu}, {len(own)} of {wording.plural(len(variants), 'variant')} were compared with "
        f"float64 on {wording.count(int(own[0]['reviews']))} held-out reviews: "
    )
    if flipped:
        said += f"{wording.listed(flipped)} classify some differently, the others none."
    else:
        said += "each of them classifies every review as float64 does."
    if missing := [name for name in variants if name not in flips]:
        said += f" Not compared: {wording.listed(missing)}."
    return said


HELD_OUT = [
    field("answered by", "name"),
    field("classified correctly", lambda row: float(row["accuracy"]), wording.percent, "%"),
    field("classes flipped", lambda row: row["class_flips"] or None, number=True, unit="reviews"),
    field(
        "largest logit error", lambda row: row["logit_error"] or None, scientific, "of the largest"
    ),
    field("measured", "source"),
]


FIELDS = [
    field("given", lambda row: GIVEN[row["given"]]),
    field("memory", lambda row: MEMORY[row["memory"]]),
    field("reviews", "batch", wording.count),
    field("variant", "variant"),
    field("kernels", "kernels_ms", significant(4), "ms"),
    field("on the device", "device_ms", significant(4), "ms"),
    field("host to host", "time_ms", significant(4), "ms"),
    field("repeats", repeats_of, number=True),
    field(
        "chunk, streams, graph",
        lambda row: (
            f"{row['chunk'] or 'all'}, {row['streams']}, {'graph' if row['graph'] else 'no graph'}"
        ),
    ),
    field("set-up", "setup_ms", wording.number, "ms"),
    field(
        "set-up and host to host",
        lambda row: row["setup_ms"] + row["time_ms"],
        significant(4),
        "ms",
    ),
]


def from_host(case: Measured) -> Iterator[Block]:
    """Both tables of one GPU; nothing without rows from host memory."""
    yield from _stages(case)
    if rows := list(_streams(case)):
        title = f"{case.gpu}, float32 embeddings from page-locked memory by number of streams"
        yield table_of(title, STREAMS, rows)


def _stages(case: Measured) -> Iterator[Block]:
    rows: list[dict[str, Any]] = []
    stopped = []
    for given in GIVEN:
        for memory in MEMORY:
            for batch in sorted(_batches(case, given, memory), reverse=True):
                named = {"given": given, "tokens": TOKENS, "batch": batch}
                device = case.fastest(**named, memory="device")
                for name, row in case.fastest(**named, memory=memory).items():
                    if is_once(row):
                        stopped.append(f"{name} ({wording.count(batch)} {GIVEN[given]}, {memory})")
                    else:
                        inside = device.get(name)
                        alone = None if inside is None or is_once(inside) else time_of(inside)
                        rows.append({**row, "device_ms": alone})
    if not rows:
        return
    yield table_of(f"{case.gpu}, {TOKENS} words per review, from host memory", FIELDS, rows)
    left_out = f" Left out, stopped after one launch: {wording.listed(stopped)}." if stopped else ""
    yield Text(
        "Kernels: one after the other, nothing overlapped, by the fastest way from the host. On "
        "the device: the fastest configuration whose inputs lie there, without gaps where it is "
        "short. Set-up: the network and buffers to the device, once for many batches; a program "
        f"that ends after one batch pays it, and the driver's own beginning.{left_out}",
        "note",
    )


def _batches(case: Measured, given: str, memory: str) -> set[int]:
    measured = case.of(given=given, memory=memory, tokens=TOKENS)["batch"]
    return set() if measured.empty else {int(measured.max()), *({1} & set(measured))}


STREAMS = [
    field("reviews", "batch", wording.count),
    field("variant", "variant"),
    field("chunk", lambda row: _chunk(row["chunk"]), unit="reviews"),
    field("streams", "streams", wording.count),
    field("graph", lambda row: "yes" if row["graph"] else "no"),
    field("host to host", "time_ms", significant(4), "ms"),
    field("speed-up", "gain", decimals(2), "× one stream"),
    field("repeats", repeats_of, number=True),
]


def _chunk(reviews: int) -> str:
    return {0: "all at once", 1: "one by one"}.get(reviews) or wording.count(reviews)


def _streams(case: Measured) -> Iterator[dict[str, Any]]:
    host = {"given": "embeddings", "tokens": TOKENS, "memory": "pinned"}
    several = tuple(value for value in case.spec.tunables["chunk"].values if value != 1)
    for batch in sorted(set(case.of(**host)["batch"]) - {1}, reverse=True):
        for chunks in ((1,), several):
            named = {**host, "batch": int(batch), "chunk": chunks}
            for name in case.fastest(**named):
                best = case.fastest_by("streams", **named, variant=name)
                timed = {int(n): row for n, row in best.items() if not is_once(row)}
                alone = time_of(timed[1]) if 1 in timed else None
                if len(timed) > 1:
                    for _, row in sorted(timed.items()):
                        yield {**row, "gain": None if alone is None else alone / time_of(row)}
