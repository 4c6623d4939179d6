"""Training and test cases (GPU, problem) of every split and fold of a study.

A *case* is one (GPU, problem) pair. A problem split has one fold, ``all``: it trains on every GPU
at the training problems and tests each of those GPUs at the test problems. A transfer split leaves
out a card with its slices, or several cards where there are many: a fold is named after the first
GPU that it tests, and trained on all that it does not. Slices of one card are left out one by one
where there is no other card.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import read_json
from launchwise.experiment.method import Selection
from launchwise.experiment.study import ProblemSplit, Split, Study, TransferSplit
from launchwise.gpus.profile import GpuProfile
from launchwise.tables.rows import is_baseline, matches, row_numbers, selected
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

ALL = "all"  # Name of the only fold of a problem split

MOST_TRANSFER_FOLDS = 6
"""Most folds of a transfer split: what is trained must not grow with the square of the GPUs."""


@dataclass(frozen=True)
class Case:
    """One problem on one GPU."""

    gpu: str
    problem: Problem

    @property
    def key(self) -> tuple[Any, ...]:
        """Hashable name of the case: the GPU, then the problem's values by name. Not in the spec's
        order: JSON objects come back sorted."""
        return (self.gpu, *(self.problem[name] for name in sorted(self.problem)))


@dataclass(frozen=True)
class Fold:
    """Training and test cases of one fitted model."""

    split: str
    fold: str
    train: tuple[Case, ...]
    test: tuple[Case, ...]


def asked_about(study: Study, rows: pd.DataFrame) -> np.ndarray:
    """Which rows are of problems that a study draws, or a split of it trains or tests on, on their
    GPU. Returns booleans, shape (rows,)."""
    splits = study.splits.values()
    selections = [
        selection
        for split in splits
        for selection in (
            (split.train, split.test) if isinstance(split, ProblemSplit) else (split.among,)
        )
    ]
    found = np.zeros(len(rows), dtype=bool)
    for selection in selections:
        found |= selected(rows, selection)
    if study.spread:
        drawn = pd.MultiIndex.from_frame(pd.DataFrame(study.spread))
        found |= pd.MultiIndex.from_frame(rows[list(study.spread[0])]).isin(drawn)
    return found & ~_left_out(rows, study.leave_out)


def _left_out(rows: pd.DataFrame, leave_out: Mapping[str, Selection]) -> np.ndarray:
    """Which rows are of problems that a study leaves out on their GPU: booleans, shape (rows,)."""
    found = np.zeros(len(rows), dtype=bool)
    for gpu, problems in leave_out.items():
        found |= selected(rows, {"gpu": [gpu], **problems})
    return found


def case_columns(spec: Spec) -> list[str]:
    """Columns that name a case in any table."""
    return ["gpu", *spec.problem_columns]


def cases_in(rows: pd.DataFrame, spec: Spec) -> list[Case]:
    """The distinct cases of a table, in order of first appearance."""
    columns = case_columns(spec)
    found = rows[columns].drop_duplicates()
    return [
        Case(str(gpu), dict(zip(spec.problem_columns, values, strict=True)))
        for gpu, *values in found.astype(object).to_numpy().tolist()
    ]


def among(rows: pd.DataFrame, cases: Iterable[Case], spec: Spec) -> np.ndarray:
    """Which rows belong to one of ``cases``: booleans of shape (rows,)."""
    codes, keys = case_codes(rows, spec)
    return keys_among(keys, cases)[codes]


def keys_among(keys: Iterable[tuple[Any, ...]], cases: Iterable[Case]) -> np.ndarray:
    """Which keys are those of one of ``cases``: booleans of shape (keys,)."""
    wanted = {case.key for case in cases}
    return np.array([key in wanted for key in keys], dtype=bool)


def case_codes(rows: pd.DataFrame, spec: Spec) -> tuple[np.ndarray, list[tuple[Any, ...]]]:
    """Number the cases of a table. Returns the number of each row's case, by first appearance:
    int64, shape (rows,); and the key (see :attr:`Case.key`) of each number."""
    if rows.empty:
        return np.empty(0, dtype=np.int64), []
    codes = case_numbers(rows, spec)
    # Text columns are slow to convert as a whole.
    few = rows[_key_columns(spec)].iloc[np.unique(codes, return_index=True)[1]]
    keys = zip(*(few[column].tolist() for column in few), strict=True)
    return codes, list(keys)


def key_of(row: Mapping[str, Any], spec: Spec) -> tuple[Any, ...]:
    """Key of the case of one row (see :attr:`Case.key`)."""
    return tuple(row[name] for name in _key_columns(spec))


def case_numbers(rows: pd.DataFrame, spec: Spec) -> np.ndarray:
    """Number of each row's case, by first appearance: int64, shape (rows,)."""
    return row_numbers(rows, _key_columns(spec))


