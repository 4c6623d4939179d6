"""Datasheet-only GPUs on a study's page: the lookup's answers, and nothing beside them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from launchwise.experiment.study import ModelEntry
from launchwise.learning.prediction_errors import ALL
from launchwise.learning.rooflines import least_ms
from launchwise.report.blocks import Fold, Section, Table, Text
from launchwise.report.gpus.datasheet_only import described, spread
from launchwise.report.gpus.gpu_comparison import entries
from launchwise.report.study import StudyData
from tests.support.described_gpus import described_gpus
from tests.support.report_study import settings, study

TIMES = {("t4", 102): 5.0, ("t4", 202): 30.0, ("a100", 102): 0.5, ("a100", 202): 3.0}


def answer(gpu: str, n: int, time_ms: float | None, made: StudyData) -> dict[str, Any]:
    row = made.evaluation[made.evaluation["model"] == "knn"].iloc[0]
    return {
        "gpu": gpu,
        "problem": {"n": n, "dtype": "float32", "order": 2},
        "configuration": {name: row[name] for name in made.spec.tunable_columns},
        "time_ms": time_ms,
        "improvement": None if time_ms is None else 2.0,
    }


def with_answers(**changes: Any) -> StudyData:
    known = described_gpus("t4", "a100")
    made = study()
    found = [answer(gpu, n, time, made) for (gpu, n), time in TIMES.items()]
    found.append(answer("big", 102, 1.0, made))
    return dataclasses.replace(made, **{"described": known, "answers": found, **changes})


def tables(section: Section | None) -> list[Table]:
    """Tables of a section, those of its folds too."""
    assert section is not None
    inside = [block.blocks if isinstance(block, Fold) else [block] for block in section.blocks]
    return [block for blocks in inside for block in blocks if isinstance(block, Table)]


def test_gpus_stand_by_generation_with_the_times_of_the_lookup() -> None:
    overview, *by_generation = tables(described(with_answers()))
    # The newest generation first, whatever the order of the settings.
    assert [[cell.text for cell in row.cells[:2]] for row in overview.rows] == [
        ["Ampere", "a100"],
        ["Turing", "t4"],
    ]
    assert [one.caption for one in by_generation] == [
        "Answers for Ampere: a100",
        "Answers for Turing: t4",
    ]
    for table, gpu in zip(by_generation, ("a100", "t4"), strict=True):
        for row, n in zip(table.rows, (102, 202), strict=True):
            assert f"n={n}" in row.cells[0].text
            assert (row.cells[1].text, row.role) == (gpu, "predicted")
            # Two digits: the error of a prediction leaves no more.
            assert float(row.cells[3].text) == TIMES[gpu, n]
            assert row.cells[4].text == "–"
            assert float(row.cells[6].text) == 2


def test_the_gpu_comparison_has_the_same_times() -> None:
    found = {
        (each.gpu, each.problem[0]): (each.best_ms, each.baseline_ms)
        for each in entries(with_answers(), None)
        if each.basis == "predicted"
    }
    assert found == {case: (time, 2 * time) for case, time in TIMES.items()}


def test_times_stand_beside_the_best_of_the_first_whole_gpu() -> None:
    overview = tables(described(with_answers()))[0]
    # The best measured times of ``big``.
    ratios = pd.Series({102: 5.0, 202: 30.0}) / pd.Series({102: 1.0, 202: 4.0})
    assert float(overview.rows[1].cells[2].text) == pytest.approx(np.sqrt(ratios.prod()), rel=0.05)


def published(ratios: list[float], **changes: object) -> pd.DataFrame:
    """Published times of 2 ms that the trees predict with these ratios."""
    named = {"predictor": "learnt", "gpu": "t4", "phases": "", "runs": 1, "published_ms": 2.0}
    return pd.DataFrame({**named, "predicted_ms": 2 * np.array(ratios), **changes})


def test_intervals_rest_on_published_times_and_end_at_the_roofline() -> None:
    known = published([1.0] * 8 + [2.0, 0.5, 4.0])
    others = [published([99.0] * 20, **other) for other in (
        {"runs": 0}, {"phases": "stage 1"}, {"predictor": "roofline"}
    )]  # fmt: skip
    made = with_answers(published_times=pd.concat([known, *others], ignore_index=True))
    apart = spread([made])
    assert apart is not None
    # Of eleven ratios the tenth is the 90th percentile.
    assert (apart.factor, apart.times, apart.gpus) == (pytest.approx(2.0), 11, ("t4",))
    assert apart.limits(3.0, 1.0) == (1.5, 6.0)
    assert apart.limits(3.0, 2.5) == (2.5, 6.0)
    section = described(made, apart)
    assert section is not None
    assert any(isinstance(block, Text) and "11 published" in block.text for block in section.blocks)
    for row in (row for one in tables(section)[1:] for row in one.rows):
        low, high = (float(text) for text in row.cells[4].text.split(" to "))
        shown, least = float(row.cells[3].text), float(row.cells[5].text)
        assert least <= low <= shown < high
    case = pd.DataFrame([{"gpu": "t4", "n": 202, "dtype": "float32", "order": 2}])
    (least,) = least_ms(case, made.spec, made.described)
    (entry,) = [e for e in entries(made, apart) if (e.gpu, e.problem[0]) == ("t4", 202)]
    assert entry.least_ms == least
    few = with_answers(published_times=known.iloc[:9])
    assert spread([few]) is None


def test_the_error_is_that_of_held_out_gpus() -> None:
    entry = {"gpu": ALL, "by": "", "model": "trees", "median_percent": 5.0}
    errors = [
        {**entry, "split": "sizes", "mape_percent": 7.5},
        {**entry, "split": "cards", "mape_percent": 23.4},
    ]
    splits = {
        "sizes": {"kind": "problems", "title": "x", "train": {"n": [102]}, "test": {"n": [202]}},
        "cards": {"kind": "leave_one_gpu_out", "title": "y"},
    }
    made = with_answers(
        facts={"predictions": errors},
        entries={"trees": ModelEntry(kind="learnt", title="trees")},
        settings=settings(splits=splits),
    )
    section = described(made)
    assert section is not None
    lead = section.blocks[0]
    assert isinstance(lead, Text)
    assert re.findall(r"\d+\.\d", lead.text) == ["23.4"]


def test_what_has_no_time_is_said_in_its_place() -> None:
    made = study()
    without = [answer("t4", n, None, made) for n in (102, 202)]
    section = described(with_answers(answers=without))
    assert section is not None
    (text,) = section.blocks
    assert isinstance(text, Text)
    assert "2 problems of this study copy" in text.text
    assert "no time is predicted on t4" in text.text
    assert "gpus.<name>.host_gbs" in text.text
    some = described(with_answers(answers=[*without, answer("a100", 102, 0.5, made)]))
    assert some is not None
    assert text in some.blocks
    assert len(tables(some)) == 2


def test_without_described_gpus_there_is_no_section() -> None:
    assert described(study()) is None
    assert described(with_answers(described={})) is None
