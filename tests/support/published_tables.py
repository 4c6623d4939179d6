"""The published tables of the studies, as their files hold them."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
from samples import ROOT


def path_of(study: str, name: str) -> Path:
    """Where a published table of a study lies."""
    (found,) = (ROOT / "kernels").glob(f"*/studies/{study}/published/{name}.csv")
    return found


def table(study: str, name: str) -> pd.DataFrame:
    """A published table; numbers are parsed, empty cells are NaN."""
    return pd.read_csv(path_of(study, name))


def facts(study: str) -> dict[str, str]:
    """The single figures of a study, as printed."""
    with open(path_of(study, "facts"), newline="", encoding="utf-8") as handle:
        return {row["fact"]: row["value"] for row in csv.DictReader(handle)}
