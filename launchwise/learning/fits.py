"""Recommenders that are fitted once for all who need them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path

import pandas as pd

from launchwise.learning.recommender import Recommender

ROW = "training row"
"""Column with the number of a training row in the table that all fits draw from."""


class Fits:
    """Fitted recommenders by kind, hyper-parameters and rows.

    All fits draw their rows from one table, whose rows are numbered in the column :data:`ROW`.
    Rows without it are fitted to anew each time.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Recommender, float]] = {}
        self._saved: dict[int, Path] = {}

    def fit(self, recommender: Recommender, rows: pd.DataFrame) -> tuple[Recommender, float]:
        """A recommender like the given one that is fitted to ``rows``, and what its fit took, s.

        It may be one that was fitted before: it must not be changed.
        """
        if ROW not in rows or not recommender.shareable:
            return self._fitted(recommender, rows)
        key = _key(recommender, rows)
        if key not in self._known:
            self._known[key] = self._fitted(recommender, rows)
        return self._known[key]

    def save(self, recommender: Recommender, folder: Path) -> None:
        """Write a fitted recommender into a new folder.

        What :meth:`fit` handed out several times takes its space once: files are linked.
        """
        shared = any(recommender is known for known, _ in self._known.values())
        source = self._saved.get(id(recommender)) if shared else None
        if source is None or not _linked(source, folder):
            recommender.save(folder)
        if shared:
            self._saved.setdefault(id(recommender), folder)

    def _fitted(self, recommender: Recommender, rows: pd.DataFrame) -> tuple[Recommender, float]:
        started = time.perf_counter()
        return recommender.fit(rows), time.perf_counter() - started


def _key(recommender: Recommender, rows: pd.DataFrame) -> str:
    kind = type(recommender)
    named = [kind.__module__, kind.__qualname__, recommender.get_params()]
    total = hashlib.sha256(json.dumps(named, sort_keys=True, default=str).encode())
    total.update(rows[ROW].to_numpy().tobytes())
    return total.hexdigest()


def _linked(source: Path, folder: Path) -> bool:
    """Whether the files of one folder could be linked into another."""
    try:
        shutil.copytree(source, folder, copy_function=os.link)
    except (OSError, shutil.Error):  # another file system, or one without links
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True
