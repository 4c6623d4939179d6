"""Kernels of many hands on a real GPU: right ones are tuned, planted faults are found.

Run with -m gpu. Everything begins at once, on as many cores as there are; each test waits for its
own.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from samples import ROOT
from strangers import FOLDERS, FOUND, STRANGERS, each_problem, expectation, faulty, planted

from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.gpu

FAULTS = [
    (name, number)
    for name in FOLDERS
    for number, fault in enumerate(expectation(name).faults)
    if "gpu" in fault.devices
]


RIGHT = -1
"""In place of a fault's number: the kernel as it is."""


def _python(*arguments, given="", place=ROOT):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=given,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def tuned(name, place):
    """Rows of each status after ``launchwise tune``."""
    place.mkdir()
    problem = expectation(name).gpu_problem
    values = {key: each if isinstance(each, list) else [each] for key, each in problem.items()}
    asked = [f"{key}={','.join(map(str, each))}" for key, each in values.items()]
    said = _python("-m", "launchwise", "tune", str(STRANGERS / name), *asked, "--json", place=place)
    counts = {}
    for answer in json.loads(said)["answers"]:
        for status, count in answer["statuses"].items():
            counts[status] = counts.get(status, 0) + count
    return counts


def spoilt(name, number, place):
    """Outcome of a planted fault: status and reason."""
    expected = expectation(name)
    fault = expected.faults[number]
    folder = planted(name, fault, place)
    asked = {
        "folder": str(folder),
        "problem": each_problem(expected.gpu_problem)[0],
        "configuration": faulty(load_spec(folder), fault),
        "seed": 2026,
    }
    said = _python(str(STRANGERS / "on_gpu.py"), given=json.dumps(asked))
    return json.loads(said.splitlines()[-1])


@pytest.fixture(scope="session")
def begun(request, tmp_path_factory):
    """Every chosen folder and fault, on its way."""
    place = tmp_path_factory.mktemp("strangers")
    chosen = []
    for each in request.session.items:
        if isinstance(each, pytest.Function) and each.path == Path(__file__):
            values = each.callspec.params
            chosen.append((values["name"], values.get("number", RIGHT)))
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        yield {
            (name, number): pool.submit(tuned, name, place / name)
            if number == RIGHT
            else pool.submit(spoilt, name, number, place / f"{name}_{number}")
            for name, number in chosen
        }


@pytest.mark.parametrize("name", FOLDERS)
def test_every_configuration_of_any_hand_is_measured(name, begun):
    counts = begun[name, RIGHT].result()
    assert counts.keys() <= {"ok", "slow"}, counts
    assert counts["ok"] > 0


@pytest.mark.parametrize(("name", "number"), FAULTS)
def test_every_planted_fault_is_found_on_the_gpu(name, number, begun):
    fault = expectation(name).faults[number]
    found = begun[name, number].result()
    assert found["status"] in FOUND, f"{fault.name}: {found}"
    assert re.search(fault.says, found["reason"]), f"{fault.name}: {found['reason']}"
