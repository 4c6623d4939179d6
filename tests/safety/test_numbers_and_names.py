"""Numbers and names of files of others: one strict reader, and no word that a spec may not hold."""

import json
import keyword
import math

import pytest
import yaml
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.literals import real, whole
from launchwise.base.storage import read_json
from launchwise.cli.tuning import percent
from launchwise.cli.words import block_of
from launchwise.experiment.published import is_number
from launchwise.gpus.profile import read_profile
from launchwise.importing.command import import_sweeps
from launchwise.importing.csv_mapping import rows_of_tuner
from launchwise.importing.foreign_sweep import as_time, as_value
from launchwise.learning.conformal import MeasuredProblems
from launchwise.measuring import cards
from launchwise.workloads.checks.spec_checks import RESERVED
from launchwise.workloads.near_problems import distances, sortable
from launchwise.workloads.spec import load_spec

NO_NUMBERS = ("1_0", "1_0.5", "\u0661\u0662", "\uff11\uff12", "\u00b2", "1 0", "0x10", "1e", "--1")
"""Texts that Python, or a part of it, reads as numbers, and some that only look like one."""


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_no_door_reads_as_a_number_what_only_python_does(text):
    assert (whole(text), real(text)) == (None, None)
    assert as_value(text) == text
    assert as_time(text) is None
    assert not is_number(text)
    rows = rows_of_tuner(f"x,time,times\n{text},1.5,2\n")
    assert rows == [{"x": text, "time": 1.5, "times": 2}]
    with pytest.raises(UserError, match="is no percentage"):
        percent(text)
    spec = load_spec(ROOT / "docs" / "tutorial" / "example" / "saxpy")
    with pytest.raises(UserError, match="is not an integer"):
        block_of(spec, [f"n={text}"], "recommend")


def test_plain_numbers_are_read_as_before():
    known = {"-7": -7, "+016": 16, "1e3": 1000, "12.0": 12, ".5": ".5", "9" * 19: "9" * 19}
    assert {text: as_value(text) for text in known} == known
    assert [as_time(text) for text in ("1.5", " 2 ", "1e-3", "nan", "inf", "1e400", "x")] == [
        *(1.5, 2.0, 1e-3),
        *[None] * 4,
    ]
    assert (real("1e400"), percent("0.5 %".replace(" ", ""))) == (math.inf, 0.5)


def test_values_that_differ_stay_different(tmp_path):
    (tmp_path / "a.csv").write_text("x,ms\n1_0,2\n10,3\n\u0661\u0660,4\n")
    columns = {"tunables": ["x"], "time": "ms", "unit": "ms", "device": "NVIDIA RTX A4000"}
    (tmp_path / "columns.yaml").write_text(yaml.safe_dump(columns))
    made = import_sweeps(
        [tmp_path / "a.csv"],
        "blur",
        tmp_path / "kernels",
        tmp_path / "rows",
        columns=tmp_path / "columns.yaml",
        problem=["n=64"],
    )
    assert load_spec(made.folder).tunables["x"].values == ["10", "1_0", "\u0661\u0660"]


def test_every_word_that_a_spec_refuses_gets_another_name(tmp_path):
    words = [*keyword.kwlist, *RESERVED, "stated_ms"]
    for start in range(0, len(words), 100):
        named = words[start : start + 100]
        rows = [{**dict.fromkeys(named, value), "ms": 1.5 + value} for value in (1, 2)]
        path = tmp_path / f"{start}.csv"
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines))
        columns = {"tunables": named, "time": "ms", "unit": "ms", "device": "NVIDIA RTX A4000"}
        (tmp_path / "columns.yaml").write_text(yaml.safe_dump(columns))
        made = import_sweeps(
            [path],
            f"words_{start}",
            tmp_path / "kernels",
            tmp_path / "rows",
            columns=tmp_path / "columns.yaml",
            problem=["class=64"],
        )
        spec = load_spec(made.folder)
        assert [*spec.problem] == ["class_"]
        assert len(spec.tunables) == len(named)
        assert not {*spec.tunables} & {*words}


@pytest.mark.parametrize(("key", "text"), [("sms", "1" + "0" * 400), ("clock_mhz", "1e400")])
def test_a_profile_with_a_number_beyond_all_bounds_is_one_line(tmp_path, key, text):
    known = json.loads((ROOT / "data" / "recorded" / "h200" / "profile.json").read_text())
    path = tmp_path / "profile.json"
    plain = json.dumps({**known, key: "HERE"})
    path.write_text(plain.replace('"HERE"', str(known[key])))
    assert read_profile(path)
    path.write_text(plain.replace('"HERE"', text))
    with pytest.raises(UserError, match=r"profile\.json: is not JSON: 1.* (no integer|larger)"):
        read_profile(path)


def test_the_largest_integers_of_a_file_are_those_of_64_bits(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(f"[{2**63 - 1}, {-(2**63 - 1)}, 1.7e308]")
    assert read_json(path) == [2**63 - 1, -(2**63 - 1), 1.7e308]
    path.write_text(f"[{2**63}]")
    with pytest.raises(UserError, match="is no integer up to"):
        read_json(path)


def test_problems_of_0_and_below_have_distances():
    values = [-7, -1, 0, 1, 9]
    for one in values:
        far = distances([[one]], [[other] for other in values])[0].tolist()
        assert far[values.index(one)] == 1
        assert all(math.isfinite(each) and each >= 1 for each in far)
        assert far == [distances([[other]], [[one]])[0, 0] for other in values]
        # The farther, the larger, on either side.
        below = [each for other, each in zip(values, far, strict=True) if other <= one]
        above = [each for other, each in zip(values, far, strict=True) if other >= one]
        assert below == sorted(below, reverse=True)
        assert above == sorted(above)
    known = MeasuredProblems.of([(-1,), (9,)])
    assert (known.outside((-7,)), known.outside((0,))) == (7, 1)
    assert sorted([[0], [-1]], key=sortable) == [[-1], [0]]


def test_a_lock_that_cannot_be_opened_is_one_line(tmp_path):
    card = cards.Card(0, "GPU-0", "made up", "sm_90", "1")
    # In place of a file of somebody else, which root may open.
    (tmp_path / f"launchwise-card-{card.mark}.lock").mkdir()
    context = cards.free_card("gpu", lambda card: True, "any", tmp_path, [card])
    with pytest.raises(UserError, match=r"card-\w+\.lock: locks gpu and cannot be opened: "):
        context.__enter__()
