"""What an import does not believe: conditions, times of cards."""

from itertools import permutations

import foreign
import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.gpus.datasheets import read_cards
from launchwise.importing import device_names
from launchwise.importing.command import import_sweeps, told
from launchwise.importing.device_names import MOST_UNEXPLAINED, Timed, doubts
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import load_spec

TIMES = {(16, 1): 1.0, (16, 2): 0.9, (32, 1): 0.8, (32, 2): 0.7}


def imported(tmp_path, times, *conditions, failed=()):
    """The import of caches of two cards, with their space; of the second some rows ``failed``."""
    header = {"problem_size": [64, 64], "tune_params_keys": ["bx", "by"], "tune_params": {}}
    parameters = [
        {"Name": name, "Type": "int", "Values": values, "Default": default}
        for name, values, default in (("bx", "[16, 32, 64]", 16), ("by", "[1, 2]", 1))
    ]
    listed = [{"Expression": text, "Parameters": ["bx", "by"]} for text in conditions]
    space = {"ConfigurationSpace": {"TuningParameters": parameters, "Conditions": listed}}
    files = []
    for device, lost in (("NVIDIA A100-PCIE-40GB", ()), ("Tesla V100-PCIE-16GB", failed)):
        own = {**times, **dict.fromkeys(lost, "InvalidConfig")}
        rows = {f"{x},{y}": {"bx": x, "by": y, "time": time} for (x, y), time in own.items()}
        content = foreign.cache(device, cache=rows, **header)
        files.append(foreign.write(tmp_path / f"{len(files)}.json", content))
    places = (tmp_path / "workloads", tmp_path / "gpus")
    return import_sweeps(files, "t", *places, space=foreign.write(tmp_path / "t1.json", space))


def test_a_condition_that_a_row_breaks_is_said_with_the_row(tmp_path):
    found = imported(tmp_path, TIMES, "bx * by <= 32", "bx >= 16", failed=[(32, 2)])
    notes = [line for line in told(found) if line.startswith("note: ")]
    assert (
        "note: condition 'bx * by <= 32' of T1: 1 of 4 rows break it, such as bx=32, by=2" in notes
    )
    assert any("no condition of T1 is taken: the listed configurations" in note for note in notes)
    assert not any("bx >= 16" in note for note in notes)
    spec = load_spec(found.folder)
    assert spec.constraints == []
    assert len(configurations(spec, {"w": 64, "h": 64})) == len(TIMES)


@pytest.mark.parametrize(
    ("condition", "why"), read_yaml(ROOT / "tests/importing/data/unread_conditions.yaml")
)
def test_a_condition_that_cannot_be_read_is_said_with_the_reason(tmp_path, condition, why):
    found = imported(tmp_path, TIMES, condition)
    told_of = [note for note in found.notes if repr(condition) in note]
    assert len(told_of) == 1
    assert why in told_of[0]
    assert load_spec(found.folder).constraints == []


def test_conditions_that_hold_are_taken(tmp_path):
    found = imported(tmp_path, TIMES, "bx * by <= 64", "bx >= 16 && !(by == 3) || bx != 1")
    spec = load_spec(found.folder)
    assert spec.constraints == ["bx * by <= 64", "bx >= 16 and not (by == 3) or bx != 1"]
    # A value of the space that no row has: 64 x 1 fits, 64 x 2 does not.
    assert len(configurations(spec, {"w": 64, "h": 64})) == len(TIMES) + 1
    assert not any("condition '" in note for note in found.notes)


def test_failed_rows_that_break_a_condition_are_left_out(tmp_path):
    times = {**TIMES, (64, 1): 0.6, (64, 2): "InvalidConfig"}
    found = imported(tmp_path, times, "bx * by <= 64")
    assert load_spec(found.folder).constraints == ["bx * by <= 64"]
    assert found.rows["a100_pcie_40gb"] == {"ok": 5}
    assert "1 failed rows break a condition and are left out, such as bx=64, by=2" in found.notes


def timed(name, *times_ms):
    """A sweep of one problem on a card that is not known."""
    return Timed(
        name, None, (("size", 64),), {(n,): ms for n, ms in enumerate(times_ms)}, None, None
    )


def test_cards_may_agree_through_a_third_one():
    step = 0.9 * MOST_UNEXPLAINED
    slow, fast, between = timed("slow", step), timed("fast", 1 / step), timed("between", 1.0)
    for chain in permutations((slow, fast, between)):
        assert doubts(chain) == {}
    assert list(doubts([slow, fast])) == [0, 1]


def test_the_one_that_is_alone_is_doubted():
    sweeps = [timed("one", 1.0, 2.0), timed("other", 1.5, 2.5), timed("odd", 0.01, 0.02)]
    (place, words) = next(iter(doubts(sweeps).items()))
    assert (place, len(doubts(sweeps))) == (2, 1)
    # Its median share of the other's times, of .01 / 1.5 and .02 / 2.5, is 1 / 136.
    assert "from those of other" in words[0]
    assert "by 136 times" in words[0]


def test_a_shortest_time_an_order_below_the_next_is_doubted():
    far = timed("far", 1.0, 0.9, 0.08)
    said = "the shortest time, 0.08 ms of 2 at size=64, is 11.2 times below the next one"
    assert doubts([far]) == {0: [said]}
    # Slow rows are no outliers; nor is the faster of two.
    for times in ((1.0, 0.9, 0.1), (0.9, 1.0, 90.0), (1.0, 90.0)):
        assert doubts([timed("sound", *times)]) == {}


def test_every_spelling_of_a_device_has_its_card():
    known, names = read_cards(), device_names.read_device_names()
    for device in ("NVIDIA H100 80GB HBM3", "NVIDIA_H100_80GB_HBM3", "h100-80gb-hbm3", "h100"):
        assert device_names.card_of(device, known, names) is known["h100"]


def test_problems_of_their_own_are_not_compared():
    other = Timed("other", None, (65,), {(0,): 1000.0}, None, None)
    assert doubts([timed("one", 1.0), other]) == {}
