"""What only the study of sentiment inference has: the ladder of variants, four times, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Column, Section, Table, Text, table
from launchwise.report.numbers import records
from launchwise.report.published import Records, facts_of
from launchwise.report.study import StudyData
from launchwise.tables.rows import fastest_rows
from launchwise.workloads.spec import Spec
from launchwise.workloads.statuses import MEASURED

from ...host.launches import TENSOR, Choice, intermediate_bytes

TOKENS = 256
"""Tokens of the published cases."""

WORDS = {
    "naive": "every element of a product reads its whole row and column from global memory",
    "tiled": "a tile's factors come once from global memory, all products from shared memory",
    "register_blocked": "a word from shared memory serves four to eight products, not one",
    "fused_bias_relu": "two passes over each layer's output are gone",
    "fused_pool": "the second layer's output is gone",
    "fused_case": "the first layer's output is gone; no warp waits for another",
    "tensor_tf32": "tensor cores instead of float32 units",
    "tensor_3xtf32": "two or three products by tensor cores for one",
    "tensor_3xfp16": "the same at twice the rate: two elements a word",
    "tensor_bf16": "one product, two elements a word",
}
"""What each variant changed, in the order of the ladder."""


@dataclass(frozen=True)
class Measured:
    """Everything that one GPU's sweep has, of every variant: the study's candidates or not.

    Parameters
    ----------
    rows
        Rows with a time.
    every
        All rows.
    """

    gpu: str
    spec: Spec
    rows: pd.DataFrame
    every: pd.DataFrame

    def of(self, **named: object) -> pd.DataFrame:
        """Rows with these values."""
        wanted = np.ones(len(self.rows), dtype=bool)
        for name, value in named.items():
            wanted &= (self.rows[name] == value).to_numpy()
        return self.rows[wanted]

    def fastest(self, **named: object) -> dict[str, dict[str, object]]:
        """Variant to its fastest row with these values."""
        best = fastest_rows(self.of(**named), ["variant"], self.spec)
        return {str(row["variant"]): row for row in records(best)}


def measured(study: StudyData) -> list[Measured]:
    """Whole GPUs with their sweeps."""
    found = []
    for gpu in study.whole:
        rows = study.sweeps[gpu]
        found.append(Measured(gpu, study.spec, rows[rows["status"].isin(MEASURED)], rows))
    return found


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order."""
    every = measured(study)
    ladders = [part for case in every for part in _ladder(study, case)]
    times = [part for case in every for part in _four_times(case)]
    found = []
    if ladders:
        found.append(Section(f"{study.name}-ladder", "From naive to best", ladders))
    if times:
        blocks = [*_published(published), *times]
        found.append(Section(f"{study.name}-times", "Four times, and the paper's", blocks))
    accuracy = [_accuracy(study, case) for case in every]
    found.append(Section(f"{study.name}-accuracy", "What rounding does to answers", accuracy))
    return found


def _largest(case: Measured, **named: object) -> int | None:
    rows = case.of(tokens=TOKENS, **named)
    return None if rows.empty else int(rows["batch"].max())


def _ladder(study: StudyData, case: Measured) -> Iterator[Block]:
    for given in ("tokens", "embeddings"):
        named = {"given": given, "memory": "device", "tokens": TOKENS}
        batch = _largest(case, given=given, memory="device")
        if batch is None:
            continue
        fastest = case.fastest(**named, batch=batch)
        if "naive" not in fastest:
            continue
        known = [name for name in WORDS if name in fastest]
        if given == "tokens":
            yield _steps(case, fastest, known)
        yield _ladder_table(study, case, f"{batch} cases as {given}", fastest, known)


