"""Recorded measurements of one workload, checked and brought to where the pipeline reads them.

Each recorded file is read once: the sweeps, the pairs of every study, blind tests. What follows
from them alone is made with them: judged times, and the scores of blind tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.scripting import log
from launchwise.base.storage import whole_file, write_sealed_json, write_text
from launchwise.experiment.method import Confirmation
from launchwise.experiment.study import Study
from launchwise.learning.blind import check_measured_after, read_frozen, score, summarise
from launchwise.learning.features import read_domain
from launchwise.learning.splits import Case, among, asked_about, cases_in
from launchwise.measuring.pairs.present_usual import beside_usual, peers_beside_usual
from launchwise.measuring.repeats import check_one_way
from launchwise.tables.files import columns_of, read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema, pairs_schema, peers_schema
from launchwise.tables.times import JUDGED_FROM, judged_times, not_in_sweep, times_schema
from launchwise.workflow.answer_checks import BlindTest, Copied, RecordedWorkload
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.usual import Usual

Tables = Mapping[str, pd.DataFrame]  # by study
Tested = tuple[pd.DataFrame, pd.DataFrame]  # sweep and pairs of a blind test


def bring(
    wanted: RecordedWorkload,
    folder: Path,
    profiles: Mapping[str, Path],
    clock_tolerance: float | None,
) -> None:
    """Check and write everything recorded of the workload in ``folder``. ``profiles``: of the GPUs
    that blind tests asked about. ``clock_tolerance``: see
    :class:`launchwise.experiment.method.Confirmation`; None for its default. Raises UserError when
    a file does not fit its schema, speaks of another GPU, or mixes drivers or toolkits."""
    spec = load_spec(folder)
    tolerance = clock_tolerance or Confirmation().clock_tolerance
    sweeps = {gpu: _sweep(gpu, file, spec) for gpu, file in wanted.sweeps.items()}
    pairs: dict[str, dict[str, pd.DataFrame]] = {gpu: {} for gpu in sweeps}
    blind: dict[str, dict[str, Tested]] = {gpu: {} for gpu in sweeps}
    for name, study in wanted.studies.items():
        rules = [Usual.model_validate(each) for each in study.usual] if study.usual else spec.usual
        for gpu, file in study.pairs.items():
            table = _read(file.source, pairs_schema(spec), gpu)
            pairs[gpu][name] = beside_usual(table, spec, rules, tolerance)
            _write(file, pairs[gpu][name], pairs_schema(spec))
        for gpu, file in study.peers.items():
            table = _read(file.source, peers_schema(spec), gpu)
            if gpu in study.pairs:
                # Of the configurations that ran in the same rounds.
                same = read_table(study.pairs[gpu].source, pairs_schema(spec))
                table = peers_beside_usual(table, same, spec, rules, tolerance)
            _write(file, table, peers_schema(spec))
        # Those that give judged times, too, come last.
        for gpu, test in (*study.drawn.items(), *study.blind.items()):
            measured = read_table(test.sweep, measurement_schema(spec))
            compared = read_table(test.pairs, pairs_schema(spec))
            write_score(gpu, test, measured, compared, folder, study.question, profiles[gpu])
            if gpu in study.blind and gpu in sweeps:
                blind[gpu][name] = measured, compared
    asked = {name: Study.model_validate(study.entry) for name, study in wanted.studies.items()}
    asking = {
        gpu: {name: asked[name] for name, one in wanted.studies.items() if gpu in one.times}
        for gpu in sweeps
    }
    known = {
        gpu: judged_of_studies(asking[gpu], sweeps[gpu], own, {}, spec)
        for gpu, own in pairs.items()
        if own
    }
    for gpu, rows in sweeps.items():
        others = [times for other, times in known.items() if other != gpu]
        judged = judged_of_studies(asking[gpu], rows, pairs[gpu], blind[gpu], spec, others)
        for name, times in judged.items():
            write_table(wanted.studies[name].times[gpu], times, times_schema(spec))


def _sweep(gpu: str, file: Copied, spec: Spec) -> pd.DataFrame:
    schema = measurement_schema(spec)
    table = _read(file.source, schema, gpu)
    check_one_way(table, file.source)
    if set(spec.tunables) <= {*columns_of(file.source)}:
        with whole_file(file.target) as scratch:
            shutil.copyfile(file.source, scratch)
    else:
        _write(file, table, schema)
    return table


def _read(path: Path, schema: Any, gpu: str) -> pd.DataFrame:
    """A recorded table, which speaks of one GPU."""
    table = read_table(path, schema)
    if names := sorted(set(table["gpu"].unique()) - {gpu}):
        raise UserError(path, "gpu", f"is {names[0]!r}, not {gpu!r}")
    return table


def _write(file: Copied, table: pd.DataFrame, schema: Any) -> None:
    write_table(file.target, table, schema, read_facts(file.source))


def judged_of_studies(
    studies: Mapping[str, Study],
    sweep: pd.DataFrame,
    pairs: Tables,
    blind: Mapping[str, Tested],
    spec: Spec,
    others: Sequence[Tables] = (),
) -> dict[str, pd.DataFrame]:
    """Judged times of one GPU for each study of a workload: of a problem that several ask about the
    same rows, judged once by what all of them compared. A problem of a blind test that was swept
    since is one of the sweep: it has one row per configuration, and the blind test's rounds.
    ``sweep``: of the GPU. ``pairs``, ``blind``: study to its pairs, and to sweep and pairs of its
    recorded blind test. ``others``: of each other GPU, study to its judged times, see
    :func:`judged_times`."""
    asked = {name: asked_about(study, sweep) for name, study in studies.items()}
    found: dict[str, pd.DataFrame] = {}
    for names in _asking_together(asked):
        rows = sweep[np.logical_or.reduce([asked[name] for name in names])]
        contests = {name: pairs[name] for name in names if name in pairs}
        tests = {name: blind[name] for name in names if name in blind}
        swept = cases_in(rows, spec) if tests else []
        for name, test in tests.items():
            contests |= _swept_since(name, test, swept, contests, spec)
            measured, compared = (each[~among(each, swept, spec)] for each in test)
            tests[name] = measured, compared
        of_gpus = ([each[name] for name in names if name in each] for each in others)
        known = [_of_any(each, spec) for each in of_gpus if each]
        times = judged_times(rows, [*contests.values()], spec, others=known)
        for name in names:
            own = asked[name][times["sweep_row"]]
            if name in tests:
                own = own | among(times, cases_in(blind[name][0], spec), spec)
            found[name] = times[own].reset_index(drop=True)
        if tests:
            asked_blindly = _of_any([each for each, _ in tests.values()], spec)
            ran, known = [each for _, each in tests.values()], [times, *known]
            tested = judged_times(asked_blindly, ran, spec, blind=True, others=known)
            for name, (measured, _) in tests.items():
                of_all, its = (
                    pd.MultiIndex.from_frame(each[spec.key_columns]) for each in (tested, measured)
                )
                tables = [found[name], tested[of_all.isin(its)]]
                found[name] = pd.concat(tables, ignore_index=True)
        for name, ran_there in contests.items():
            lost = not_in_sweep(ran_there, times, spec)[spec.key_columns]
            for row in lost.to_dict("records"):
                log.warning("%s: the sweep has no time of %s, which ran in pairs", name, row)
    return found


def _swept_since(
    name: str, test: Tested, swept: Sequence[Case], pairs: Tables, spec: Spec
) -> dict[str, pd.DataFrame]:
    """A study's pairs, with those of its blind test whose problems were swept since and are in no
    others; nothing without any."""
    later = test[1][among(test[1], swept, spec)]
    if name in pairs:
        later = later[~among(later, cases_in(pairs[name], spec), spec)]
        later = pd.concat([pairs[name], later], ignore_index=True)
    return {name: later} if len(later) else {}


def _asking_together(asked: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Studies that ask about the same problems, directly or through others."""
    found: list[list[str]] = []
    for name, rows in asked.items():
        with_it = [each for each in found if any((asked[one] & rows).any() for one in each)]
        found = [each for each in found if each not in with_it]
        found.append([*(one for each in with_it for one in each), name])
    return found


def _of_any(tables: Sequence[pd.DataFrame], spec: Spec) -> pd.DataFrame:
    """Rows of several tables, of the same row the first; one table as it is."""
    if len(tables) == 1:
        return tables[0]
    return pd.concat(tables).drop_duplicates(spec.key_columns)


def judged_columns(spec: Spec) -> list[str]:
    """Columns of a sweep that :func:`judged_of_studies` reads."""
    return [*spec.key_columns, *JUDGED_FROM]


def write_score(
    gpu: str,
    test: BlindTest,
    measured: pd.DataFrame,
    compared: pd.DataFrame,
    folder: Path,
    question: Mapping[str, Any],
    profile: Path,
) -> None:
    """Write the score of a blind test: a row per problem, and their summary. ``measured``,
    ``compared``: content of its sweep and its pairs."""
    domain = read_domain(folder, [gpu], [profile], question)
    answers = read_frozen(test.frozen)
    check_measured_after(answers, {str(test.sweep): measured, str(test.pairs): compared})
    found = score(answers, domain, measured, compared)
    write_text(test.rows, found.to_csv(index=False))
    write_sealed_json(test.summary, summarise(answers, found))
    log.info("%s: %d problems of a blind test", gpu, len(found))
