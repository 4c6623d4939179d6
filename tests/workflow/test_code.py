"""Digests of code, as rules ask for them."""

from __future__ import annotations

import os
import subprocess
import sys

from samples import ROOT

from launchwise.workflow.plan import Code

DATA = "scripts/data.py"


def test_a_digest_is_the_same_in_every_process() -> None:
    program = f"from launchwise.workflow.plan import Code; print(Code()({DATA!r}))"
    printed = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        printed.add(done.stdout.strip())
    assert printed == {Code()(DATA)}


def test_further_files_count_in_any_order() -> None:
    code = Code()
    knn, tree = (f"launchwise/learning/recommenders/{name}.py" for name in ("knn", "tree"))
    assert code(DATA, knn, tree) == code(DATA, tree, knn)
    assert len({code(DATA), code(DATA, knn), code(DATA, tree), code(DATA, knn, tree)}) == 4
