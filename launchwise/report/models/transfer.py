"""Transfer between GPUs: loss of one GPU's best configurations on another."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from launchwise.learning.merit import geometric_mean
from launchwise.report import wording
from launchwise.report.blocks import Cell, Section, Text
from launchwise.report.fields import by_gpu, field
from launchwise.report.numbers import fractions, records, winners
from launchwise.report.study import StudyData
from launchwise.tables.rows import row_numbers


def transferred(study: StudyData) -> Section | None:
    """Loss of one GPU's best configurations on other GPUs; None with a single GPU."""
    if len(study.gpus) < 2:
        return None
    pairs = losses_by_transfer(study)
    known: dict[str, dict[str, Mapping[str, Any]]] = {gpu: {} for gpu in study.gpus}
    for pair in records(pairs):
        known[pair["target"]][pair["source"]] = pair
    fields = [field(f"best of {gpu}", partial(_loss, source=gpu)) for gpu in study.gpus]
    caption = (
        "Loss in percent (geometric mean) where the best configurations of one GPU are used on "
        "another"
    )
    found = [by_gpu(caption, "", fields, known), *(Text(one, "note") for one in _kept_out(study))]
    return Section(f"{study.name}-transfer", "Transfer between GPUs", found)


def _loss(pairs: Mapping[str, Mapping[str, Any]], source: str) -> Cell:
    if (pair := pairs.get(source)) is None:
        return Cell("")
    worst = f"{wording.percent(pair['worst'])} at worst"
    lacking = f", {wording.plural(pair['impossible'], 'problem')} without a time"
    detail = f"{worst}{lacking if pair['impossible'] else ''}"
    return Cell(wording.percent(pair["loss"], 2), detail=detail)


def _kept_out(study: StudyData) -> list[str]:
    return [
        f"The rows of {gpu} are kept out: {'; '.join(why)}." for gpu, why in study.kept_out.items()
    ]


def losses_by_transfer(study: StudyData) -> pd.DataFrame:
    """Loss from using GPU ``source``'s best configuration on GPU ``target``. Returns one row an
    ordered pair: ``source``, ``target``, ``problems`` that both measured, ``loss`` (geometric mean
    of time over best, minus 1), ``worst`` loss, ``impossible`` (problems where the target has no
    time for that configuration)."""
    best, rows = winners(study), fractions(study)
    problem, everything = study.problem_columns, study.spec.key_columns[1:]
    problems = _by_gpu(best, row_numbers(best, problem))
    both = row_numbers(pd.concat([best[everything], rows[everything]]), everything)
    chosen = _by_gpu(best, both[: len(best)])
    tried = _by_gpu(rows, both[len(best) :])
    reached = _by_gpu(rows, rows["fraction"].to_numpy())
    found = []
    for source, target in itertools.permutations(study.gpus, 2):
        common = np.isin(problems[source], problems[target])
        places = pd.Index(tried[target]).get_indexer(chosen[source][common])
        fraction = reached[target][places[places >= 0]]
        found.append(
            {
                "source": source,
                "target": target,
                "problems": int(common.sum()),
                "impossible": int((places < 0).sum()),
                "loss": 1 / geometric_mean(fraction) - 1 if len(fraction) else np.nan,
                "worst": float(1 / fraction.min() - 1) if len(fraction) else np.nan,
            }
        )
    return pd.DataFrame(found)


def _by_gpu(table: pd.DataFrame, values: np.ndarray) -> dict[str, np.ndarray]:
    """GPU to the values of its rows, in their order; none where it has no row."""
    places = table.groupby("gpu").indices
    return defaultdict(lambda: values[:0], {str(gpu): values[at] for gpu, at in places.items()})
