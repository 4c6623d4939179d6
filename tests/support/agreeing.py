"""What any product must do: lookup, ``recommend`` and exports give the same answer to any question.

A test file defines a fixture ``made`` and a subclass of :class:`Agreement` whose name begins with
``Test``.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answer_forms import Answering
from described_gpus import described_gpus
from drawn_questions import KINDS, STRANGER, Question, drawn

from launchwise.exporting.lookup import lookup_entries
from launchwise.exporting.table import AnswerTable, answer_table
from launchwise.importing.cards import cuda_names
from launchwise.learning.features import Domain
from launchwise.learning.final import Final, read_final

DESCRIBED = ("b200", "t4")  # Datasheet-only GPUs that are asked about, too

Made = tuple[Final, list[dict[str, Any]], AnswerTable]


def asked_about(folder: Path, domain: Domain) -> Made:
    """The product in a folder, its lookup and its table, with :data:`DESCRIBED`."""
    profiles = {**domain.profiles, **described_gpus(*DESCRIBED)}
    final = read_final(folder, replace(domain, profiles=profiles))
    table = answer_table(final, folder.name, DESCRIBED, cuda_names=cuda_names())
    return final, lookup_entries(final, DESCRIBED), table


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
class Agreement:
    """Tests of one product."""

    def test_any_question_has_one_answer(self, made: Made, tmp_path: Path) -> None:
        final, entries, table = made
        questions = drawn(table, 72, np.random.default_rng(3))
        answering = Answering(final, entries, table, tmp_path / "export")
        assert answering.disagreements(questions) == []
        bases = answering.bases(questions)
        assert {"none", "nearest", "new_gpu", "usual"} <= bases.keys()
        assert {"within", "measured"} & bases.keys()
        assert Counter(one.kind for one in questions).keys() == {*KINDS}
        assert STRANGER in {one.device for one in questions}

    def test_planted_launches_are_found(self, made: Made, tmp_path: Path) -> None:
        table = made[2]
        launches = {
            name: tuple(replace(one, grid=("7", "7", "7")) for one in kernels)
            for name, kernels in table.formulas.launches.items()
        }
        changed = replace(table, formulas=replace(table.formulas, launches=launches))
        assert wrong(made, first_question(table), tmp_path, table=changed) == ["python", "c++"]


class Planted:
    """What :class:`Agreement` would find, for one product of all."""

    def test_planted_disagreements_are_found(self, made: Made, tmp_path: Path) -> None:
        _, entries, table = made
        first, default, asked = table.entries[0], table.configuration(None), first_question(table)
        listed = (dict(zip(table.parameters, one.problem, strict=True)) for one in table.entries)
        usual = next(one for one in listed if table.usual_choice(one) not in (None, default))
        stranger = Question(STRANGER, usual, "listed")
        assert first.time_ms is not None
        slower = replace(first, time_ms=2 * first.time_ms)
        changed = replace(table, entries=(slower, *table.entries[1:]))
        assert wrong(made, asked, tmp_path, table=changed) == ["lookup", "recommend"]
        mine = {"gpu": asked.device, "problem": asked.problem}
        own = [one for one in entries if mine.items() <= one.items()]
        others = [one for one in entries if one not in own]
        faster = [{**one, "time_ms": first.time_ms / 2} for one in own]
        assert wrong(made, asked, tmp_path, entries=[*faster, *others]) == ["lookup"]
        wider = [{**one, "time_low_ms": 1e-9, "time_high_ms": 1e9} for one in own]
        assert wrong(made, asked, tmp_path, entries=[*wider, *others]) == ["interval"]
        strange = [replace(rule, conditions=("1 == 2",)) for rule in table.formulas.usual]
        formulas = replace(table.formulas, usual=tuple(strange))
        changed = replace(table, formulas=formulas)
        assert "recommend" in wrong(made, stranger, tmp_path, table=changed)


def first_question(table: AnswerTable) -> Question:
    first = table.entries[0]
    problem = dict(zip(table.parameters, first.problem, strict=True))
    return Question(table.devices[first.device].name, problem, "listed")


def wrong(
    made: Made,
    asked: Question,
    folder: Path,
    *,
    entries: list[dict[str, Any]] | None = None,
    table: AnswerTable | None = None,
) -> list[str]:
    """Forms that answer otherwise, with another lookup or another table."""
    answering = Answering(made[0], entries or made[1], table or made[2], folder / "export")
    return [name for each in answering.disagreements([asked]) for name in each["wrong"]]
