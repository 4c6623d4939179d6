"""Situation of a problem relative to the training rows: known or new GPU, size inside or beyond."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd
from pydantic import ConfigDict, FiniteFloat

from launchwise.workloads.spec import Spec

Situation = Literal["within", "beyond", "new_gpu"]
"""``within``: a known GPU, and every number of the problem between measured ones. ``beyond``: a
known GPU, and a number outside, or a text that no training problem has. ``new_gpu``: no training
row is of that GPU."""

SITUATIONS: tuple[Situation, ...] = get_args(Situation)


@dataclass(frozen=True)
class Known:
    """GPUs and problems of the training rows; a product stores them as JSON."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    # Names of GPUs.
    gpus: tuple[str, ...]
    # Problem parameter to its least and its largest value, where it is a number.
    ranges: dict[str, tuple[FiniteFloat, FiniteFloat]]
    # Problem parameter to its values, where it is a text.
    values: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, rows: pd.DataFrame, spec: Spec) -> Known:
        """From training rows."""
        ranges, values = {}, {}
        for name in spec.problem_columns:
            distinct = rows[name].unique().tolist()
            if all(isinstance(each, str) for each in distinct):
                values[name] = tuple(sorted(distinct))
            else:
                ranges[name] = (float(min(distinct)), float(max(distinct)))
        return cls(tuple(sorted(map(str, rows["gpu"].unique()))), ranges, values)

    def situations(self, rows: pd.DataFrame) -> np.ndarray:
        """Situation of each row that holds a GPU and a problem: objects, shape (rows,)."""
        beyond = np.zeros(len(rows), dtype=bool)
        for name, (least, largest) in self.ranges.items():
            asked = rows[name].to_numpy(dtype=float)
            beyond |= (asked < least) | (asked > largest)
        for name, texts in self.values.items():
            beyond |= ~rows[name].isin(texts).to_numpy()
        found = np.where(beyond, "beyond", "within").astype(object)
        found[~rows["gpu"].isin(self.gpus).to_numpy()] = "new_gpu"
        return found
