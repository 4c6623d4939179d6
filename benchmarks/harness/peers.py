"""Sentiment inference by NumPy and PyTorch: NumPy's answer, and both tools' times as a table.

The report of the study reads the table (``published/peers.csv``) beside the paper's times.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from launchwise.base.storage import whole_file

COLUMNS = (
    "name",
    "implementation",
    "gpu",
    "device",
    "transferred",
    "total_s",
    "total_repeats",
    "one_case_transferred",
    "one_case_ms",
    "one_case_repeats",
    "source",
)
"""Columns of the table; seconds are those of all cases, milliseconds those of one."""

FROM_HOST = "embeddings, page-locked"


def numpy_answer(
    weights: Mapping[str, np.ndarray], x: np.ndarray, lengths: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Logits, float32 (cases, 2), all cases in one product per layer.

    Parameters
    ----------
    weights
        ``w1`` to ``w4`` and ``b1`` to ``b4``, float32.
    x
        Embeddings, float32 (cases, tokens, 300).
    lengths
        Tokens that count, float32 (cases,).
    mask
        1 where a token counts, else 0: float32 (cases, tokens, 1).
    """
    cases, tokens, width = x.shape
    h = np.maximum(x.reshape(cases * tokens, width) @ weights["w1"] + weights["b1"], 0)
    h = np.maximum(h @ weights["w2"] + weights["b2"], 0).reshape(cases, tokens, -1)
    pooled = (h * mask).sum(axis=1) / lengths[:, None]
    third = np.maximum(pooled @ weights["w3"] + weights["b3"], 0)
    answer: np.ndarray = third @ weights["w4"] + weights["b4"]
    return answer


def peers(result: Mapping[str, Any], gpu: str) -> list[dict[str, str]]:
    """The table of a result of ``against_pytorch.py``, one row per tool and device.

    Parameters
    ----------
    gpu
        Name of the GPU in the report.
    """
    cpu, card = result["cpu"], result["pytorch"]
    day, commit = result["measured_at"][:10], result["commit"][:7]
    source = f"launchwise: benchmarks/results/pytorch.json, {day}, commit {commit}"
    known = {"gpu": gpu, "source": source}
    transferred = cpu.get("given", "nothing; word numbers looked up")
    cores = f"{cpu['cores']} CPU cores of the GPU's host"
    rows = [
        {
            "name": f"{name}_cpu",
            "implementation": f"{title} on the CPU",
            "device": cores,
            "transferred": transferred,
            "total_s": _text(cpu[f"{key}_s"]),
            "total_repeats": str(cpu.get("passes", 1)),
            "one_case_transferred": transferred,
            "one_case_ms": _text(cpu[f"{key}_one_case_ms"]),
            "one_case_repeats": str(cpu.get("one_case_repeats", 50)),
        }
        for name, key, title in (("numpy", "numpy", "NumPy"), ("pytorch", "torch", "PyTorch"))
    ]
    one = "one_case_from_host_float32_ms"
    rows.append(
        {
            "name": "pytorch_gpu",
            "implementation": "PyTorch on the GPU",
            "device": result["device"],
            "transferred": f"{FROM_HOST}, all at once",
            "total_s": _text(card["from_host_float32_ms"] / 1e3),
            "total_repeats": str(result["repeats"]),
            "one_case_transferred": FROM_HOST if one in card else "nothing: embeddings on the GPU",
            "one_case_ms": _text(card.get(one, card["one_case_float32_ms"])),
            "one_case_repeats": str(result["repeats"] if one in card else 200),
        }
    )
    if "one_by_one_float32_s" in card:
        rows.append(
            {
                "name": "pytorch_gpu_one_by_one",
                "implementation": "PyTorch on the GPU",
                "device": result["device"],
                "transferred": f"{FROM_HOST}, one by one",
                "total_s": _text(card["one_by_one_float32_s"]),
                "total_repeats": str(card["one_by_one_repeats"]),
                **dict.fromkeys(("one_case_transferred", "one_case_ms", "one_case_repeats"), ""),
            }
        )
    return [{**known, **row} for row in rows]


def _text(value: float) -> str:
    return f"{value:.5g}"


def write_peers(path: Path, result: Mapping[str, Any], gpu: str) -> None:
    """Write :func:`peers` as CSV, whole or not at all."""
    with whole_file(path) as scratch, open(scratch, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(peers(result, gpu))