def _steps(case: Measured, fastest: Mapping[str, Mapping[str, object]], known: list[str]) -> Block:
    """What each step of the ladder gained on the one before it."""
    found = []
    before: str | None = None
    for name in known:
        time = float(str(fastest[name]["time_ms"]))
        text = f"{wording.number(time, 3)} ms"
        # Variants by tensor cores stand beside each other: each is held against fused_case.
        reference = "fused_case" if name in TENSOR and "fused_case" in fastest else before
        if reference is not None:
            gain = float(str(fastest[reference]["time_ms"])) / time
            text += f", {wording.fixed(gain, 2)} times as fast as {reference}"
        found.append((f"{name}:", f"{text}: {WORDS[name]}."))
        before = name
    return Bullets(found)


def _ladder_table(
    study: StudyData,
    case: Measured,
    title: str,
    fastest: Mapping[str, Mapping[str, object]],
    known: list[str],
) -> Table:
    columns = [
        Column("variant", number=False),
        Column("fastest configuration", number=False),
        Column("time", "ms"),
        Column("speed-up", "× naive"),
        Column("rate", "TFLOP/s"),
        Column("between kernels", "GB"),
        Column("registers"),
        Column("occupancy", "%"),
        Column("logit error", "of the largest"),
    ]
    slowest = float(str(fastest["naive"]["time_ms"]))
    rows = []
    for name in known:
        row = fastest[name]
        time = float(str(row["time_ms"]))
        problem = {column: row[column] for column in study.problem_columns}
        tokens = int(str(row["tokens"]))
        moved = intermediate_bytes(Choice.of(row), int(str(row["batch"])) * tokens, tokens)
        flop = float(study.spec.value(study.spec.work.flop, problem, {}))
        rows.append(
            [
                name,
                wording.configuration(row, study.spec).removeprefix(f"{name} "),
                wording.number(time, 4),
                wording.fixed(slowest / time, 1),
                wording.number(flop / time / 1e9, 3),
                wording.number(moved / 1e9, 3),
                wording.count(row["registers"]),
                wording.percent(row["occupancy"]),
                _scientific(row["max_error"]),
            ]
        )
    return table(f"{case.gpu}, {title}", columns, rows)


def _scientific(value: object) -> str:
    return "–" if wording.is_missing(value) else f"{float(str(value)):.1e}"


def _four_times(case: Measured) -> Iterator[Block]:
    """Kernels, device to device, host to host, and the whole of a program, by variant."""
    batch = _largest(case, given="tokens", memory="pinned")
    if batch is None:
        return
    columns = [
        Column("cases"),
        Column("variant", number=False),
        Column("kernels", "ms"),
        Column("on the device", "ms"),
        Column("host to host", "ms"),
        Column("chunk, streams, graph", number=False),
        Column("set-up", "ms"),
        Column("set-up and host to host", "ms"),
    ]
    rows = []
    for cases in (batch, 1):
        named = {"given": "tokens", "tokens": TOKENS, "batch": cases}
        device = case.fastest(**named, memory="device")
        for name, row in case.fastest(**named, memory="pinned").items():
            if name not in device:
                continue
            host, setup = float(str(row["time_ms"])), float(str(row["setup_ms"]))
            graph = "graph" if row["graph"] else "no graph"
            rows.append(
                [
                    wording.count(cases),
                    name,
                    wording.number(row["kernels_ms"], 4),
                    wording.number(device[name]["time_ms"], 4),
                    wording.number(host, 4),
                    f"{row['chunk'] or 'all'}, {row['streams']}, {graph}",
                    wording.number(setup, 3),
                    wording.number(setup + host, 4),
                ]
            )
    yield table(f"{case.gpu}, numbers of words from page-locked memory", columns, rows)
    yield from _one_by_one(case, batch)
    yield Text(
        "Kernels: one after the other, nothing overlapped, by the fastest way from the host. On "
        "the device: the fastest configuration whose inputs lie there, without gaps where it is "
        "short. Set-up: the network and buffers to the device, once for many batches; a program "
        "that ends after one batch pays it, and the driver's own beginning.",
        "note",
    )


