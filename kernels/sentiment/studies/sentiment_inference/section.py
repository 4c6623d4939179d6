"""Sections of the sentiment study: speed-up per variant, the paper's times, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block, Cell, Section, Table, Text
from launchwise.report.fields import contradictions, field, of_texts, significant, table_of
from launchwise.report.study import StudyData
from launchwise.workloads.metrics import MEASURED

from ...host.launches import TENSOR, Choice, intermediate_bytes
from ...host.workload import LOOSER
from .beside_paper import beside_paper
from .measured import TOKENS, Measured, Row, is_once, measured, repeats_of, scientific, time_of

TRAINED = Path(__file__).resolve().parents[2] / "network.json"  # figures of the training

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
    every = measured(study)
    ladders = [part for case in every for part in _ladder(study, case)]
    times = [part for case in every for part in beside_paper(case, published)]
    times += contradictions(published)
    found = []
    if ladders:
        found.append(Section(f"{study.name}-ladder", "From naive to best", ladders))
    if times:
        found.append(Section(f"{study.name}-times", "Times from the host, and the paper's", times))
    accuracy: list[Block] = [*_data(published)]
    for case in every:
        accuracy += [*held_out(case, published), _accuracy(study, case)]
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
        rows = list(_steps(study, fastest))
        yield table_of(f"{case.gpu}, {batch} cases as {given}", LADDER, rows)
        if once := [row["variant"] for row in rows if row["gain"] is None]:
            yield Text(
                f"Without a speed-up, as the fastest row of the variant or of naive is of one "
                f"launch: {wording.listed(once)}.",
                "note",
            )


def _steps(study: StudyData, fastest: Mapping[str, Row]) -> Iterator[dict[str, Any]]:
    before: str | None = None
    for name in WORDS:
        if name not in fastest:
            continue
        row, time = fastest[name], time_of(fastest[name])
        # Variants by tensor cores stand beside each other: each is held against fused_case.
        reference = "fused_case" if name in TENSOR and "fused_case" in fastest else before
        tokens = int(str(row["tokens"]))
        once = is_once(row)
        problem = {column: row[column] for column in study.problem_columns}
        flop = float(study.spec.value(study.spec.work.flop, problem, {}))
        yield {
            **row,
            "configuration": wording.configuration(row, study.spec).removeprefix(f"{name} "),
            "repeated": repeats_of(row),
            "gain": _ratio(fastest["naive"], row),
            "reference": reference,
            "step": None if reference is None else _ratio(fastest[reference], row),
            "rate": None if once else flop / time / 1e9,
            "moved": intermediate_bytes(Choice.of(row), int(str(row["batch"])) * tokens, tokens),
        }
        before = name


def _ratio(before: Row, after: Row) -> float | None:
    """Speed-up; None where one of the times is that of one launch."""
    return None if is_once(before) or is_once(after) else time_of(before) / time_of(after)


def _gain(row: Mapping[str, Any]) -> str:
    return wording.fixed(row["gain"], 2 if row["gain"] is None or row["gain"] <= 2 else 1)


LADDER = [
    field("variant", lambda row: Cell(row["variant"], detail=WORDS[row["variant"]])),
    field("fastest configuration", "configuration"),
    field("time", "time_ms", significant(4), "ms"),
    field("repeats", "repeated", number=True),
    field("speed-up", _gain, str, "× naive", True),
    field(
        "speed-up",
        lambda row: Cell(wording.fixed(row["step"], 2), detail=row["reference"] or ""),
        str,
        "× the step before",
        True,
    ),
    field("rate", "rate", wording.number, "TFLOP/s"),
    field("between kernels", lambda row: row["moved"] / 1e9, wording.number, "GB"),
    field("registers", "registers", wording.count),
    field("occupancy", "occupancy", wording.percent, "%"),
    field("logit error", "max_error", scientific, "of the largest"),
]


def _data(published: Mapping[str, Records]) -> Iterator[Block]:
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
    yield of_texts("Data and accuracy", ("", "paper", "ours"), rows)


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


def _accuracy(study: StudyData, case: Measured) -> Table:
    rows = []
    for name in study.spec.variants:
        own = case.every[(case.every["variant"] == name) & case.every["max_error"].notna()]
        if own.empty:
            continue
        good = own[own["status"].isin(MEASURED)]
        # The same inputs for every configuration of a problem: each problem's worst counts once.
        worst = good.groupby(study.problem_columns)["class_flips"].max()
        rows.append(
            {
                "variant": name,
                "answers": len(own),
                "wrong": (own["status"] == "wrong").sum(),
                "error": good["max_error"].max(),
                "allowed": own["tolerance"].max(),
                "flipped": worst.sum(),
                "cases": sum(worst.index.get_level_values("batch")),
                "advice": _advice(name, case.exact),
            }
        )
    return table_of(f"Against float64 on {case.gpu}", ACCURACY, rows)


ACCURACY = [
    field("variant", "variant"),
    field("answers", "answers", wording.count, "rows"),
    field("wrong", "wrong", wording.count, "rows"),
    field("largest logit error", "error", scientific, "of the largest"),
    field("allowed", "allowed", scientific, "of the largest"),
    field("classes flipped", "flipped", wording.count, "cases"),
    field("of", "cases", wording.count, "cases"),
    field("may be recommended", "advice"),
]


def _advice(name: str, candidates: frozenset[str]) -> str:
    if name in candidates:
        return "yes"
    return f"no: {'not what float32 answers' if name in LOOSER else 'not a candidate here'}"
