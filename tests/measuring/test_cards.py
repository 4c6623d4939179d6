"""Physical cards: who may use which, the lock on each, and whether a machine can measure."""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from uuid import uuid4

import pytest
from fake_cluster import CARD, FAKES
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.measuring import cards as module
from launchwise.measuring.cards import Card, free_card, selects, visible

DATA = ROOT / "tests/measuring/data"
PROGRAMS = read_yaml(DATA / "cards.yaml")
A = Card(0, "GPU-aaaa1111", "NVIDIA A100-SXM4-80GB", "sm_80", "580.0")
B = Card(1, "GPU-bbbb2222", "NVIDIA H200", "sm_90", "580.0")
C = Card(2, "GPU-bbbb3333", "NVIDIA H200", "sm_90", "580.0")


@pytest.mark.parametrize(("variable", "found"), read_yaml(DATA / "visible_cards.yaml"))
def test_visible_cards_are_those_that_the_variable_names(variable, found):
    assert visible([A, B, C], variable) == [{"A": A, "B": B, "C": C}[each] for each in found]


def test_a_mark_names_a_card_and_does_not_tell_its_uuid():
    assert len({A.mark, B.mark, C.mark}) == 3
    assert all(len(card.mark) == 16 and card.uuid not in card.mark for card in (A, B, C))
    assert A.mark == Card(9, A.uuid, "x", "sm_75", "1").mark


def test_a_card_is_selected_by_architecture_and_part_of_its_name():
    assert [card for card in (A, B, C) if selects("sm_90", None)(card)] == [B, C]
    assert [card for card in (A, B, C) if selects("sm_90a", "H200")(card)] == [B, C]
    assert [card for card in (A, B, C) if selects("sm_80", "H200")(card)] == []


@pytest.mark.parametrize(
    ("present", "said"),
    [
        ([], "source is live and needs an H200, but this machine has no GPU"),
        ([A], "but this machine has NVIDIA A100-SXM4-80GB (sm_80)"),
    ],
)
def test_a_card_that_is_not_there_is_one_line_that_names_the_gpu(
    monkeypatch, tmp_path, present, said
):
    monkeypatch.setattr(module, "cards", lambda: present)
    context = free_card("h200.sm72", selects("sm_90", None), "an H200", tmp_path)
    with pytest.raises(UserError) as caught:
        context.__enter__()
    assert str(caught.value).startswith("config.yaml: gpus.h200.sm72: ")
    assert said in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_jobs_with_temporary_folders_of_their_own_share_the_locks(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    card = Card(0, f"GPU-{uuid4()}", "made up", "sm_90", "1")
    lock = module.LOCKS / f"launchwise-card-{card.mark}.lock"
    with free_card("gpu", lambda card: True, "any", present=[card]):
        assert list(tmp_path.iterdir()) == []
        assert lock.stat().st_mode & 0o777 == 0o666
    lock.unlink(missing_ok=True)


def worker(program, root, *words):
    """A process that takes cards."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def test_no_two_processes_hold_one_card_and_all_cards_are_used(root, tmp_path):
    workers = [worker(PROGRAMS["worker"], root, "2", str(tmp_path), "8") for _ in range(4)]
    spans = []
    for each in workers:
        said, errors = each.communicate(timeout=60)
        assert each.returncode == 0, errors
        spans += [tuple(map(float, line.split())) for line in said.splitlines()]
    assert len(spans) == 4 * 8
    assert {span[0] for span in spans} == {0, 1}
    for index in (0, 1):
        mine = sorted(span[1:] for span in spans if span[0] == index)
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(mine))


def test_a_failure_on_a_card_gives_it_back(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "cards", lambda: [A])

    for _ in range(2):
        card = free_card("gpu", selects("sm_80", None), "any", tmp_path)
        with pytest.raises(RuntimeError), card:
            raise RuntimeError


def checked(folder, cards, arch, device="", nvcc=True):
    """Facts and what is missing, on a machine with these cards."""
    (folder / "cards.json").write_text(json.dumps({"here": cards}))
    path = f"{FAKES / 'bin'}:{os.environ['PATH']}" if nvcc else "/nowhere"
    environment = {
        "PATH": path,
        "PYTHONPATH": f"{FAKES}:{ROOT}",
        "FAKE_CARDS": str(folder / "cards.json"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS["program"], arch, device],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    facts, missing = json.loads(done.stdout)
    return facts, missing


def test_a_machine_with_everything_tells_what_it_has(tmp_path):
    facts, missing = checked(tmp_path, [CARD], "sm_90", "h200")
    assert missing == []
    assert facts["device_name"] == CARD["name"]
    assert facts["toolkit"] == "13.0"
    assert facts["pycuda"] == "2026.1"
    assert CARD["uuid"] not in json.dumps(facts)


def test_everything_that_is_missing_is_said_at_once(tmp_path):
    _, missing = checked(tmp_path, [], "sm_90", nvcc=False)
    driver, nvcc, pycuda = missing
    assert driver == "the NVIDIA driver does not respond: Driver Not Loaded"
    assert nvcc.startswith("nvcc is not on the PATH")
    assert pycuda.startswith("PyCUDA does not work here (RuntimeError: cuInit failed")


@pytest.mark.parametrize(
    ("present", "arch", "device", "said"),
    [
        ("sm_90", "sm_90a", "", []),
        ("sm_90", "sm_80", "", ["wanted a card of sm_80, found Made-up h200 (sm_90)"]),
        ("sm_90", "sm_90", "H100", ["wanted H100 of sm_90, found Made-up h200 (sm_90)"]),
        ("sm_70", "sm_70", "", ["nvcc 13.0 cannot compile for sm_70 (it can for sm_75, sm_80,"]),
    ],
)
def test_another_card_and_an_architecture_that_nvcc_has_given_up_are_named(
    tmp_path, present, arch, device, said
):
    _, missing = checked(tmp_path, [{**CARD, "arch": present}], arch, device)
    assert len(missing) == len(said)
    assert all(part in each for part, each in zip(said, missing, strict=True))
