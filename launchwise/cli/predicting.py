"""Predicted run times of a problem on any GPU, for ``launchwise predict``.

Asks the cost model, and with ``--learnt`` the trees that correct it as well, for the fastest
configurations of one problem on any GPU of the settings or of ``data/cards.csv``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.cli.studies import (
    find_profile,
    gpu_named,
    named,
    problem_of,
    read_experiment,
    study_named,
    sweep_file,
)
from launchwise.learning.features import Domain
from launchwise.learning.predicting import fitted_predictors, learnable_rows, predict_times
from launchwise.learning.recommenders import recommender_class
from launchwise.report import wording
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.space import used
from launchwise.workloads.spec import Spec

COMMAND = "predict"
TITLES = {"analytical": "cost model", "learnt": "cost model + trees"}
"""Predictor to its name in the answer."""
TIE = 0.01
"""Relative difference below which two predicted times are a tie. Errors of the predictors are
larger (``docs/how-to/predict_times.md``)."""


def answer(
    study: str,
    gpu: str,
    words: Sequence[str],
    files: Sequence[Path],
    top: int = 5,
    learnt: bool = False,
) -> dict[str, Any]:
    """Predictions for the project in this folder, as ``--json`` prints them. Parameters are those
    of :func:`launchwise.cli.answer_commands.predict`; ``words`` are ``NAME=VALUE`` of the problem,
    ``files`` settings. Raises UserError when there is no such study, GPU, problem, sweep or
    profile, or the GPU's link to the host is unknown and matters."""
    experiment = read_experiment(files, Path.cwd(), study)
    asked = study_named(study, experiment, COMMAND)
    spec = experiment.specs[asked.workload]
    problem = problem_of(spec, words, COMMAND)
    if top < 1:
        raise UserError(COMMAND, "--top", f"must be at least 1, not {top}")
    gpu = gpu_named(gpu, experiment, COMMAND)
    gpus = experiment.gpus_of(study) if learnt else []
    known = {each: find_profile(each, experiment, COMMAND) for each in dict.fromkeys([gpu, *gpus])}
    domain = Domain(spec, known, asked.candidates, asked.constraints)
    if learnt:
        from launchwise.tables.files import read_table
        from launchwise.tables.measurements import measurement_schema

        schema = measurement_schema(spec)
        sweeps = [read_table(sweep_file(each, spec.workload, experiment), schema) for each in gpus]
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
    limits = ("bytes", "flop", "roofline")
    return {
        "study": study,
        "gpu": gpu,
        "problem": problem,
        "limits_ms": {name: float(table[f"{name}_ms"].iloc[0]) for name in limits},
        "predictions": [
            prediction(str(name), rows.sort_values("rank"), spec, top)
            for name, rows in table.groupby("predictor", sort=False)
        ],
    }


def prediction(predictor: str, rows: pd.DataFrame, spec: Spec, top: int) -> dict[str, Any]:
    """Answer of one predictor: ``choices`` from the fastest, or ``no_basis``, why there are none.

    A tie of all configurations is no answer: the predictor knows nothing that differs between them.
    Without ``cost.yaml`` the cost model knows the bytes of the problem and the shape of the launch
    only; then any tie for the first place is no answer.

    ``rows``: all candidates of one problem on one GPU, from the fastest, with ``predicted_ms``,
        ``baseline_ms`` and ``bound_by``.
    """
    times = rows["predicted_ms"].to_numpy(dtype=float)
    tied = int((times <= times[0] * (1 + TIE)).sum())
    bytes_only = spec.cost is None and predictor == "analytical"
    reason = None
    if tied > 1 and (bytes_only or tied == len(rows)):
        reason = f"it predicts the same time for {tied} of {len(rows)} configurations"
        if bytes_only:
            reason += f"; describe the work of each variant in {COST_FILE}"
    choices = [
        {
            "configuration": used({str(name): value for name, value in row.items()}, spec),
            "predicted_ms": float(row["predicted_ms"]),
            "speedup_over_baseline": None if wording.is_missing(speedup) else float(speedup),
            "bound_by": str(row["bound_by"]),
        }
        for row in rows.head(0 if reason else top).to_dict("records")
        for speedup in [row["baseline_ms"] / row["predicted_ms"]]
    ]
    facts = {"predictor": predictor, "candidates": len(rows), "tied_with_the_fastest": tied}
    return {**facts, "no_basis": reason, "choices": choices}


def as_text(found: Mapping[str, Any]) -> str:
    """Lines for a terminal: the limits of the problem, then configurations by predictor."""
    limits = {name: wording.number(time) for name, time in found["limits_ms"].items()}
    lines = [
        f"{wording.problem(found['problem'], found['problem'])} on {found['gpu']}: "
        f"least bytes at copy bandwidth {limits['bytes']} ms, FLOP {limits['flop']} ms; "
        f"roofline {limits['roofline']} ms",
    ]
    for one in found["predictions"]:
        lines += ["", TITLES.get(one["predictor"], one["predictor"])]
        if one["no_basis"]:
            lines.append(f"no basis for an answer: {one['no_basis']}")
            continue
        lines += _rows(one["choices"])
        if (tied := one["tied_with_the_fastest"]) > len(one["choices"]):
            lines.append(f"{tied} configurations are within {100 * TIE:g} % of the fastest")
    return "\n".join(lines)


def _rows(choices: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = [("ms", "x baseline", "bound by", "configuration")]
    for one in choices:
        speedup = wording.fixed(one["speedup_over_baseline"], 2)
        time = wording.number(one["predicted_ms"], 4)
        shown.append((time, speedup, one["bound_by"], named(one["configuration"])))
    widths = [max(map(len, column)) for column in list(zip(*shown, strict=True))[:3]]
    return ["  ".join([*(map(str.rjust, cells[:3], widths)), cells[3]]) for cells in shown]
