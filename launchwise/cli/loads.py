"""Loads of a project: what tuning is worth for them, and exports of few builds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.base.names import assigned
from launchwise.cli.words import (
    LOOKUP,
    find_profile,
    gpu_named,
    named,
    read_experiment,
    study_named,
)
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.load import LOADS, read_load
from launchwise.exporting.few import SIZES, Step, Weighed, limited
from launchwise.exporting.table import AnswerTable, read_answer_table
from launchwise.exporting.worth import Line, Worth, measuring_s, worth
from launchwise.learning.answers import BASES, MEASURED
from launchwise.learning.features import Domain
from launchwise.report import wording
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.times import SAID, times_schema
from launchwise.workloads.space import used

WORTH, EXPORT = "worth", "export"


def load_named(named: str | None, where: Experiment, study: str, command: str) -> Path | None:
    """File of a load: a path, a name below ``loads/``, or that of the study without either."""
    if named is None:
        own = where.studies[study].load
        return None if own is None else where.root / own
    for path in (Path(named), LOADS / f"{named}.csv"):
        if path.is_file():
            return path
    known = sorted(path.stem for path in LOADS.glob("*.csv"))
    raise UserError(command, "--load", unknown("load", named, known))


class Loaded:
    """A load of a study, and the study's answers on some devices."""

    def __init__(
        self,
        study: str,
        load: str | None,
        gpus: Sequence[str],
        experiment: Experiment,
        command: str,
    ) -> None:
        settings = study_named(study, experiment, command)
        self.study, self.spec = study, experiment.specs[settings.workload]
        self.path = load_named(load, experiment, study, command)
        path = experiment.root / LOOKUP / f"{study}.json"
        if not path.is_file():
            message = f"is missing: make it with snakemake --cores all -- final_{study}"
            raise UserError(path.relative_to(experiment.root), "", message)
        asked = dict.fromkeys(gpus)
        named = [gpu_named(each, experiment, command, "--gpu") for each in asked]
        own = [each for each in experiment.gpus_of(study) if each not in named]
        domain = Domain.of(
            settings,
            self.spec,
            {gpu: find_profile(gpu, experiment, command) for gpu in [*named, *own][:1]},
        )
        self.table: AnswerTable = read_answer_table(path, domain, experiment.settings.objective)
        measured = [each.name for each in self.table.devices if each.days or each.judge]
        self.gpus = named or [gpu for gpu in measured if gpu in own]
        for gpu in self.gpus:
            if gpu not in measured:
                allowed = ", ".join(measured)
                raise UserError(command, "--gpu", f"{study} measured {allowed}, not {gpu}")
        self._root = experiment.root
        self.load = None if self.path is None else read_load(self.path, self.spec)

    def counts(self) -> Mapping[tuple[Any, ...], int]:
        """Launches of each problem; without a load one of each that these GPUs measured."""
        if self.load is not None:
            return self.load.counts
        places = [self.table.number(gpu) for gpu in self.gpus]
        own = (one for one in self.table.entries if one.device in places)
        return {one.problem: 1 for one in own if one.basis == MEASURED}

    def judged(self, gpu: str, columns: Sequence[str] | None = None) -> pd.DataFrame | None:
        path = self._root / "results" / "times" / gpu / f"{self.study}.parquet"
        return read_table(path, times_schema(self.spec), columns) if path.is_file() else None

    def tuning_s(self, gpu: str) -> float | None:
        path = self._root / "results" / "sweeps" / gpu / f"{self.spec.workload}.parquet"
        if not path.is_file():
            return None
        rows = read_table(path, measurement_schema(self.spec), ["measured_at"])
        return measuring_s(rows["measured_at"].tolist())

    def weighed(self) -> Weighed:
        columns = [*self.spec.key_columns, "time_ms", *SAID, "basis"]
        own = {self.table.number(gpu): self.judged(gpu, columns) for gpu in self.gpus}
        judged = {at: one for at, one in own.items() if at is not None and one is not None}
        return Weighed.of(self.table, [at for at in own if at is not None], self.counts(), judged)


