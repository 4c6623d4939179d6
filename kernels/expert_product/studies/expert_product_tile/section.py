"""Sections of the study: which language a product of experts is fastest in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from launchwise.experiment.published import Records
from launchwise.learning.features import Domain
from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Block, Bullets, Fold, Section, Text
from launchwise.report.fields import decimals, field, significant, table_of
from launchwise.report.study import StudyData

LANGUAGES = {"triton": "Triton", "tensor_tiles": "CUDA", "few_rows": "CUDA"}
"""Variant to the language that it is written in."""


def languages(study: StudyData, gpu: str) -> pd.DataFrame:
    """Times of one GPU's problems, those of most rows an expert last. Returns a DataFrame: problem
    columns; ``rows_an_expert``; fastest time of each language and of the usual choice, ms, NaN
    where it has none; ``first``, the language of the fastest; ``ratio``, time of the other language
    over that of the first; ``usual_ratio``, time of the usual choice over it."""
    columns = study.spec.problem_columns
    domain = Domain(study.spec, study.profiles)
    rows = study.measured[study.measured["gpu"] == gpu]
    rows = rows.assign(language=rows["variant"].map(LANGUAGES))
    found = rows.pivot_table("time_ms", columns, "language", aggfunc="min")
    found = found.reindex(columns=["Triton", "CUDA"])
    usual = rows[domain.is_usual(rows)].set_index(columns)["time_ms"]
    found["usual"] = usual.reindex(found.index)
    both = found[["Triton", "CUDA"]]
    found["first"] = both.idxmin(axis="columns")
    found["ratio"] = both.max(axis="columns") / both.min(axis="columns")
    found["usual_ratio"] = found["usual"] / both.min(axis="columns")
    found = found.reset_index()
    found["rows_an_expert"] = found["rows"] / found[["experts", "rows"]].min(axis="columns")
    return found.sort_values(["rows_an_expert", "experts", "n", "k", "dtype"], ignore_index=True)


NOTE = (
    "A language's time is that of its fastest configuration in the sweep. Rows an expert: rows "
    "divided by the experts that can have any. The rows of an expert are drawn, unevenly."
)


def sections(study: StudyData, published: Mapping[str, Records]) -> list[Section]:
    tables = {gpu: languages(study, gpu) for gpu in study.gpus}
    bullets = [(f"{gpu}:", said) for gpu, rows in tables.items() for said in _statements(rows)]
    found: list[Block] = [Text(NOTE, "note"), Bullets(bullets)]
    for gpu, rows in tables.items():
        fields = [
            field("rows an expert", "rows_an_expert", significant(3)),
            field("rows", "rows", wording.count),
            field("experts", "experts", wording.count),
            field("n", "n", wording.count),
            field("k", "k", wording.count),
            field("type", "dtype"),
            field("Triton", lambda row: 1e3 * row["Triton"], decimals(1), unit="us"),
            field("CUDA", lambda row: 1e3 * row["CUDA"], decimals(1), unit="us"),
            field("usual choice", lambda row: 1e3 * row["usual"], decimals(1), unit="us"),
            field("fastest", "first"),
            field("other language", "ratio", decimals(2), unit="× its time"),
        ]
        title = f"Languages on {gpu}, all problems"
        found.append(Fold(title, [table_of(title, fields, rows)]))
    return [Section(f"{study.name}-languages", "Which language", found)]


def _statements(rows: pd.DataFrame) -> Iterator[str]:
    cuda, triton = (rows[rows["first"] == each] for each in ("CUDA", "Triton"))
    problems = wording.plural(len(rows), "problem")
    if cuda.empty or triton.empty:
        yield f"{rows['first'].iloc[0]} is the fastest language on each of {problems}."
    else:
        most, least = cuda["rows_an_expert"].max(), triton["rows_an_expert"].min()
        yield (
            f"CUDA is the fastest language on {len(cuda)} of {problems}, none with more than "
            f"{wording.number(most)} rows an expert; Triton on {len(triton)}, none with fewer than "
            f"{wording.number(least)}."
        )
    for name, own in (("CUDA", cuda), ("Triton", triton)):
        if len(own):
            yield (
                f"Where {name} is the fastest, the other language takes "
                f"{wording.number(geometric_mean(own['ratio'].to_numpy()))} times as long in the "
                f"geometric mean, at most {wording.number(own['ratio'].max())} times."
            )
    known = rows["usual_ratio"].dropna()
    if len(known):
        yield (
            f"The usual choice takes {wording.number(geometric_mean(known.to_numpy()))} times as "
            f"long as the fastest configuration in the geometric mean of "
            f"{wording.plural(len(known), 'problem')}, at most {wording.number(known.max())} times."
        )
