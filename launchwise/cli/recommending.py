"""Answers of a study's product, and of models of time on any GPU: recommend, export, predict."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import read_json, read_text, whole_file
from launchwise.cli.options import run_snakemake, settings_files, snakemake_line
from launchwise.cli.words import (
    LOOKUP,
    find_profile,
    gpu_named,
    named,
    problem_of,
    read_experiment,
    study_named,
    sweep_file,
)
from launchwise.experiment.experiment import Experiment
from launchwise.exporting.entries import TIME
from launchwise.exporting.table import answer_of, read_answer_table
from launchwise.learning.answering import why_none
from launchwise.learning.answers import (
    BASES,
    MEASURED,
    Answer,
    Interval,
    Suggestion,
    read_product_facts,
)
from launchwise.learning.features import Domain
from launchwise.learning.final import FACTS_FILE, Final, read_final
from launchwise.learning.predicting import learnable_rows, predict_times, predictors_of
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import records_of
from launchwise.learning.splits import Case
from launchwise.report import wording
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema, peers_schema
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.space import used
from launchwise.workloads.spec import Spec

FINAL = Path("results", "final")
COMMAND = "recommend"


def known_gpus(study: str, experiment: Experiment) -> list[str]:
    """GPUs that a study's product learnt from. Raises UserError when there is no such study, or no
    product of it."""
    study_named(study, experiment, COMMAND)
    path = experiment.root / FINAL / study / FACTS_FILE
    if not path.is_file():
        message = f"is missing: make it with snakemake --cores all -- final_{study}"
        raise UserError(path.parent.relative_to(experiment.root), "", message)
    return list(read_product_facts(path)["gpus"])


def load_final(study: str, experiment: Experiment, gpus: Sequence[str]) -> Final:
    """A study's product that answers for ``gpus`` besides those of its training rows. Raises
    UserError when a GPU is unknown, or the product is missing or damaged."""
    known = known_gpus(study, experiment)
    named_by = dict.fromkeys([*known, *gpus], COMMAND)
    named_by |= dict.fromkeys(known, str(FINAL / study / FACTS_FILE))
    settings = experiment.studies[study]
    spec = experiment.specs[settings.workload]
    profiles = {gpu: find_profile(gpu, experiment, where) for gpu, where in named_by.items()}
    domain = Domain.of(settings, spec, profiles)
    return read_final(experiment.root / FINAL / study, domain)


def answered(
    study: str,
    gpu: str | None,
    words: Sequence[str],
    files: Sequence[Path],
    top: int,
    least_gain: float | None,
) -> tuple[Answer, Spec]:
    """Answer of this folder's product, and its workload. Parameters are those of
    :func:`launchwise.cli.answer_commands.recommend`; ``words``: ``NAME=VALUE`` of the problem,
    ``files``: settings. Raises UserError when there is none, or nothing may run the problem."""
    experiment = read_experiment(files, Path.cwd(), study)
    case, final = loaded(study, gpu, words, experiment)
    path = experiment.root / LOOKUP / f"{study}.json"
    table = read_answer_table(path, final.domain, experiment.settings.objective)
    table = table.beside_libraries(libraries(study, [case.gpu], experiment))
    if final.domain.profiles[case.gpu].source == "described":
        from launchwise.report.answer.predicted_times import off_in

        table = replace(table, off=off_in(experiment.root / "results"))
    found = answer_of(table, final, case, top, least_gain)
    near = table.known.get((table.number(case.gpu), tuple(found.answered_for.values())))
    kinds, both = experiment.studies[study].peer_kinds.values(), (case.problem, found.answered_for)
    # A library serves another kind of problem by another function.
    one, other = (next((k for k in kinds if final.spec.value(k, each)), "") for each in both)
    if near and near.faster and case.problem != found.answered_for and one == other:
        found = replace(found, why=f"{found.why}; there {near.faster} in pairs")
    return found, final.spec


def libraries(study: str, gpus: Sequence[str], experiment: Experiment) -> list[pd.DataFrame]:
    spec = experiment.specs[experiment.studies[study].workload]
    paths = [experiment.root / "results" / "peers" / gpu / f"{study}.parquet" for gpu in gpus]
    return [read_table(path, peers_schema(spec)) for path in paths if path.is_file()]


def loaded(
    study: str, gpu: str | None, words: Sequence[str], experiment: Experiment
) -> tuple[Case, Final]:
    """What is asked about, and the product that answers; errors as of :func:`answered`."""
    gpus = known_gpus(study, experiment)
    if gpu is None and len(gpus) > 1:
        raise UserError(COMMAND, "--gpu", f"choose one: {study} measured {', '.join(gpus)}")
    gpu = gpu_named(gpu or gpus[0], experiment, COMMAND)
    final = load_final(study, experiment, [gpu])
    measured = records_of(final.measured[final.spec.problem_columns])
    case = Case(gpu, problem_of(final.spec, words, COMMAND, measured))
    if reason := why_none(final.domain, case):
        raise UserError(COMMAND, "problem", reason)
    return case, final


def as_json_text(found: Answer, spec: Spec) -> str:
    """The answer as JSON, with what to launch for each configuration."""
    plain = asdict(found)
    for one in plain["suggestions"]:
        shapes = launch_shapes(spec, found.problem, one["configuration"])
        one["launches"] = [asdict(shape) for shape in shapes]
    more = {"percent_of_intervals": found.percent, "basis_in_words": BASES[found.basis]}
    return json.dumps({**plain, **more}, indent=2)


def as_text(found: Answer, spec: Spec) -> str:
    """Lines for a terminal: configurations, what to launch, gains and basis."""
    lines = [f"{assigned(found.problem)} on {found.gpu}: {BASES[found.basis]}"]
    if found.outside > 1:
        more = f"{100 * (found.outside - 1):.2g} %"
        by = more if found.outside < 2 else f"a factor of {found.outside:.3g}"
        lines.append(f"outside of what was measured by {by}")
    for each in found.suggestions:
        number = f"{each.rank}. " if len(found.suggestions) > 1 else ""
        lines.append(f"{number}{named(each.configuration)}")
        lines += [f"   {line}" for line in _expectations(each, found)]
        shapes = launch_shapes(spec, found.problem, each.configuration)
        lines += [f"   launch {shape.words}" for shape in shapes]
        if spec.has_host_code and not shapes:
            lines.append("   launch decided by the host program")
        if several := spec.several_runs([str(each.configuration["variant"])]):
            lines.append(f"  {several}")
    lines += [f"usual choice: {named(found.usual)}", f"why: {found.why}"]
    return "\n".join(lines)


def _expectations(one: Suggestion, answer: Answer) -> list[str]:
    found = []
    if one.expected_ms is not None:
        limits, slower = _limits(one.interval_ms, 4, answer, answer.off), ""
        first_ms = answer.suggestions[0].expected_ms
        if one.rank > 1 and first_ms is not None:
            slower = f", {100 * (one.expected_ms / first_ms - 1):+.2g} %"
            if answer.basis == MEASURED and one.interval_ms:  # Limits of how much slower it is
                low, high = (f"{100 * (end / first_ms - 1):+.2g}" for end in one.interval_ms)
                limits, slower = "", f"{slower} ({answer.percent} % interval {low} to {high} %)"
        found.append(f"time {wording.number(one.expected_ms, 4)} ms{limits}{slower}")
    if one.is_usual:
        found.append("this is the usual choice")
    elif one.gain is not None:
        limits = _limits(one.gain_interval, 3, answer)
        pairs = ", measured in pairs" if one.paired else ""
        found.append(f"{one.gain:.3g} times as fast as the usual choice{limits}{pairs}")
    return found


def _limits(interval: Interval | None, digits: int, answer: Answer, off: str = "") -> str:
    if interval is None:
        # What a model says without limits may be off by any factor.
        return "" if answer.basis == MEASURED else f", {off or 'limits not known'}"
    low, high = interval
    return f" ({answer.percent} % interval {low:.{digits}g} to {high:.{digits}g})"


EXPORTING = "export"
EXPORT = Path("results", "export")

TRITON, CONFIG_FILES = "triton", "config-files"
MADE_OF = {TRITON: ["json", "python"], CONFIG_FILES: ["json"]}
"""Formats that are made of others when they are asked for."""


def exported(
    study: str,
    format_: str,
    output: Path | None,
    cores: int,
    files: Sequence[Path],
    mapping: Path | None = None,
    few: tuple[int, str | None, Sequence[str]] | None = None,
) -> Path:
    """Make the export of a study up to date and copy the file of one format, or make it.
    ``mapping``: file that says how configuration files are named and what they hold. ``few``:
    number of builds, load and GPUs (:func:`launchwise.cli.loads.few_builds`). Returns the copy.
    Raises UserError when there is no such study, or the format needs what is not there; SystemExit
    with Snakemake's exit code when it fails, which has said why."""
    from launchwise.exporting.exports import FORMATS, write_config_files
    from launchwise.exporting.triton import write_triton
    from launchwise.workloads.usual import read_config_files

    experiment = read_experiment(settings_files(files), Path.cwd(), study)
    asked = study_named(study, experiment, EXPORTING)
    if (mapping is None) == (format_ == CONFIG_FILES):
        message = f"says how {CONFIG_FILES} are named: the format needs it, and no other takes it"
        raise UserError(EXPORTING, "--mapping", message)
    if few is not None and (objective := experiment.settings.objective) != TIME:
        message = f"chooses builds by time: the objective of the settings is {objective}"
        raise UserError(EXPORTING, "--at-most", message)
    spec = experiment.specs[asked.workload]
    known = read_config_files(mapping, spec) if mapping is not None else None
    if few is None or not (LOOKUP / f"{study}.json").is_file():
        run_snakemake(snakemake_line([f"export_{study}"], cores, files=files))
    folder = EXPORT / study
    if few is not None:
        from launchwise.cli.loads import few_builds
        from launchwise.exporting.exports import write_answers
        from launchwise.importing.device_names import cuda_names
        from launchwise.report.answer.predicted_times import off_in

        found, lines = few_builds(study, *few, experiment)
        folder = EXPORT / f"{study}.few"
        own = libraries(study, [one.name for one in found.devices], experiment)
        whole = found.named_by(cuda_names()).beside_libraries(own)
        whole = replace(whole, off=off_in(experiment.root / "results"))
        write_answers(folder, whole, MADE_OF.get(format_, [format_]))
        print("\n".join(lines), file=sys.stderr)
    if format_ in (TRITON, CONFIG_FILES):
        table = read_json(folder / FORMATS["json"].format(study=study))
        target = output or Path(f"{study}.{format_}")
        if known is None or mapping is None:
            decision = read_text(folder / FORMATS["python"].format(study=study))
            write_triton(target, table, spec, decision)
        else:
            write_config_files(target, table, spec, known, mapping)
        return target
    made = folder / FORMATS[format_].format(study=study)
    target = output or Path(f"{study}.{format_}" if made.is_dir() else made.name)
    if made.is_dir():
        shutil.copytree(made, target, dirs_exist_ok=True, copy_function=copied)
    else:
        copied(made, target)
    return target


