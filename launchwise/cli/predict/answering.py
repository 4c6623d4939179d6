"""Predicted run times of a problem on any GPU, for ``launchwise predict``.

Asks the cost model, and with ``--learnt`` the trees that correct it as well, for the fastest
configurations of one problem on any GPU of the settings or of ``data/cards.csv``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.cli.gpu_names import gpu_named
from launchwise.cli.problems import problem_of
from launchwise.cli.studies import find_profile, read_experiment, study_named, sweep_file
from launchwise.learning.features import Domain
from launchwise.learning.predicting import fitted_predictors, learnable_rows, predict_times
from launchwise.learning.recommenders import recommender_class
from launchwise.report import wording
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.parts import Value
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

COMMAND = "predict"
TITLES = {"analytical": "cost model", "learnt": "cost model + trees"}
"""Predictor to its name in the answer."""
TIE = 0.01
"""Relative difference below which two predicted times are a tie. Errors of the predictors are
larger (``docs/how-to/predict_times.md``)."""


@dataclass(frozen=True)
class Question:
    """Arguments of the command."""

    # Its workload and its candidates.
    study: str
    # GPU of the settings, card of ``data/cards.csv``, or name of a device (see
    # :mod:`launchwise.cli.gpu_names`).
    gpu: str
    # Words ``NAME=VALUE``.
    problem: Sequence[str]
    # Number of configurations.
    top: int
    # Whether trees that are fitted to the study's sweeps predict as well.
    learnt: bool
    # Settings; each file overrides those before it.
    files: Sequence[Path]


@dataclass(frozen=True)
class Choice:
    """A configuration and its predicted time."""

    # Name of the variant.
    variant: str
    # Value of every tunable that the variant has.
    tunables: dict[str, Value]
    # Predicted run time, ms.
    predicted_ms: float
    # Predicted time of the baseline divided by ``predicted_ms``; NaN where it is unknown.
    speedup: float
    # What the cost model says limits the run.
    bound_by: str


@dataclass(frozen=True)
class Prediction:
    """Answer of one predictor."""

    # ``analytical`` or ``learnt``.
    predictor: str
    # From the fastest; empty where the predictor cannot tell configurations apart.
    choices: list[Choice]
    # Number of configurations whose predicted time is within :data:`TIE` of the fastest's.
    tied: int
    # Number of configurations that were compared.
    candidates: int
    # Why there are no choices; empty where there are.
    no_basis: str


@dataclass(frozen=True)
class Answer:
    """Answers of all predictors for one problem on one GPU."""

    # What was asked.
    study: str
    gpu: str
    problem: Problem
    # ``bytes``, ``flop`` and ``roofline``: shortest possible times, ms.
    limits_ms: dict[str, float]
    # One per predictor.
    predictions: list[Prediction]

    def as_dict(self) -> dict[str, Any]:
        """For JSON: variant and tunables of a choice are one mapping, ``configuration``."""
        return {
            "study": self.study,
            "gpu": self.gpu,
            "problem": self.problem,
            "limits_ms": self.limits_ms,
            "predictions": [
                {
                    "predictor": one.predictor,
                    "candidates": one.candidates,
                    "tied_with_the_fastest": one.tied,
                    "no_basis": one.no_basis or None,
                    "choices": [
                        {
                            "configuration": {"variant": choice.variant, **choice.tunables},
                            "predicted_ms": choice.predicted_ms,
                            "speedup_over_baseline": None
                            if wording.is_missing(choice.speedup)
                            else choice.speedup,
                            "bound_by": choice.bound_by,
                        }
                        for choice in one.choices
                    ],
                }
                for one in self.predictions
            ],
        }


def answer(asked: Question, root: Path) -> Answer:
    """Predictions for the project in ``root``.

    Raises
    ------
    UserError
        When there is no such study, GPU, problem, sweep or profile, or the GPU's link to the host
        is unknown and matters.
    """
    experiment = read_experiment(asked.files, root, asked.study)
    study = study_named(asked.study, experiment, COMMAND)
    spec = experiment.specs[study.workload]
    problem = problem_of(spec, asked.problem, COMMAND)
    if asked.top < 1:
        raise UserError(COMMAND, "--top", f"must be at least 1, not {asked.top}")
    gpu = gpu_named(asked.gpu, experiment, COMMAND)
    known = {gpu: find_profile(gpu, experiment, COMMAND)}
    if asked.learnt:
        from launchwise.tables.files import read_table
        from launchwise.tables.measurements import measurement_schema

        gpus = experiment.gpus_of(asked.study)
        known |= {each: find_profile(each, experiment, COMMAND) for each in gpus}
        schema = measurement_schema(spec)
        sweeps = [read_table(sweep_file(each, spec.workload, experiment), schema) for each in gpus]
    domain = Domain(spec, known, study.candidates, study.constraints)
    if asked.learnt:
        predictors = fitted_predictors(domain, learnable_rows(domain, sweeps))
    else:
        cost_model = recommender_class("analytical")(domain)
        predictors = {"analytical": cost_model.fit(pd.DataFrame())}
    # All configurations: a tie shows only beside what is not printed.
    table = predict_times(domain, [gpu], [problem], predictors, top=spec.size + 1)
    if table.empty:
        message = (
            "its runs copy between host and GPU at a rate that no datasheet states: set "
            f"gpus.{gpu}.host_gbs in the settings (1e9 B/s)"
        )
        raise UserError(COMMAND, gpu, message)
    limits = {name: float(table[f"{name}_ms"].iloc[0]) for name in ("bytes", "flop", "roofline")}
    predictions = [
        prediction(str(name), rows.sort_values("rank"), spec, asked.top)
        for name, rows in table.groupby("predictor", sort=False)
    ]
    return Answer(asked.study, gpu, problem, limits, predictions)


def prediction(predictor: str, rows: pd.DataFrame, spec: Spec, top: int) -> Prediction:
    """Answer of one predictor.

    A tie of all configurations is no answer: the predictor knows nothing that differs between them.
    Without ``cost.yaml`` the cost model knows the bytes of the problem and the shape of the launch
    only; then any tie for the first place is no answer.

    Parameters
    ----------
    rows
        All candidates of one problem on one GPU, from the fastest, with ``predicted_ms``,
        ``baseline_ms`` and ``bound_by``.
    """
    times = rows["predicted_ms"].to_numpy(dtype=float)
    tied = int((times <= times[0] * (1 + TIE)).sum())
    bytes_only = spec.cost is None and predictor == "analytical"
    if tied > 1 and (bytes_only or tied == len(rows)):
        reason = f"it predicts the same time for {tied} of {len(rows)} configurations"
        if bytes_only:
            reason += f"; describe the work of each variant in {COST_FILE}"
        return Prediction(predictor, [], tied, len(rows), reason)
    choices = [
        Choice(
            variant=str(row["variant"]),
            tunables={
                name: row[name]
                for name in spec.tunables
                if name in spec.variants[str(row["variant"])].tunables
            },
            predicted_ms=float(row["predicted_ms"]),
            speedup=float(row["baseline_ms"] / row["predicted_ms"]),
            bound_by=str(row["bound_by"]),
        )
        for row in rows.head(top).to_dict("records")
    ]
    return Prediction(predictor, choices, tied, len(rows), "")


def as_text(found: Answer) -> str:
    """Lines for a terminal: the limits of the problem, then configurations by predictor."""
    limits = {name: wording.number(time) for name, time in found.limits_ms.items()}
    lines = [
        f"{wording.problem(found.problem, found.problem)} on {found.gpu}: "
        f"least bytes at copy bandwidth {limits['bytes']} ms, FLOP {limits['flop']} ms; "
        f"roofline {limits['roofline']} ms",
    ]
    for one in found.predictions:
        lines += ["", TITLES.get(one.predictor, one.predictor)]
        lines += [f"no basis for an answer: {one.no_basis}"] if one.no_basis else _rows(one)
        if one.tied > len(one.choices) > 0:
            lines.append(f"{one.tied} configurations are within {100 * TIE:g} % of the fastest")
    return "\n".join(lines)


def _rows(one: Prediction) -> list[str]:
    """Aligned rows of a predictor's choices, below their head."""
    shown = [
        (
            wording.number(choice.predicted_ms, 4),
            wording.fixed(choice.speedup, 2),
            choice.bound_by,
            named(choice.variant, choice.tunables),
        )
        for choice in one.choices
    ]
    head = ("ms", "x baseline", "bound by", "configuration")
    widths = [max(len(cells[place]) for cells in (head, *shown)) for place in range(3)]
    return [
        "  ".join(
            [*(cell.rjust(width) for cell, width in zip(cells[:3], widths, strict=True)), last]
        )
        for cells in (head, *shown)
        for last in cells[3:]
    ]


def named(variant: str, tunables: Mapping[str, Any]) -> str:
    """``tiled: block_size_x=32, block_size_y=8``: every value with its name."""
    return f"{variant}: {assigned(tunables)}" if tunables else variant
