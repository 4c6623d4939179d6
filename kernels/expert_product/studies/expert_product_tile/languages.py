"""Fastest configuration of each language, problem by problem."""

from __future__ import annotations

import pandas as pd

from launchwise.learning.features import Domain
from launchwise.report.study import StudyData

LANGUAGES = {"triton": "Triton", "tensor_tiles": "CUDA", "few_rows": "CUDA"}
"""Variant to the language that it is written in."""


def languages(study: StudyData, gpu: str) -> pd.DataFrame:
    """Times of one GPU's problems, those of most rows an expert last.

    Returns
    -------
    DataFrame
        Problem columns; ``rows_an_expert``; fastest time of each language and of the usual choice,
        ms, NaN where it has none; ``first``, the language of the fastest; ``ratio``, time of the
        other language over that of the first; ``usual_ratio``, time of the usual choice over it.
    """
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
