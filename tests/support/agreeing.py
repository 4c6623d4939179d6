"""What any product must do: ``recommend`` and every export give the same answer to any question.

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
from drawn_questions import KINDS, STRANGER, drawn

from launchwise.exporting.building import answer_table
from launchwise.exporting.table import AnswerTable
from launchwise.importing.device_names import cuda_names
from launchwise.learning.answers import MEASURED
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final

DESCRIBED = ("b200", "t4")  # Datasheet-only GPUs that are asked about, too


def asked_about(folder: Path, domain: Domain) -> AnswerTable:
    """The table of the product in a folder, with :data:`DESCRIBED`."""
    profiles = {**domain.profiles, **described_gpus(*DESCRIBED)}
    final = read_final(folder, replace(domain, profiles=profiles))
    return answer_table(final, folder.name, DESCRIBED).named_by(cuda_names())


def changed(table: AnswerTable, **parts: Any) -> AnswerTable:
    """The table with other stored parts."""
    return replace(table, stored=table.stored.model_copy(update=parts))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
class Agreement:
    """Tests of one product."""

    def test_any_question_has_one_answer(self, made: AnswerTable, tmp_path: Path) -> None:
        questions = drawn(made, 500, np.random.default_rng(3))
        answering = Answering(made, tmp_path / "export")
        assert answering.disagreements(questions) == []
        said = map(answering.recommended, questions)
        bases = {each and each["basis"] for each in said}
        assert {None, "new_gpu", "usual", "measured", "within"} <= bases
        assert Counter(one.kind for one in questions).keys() == {*KINDS}
        assert STRANGER in {one.device for one in questions}


class Planted:
    """What :class:`Agreement` would find, for one product of all."""

    def test_what_is_rare_has_one_answer(self, made: AnswerTable, tmp_path: Path) -> None:
        """Ties of judges, a usual choice that may not run, a tunable that follows from the problem,
        an entry beyond what was measured, a type that a GPU did not measure, measured sizes that
        are far apart, gains that are not sure."""
        entries = [
            replace(
                one,
                gain=None,
                faster="cublas (13) is 2.00 times as fast" if one.problem[0] == 512 else "",
                time_ms=one.time_ms if one.device else None,
                gain_interval=None if one.basis == MEASURED else (1.1, 1.2),
                basis="beyond" if one.device == 1 and "float64" in one.problem else one.basis,
            )
            for one in made.entries
        ]
        far = [
            replace(one, problem=(1999, *one.problem[1:]), basis="beyond")
            for one in entries
            if one.problem[0] == 512
        ]
        # Of every second device each gain is sure, within what was measured.
        limits = [(1.05, 1.2), (0.95, 1.2)] * len(made.devices)
        devices = [
            replace(one, between_ms=(0.5, 1.3), between_gain=gain, reach=one.judge and 1.1)
            for one, gain in zip(made.devices, limits, strict=False)
        ]
        for at, one in enumerate(devices):
            if one.judge is not None:
                values = tuple(round(value, 2) for value in one.judge.value)
                devices[at] = replace(one, judge=replace(one.judge, value=values))
        table = changed(made, devices=tuple(devices), entries=(*entries, *far), least_gain=1.02)
        even = [replace(rule, conditions=("n % 2 == 0",)) for rule in made.formulas.usual]
        follows = (("by", "4 if n > 300 else 2"),)
        fits = {**made.formulas.fits, "block3d": ("n % 3 > 0",)}
        formulas = replace(made.formulas, usual=tuple(even), follows=follows, fits=fits)
        table = replace(table, formulas=formulas)
        questions = drawn(table, 500, np.random.default_rng(5))
        for n in (998, 999):
            questions += [replace(one, problem={**one.problem, "n": n}) for one in questions[:60]]
        answering = Answering(table, tmp_path / "export")
        assert answering.disagreements(questions) == []
        every = [one for one in map(answering.recommended, questions) if one]
        assert {0.0, 1.0} < {one["outside"] for one in every}
        said = {one["why"] for one in every}
        assert "no gain of 1.02 and more is sure" in said
        assert any(each.startswith("the nearest with an answer is") for each in said)
        assert any(each.endswith("; but cublas (13) is 2.00 times as fast") for each in said)

    def test_planted_disagreements_are_found(self, made: AnswerTable, tmp_path: Path) -> None:
        questions = drawn(made, 400, np.random.default_rng(4))

        def wrong(other: AnswerTable) -> set[str]:
            """What disagrees where the files are those of another table."""
            answering = Answering(made, tmp_path / "export", other)
            return {name for each in answering.disagreements(questions) for name in each["wrong"]}

        every = {"python", "c++", "json"}
        assert wrong(made) == set()
        slower = [replace(one, time_ms=one.time_ms and 2 * one.time_ms) for one in made.entries]
        assert (w := wrong(changed(made, entries=tuple(slower)))) == every, w
        contrary = [
            one
            if one.judge is None
            else replace(one, judge=replace(one.judge, value=tuple(-x for x in one.judge.value)))
            for one in made.devices
        ]
        assert (w := wrong(changed(made, devices=tuple(contrary)))) == every, w
        shapes = {
            name: tuple(replace(one, grid=("7", "7", "7")) for one in kernels)
            for name, kernels in made.formulas.launches.items()
        }
        formulas = replace(made.formulas, launches=shapes)
        assert wrong(replace(made, formulas=formulas)) == {"python", "c++"}
