"""Everything that a study's test cases tell: rows, curves, summary, intervals of its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from launchwise.base.storage import write_sealed_json
from launchwise.learning.curves import learning_curves, reached
from launchwise.learning.evaluate import Truth, evaluate
from launchwise.learning.features import Domain
from launchwise.learning.learnt import Learnt
from launchwise.learning.prediction_errors import prediction_errors
from launchwise.learning.situations import Situation
from launchwise.learning.splits import Fold
from launchwise.learning.stored import Offsets
from launchwise.learning.summary import summarise
from launchwise.tables.files import write_table
from launchwise.tables.learning import curves_schema, evaluation_schema


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of a study."""

    study: str
    learnt: Learnt
    # As `launchwise.tables.learning` declares them.
    rows: pd.DataFrame
    curves: pd.DataFrame
    # Situation to the interval of the product's answers.
    intervals: Mapping[Situation, Offsets]
    # Predicted times beside what was measured.
    timed: pd.DataFrame
    domain: Domain
    random_draws: Sequence[int]

    def write(self, rows: Path, curves: Path, summary: Path, processes: int) -> None:
        """Write rows, curves and their summary; errors are counted in so many processes."""
        facts = self.learnt.facts
        write_table(rows, self.rows, evaluation_schema(self.domain.spec), {"models": list(facts)})
        write_table(curves, self.curves, curves_schema(), {"models": list(facts)})
        near = self.domain.near_best_percent
        summed = summarise(self.rows, self.domain.spec, near, facts)
        errors = prediction_errors(self.timed, self.learnt.predicting, self.domain, processes)
        of_study = {
            "study": self.study,
            "random_draws": list(self.random_draws),
            "predictions": errors,
        }
        write_sealed_json(summary, {**of_study, **summed})


def evaluated(
    study: str,
    learnt: Learnt,
    folds: list[Fold],
    truth: Truth,
    domain: Domain,
    random_draws: Sequence[int],
    answering: str,
) -> Evaluation:
    """Evaluate what models say of a study's test cases, see :func:`evaluate`."""
    timed = truth.timed(learnt.predicted_times)
    shares = reached(learnt, truth)
    rows, errors = evaluate(
        study, learnt, folds, truth, timed, shares, domain, random_draws, answering
    )
    # The report draws curves of the first split.
    first = folds[0].split
    drawn = [fold for fold in folds if fold.split == first]
    known = shares[shares["split"] == first], learnt.of_split(first)
    curves = learning_curves(*known, drawn, truth, domain.spec, answering).assign(study=study)
    by_situation = errors.by_situation()
    return Evaluation(study, learnt, rows, curves, by_situation, timed, domain, random_draws)
