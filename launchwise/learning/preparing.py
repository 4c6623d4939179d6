"""What a study learns from: splits, and training rows after the Tukey filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.scripting import log
from launchwise.base.storage import digest, digest_files, write_json
from launchwise.experiment.study import Study
from launchwise.learning.clean import clean
from launchwise.learning.features import Domain
from launchwise.learning.splits import make_splits, read_folds
from launchwise.learning.training_rows import TrainingRows
from launchwise.tables.files import write_table
from launchwise.tables.learning import removed_schema, training_schema


@dataclass(frozen=True)
class Prepared:
    """Training rows of a study with their folds, and the files that hold them."""

    rows: TrainingRows
    files: tuple[Path, ...]

    def digest(self, settings: Sequence[Any]) -> str:
        """Digest of folds, training rows and what else decides what all models say."""
        return digest([digest_files(list(self.files)), list(settings)])


def prepared(
    name: str,
    study: Study,
    domain: Domain,
    sweeps: Mapping[str, pd.DataFrame],
    blamed: Mapping[str, Sequence[str]],
    files: tuple[Path, Path, Path],
) -> Prepared:
    """Split the cases of a study, filter its training rows, and write both.

    Raises UserError when a split overlaps itself, or has nothing to learn from or to be tested on.

    Parameters
    ----------
    sweeps
        GPU to its measurements.
    blamed
        Split to the file that holds it and its key there, for messages.
    files
        Of splits, training rows and filtered rows.
    """
    spec = domain.spec
    splits, training, removed = files
    made = make_splits(name, study.splits, spec, sweeps, domain.profiles, blamed, study.leave_out)
    write_json(splits, made)
    folds = read_folds(splits)
    if study.train_on == "candidates":
        sweeps = {gpu: rows[domain.is_candidate(rows)] for gpu, rows in sweeps.items()}
    cleaned = clean(sweeps, folds, spec, study.fences)
    facts = {"counts": cleaned.counts, "fences": study.fences.model_dump(mode="json")}
    write_table(training, cleaned.training, training_schema(spec), facts)
    write_table(removed, cleaned.removed, removed_schema(spec), facts)
    for count in cleaned.counts:
        log.info(
            "%s %s: %d of %d measured rows kept",
            count["split"], count["fold"], count["training"], count["measured"],
        )  # fmt: skip
    return Prepared(TrainingRows(cleaned.training, folds), (splits, training))
