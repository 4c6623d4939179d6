"""What a machine lacks for measuring, asked on machines that are made up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from samples import ROOT

FAKES = ROOT / "tests" / "support" / "fake_cards"
CARD = {"index": 0, "uuid": "GPU-1", "name": "Made-up H200", "arch": "sm_90", "sms": 8}
PROGRAM = """
import json, sys
from launchwise.measuring.cards import check_machine
print(json.dumps(check_machine(sys.argv[1], sys.argv[2] or None)))
"""


def checked(
    folder: Path, cards: list[dict[str, Any]], arch: str, device: str = "", nvcc: bool = True
) -> tuple[dict[str, Any], list[str]]:
    """Facts and what is missing, on a machine with these cards."""
    (folder / "cards.json").write_text(json.dumps({"here": cards}))
    path = f"{FAKES / 'bin'}:{os.environ['PATH']}" if nvcc else "/nowhere"
    environment = {
        "PATH": path,
        "PYTHONPATH": f"{FAKES}:{ROOT}",
        "FAKE_CARDS": str(folder / "cards.json"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, arch, device],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    facts, missing = json.loads(done.stdout)
    return facts, missing


def test_a_machine_with_everything_tells_what_it_has(tmp_path: Path) -> None:
    facts, missing = checked(tmp_path, [CARD], "sm_90", "H200")
    assert missing == []
    assert facts["device_name"] == "Made-up H200"
    assert facts["toolkit"] == "13.0"
    assert facts["pycuda"] == "2026.1"
    assert "GPU-1" not in json.dumps(facts)


@pytest.mark.parametrize(("arch", "device"), [("sm_80", ""), ("sm_90", "H100")])
def test_another_card_is_named(tmp_path: Path, arch: str, device: str) -> None:
    _, missing = checked(tmp_path, [CARD], arch, device)
    wanted = f"{device or 'a card'} of {arch}"
    assert missing == [f"no matching GPU: wanted {wanted}, found Made-up H200 (sm_90)"]


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    _, missing = checked(tmp_path, [], "sm_90", nvcc=False)
    driver, nvcc, pycuda = missing
    assert driver == "the NVIDIA driver does not respond: Driver Not Loaded"
    assert nvcc.startswith("nvcc is not on the PATH")
    assert pycuda.startswith("PyCUDA does not work here (RuntimeError: cuInit failed")


def test_an_architecture_that_nvcc_has_given_up_is_said(tmp_path: Path) -> None:
    _, missing = checked(tmp_path, [{**CARD, "arch": "sm_70"}], "sm_70")
    assert missing == ["nvcc 13.0 cannot compile for sm_70 (it can for sm_75, sm_80, sm_90)"]
    assert checked(tmp_path, [CARD], "sm_90a")[1] == []
