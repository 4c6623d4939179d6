"""What the names of a function of Triton say: tunables, types, first values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from launchwise.workloads.parts import Value

# Names of parameters, lower case but for those that ignore case.
TUNED = re.compile(
    r"block|tile|chunk|group_?(size)?_?m$|split|unroll|warps|stages|num_sms|^b[mnkdtc]$", re.I
)
REAL = re.compile(
    r"(^|_)(eps|epsilon|alpha|beta|gamma|scale|lr|momentum|p|prob|temperature|slope|value|decay"
    r"|limit|cap)(_|$)"
)
SEED = re.compile(r"seed|philox")
INDEX = re.compile(
    r"(^|_)(ids?|idx|index|indices|indptr|offsets|seqlens?|lens|lengths|counts?|counters?"
    r"|hist\w*|bins|table|locks?|labels|targets)(_|$)"
)
STATISTIC = re.compile(r"(^|_)(mean|rstd|var|lse|scales?|sums?|inv_?rms|delta|m|l)(_|$)")
FEW = re.compile(r"^(z|h|b|bs|bsz|batch\w*|(n|num|n_|num_)?heads?\w*|num_experts|e|experts)$", re.I)
HEAD = re.compile(r"dim|head_?size|^d$", re.I)

IS_GIVEN = "the array is given; else nullptr among the arguments"
"""Question of a constexpr that says whether an array is there."""

LARGEST = {1: 1 << 26, 2: 16_384, 3: 8_192}
"""Number of sizes to the largest that a draft allows."""


def first_values(name: str, literal: Any, has_dot: bool) -> tuple[list[Value], Value]:
    """Values of a tunable, and the first choice, around what the file gives."""
    low = name.lower()
    if low == "num_sms":
        return [literal or 132], literal or 132
    if low == "num_ctas" or "split" in low or "unroll" in low:
        start, low_end, high_end = literal or 1, 1, 4
    elif "warps" in low:
        start, low_end, high_end = literal or 4, 1 if not has_dot else 2, 8
    elif "stages" in low:
        start = literal or 3
        return sorted({1, 2, 3, 4, start}), start
    elif "group" in low:
        start, low_end, high_end = literal or 8, 1, 8
    elif has_dot:
        start, low_end, high_end = literal or 64, 32, 128
    else:
        start = literal or 1024
        low_end, high_end = max(start // 4, 1), start * 4
    values = {start} | {1 << place for place in range(20) if low_end <= 1 << place <= high_end}
    return sorted(values), start


def plain(text: str) -> Any:
    """A number where a text is one."""
    try:
        return float(text) if re.search(r"[.e]", text) else int(text)
    except ValueError:
        return text


def limits(
    name: str, sizes: Sequence[str], heads: Collection[str], grid: Collection[str]
) -> tuple[dict[str, Any], str]:
    """Values of a problem parameter, and a question.

    Parameters
    ----------
    sizes
        Every problem parameter.
    heads
        Those that builds fix.
    grid
        Sizes of the grid.
    """
    if name in heads:
        return {"type": "integer", "values": [64, 128]}, "values: each has builds of its own"
    if FEW.match(name) and len(sizes) > 1:
        return {"type": "integer", "minimum": 1, "maximum": 64}, "range"
    count = min(len(sizes), 3)
    least = 1 if name in grid else 1024 if count == 1 else 16
    return {"type": "integer", "minimum": least, "maximum": LARGEST[count]}, "range"
