"""Sections of the sentiment study: speed-up per variant, the paper's times, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Cell, Column, Section, Table, table
from launchwise.report.study import StudyData
from launchwise.workloads.statuses import MEASURED

from ...host.launches import TENSOR, Choice, intermediate_bytes
from ...host.workload import LOOSER
from .beside_paper import beside_paper
from .contradictions import contradictions
from .from_host import from_host
from .measured import TOKENS, Measured, Row, measured, repeats_of, time_of

TRAINED = Path(__file__).resolve().parents[2] / "network.json"
"""Figures of the training."""

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
    "tensor_fp16": "the same with more bits behind the point, and a smaller range",
}
"""Change of each variant over its predecessor, in order."""


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    """Sections of the study, in order."""
    every = measured(study)
    ladders = [part for case in every for part in _ladder(study, case)]
    times = [part for case in every for part in beside_paper(case, published)]
    times += contradictions(published, study.spec)
    times += [part for case in every for part in from_host(case)]
    found = []
    if ladders:
        found.append(Section(f"{study.name}-ladder", "From naive to best", ladders))
    if times:
        found.append(Section(f"{study.name}-times", "Times from the host, and the paper's", times))
    accuracy: list[Block] = [*_data(published), *(_accuracy(study, case) for case in every)]
    found.append(
        Section(f"{study.name}-accuracy", "Accuracy, and the effect of rounding", accuracy)
    )
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


def _steps(case: Measured, fastest: Mapping[str, Row], known: list[str]) -> Block:
    """Speed-up of each variant over its predecessor."""
    found = []
    before: str | None = None
    for name in known:
        time = time_of(fastest[name])
        text = f"{wording.number(time, 3)} ms"
        # Variants by tensor cores stand beside each other: each is held against fused_case.
        reference = "fused_case" if name in TENSOR and "fused_case" in fastest else before
        if reference is not None:
            gain = time_of(fastest[reference]) / time
            text += f", {wording.fixed(gain, 2)} times as fast as {reference}"
            if single := [one for one in (name, reference) if fastest[one]["status"] == "slow"]:
                text += f" (one launch: {wording.listed(single)})"
        found.append((f"{name}:", f"{text}: {WORDS[name]}."))
        before = name
    return Bullets(found)


def _ladder_table(
    study: StudyData,
    case: Measured,
    title: str,
    fastest: Mapping[str, Row],
    known: list[str],
) -> Table:
    columns = [
        Column("variant", number=False),
        Column("fastest configuration", number=False),
        Column("time", "ms"),
        Column("repeats"),
        Column("speed-up", "× naive"),
        Column("rate", "TFLOP/s"),
        Column("between kernels", "GB"),
        Column("registers"),
        Column("occupancy", "%"),
        Column("logit error", "of the largest"),
    ]
    slowest = time_of(fastest["naive"])
    rows = []
    for name in known:
        row = fastest[name]
        time = time_of(row)
        problem = {column: row[column] for column in study.problem_columns}
        tokens = int(str(row["tokens"]))
        moved = intermediate_bytes(Choice.of(row), int(str(row["batch"])) * tokens, tokens)
        flop = float(study.spec.value(study.spec.work.flop, problem, {}))
        rows.append(
            [
                name,
                wording.configuration(row, study.spec).removeprefix(f"{name} "),
                wording.number(time, 4),
                repeats_of(row),
                wording.fixed(slowest / time, 1 if slowest > 2 * time else 2),
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


def _data(published: Mapping[str, Records]) -> Iterator[Block]:
    """The paper's data and accuracy beside ours."""
    facts = facts_of(published)
    if "accuracy_percent" not in facts:
        return
    ours = read_json(TRAINED)
    words = wording.count(ours["words"] - 2)
    rows: list[tuple[str, str, str]] = [
        ("reviews", facts["reviews"], "rated snippets of film reviews (Hutto and Gilbert 2014)"),
        (
            "reviews trained",
            f"{wording.count(facts['reviews_of_the_data_set'])}; "
            f"{wording.count(facts['reviews_trained'])} (section 5.1.1)",
            wording.count(ours["reviews_trained"]),
        ),
        (
            "reviews tested",
            f"{wording.count(facts['reviews_tested'])} (section 5.1.1); "
            f"{wording.count(facts['cases'])} (section 6.1)",
            f"{wording.count(ours['reviews_held_out'])}, held out",
        ),
        (
            "words per review",
            f"{facts['tokens']}, cut or padded",
            f"at most {ours['longest']}; timed ones have {TOKENS}, drawn word by word",
        ),
        ("embeddings", facts["embeddings"], f"learnt with the network, {words} words"),
        (
            "classified correctly",
            f"{facts['accuracy_percent']} %",
            f"{wording.percent(ours['accuracy_held_out'])} % of the held-out reviews "
            f"({wording.percent(ours['accuracy_trained'])} % of those trained)",
        ),
    ]
    columns = [Column(name, number=False) for name in ("", "paper", "ours")]
    cells: list[list[str | Cell]] = [
        [name, Cell(theirs, role="theirs"), own] for name, theirs, own in rows
    ]
    yield table("Data and accuracy", columns, cells)


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
    candidates = case.exact
    rows = []
    for name in study.spec.variants:
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
                _advice(name, candidates),
            ]
        )
    return table(f"Against float64 on {case.gpu}", columns, rows)


def _advice(name: str, candidates: frozenset[str]) -> str:
    if name in candidates:
        return "yes"
    return f"no: {'not what float32 answers' if name in LOOSER else 'not a candidate here'}"
