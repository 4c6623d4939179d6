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
from launchwise.report import scores, wording
from launchwise.report.blocks import Block, Cell, Section, Text
from launchwise.report.fields import by_gpu, field
from launchwise.report.numbers import fractions, records, winners
from launchwise.report.study import StudyData
from launchwise.tables.rows import row_numbers

ONE_CARD = "So no claim about unmeasured GPUs rests on these figures."


def transferred(study: StudyData) -> Section | None:
    """Loss of one GPU's best configurations on other GPUs; None with a single GPU."""
    if len(study.gpus) < 2:
        return None
    pairs = losses_by_transfer(study)
    found: list[Block] = []
    if pairs["loss"].notna().any():
        worst = records(pairs.sort_values("loss", ascending=False))[0]
        said = (
            f"Using {worst['source']}'s best configurations on {worst['target']} loses "
            f"{wording.percent(worst['loss'])} % on average, the most of all pairs"
        )
        if len(pairs) > 2:
            said += f"; the median pair loses {wording.percent(pairs['loss'].median())} %"
        found.append(Text(f"{said}."))
    found += [Text(text, "note") for text in _transfer_caveats(study)]
    known: dict[str, dict[str, Mapping[str, Any]]] = {gpu: {} for gpu in study.gpus}
    for pair in records(pairs):
        known[pair["target"]][pair["source"]] = pair
    fields = [field(f"best of {gpu}", partial(_loss, source=gpu)) for gpu in study.gpus]
    caption = (
        "Loss in percent (geometric mean) where the best configurations of one GPU are used on "
        "another"
    )
    found.append(by_gpu(caption, "", fields, known))
    return Section(f"{study.name}-transfer", "Transfer between GPUs", found)


def _loss(pairs: Mapping[str, Mapping[str, Any]], source: str) -> Cell:
    if (pair := pairs.get(source)) is None:
        return Cell("")
    worst = f"{wording.percent(pair['worst'])} at worst"
    lacking = f", {wording.plural(pair['impossible'], 'problem')} without a time"
    detail = f"{worst}{lacking if pair['impossible'] else ''}"
    return Cell(wording.percent(pair["loss"], 2), detail=detail)


def _transfer_caveats(study: StudyData) -> list[str]:
    found = [
        f"The rows of {gpu} are kept out: {'; '.join(why)}." for gpu, why in study.kept_out.items()
    ]
    slices = [gpu for gpu in study.gpus if study.profiles[gpu].is_slice]
    if slices:
        cards = "one model of card" if study.cards == 1 else f"{study.cards} models of cards"
        rest = (
            ONE_CARD if study.cards == 1 else "Claims about unseen GPUs rest on whole cards only."
        )
        found.append(
            f"{wording.listed(study.gpus)} are {cards}: {wording.listed(slices)} "
            f"{'is a slice' if len(slices) == 1 else 'are slices'} with fewer SMs and the same "
            f"cache, memory and clock as the card. {rest}"
        )
    if dropped := scores.dropped_features(study, scores.first_split(study)):
        found.append(
            "GPU features that do not vary between these GPUs were dropped from the models: "
            f"{wording.listed(dropped)}."
        )
    return found


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