def _key_columns(spec: Spec) -> list[str]:
    """Columns of a case's key, in its order."""
    return ["gpu", *sorted(spec.problem_columns)]


def make_splits(
    name: str,
    splits: Mapping[str, Split],
    spec: Spec,
    sweeps: Mapping[str, pd.DataFrame],
    profiles: Mapping[str, GpuProfile],
    blamed: Mapping[str, Sequence[str]] | None = None,
    leave_out: Mapping[str, Selection] | None = None,
) -> dict[str, Any]:
    """Every split and fold of a study, as ``results/splits/<study>.json`` holds them.

    Returns ``gpus`` (model of the card, slice or not), ``cards`` (model to GPUs),
    ``distinct_cards`` (how many models), ``order`` (names of the splits as the settings order them:
    keys of JSON files are sorted), and ``splits``: for each its ``kind``, ``folds`` (lists of cases
    under ``train`` and ``test``), ``skipped`` (GPU to the reason why it is not tested) and, for a
    transfer, ``folds_on_unseen_cards``: where this is 0 nothing is known of unseen GPUs.
    Raises UserError when a split overlaps itself, has nothing to learn from or nothing to be tested
    on.

    ``name``, ``splits``: the study and its splits, from the settings.
    ``sweeps``: GPU to its measurements (see
        :func:`launchwise.tables.measurements.measurement_schema`).
    ``blamed``: split to the file that holds it and its key there, for messages.
    ``leave_out``: GPU to problems that take no part on it.
    """
    measured = {
        gpu: _measured_cases(sweep[~_left_out(sweep, leave_out or {})], spec)
        for gpu, sweep in sweeps.items()
    }
    made_splits: dict[str, Any] = {}
    for split_name, split in splits.items():
        here = ("config.yaml", f"studies.{name}.splits.{split_name}")
        where, key = (blamed or {}).get(split_name, here)
        made = _one_split(split_name, split, measured, profiles, where, key)
        if not isinstance(split, ProblemSplit):
            made["folds_on_unseen_cards"] = sum(
                not _cards_of(parts["test"], profiles) & _cards_of(parts["train"], profiles)
                for parts in made["folds"].values()
            )
        made_splits[split_name] = made
    gpus, cards = dict[str, dict[str, Any]](), dict[str, list[str]]()
    for gpu in sweeps:
        one = profiles[gpu]
        gpus[gpu] = {"card": one.card_model, "is_slice": one.is_slice, "sms": one.sms}
        cards.setdefault(one.card_model, []).append(gpu)
    named = {"study": name, "workload": spec.workload, "order": list(splits)}
    known = {"gpus": gpus, "cards": cards, "distinct_cards": len(cards)}
    return {**named, **known, "splits": made_splits}


@dataclass(frozen=True)
class _Measured:
    """Cases of one GPU: all with a measured time, and those whose baseline has one."""

    any_time: list[Case]
    with_baseline: list[Case]


def _measured_cases(sweep: pd.DataFrame, spec: Spec) -> _Measured:
    rows = sweep[sweep["status"].isin(MEASURED)]
    return _Measured(cases_in(rows, spec), cases_in(rows[is_baseline(rows, spec)], spec))


def _one_split(
    name: str,
    split: Split,
    measured: Mapping[str, _Measured],
    profiles: Mapping[str, GpuProfile],
    where: str,
    key: str,
) -> dict[str, Any]:
    skipped: dict[str, str] = {}
    if isinstance(split, ProblemSplit):
        folds = [_problem_fold(name, split, measured, skipped)]
    else:
        if len(measured) < 2:
            message = f"a transfer needs at least 2 GPUs, the study has only {', '.join(measured)}"
            raise UserError(where, key, message)
        cards = {gpu: profiles[gpu].card_model for gpu in measured}
        folds = _transfer_folds(name, split, measured, cards, skipped)
        if len(known := [gpu for gpu in measured if gpu not in skipped]) == 1 and not folds:
            message = "a transfer needs problems of at least 2 GPUs, the sweeps hold only those of"
            raise UserError(where, key, f"{message} {known[0]}")
    for fold in folds:
        check_disjoint(fold, where, key)
    for part in ("train", "test"):
        if not folds or not all(getattr(fold, part) for fold in folds):
            use = "train on: the" if part == "train" else "test: the"
            also = " with a measured baseline" if part == "test" else ""
            message = f"no problem to {use} sweeps of {', '.join(measured)} have none of them{also}"
            raise UserError(where, f"{key}.{part}", message)
    return {
        "kind": split.kind,
        "skipped": skipped,
        "folds": {
            fold.fold: {
                part: [{"gpu": case.gpu, "problem": case.problem} for case in getattr(fold, part)]
                for part in ("train", "test")
            }
            for fold in folds
        },
    }


