"""Recorded measurements of one workload, checked and brought to where the pipeline reads them.

Each recorded file is read once: the sweeps, the pairs of every study, blind tests. What follows
from them alone is made with them: judged times, and the scores of blind tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.scripting import log
from launchwise.base.storage import whole_file, write_sealed_json, write_text
from launchwise.experiment.method import Confirmation
from launchwise.experiment.study import Study
from launchwise.learning.blind import check_measured_after, read_frozen, score, summarise
from launchwise.learning.features import read_domain
from launchwise.learning.splits import among, asked_about, cases_in
from launchwise.measuring.pairs.present_usual import beside_usual, peers_beside_usual
from launchwise.measuring.rows import check_one_way
from launchwise.tables.files import columns_of, read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema, pairs_schema, peers_schema
from launchwise.tables.times import JUDGED_FROM, judged_times, not_in_sweep, times_schema
from launchwise.workflow.contests import BlindTest, Copied, RecordedWorkload
from launchwise.workloads.spec import Spec, load_spec
from launchwise.workloads.usual import Usual


def bring(
    wanted: RecordedWorkload,
    folder: Path,
    profiles: Mapping[str, Path],
    clock_tolerance: float | None,
) -> None:
    """Check and write everything recorded of the workload in ``folder``.

    ``profiles``: of the GPUs that blind tests asked about.
    ``clock_tolerance``: see :class:`launchwise.experiment.method.Confirmation`; None for its
        default.
    Raises UserError when a file does not fit its schema, speaks of another GPU, or mixes drivers or
    toolkits.
    """
    spec = load_spec(folder)
    tolerance = clock_tolerance or Confirmation().clock_tolerance
    sweeps = {gpu: _sweep(gpu, file, spec) for gpu, file in wanted.sweeps.items()}
    for study in wanted.studies.values():
        rules = [Usual.model_validate(each) for each in study.usual] if study.usual else spec.usual
        pairs = {}
        for gpu, file in study.pairs.items():
            table = _read(file.source, pairs_schema(spec), gpu)
            pairs[gpu] = beside_usual(table, spec, rules, tolerance)
            _write(file, pairs[gpu], pairs_schema(spec))
        for gpu, file in study.peers.items():
            table = _read(file.source, peers_schema(spec), gpu)
            if gpu in study.pairs:
                # Of the configurations that ran in the same rounds.
                same = read_table(study.pairs[gpu].source, pairs_schema(spec))
                table = peers_beside_usual(table, same, spec, rules, tolerance)
            _write(file, table, peers_schema(spec))
        blind = {}
        # Those that give judged times, too, come last.
        for gpu, test in (*study.drawn.items(), *study.blind.items()):
            measured = read_table(test.sweep, measurement_schema(spec))
            compared = read_table(test.pairs, pairs_schema(spec))
            write_score(gpu, test, measured, compared, folder, study.question, profiles[gpu])
            if gpu in study.blind:
                blind[gpu] = measured, compared
        asked = Study.model_validate(study.entry)
        own = {gpu: sweeps[gpu][asked_about(asked, sweeps[gpu])] for gpu in pairs}
        known = {gpu: judged_times(rows, pairs[gpu], spec) for gpu, rows in own.items()}
        for gpu, target in study.times.items():
            others = [times for other, times in known.items() if other != gpu]
            write_times(asked, sweeps[gpu], pairs.get(gpu), blind.get(gpu), spec, target, others)


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


def write_times(
    study: Study,
    sweep: pd.DataFrame,
    pairs: pd.DataFrame | None,
    blind: tuple[pd.DataFrame, pd.DataFrame] | None,
    spec: Spec,
    target: Path,
    others: Sequence[pd.DataFrame] = (),
) -> None:
    """Write the judged times of a study on one GPU. A problem of its blind test that was swept
    since is one of the sweep: it has one row per configuration, and the blind test's rounds.

    ``sweep``, ``pairs``: of the GPU; None without pairs.
    ``blind``: sweep and pairs of its recorded blind test; None without one.
    ``others``: judged times of the study's other GPUs, see :func:`judged_times`.
    """
    rows = sweep[asked_about(study, sweep)]
    if blind is not None:
        swept, (measured, compared) = cases_in(rows, spec), blind
        later = compared[among(compared, swept, spec)]
        if pairs is not None:
            later = later[~among(later, cases_in(pairs, spec), spec)]
            later = pd.concat([pairs, later], ignore_index=True)
        pairs = later if len(later) else pairs
        measured, compared = (each[~among(each, swept, spec)] for each in (measured, compared))
        blind = measured, compared
    tables = [judged_times(rows, pairs, spec, others=others)]
    if pairs is not None:
        for row in not_in_sweep(pairs, tables[0], spec)[spec.key_columns].to_dict("records"):
            log.warning("%s: the sweep has no time of %s, which ran in pairs", target, row)
    if blind is not None:
        own = [tables[0], *others]
        tables.append(judged_times(*blind, spec, blind=True, others=own))
    write_table(target, pd.concat(tables, ignore_index=True), times_schema(spec))


def judged_columns(spec: Spec) -> list[str]:
    """Columns of a sweep that :func:`write_times` reads."""
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
    """Write the score of a blind test: a row per problem, and their summary.

    ``measured``, ``compared``: content of its sweep and its pairs.
    """
    domain = read_domain(folder, [gpu], [profile], question)
    answers = read_frozen(test.frozen)
    check_measured_after(answers, {str(test.sweep): measured, str(test.pairs): compared})
    found = score(answers, domain, measured, compared)
    write_text(test.rows, found.to_csv(index=False))
    write_sealed_json(test.summary, summarise(answers, found))
    log.info("%s: %d problems of a blind test", gpu, len(found))