def _one_by_one(case: Measured, batch: int) -> Iterator[Block]:
    """The published way: one case a launch sequence, round-robin over streams."""
    columns = [
        Column("variant", number=False),
        Column("streams"),
        Column("host to host", "ms"),
        Column("a case", "ms"),
    ]
    rows = case.of(given="tokens", tokens=TOKENS, batch=batch, memory="pinned", chunk=1, graph=0)
    best = fastest_rows(rows, ["variant", "streams"], case.spec)
    found = [
        [
            row["variant"],
            wording.count(row["streams"]),
            wording.number(row["time_ms"], 4),
            wording.number(float(row["time_ms"]) / batch, 3),
        ]
        for row in records(best.sort_values(["variant", "streams"]))
    ]
    if found:
        yield table(f"{case.gpu}, {batch} cases one by one, as published", columns, found)


def _published(published: Mapping[str, Records]) -> Iterator[Block]:
    times, facts = published.get("times", []), facts_of(published)
    if not times:
        return
    columns = [
        Column("implementation", number=False),
        Column("on", number=False),
        Column("20 000 cases", "s"),
        Column("speed-up", "× CPU"),
        Column("one case", "ms"),
    ]
    rows = [
        [
            record["implementation"],
            record["device"],
            *(record[name] or "–" for name in ("total_s", "speed_up", "one_case_ms")),
        ]
        for record in times
    ]
    yield table("Published times (initialisation, transfers and inference)", columns, rows)
    yield Bullets(list(_doubts(times, facts)))


def _doubts(times: Records, facts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Where the published figures contradict each other: computed from them."""
    cases = float(facts.get("cases", "nan"))
    # FLOP of a case, as kernels/sentiment/spec.yaml counts them.
    flop = float(facts.get("tokens", "nan")) * 109200 + 4224
    for record in times:
        name, one = record["implementation"], float(record["one_case_ms"])
        if record["total_s"]:
            mean = 1e3 * float(record["total_s"]) / cases
            yield (
                f"{name}:",
                f"{wording.number(mean)} ms per case for {wording.count(cases)}, "
                f"{wording.number(one, 4)} ms for a single one.",
            )
        else:
            rate = wording.number(flop / (one * 1e-3) / 1e12)
            yield f"{name}:", f"{wording.number(one)} ms per case would be {rate} TFLOP/s."
    slowest = max(float(record["one_case_ms"]) for record in times)
    gpu = [
        float(record["one_case_ms"]) for record in times if record["implementation"][:4] == "CUDA"
    ]
    if gpu and "speed_up_claimed" in facts:
        yield (
            "Speed-up for one case:",
            f"at least {facts['speed_up_claimed']} times in its section 2, "
            f"{wording.fixed(slowest / max(gpu), 0)} to {wording.fixed(slowest / min(gpu), 0)} by "
            "the table.",
        )


def _accuracy(study: StudyData, case: Measured) -> Table:
    columns = [
        Column("variant", number=False),
        Column("answers", "rows"),
        Column("wrong", "rows"),
        Column("largest logit error", "of the largest"),
        Column("allowed", "of the largest"),
        Column("classes flipped", "cases"),
        Column("of", "cases"),
        Column("may be recommended", number=False),
    ]
    candidates = set(study.rows["variant"].unique())
    rows = []
    for name in WORDS:
        own = case.every[(case.every["variant"] == name) & case.every["max_error"].notna()]
        if own.empty:
            continue
        good = own[own["status"].isin(MEASURED)]
        # The same inputs for every configuration of a problem: each problem's worst counts once.
        worst = good.groupby(study.problem_columns)["class_flips"].max()
        cases = sum(int(key[study.problem_columns.index("batch")]) for key in worst.index)
        rows.append(
            [
                name,
                wording.count(len(own)),
                wording.count((own["status"] == "wrong").sum()),
                _scientific(good["max_error"].max()),
                _scientific(own["tolerance"].max()),
                wording.count(worst.sum()),
                wording.count(cases),
                "yes" if name in candidates else "no: not what float32 answers",
            ]
        )
    return table(f"Against float64 on {case.gpu}", columns, rows)