def _problem_fold(
    name: str, split: ProblemSplit, measured: Mapping[str, _Measured], skipped: dict[str, str]
) -> Fold:
    train: list[Case] = []
    test: list[Case] = []
    for gpu, cases in measured.items():
        learnt = [case for case in cases.any_time if matches(case.problem, split.train)]
        asked = [case for case in cases.with_baseline if matches(case.problem, split.test)]
        if asked and not learnt:
            # Testing it would be a transfer, which is another question.
            skipped[gpu] = "no training problem was measured"
            continue
        if not asked:
            skipped[gpu] = "no test problem with its baseline was measured"
        train += learnt
        test += asked
    return Fold(name, ALL, tuple(train), tuple(test))


def _transfer_folds(
    name: str,
    split: TransferSplit,
    measured: Mapping[str, _Measured],
    cards: Mapping[str, str],
    skipped: dict[str, str],
) -> list[Fold]:
    def chosen(cases: list[Case]) -> list[Case]:
        return [case for case in cases if matches(case.problem, split.among)]

    learnt = {gpu: chosen(cases.any_time) for gpu, cases in measured.items()}
    skipped |= {gpu: "no problem of the split was measured" for gpu in learnt if not learnt[gpu]}
    known = {gpu: card for gpu, card in cards.items() if learnt[gpu]}
    if len(known) < 2:
        return []
    folds = []
    for held in left_out_together(known):
        tested = {gpu: chosen(measured[gpu].with_baseline) for gpu in held}
        for gpu in held:
            if not tested[gpu]:
                skipped[gpu] = "no problem with its baseline was measured"
        test = [case for cases in tested.values() for case in cases]
        train = [case for gpu in known if gpu not in held for case in learnt[gpu]]
        if test:
            first = next(gpu for gpu in held if tested[gpu])
            folds.append(Fold(name, first, tuple(train), tuple(test)))
    return folds


def left_out_together(cards: Mapping[str, str]) -> list[list[str]]:
    """GPUs that are held out at once: whole cards with their slices, each GPU in one group. Where
    all are of one card, each GPU is a group. More groups than
    :data:`MOST_TRANSFER_FOLDS` are dealt out to as many.
    ``cards``: GPU to the model of its card."""
    whole: dict[str, list[str]] = {}
    for gpu, card in cards.items():
        whole.setdefault(card, []).append(gpu)
    groups = list(whole.values()) if len(whole) > 1 else [[gpu] for gpu in cards]
    count = min(MOST_TRANSFER_FOLDS, len(groups))
    dealt = [groups[start::count] for start in range(count)]
    return [[gpu for group in each for gpu in group] for each in dealt]


def _cards_of(cases: list[dict[str, Any]], profiles: Mapping[str, GpuProfile]) -> set[str]:
    return {profiles[case["gpu"]].card_model for case in cases}


def check_disjoint(fold: Fold, where: str = "config.yaml", key: str = "") -> None:
    """Reject a fold whose training and test cases overlap; UserError naming the first such case."""
    both = {case.key for case in fold.train} & {case.key for case in fold.test}
    if both:
        first = next(case for case in fold.test if case.key in both)
        message = (
            f"{len(both)} problems are in both training and test; "
            f"the first is {assigned(first.problem)} on {first.gpu}"
        )
        raise UserError(where, key or f"splits.{fold.split}", message)


def read_folds(path: str | Path, split: str | None = None) -> list[Fold]:
    """Folds in a ``splits.json``, of one split or of all, splits as the settings order them. Raises
    UserError when the file is broken or a fold tests what it learns from."""
    content = read_json(path)
    try:
        folds = [
            Fold(name, fold, _cases(parts["train"]), _cases(parts["test"]))
            for name in content["order"]
            if split is None or name == split
            for fold, parts in content["splits"][name]["folds"].items()
        ]
    except (KeyError, TypeError) as error:
        raise UserError(path, "", f"is not a file of splits: {error} is missing") from error
    for one in folds:
        check_disjoint(one, str(path))
    return folds


def _cases(plain: list[dict[str, Any]]) -> tuple[Case, ...]:
    return tuple(Case(case["gpu"], dict(case["problem"])) for case in plain)
