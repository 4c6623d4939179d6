"""Sections of the study: which language is fastest, and what the usual choice is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from launchwise.base.storage import read_json
from launchwise.experiment.published import Records
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Section, Text
from launchwise.report.fields import decimals, field, table_of
from launchwise.report.study_tables import StudyData
from launchwise.tables.times import by_sweep

LANGUAGES = {"triton": "Triton", "tensor_tiles": "CUDA", "few_rows": "CUDA"}
"""Variant to the language that it is written in."""

SHIPPED = Path("recorded", "shipped.json")  # of benchmarks/shipped_configurations.py

RANGES = {"up to 1": (0, 1), "above 1, up to 16": (1, 16), "above 16": (16, float("inf"))}
"""Rows per expert: each weight is used once; at most a tile of tensor cores; more."""


def languages(study: StudyData, gpu: str) -> pd.DataFrame:
    """Times of one GPU's problems by the sweep. Returns a DataFrame: problem columns;
    ``rows_per_expert``; fastest time of each language, ms, NaN where there is none; ``first``, the
    language of the fastest; ``ratio``, time of the other language over that of the first."""
    rows = by_sweep(study.measured[study.measured["gpu"] == gpu])
    rows = rows.assign(language=rows["variant"].map(LANGUAGES))
    found = rows.pivot_table("time_ms", study.spec.problem_columns, "language", aggfunc="min")
    found = found.reindex(columns=["Triton", "CUDA"])
    both = found.copy()
    found["first"] = both.idxmin(axis="columns")
    found["ratio"] = both.max(axis="columns") / both.min(axis="columns")
    found = found.reset_index()
    found["rows_per_expert"] = found["rows"] / found[["experts", "rows"]].min(axis="columns")
    return found


NOTE = (
    "Times are single rows of the sweep; a language has that of its fastest kernel here. Rows "
    "per expert: rows divided by the experts that can have any. The rows of an expert are drawn, "
    "unevenly."
)


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    every = pd.concat([languages(study, gpu).assign(gpu=gpu) for gpu in study.gpus])
    found: list[Block] = [
        Text(_rule(every)),
        table_of("Whose kernel is fastest, by rows per expert", BY_ROWS, [*_by_rows(every)]),
        Text(NOTE, "note"),
        *_shipped(study, every),
    ]
    return [Section(f"{study.name}-languages", "Kernels by language", found)]


BY_ROWS = [
    field("GPU", "gpu"),
    field("rows per expert", "range"),
    field("fastest", "first"),
    field("problems", lambda row: f"{row['won']} of {row['problems']}", number=True),
    field("other language", "mean", decimals(2), unit="× its time, geometric mean"),
    field("other language", "most", decimals(2), unit="× its time, most"),
]


def _within(rows: pd.DataFrame, title: str) -> pd.DataFrame:
    low, high = RANGES[title]
    return rows[(rows["rows_per_expert"] > low) & (rows["rows_per_expert"] <= high)]


def _by_rows(every: pd.DataFrame) -> Iterator[dict[str, object]]:
    for gpu, rows in every.groupby("gpu", sort=False):
        for title in RANGES:
            own = _within(rows, title)
            for first, won in own.groupby("first"):
                ratios = won["ratio"].dropna()
                yield {
                    **{"gpu": gpu, "range": title, "first": first},
                    **{"won": len(won), "problems": len(own), "most": ratios.max()},
                    "mean": geometric_mean(ratios.to_numpy()) if len(ratios) else None,
                }


def _rule(every: pd.DataFrame) -> str:
    """In how many problems of each range a CUDA kernel is fastest; Triton's is in the others."""
    parts = [
        f"{title}: {(own['first'] == 'CUDA').sum()} of {wording.plural(len(own), 'problem')}"
        for title in RANGES
        if len(own := _within(every, title))
    ]
    return (
        "Problems in which one of the two CUDA kernels here is the fastest, by rows per expert, on "
        f"all GPUs: {'; '.join(parts)}. In the others it is the Triton kernel. These kernels are "
        "compared, not what the languages can do."
    )


def _shipped(study: StudyData, every: pd.DataFrame) -> Iterator[Text]:
    """What the usual choice is, and how far it and a library's files are from the fastest."""
    path = None if study.folder is None else study.folder / SHIPPED
    if path is None or not path.is_file():
        return
    known = read_json(path)
    layers = {tuple(one[name] for name in ("experts", "n", "k")) for one in known["layers"]}
    keys = zip(every["experts"], every["n"], every["k"], strict=True)
    named = sum(key in layers for key in keys)
    beside = "; ".join(
        f"{one['experts']} experts of {one['n']} x {one['k']} on {one['gpu']}: the file's "
        f"{one['file_over_fastest']:.2f}, the usual choice {one['usual_over_fastest']:.2f} times"
        for one in known["layers"]
    )
    yield Text(
        "The usual choice is a fallback: what vLLM launches for a layer without a configuration "
        f"file. Layers whose file was compared are {named} of the {len(every)} problems here, and "
        f"{known['unlisted']} of the {known['configurations']} configurations of these files have "
        "values that no sweep tried. Time over the fastest of a sweep, geometric mean over tokens, "
        f"of such layers: {beside} ({known['source']}).",
        "note",
    )
