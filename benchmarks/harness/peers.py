"""Sentiment inference by other tools: NumPy's answer; ``sentiment_peers.py``'s results as tables.

The report of the study reads the tables (``published/``) beside the paper's times and accuracy.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.storage import read_records, whole_file

PEERS = (
    *("name", "implementation", "gpu", "device", "transferred", "total_s", "total_repeats"),
    *("one_case_transferred", "one_case_ms", "one_case_repeats", "source"),
)
"""Columns of the times; seconds are those of all cases, milliseconds those of one."""

HELD_OUT = ("gpu", "name", "reviews", "accuracy", "class_flips", "logit_error", "source")
"""Columns of the held-out comparison; the accuracy of float64 has no flips and no error."""

FROM_HOST = "embeddings, page-locked"


def numpy_answer(
    weights: Mapping[str, np.ndarray], x: np.ndarray, lengths: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Logits, float32 (cases, 2), all cases in one product per layer.

    ``weights``: ``w1`` to ``w4`` and ``b1`` to ``b4``, float32.
    ``x``: embeddings, float32 (cases, tokens, 300).
    ``lengths``: tokens that count, float32 (cases,).
    ``mask``: 1 where a token counts, else 0: float32 (cases, tokens, 1).
    """
    cases, tokens, width = x.shape
    h = np.maximum(x.reshape(cases * tokens, width) @ weights["w1"] + weights["b1"], 0)
    h = np.maximum(h @ weights["w2"] + weights["b2"], 0).reshape(cases, tokens, -1)
    pooled = (h * mask).sum(axis=1) / lengths[:, None]
    third = np.maximum(pooled @ weights["w3"] + weights["b3"], 0)
    answer: np.ndarray = third @ weights["w4"] + weights["b4"]
    return answer


def peers(result: Mapping[str, Any], source: str) -> list[dict[str, str]]:
    """Times of a result of ``sentiment_peers.py``, one row per tool and device."""
    cpu, card = result["cpu"], result["pytorch"]
    host = f"the GPU's host, {result['cpu_name']}" if result["cpu_name"] else "the GPU's host"
    everywhere = f"{cpu['cores']} CPU cores of {host}"

    def row(side: Mapping[str, Any], key: str, *named: str, one_given: str = "") -> dict[str, str]:
        """``named``: name, implementation, device, and what is transferred; ``one_given``: what is
        for one case, nothing where none was timed alone."""
        own, one = side[key], ("", "", "")
        if one_given:
            one = (one_given, _text(own["one_case_ms"]), str(side["one_case_repeats"]))
        total = (_text(own["total_s"]), str(side["passes"]))
        values = (*named[:2], result["gpu"], *named[2:], *total, *one, source)
        return dict(zip(PEERS, values, strict=True))

    found = [
        row(cpu, key, name, title, device, cpu["given"], one_given=cpu["given"])
        for name, key, title, device in (
            ("eigen_one_core", "eigen_one_core", "C++ with Eigen", f"one CPU core of {host}"),
            ("eigen_all_cores", "eigen_all_cores", "C++ with Eigen", everywhere),
            ("numpy_cpu", "numpy", "NumPy on the CPU", everywhere),
            ("pytorch_cpu", "torch", "PyTorch on the CPU", everywhere),
        )
    ]
    for name, key, how, one_given in (
        ("pytorch_gpu", "at_once", "all at once", FROM_HOST),
        ("pytorch_gpu_one_by_one", "one_by_one", "one by one", ""),
    ):
        named = (name, "PyTorch on the GPU", result["device"], f"{FROM_HOST}, {how}")
        found.append(row(card, key, *named, one_given=one_given))
    return found


def held_out(result: Mapping[str, Any], source: str) -> list[dict[str, str]]:
    """How each variant and tool classifies the held-out reviews, one row each."""
    known = {"gpu": result["gpu"], "source": source, "reviews": str(result["held_out"]["reviews"])}
    return [
        {
            **known,
            "name": name,
            "accuracy": _text(each["accuracy"]),
            "class_flips": str(each.get("class_flips", "")),
            "logit_error": _text(each["logit_error"]) if "logit_error" in each else "",
        }
        for name, each in result["held_out"]["variants"].items()
    ]


def _text(value: float) -> str:
    return f"{value:.5g}"


def source_of(result: Mapping[str, Any], file: str) -> str:
    """Where rows come from: the result's file in ``benchmarks/results/``, its day and commit."""
    day, commit = result["measured_at"][:10], result["commit"][:7]
    return f"launchwise: benchmarks/results/{file}, {day}, commit {commit}"


def write_tables(folder: Path, result: Mapping[str, Any], file: str) -> None:
    """Write :func:`peers` and :func:`held_out` as CSV; rows of other GPUs stay.

    ``folder``: that of the study's published tables.
    ``file``: name of the result's file.
    """
    source = source_of(result, file)
    _replace(folder / "peers.csv", PEERS, peers(result, source))
    _replace(folder / "held_out.csv", HELD_OUT, held_out(result, source))


def _replace(path: Path, columns: Sequence[str], rows: list[dict[str, str]]) -> None:
    """Put rows in the place of those of the same GPU."""
    there = [row for _, row in read_records(path)[1]] if path.is_file() else []
    gpu = rows[0]["gpu"]
    kept = [row for row in there if row["gpu"] != gpu]
    with whole_file(path) as scratch, open(scratch, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *rows])
