"""Times of batches in host memory: phases, and effect of streams."""

from __future__ import annotations

from collections.abc import Iterator

from launchwise.report import wording
from launchwise.report.blocks import Block, Column, Text, table

from .measured import GIVEN, MEMORY, TOKENS, Measured, Row, repeats_of, time_of


def from_host(case: Measured) -> Iterator[Block]:
    """Both tables of one GPU; nothing without rows from host memory."""
    yield from _stages(case)
    yield from _streams(case)


def _stages(case: Measured) -> Iterator[Block]:
    """Kernels, device to device, host to host, and the whole of a program, by variant."""
    rows = []
    stopped = []
    for given in GIVEN:
        for memory in MEMORY:
            for batch in sorted(_batches(case, given, memory), reverse=True):
                named = {"given": given, "tokens": TOKENS, "batch": batch}
                device = case.fastest(**named, memory="device")
                for name, row in case.fastest(**named, memory=memory).items():
                    if row["status"] == "slow":
                        stopped.append(f"{name} ({wording.count(batch)} {GIVEN[given]}, {memory})")
                    else:
                        rows.append(_stage_row(row, device.get(name)))
    if not rows:
        return
    columns = [
        Column("given", number=False),
        Column("memory", number=False),
        Column("reviews"),
        Column("variant", number=False),
        Column("kernels", "ms"),
        Column("on the device", "ms"),
        Column("host to host", "ms"),
        Column("repeats"),
        Column("chunk, streams, graph", number=False),
        Column("set-up", "ms"),
        Column("set-up and host to host", "ms"),
    ]
    yield table(f"{case.gpu}, {TOKENS} words per review, from host memory", columns, rows)
    left_out = f" Left out, stopped after one launch: {wording.listed(stopped)}." if stopped else ""
    yield Text(
        "Kernels: one after the other, nothing overlapped, by the fastest way from the host. On "
        "the device: the fastest configuration whose inputs lie there, without gaps where it is "
        "short. Set-up: the network and buffers to the device, once for many batches; a program "
        f"that ends after one batch pays it, and the driver's own beginning.{left_out}",
        "note",
    )


def _batches(case: Measured, given: str, memory: str) -> set[int]:
    """The largest batch, and one review."""
    measured = case.of(given=given, memory=memory, tokens=TOKENS)["batch"]
    return set() if measured.empty else {int(measured.max()), *({1} & set(measured))}


def _stage_row(row: Row, device: Row | None) -> list[str]:
    host, setup = time_of(row), float(str(row["setup_ms"]))
    return [
        GIVEN[str(row["given"])],
        MEMORY[str(row["memory"])],
        wording.count(row["batch"]),
        str(row["variant"]),
        wording.number(row["kernels_ms"], 4),
        "–" if device is None else wording.number(time_of(device), 4),
        wording.number(host, 4),
        repeats_of(row),
        f"{row['chunk'] or 'all'}, {row['streams']}, {'graph' if row['graph'] else 'no graph'}",
        wording.number(setup, 3),
        wording.number(setup + host, 4),
    ]


def _streams(case: Measured) -> Iterator[Block]:
    """Embeddings over streams: the best chunks and graph for every number of them."""
    host = {"given": "embeddings", "tokens": TOKENS, "memory": "pinned"}
    rows = []
    batches = sorted(set(case.of(**host)["batch"]) - {1}, reverse=True)
    for batch in batches:
        for ways, title in (((1,), "one by one"), (_chunks(case), "chunks")):
            named = {**host, "batch": int(batch), "chunk": ways}
            for name in case.fastest(**named):
                best = case.fastest_by("streams", **named, variant=name)
                timed = {int(n): row for n, row in best.items() if row["status"] == "ok"}
                if len(timed) < 2:
                    continue
                alone = timed.get(1)
                for count, row in sorted(timed.items()):
                    gain = "–" if alone is None else wording.fixed(time_of(alone) / time_of(row), 2)
                    chunk = title if title != "chunks" else wording.count(row["chunk"])
                    rows.append(
                        [
                            wording.count(batch),
                            name,
                            "all at once" if not row["chunk"] else chunk,
                            wording.count(count),
                            "yes" if row["graph"] else "no",
                            wording.number(time_of(row), 4),
                            gain,
                            repeats_of(row),
                        ]
                    )
    if not rows:
        return
    columns = [
        Column("reviews"),
        Column("variant", number=False),
        Column("chunk", "reviews", number=False),
        Column("streams"),
        Column("graph", number=False),
        Column("host to host", "ms"),
        Column("speed-up", "× one stream"),
        Column("repeats"),
    ]
    title = f"{case.gpu}, float32 embeddings from page-locked memory by number of streams"
    yield table(title, columns, rows)


def _chunks(case: Measured) -> tuple[object, ...]:
    """Chunks of more than one review, or all at once."""
    return tuple(value for value in case.spec.tunables["chunk"].values if value != 1)
