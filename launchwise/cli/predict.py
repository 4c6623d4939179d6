"""Predicts run times of a problem on any GPU: ``python -m launchwise.cli.predict --help``.

Asks the cost model, and with ``--learnt`` the trees that correct it as well, for the fastest
configurations of one problem on any GPU of the settings or of ``data/cards.csv``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.base.merging import laid_over
from launchwise.base.typed import read_yaml
from launchwise.experiment.experiment import Experiment, load_experiment
from launchwise.gpus.datasheets import (
    CARDS_FILE,
    REFERENCE_PROFILE,
    described_profile,
    read_cards,
    reference_efficiency,
)
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.learning.features import Domain
from launchwise.learning.predicting import fitted_predictors, learnable_rows, predict_times
from launchwise.learning.recommenders import recommender_class
from launchwise.report import wording
from launchwise.tables.files import read_table
from launchwise.tables.schemas import measurement_schema
from launchwise.workflow.plan import described_cards, recorded_folders
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

COMMAND = "predict"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; on a mistake of the user print one line and return 1."""
    asked = _parser().parse_args(arguments)
    try:
        print(answer(asked, Path.cwd()))
    except UserError as error:
        print(f"launchwise: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m launchwise.cli.predict",
        description="Predict the fastest configurations of one problem, without running any.",
    )
    parser.add_argument("study", help="a study of the settings: its workload and candidates")
    parser.add_argument("gpu", help=f"a GPU of the settings, or a card in {CARDS_FILE}")
    parser.add_argument("problem", nargs="+", metavar="NAME=VALUE", help="parameter, such as n=512")
    parser.add_argument("--top", type=int, default=5, help="number of rows (default: 5)")
    parser.add_argument(
        "--learnt", action="store_true", help="also predict with trees fitted to the study's sweeps"
    )
    parser.add_argument("--configfile", nargs="+", default=["config.yaml"], metavar="FILE")
    return parser


def answer(asked: argparse.Namespace, root: Path) -> str:
    """Predictions as text.

    Raises
    ------
    UserError
        When there is no such study, GPU, problem, sweep or profile.
    """
    files = [Path(name) for name in asked.configfile]
    config: dict[str, Any] = {}
    for path in files:
        config = laid_over(config, read_yaml(path))
    experiment = load_experiment(config, files, root)
    studies = experiment.studies
    if asked.study not in studies:
        raise UserError(COMMAND, "", unknown("study", asked.study, studies))
    study = studies[asked.study]
    spec = experiment.specs[study.workload]
    problem = read_problem(asked.problem, spec)
    if asked.top < 1:
        raise UserError(COMMAND, "--top", f"must be at least 1, not {asked.top}")
    known = {asked.gpu: find_profile(asked.gpu, experiment)}
    if asked.learnt:
        gpus = experiment.gpus_of(asked.study)
        known |= {gpu: find_profile(gpu, experiment) for gpu in gpus}
        sweeps = _sweeps(gpus, spec, experiment)
    domain = Domain(spec, known, study.candidates, study.constraints)
    if asked.learnt:
        predictors = fitted_predictors(domain, learnable_rows(domain, sweeps))
    else:
        cost_model = recommender_class("analytical")(domain)
        predictors = {"analytical": cost_model.fit(pd.DataFrame())}
    table = predict_times(domain, [asked.gpu], [problem], predictors, asked.top)
    return written(table, spec)


def read_problem(words: Sequence[str], spec: Spec) -> Problem:
    """Problem from ``NAME=VALUE`` words.

    Raises
    ------
    UserError
        When a word is none, or the problem is not of this workload.
    """
    problem: Problem = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or name in problem:
            message = "is given twice" if name in problem else "must be NAME=VALUE"
            raise UserError(COMMAND, word, message)
        whole = name in spec.problem and spec.problem[name].type == "integer"
        problem[name] = int(value) if whole and value.lstrip("-").isdigit() else value
    if complaint := spec.check_problem(problem):
        raise UserError(COMMAND, "problem", complaint)
    return {name: problem[name] for name in spec.problem_columns}


def find_profile(gpu: str, experiment: Experiment) -> GpuProfile:
    """Profile of a GPU of the settings (recorded, described, or measured here), or of a card.

    Raises
    ------
    UserError
        When there is none.
    """
    root, gpus = experiment.root, experiment.settings.gpus
    entry = gpus.get(gpu)
    if entry is None or entry.source == "described":
        cards = read_cards(root / CARDS_FILE)
        card = described_cards(experiment.settings).get(gpu, gpu)
        if card not in cards:
            raise UserError(COMMAND, "gpu", unknown("GPU or card", gpu, {*gpus, *cards}))
        efficiency = reference_efficiency(cards, root / REFERENCE_PROFILE)
        return described_profile(gpu, cards, efficiency, card)
    if entry.source == "recorded":
        folder = recorded_folders(experiment)[gpu]
        return read_profile(root / folder / "profile.json", gpu)
    path = root / "results" / "gpus" / f"{gpu}.json"
    if not path.is_file():
        raise UserError(COMMAND, "gpu", f"{gpu} is live and not described yet: run describe_{gpu}")
    return read_profile(path, gpu)


def _sweeps(gpus: Sequence[str], spec: Spec, experiment: Experiment) -> list[pd.DataFrame]:
    """Measurements of the study's GPUs."""
    tables = []
    recorded = recorded_folders(experiment)
    for gpu in gpus:
        folder = recorded.get(gpu, f"results/sweeps/{gpu}")
        path = experiment.root / folder / f"{spec.workload}.parquet"
        tables.append(read_table(path, measurement_schema(spec)))
    return tables


def written(table: pd.DataFrame, spec: Spec) -> str:
    """Lines for a terminal: the limits of the problem, then configurations by predictor."""
    first = table.to_dict("records")[0]
    lines = [
        f"{wording.problem(first, spec.problem_columns)} on {first['gpu']}: "
        f"least bytes {wording.number(first['bytes_ms'])} ms, "
        f"FLOP {wording.number(first['flop_ms'])} ms, "
        f"roofline {wording.number(first['roofline_ms'])} ms",
    ]
    for name, rows in table.groupby("predictor", sort=False):
        shown = [
            (
                wording.number(row["predicted_ms"], 4),
                wording.fixed(row["baseline_ms"] / row["predicted_ms"], 2),
                row["bound_by"],
                wording.configuration(row, spec),
            )
            for row in rows.to_dict("records")
        ]
        head = ("ms", "x baseline", "bound by", "configuration")
        widths = [max(len(str(cells[place])) for cells in (head, *shown)) for place in range(3)]
        lines += ["", f"{'cost model' if name == 'analytical' else 'cost model + trees'}"]
        for cells in (head, *shown):
            padded = [str(cell).rjust(width) for cell, width in zip(cells, widths, strict=False)]
            lines.append("  ".join([*padded, str(cells[3])]))
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
