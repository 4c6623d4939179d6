"""Ctrl-C during a run: one line of ours, no traceback, and the same command goes on."""

import os
import signal
import time

from forks import Fork, run_snakemake

TARGET = "final_stencil_block"
SLOW = """
import time
import launchwise.base.scripting

launchwise.base.scripting.log.info("fitting")
time.sleep(60)
"""


def pressed(project, log):
    """Exit code and output of a run that is interrupted while models are fitted."""
    said = project.folder / "said.txt"
    environment = {**os.environ, "PYTHONPATH": str(project.folder)}
    words = ["--cores", "2", "--", TARGET]
    with said.open("w") as stream:
        run = Fork(run_snakemake, words, project.folder, environment, stream, stream, session=True)
        try:
            deadline = time.monotonic() + 100
            while not (log.is_file() and "fitting" in log.read_text()):
                assert run.poll() is None, said.read_text()
                assert time.monotonic() < deadline, said.read_text()
                time.sleep(0.05)
            os.killpg(run.pid, signal.SIGINT)
            code = run.wait(50)
        finally:
            run.kill()
    return code, said.read_text()


def test_an_interrupted_run_says_one_line_and_goes_on(project):
    kinds = project.folder / "kernels" / "stencil" / "recommenders"
    kinds.mkdir(exist_ok=True)
    knn = (project.folder / "launchwise" / "learning" / "recommenders" / "knn.py").read_text()
    (kinds / "slow_knn.py").write_text(knn + SLOW)
    mine = {"slow": {"kind": "slow_knn", "title": "slow"}}
    parts = {"train": {"n": [64]}, "test": {"n": [100]}}
    splits = {"sizes": {"kind": "problems", "title": "sizes", **parts}}
    models = {"models": ["knn", "slow"], "own_models": mine}
    project.ask({**project.study(), **models, "splits": splits})
    folder = project.folder / "results"
    code, said = pressed(project, folder / "logs" / "learn" / "stencil_block.log")
    assert code != 0
    assert "Traceback" not in said
    ours = [line for line in said.splitlines() if line.startswith("launchwise: ")]
    assert ours == ["launchwise: stopped; the same command goes on with what is not done yet"]
    sweep = (folder / "sweeps" / "test" / "stencil.parquet").stat().st_mtime_ns
    (kinds / "slow_knn.py").write_text(knn)
    done = project.snakemake("--cores", "2", "--quiet", "all", "--", TARGET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "sweeps" / "test" / "stencil.parquet").stat().st_mtime_ns == sweep
    assert (folder / "final" / "stencil_block" / "final.json").is_file()