def is_it_worth(
    study: str, load: str | None, gpu: str | None, files: Sequence[Path]
) -> tuple[Loaded, Worth, Weighed]:
    """What tuning is worth for a load on one GPU, and what chooses builds. Parameters are those
    of :func:`launchwise.cli.answer_commands.worth`. Raises UserError when there is no such study,
    product, load or GPU, or no answer to a problem of the load has a time."""
    experiment = read_experiment(files, Path.cwd(), study)
    asked = Loaded(study, load, [gpu] if gpu else [], experiment, WORTH)
    if len(asked.gpus) > 1:
        raise UserError(WORTH, "--gpu", f"choose one: {study} measured {', '.join(asked.gpus)}")
    if asked.load is None:
        message = f"name a load: launchwise load FILE --as NAME --workload {asked.spec.workload}"
        raise UserError(WORTH, "--load", message)
    (name,) = asked.gpus
    found = worth(asked.table, name, asked.counts(), asked.tuning_s(name))
    if not found.lines:
        raise UserError(asked.path or WORTH, "", f"no problem has an answer with a time on {name}")
    return asked, found, asked.weighed()


def as_json_text(asked: Loaded, found: Worth, weighed: Weighed) -> str:
    plain = {"study": asked.study, "gpu": asked.gpus[0], "load": str(asked.path), **found.plain()}
    names = ("count", "reached", "interval", "lost")
    builds = [{name: getattr(one, name) for name in names} for one in _steps(weighed)]
    untimed = [weighed.untimed(at)._asdict() for at in weighed.times]
    return json.dumps({**plain, "few_builds": builds, "untimed": untimed[0]}, indent=2)


def _steps(weighed: Weighed) -> list[Step]:
    return list(dict.fromkeys(weighed.steps(SIZES)))


def _lost(step: Step) -> str:
    return f"; {wording.plural(step.lost, 'problem')} run with none" if step.lost else ""


def _untimed(weighed: Weighed) -> list[str]:
    """What is said of problems without a time, of each GPU that has some."""
    found = {at: weighed.untimed(at) for at in weighed.times}
    names = {at: weighed.table.devices[at].name for at in found}
    return [f"{names[at]}: {wording.untimed(*one)}" for at, one in found.items() if one.problems]


def as_text(asked: Loaded, found: Worth, weighed: Weighed, top: int) -> str:
    """Lines for a terminal: the whole, what keeps the usual choice, the cost, and the problems."""
    assert asked.load is not None
    lines = [
        f"{asked.path}: {asked.load.said[0]}; {asked.study} on {asked.gpus[0]}",
        *wording.worth_of_load(found),
    ]
    lines += ["", *_untimed(weighed), "builds  of the best speed (95 % interval)"]
    for one in _steps(weighed):
        limits = "" if one.interval is None else f" ({wording.interval(one.interval)})"
        lines.append(f"{one.count:>6}  {one.reached:.3f}{limits}{_lost(one)}")
    lines += ["", "share %  launches  ms        gain  problem"]
    for each in found.lines[:top]:
        lines.append(_line(each))
    if more := len(found.lines[top:]):
        lines.append(f"and {more} more (--top {len(found.lines)})")
    return "\n".join(lines)


def _line(one: Line) -> str:
    chosen = one.answer.suggestions[0].configuration
    return (
        f"{100 * one.share:7.2f}  {one.launches:>8}  {one.time_ms:<8.4g}  {one.gain:4.2f}  "
        f"{assigned(one.answer.problem)}: {named(chosen)}, {BASES[one.answer.basis]}"
    )


def few_builds(
    study: str, most: int, load: str | None, gpus: Sequence[str], experiment: Experiment
) -> tuple[AnswerTable, list[str]]:
    """The answers of a study with at most so many builds, and what is to be said of them. Raises
    UserError as :func:`is_it_worth`."""
    asked = Loaded(study, load, gpus, experiment, EXPORT)
    weighed = asked.weighed()
    if not (steps := weighed.steps([most])):
        raise UserError(EXPORT, "--at-most", f"no answer of {study} is of these GPUs")
    (step,) = steps
    found = limited(weighed, step)
    interval = "" if step.interval is None else f" ({wording.interval(step.interval)})"
    whose = str(asked.path) if asked.path else "the measured problems, one launch each"
    lines = [
        f"{wording.plural(step.count, 'build')}, {step.reached:.3f}{interval} of the best speed "
        f"of {whose} on {', '.join(asked.gpus)}{_lost(step)}",
        *_untimed(weighed),
    ]
    if step.tested:
        lines.append(step.tested.words)
    for place in step.places:
        lines.append(f"  {named(used(asked.table.configuration(place), asked.spec))}")
        for at, one in weighed.times.items():
            if lost := int((np.isinf(one.ms[:, place]) & (weighed.weights[at] > 0)).sum()):
                where = f"{wording.plural(lost, 'problem')} on {asked.table.devices[at].name}"
                lines.append(f"    no time at {where}: another takes its place")
    return found, lines
