"""Sections of the sentiment study: speed-up per variant, the paper's times, accuracy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Cell, Section, Text
from launchwise.report.fields import contradictions, field, grouped, of_texts, table_of
from launchwise.report.study_tables import StudyData
from launchwise.workloads.metrics import MEASURED

from ...host.launches import Choice, intermediate_bytes
from .beside_paper import PUBLISHED_INPUT, beside_paper
from .measured import GIVEN, TOKENS, Measured, Row, is_once, measured, scientific, time_of

TRAINED = Path(__file__).resolve().parents[2] / "network.json"  # figures of the training

WORDS = {
    "naive": "operands from global memory",
    "tiled": "tiles of operands in shared memory",
    "register_blocked": "four to eight products per word",
    "fused_bias_relu": "bias and ReLU in the product",
    "fused_pool": "without the second layer's output",
    "fused_case": "without the first layer's output",
    "tensor_tf32": "fused_case by tensor cores",
    "tensor_3xtf32": "two or three products for one",
    "tensor_3xfp16": "the same, two elements per word",
    "tensor_bf16": "one product, two elements per word",
    "tensor_fp16": "the same, more bits behind the point",
}
"""Change of each variant over its predecessor, in order."""


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    every = measured(study)
    found = []
    if ladder := list(_ladder(study, every)):
        found.append(Section(f"{study.name}-ladder", "From naive to best", ladder))
    if times := list(beside_paper(every, published)):
        times += contradictions(published)
        found.append(Section(f"{study.name}-times", "Times from the host, and the paper's", times))
    accuracy: list[Block] = [*_data(published), *_answers(study, every, published)]
    title = "Accuracy, and the effect of rounding"
    return [*found, Section(f"{study.name}-accuracy", title, accuracy)]


def _ladder(study: StudyData, every: Sequence[Measured]) -> Iterator[Block]:
    """Fastest time of every variant in the largest batch that naive has on every GPU."""
    named = {"given": PUBLISHED_INPUT, "memory": "device", "tokens": TOKENS}
    batches = [set(case.of(**named, variant="naive")["batch"]) for case in every]
    if not (common := set.intersection(*batches)):
        return
    batch = int(max(common))
    found = {case.gpu: case.fastest(**named, batch=batch) for case in every}
    first = next(iter(found.values()))
    fields = [
        field("variant", lambda name: Cell(name, detail=WORDS[name])),
        field("between kernels", lambda name: _moved(first.get(name)), wording.number, "GB moved"),
    ]
    for gpu, rows in found.items():
        fields += grouped(
            gpu,
            field("time", partial(_timed, rows), unit="ms", number=True),
            field("speed-up", partial(_over_naive, rows), _gain, "× naive"),
        )
    names = [name for name in WORDS if any(name in rows for rows in found.values())]
    caption = f"{wording.count(batch)} reviews of {TOKENS} words, {GIVEN[PUBLISHED_INPUT]}"
    yield table_of(f"{caption} in device memory", fields, names)


def _moved(row: Row | None) -> float | None:
    if row is None:
        return None
    tokens = int(str(row["tokens"]))
    return intermediate_bytes(Choice.of(row), int(str(row["batch"])) * tokens, tokens) / 1e9


def _timed(rows: Mapping[str, Row], name: str) -> Cell:
    if name not in rows:
        return Cell(MISSING)
    detail = "one launch" if is_once(rows[name]) else ""
    return Cell(wording.number(time_of(rows[name]), 4), detail=detail)


def _over_naive(rows: Mapping[str, Row], name: str) -> float | None:
    """Speed-up; None where one of the times is that of one launch."""
    pair = [rows.get("naive"), rows.get(name)]
    known = [time_of(row) for row in pair if row is not None and not is_once(row)]
    return known[0] / known[1] if len(known) == len(pair) else None


def _gain(gain: float | None) -> str:
    return wording.fixed(gain, 2 if gain is None or gain <= 2 else 1)


def _data(published: Mapping[str, Records]) -> Iterator[Block]:
    facts = facts_of(published)
    if "accuracy_percent" not in facts:
        return
    ours = read_json(TRAINED)
    count = wording.count
    theirs = [
        count(int(facts[f"reviews_{name}"])) for name in ("of_the_data_set", "trained", "tested")
    ]
    rows: list[tuple[str, str, str]] = [
        ("reviews", facts["reviews"], "rated snippets of film reviews (Hutto and Gilbert 2014)"),
        (
            "trained; tested",
            f"{theirs[0]} or {theirs[1]}; {theirs[2]} or {count(int(facts['cases']))}",
            f"{count(ours['reviews_trained'])}; {count(ours['reviews_held_out'])}",
        ),
        (
            "words per review",
            f"{facts['tokens']}, cut or padded",
            f"at most {ours['longest']}; timed: {TOKENS}, drawn",
        ),
        (
            "embeddings",
            facts["embeddings"],
            f"learnt with the network, {count(ours['words'] - 2)} words",
        ),
        (
            "classified correctly",
            f"{facts['accuracy_percent']} %",
            f"{wording.percent(ours['accuracy_held_out'])} % of those held out "
            f"({wording.percent(ours['accuracy_trained'])} % of those trained)",
        ),
    ]
    yield of_texts("Data and accuracy", ("", "paper", "ours"), rows)


REFERENCE = "float64"  # row of the reference in ``published/held_out.csv``


Figures = Mapping[tuple[str, str], Mapping[str, float]]  # by GPU and variant or tool


def _answers(
    study: StudyData, every: Sequence[Measured], published: Mapping[str, Records]
) -> Iterator[Block]:
    """Answers against float64: of all rows of the sweeps, and on held-out reviews."""
    drawn = {(case.gpu, name): one for case in every for name, one in _swept(study, case)}
    told = [one for one in published.get("held_out", []) if one["name"] != REFERENCE]
    compared = [one for one in told if one["gpu"] in {case.gpu for case in every}]
    held_out: Figures = {
        (one["gpu"], one["name"]): {
            "error": float(one["logit_error"]),
            "flipped": int(one["class_flips"]),
        }
        for one in compared
    }
    known = [name for _, name in (*drawn, *held_out)]
    names = [name for name in study.spec.variants if name in known]
    fields = [
        field("answered by", str),
        field("allowed", partial(_most, drawn, "allowed"), scientific),
    ]
    for title, figures in (("drawn reviews", drawn), ("held-out reviews", held_out)):
        fields += grouped(
            title,
            field("error", partial(_most, figures, "error"), scientific),
            field("flipped", partial(_most, figures, "flipped"), wording.count),
        )
    fields += grouped("held-out reviews", field("GPUs", partial(_gpus, held_out), wording.count))
    caption = (
        "Against float64: largest error of a logit, relative to the largest; most flipped classes"
    )
    yield table_of(caption, fields, [*names, *dict.fromkeys(n for n in known if n not in names)])
    rows, wrong = (int(sum(one[key] for one in drawn.values())) for key in ("rows", "wrong"))
    cases = [one["cases"] for one in drawn.values()]
    least, most = (wording.count(int(end)) for end in (min(cases), max(cases)))
    said = f"Drawn: {least} to {most} per GPU; {wrong} of {wording.count(rows)} rows wrong."
    if compared:
        said += f" Held out: {wording.count(int(compared[0]['reviews']))}."
    yield Text(said, "note")


def _most(figures: Figures, figure: str, name: str) -> float | None:
    """The largest figure of a variant over the GPUs."""
    found = [one[figure] for (_, own), one in figures.items() if own == name]
    return max(found) if found else None


def _gpus(figures: Figures, name: str) -> int:
    return sum(name == own for _, own in figures)


def _swept(study: StudyData, case: Measured) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Figures of every variant that a GPU's sweep has verified."""
    for name in study.spec.variants:
        own = case.every[(case.every["variant"] == name) & case.every["max_error"].notna()]
        if own.empty:
            continue
        good = own[own["status"].isin(MEASURED)]
        # The same inputs for every configuration of a problem: each problem's worst counts once.
        worst = good.groupby(study.problem_columns)["class_flips"].max()
        yield (
            name,
            {
                "rows": len(own),
                "wrong": (own["status"] == "wrong").sum(),
                "error": good["max_error"].max(),
                "allowed": own["tolerance"].max(),
                "flipped": worst.sum(),
                "cases": sum(worst.index.get_level_values("batch")),
            },
        )