def copied(made: str | Path, target: str | Path) -> None:
    """Copy a file; a link in its place is replaced."""
    with whole_file(target) as scratch:
        shutil.copyfile(made, scratch)


PREDICTING = "predict"
TITLES = {"analytical": "cost model", "learnt": "cost model + trees"}
"""Predictor to its name in the answer."""
TIE = 0.01
"""Relative difference below which two predicted times are a tie. Errors of the predictors are
larger (``docs/how-to/predict_times.md``)."""


def predicted(
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
    asked = study_named(study, experiment, PREDICTING)
    spec = experiment.specs[asked.workload]
    problem = problem_of(spec, words, PREDICTING)
    if top < 1:
        raise UserError(PREDICTING, "--top", f"must be at least 1, not {top}")
    gpu = gpu_named(gpu, experiment, PREDICTING)
    gpus = experiment.gpus_of(study) if learnt else []
    known = {
        each: find_profile(each, experiment, PREDICTING) for each in dict.fromkeys([gpu, *gpus])
    }
    domain, trees = Domain.of(asked, spec, known), None
    if learnt:
        schema = measurement_schema(spec)
        sweeps = [read_table(sweep_file(each, spec.workload, experiment), schema) for each in gpus]
        trees = recommender_class("learnt")(domain).fit(learnable_rows(domain, sweeps))
    predictors = predictors_of(domain, trees)
    # All configurations: a tie shows only beside what is not printed.
    table = predict_times(domain, [gpu], [problem], predictors, top=spec.size + 1)
    if table.empty:
        message = (
            "its runs copy between host and GPU at a rate that no datasheet states: set "
            f"gpus.{gpu}.host_gbs in the settings (1e9 B/s)"
        )
        raise UserError(PREDICTING, gpu, message)
    limits = ("bytes", "flop", "shortest")
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
    """Answer of one predictor: ``choices`` from the fastest, or ``no_basis``, why there are none. A
    tie of all configurations is no answer: the predictor knows nothing that differs between them.
    Without ``cost.yaml`` the cost model knows the bytes of the problem and the shape of the launch
    only; then any tie for the first place is no answer. ``rows``: all candidates of one problem on
    one GPU, from the fastest, with ``predicted_ms``, ``baseline_ms`` and ``bound_by``."""
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


def predicted_text(found: Mapping[str, Any]) -> str:
    """Lines for a terminal: the limits of the problem, then configurations by predictor."""
    limits = {name: wording.number(time) for name, time in found["limits_ms"].items()}
    lines = [
        f"{wording.problem(found['problem'], found['problem'], plain=True)} on {found['gpu']}: "
        f"least bytes at copy bandwidth {limits['bytes']} ms, FLOP {limits['flop']} ms; "
        f"no run takes less than {limits['shortest']} ms"
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
