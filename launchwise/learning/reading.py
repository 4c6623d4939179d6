"""Reads what the stages of a study have by GPU: profiles and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from launchwise.gpus.profile import read_profile
from launchwise.learning.features import Domain
from launchwise.tables.files import read_table
from launchwise.workloads.spec import load_spec


def read_domain(
    folder: Path, gpus: Sequence[str], profiles: Sequence[Path], question: Mapping[str, Any]
) -> Domain:
    """The workload in ``folder`` on some GPUs, as a study asks about it.

    Raises UserError when a profile cannot be read or is of another GPU.

    Parameters
    ----------
    gpus, profiles
        Names, and the file of each.
    question
        The other fields of :class:`launchwise.learning.features.Domain`.
    """
    known = {gpu: read_profile(path, gpu) for gpu, path in zip(gpus, profiles, strict=True)}
    return Domain(load_spec(folder), known, **question)


def read_tables(
    gpus: Sequence[str],
    paths: Sequence[Path],
    schema: pa.DataFrameSchema,
    columns: Collection[str] | None = None,
) -> dict[str, pd.DataFrame]:
    """GPU to its table, of one file each (:func:`launchwise.tables.files.read_table`)."""
    return {gpu: read_table(path, schema, columns) for gpu, path in zip(gpus, paths, strict=True)}
