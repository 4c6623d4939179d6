"""What a run says before its first job, and what Slurm refuses, which stops it there.

sbatch is a stand-in that says one thing; what a real Slurm says is in tests/slurm."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from forks import forked, run_snakemake
from samples import ROOT

from launchwise.base.typed import read_yaml
from launchwise.workflow.telling import tell_beginning

WORKFLOW = Path(__file__).with_name("data") / "telling.smk.txt"
SBATCH = '#!/bin/sh\necho "$*" > asked\necho "{said}" >&2\nexit {code}\n'
SINFO = "#!/bin/sh\necho 'cpu* {cores} (null)'\n"
SACCTMGR = "#!/bin/sh\nprintf 'biology\\nchemistry\\nbiology\\n'\n"


def run(folder, said, code=1, cores=4):
    """What Snakemake says where sbatch answers with ``said``; None: there is no sbatch."""
    shutil.copy(WORKFLOW, folder / "Snakefile")
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("bash", "which"):
        (programs / name).symlink_to(str(shutil.which(name)))
    if said is not None:
        sinfo = SINFO.format(cores=cores)
        for name, text in (("sbatch", SBATCH.format(said=said, code=code)), ("sinfo", sinfo)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
    path = str(programs) if said is None else f"{programs}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    words = ["--executor", "slurm", "--jobs", "1"]
    done = forked(run_snakemake, words, folder, environment, seconds=100)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(("said", "line"), read_yaml(ROOT / "tests/workflow/data/refusals.yaml"))
def test_a_refusal_is_one_line(tmp_path, said, line):
    lines = [each for each in run(tmp_path, said).splitlines() if "launchwise: " in each]
    assert len(lines) == 1
    assert lines[0].startswith("launchwise: the profile: resources of one: Slurm refuses ")
    assert line in lines[0]
    assert not (tmp_path / "one").exists()


def test_an_account_of_somebody_else_is_told_where_sbatch_takes_any(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sacctmgr").write_text(SACCTMGR)
    (tmp_path / "bin" / "sacctmgr").chmod(0o755)
    said = run(tmp_path, "sbatch: Job 1 to start", code=0)
    assert (
        "Slurm refuses --account=physics --qos=high --cpus-per-task=8: "
        "physics is no account of yours, but biology, chemistry; sacctmgr show assoc user=$USER"
    ) in said


@pytest.mark.parametrize(
    "said",
    [
        "allocation failure: Requested node configuration is not available",
        "allocation failure: Unable to contact slurm controller (connect failure)",
    ],
)
def test_what_time_may_heal_is_no_refusal(tmp_path, said):
    assert "asked" in run(tmp_path, said, cores=8)
    assert (tmp_path / "asked").read_text().startswith("--test-only --account=physics --qos=high")


@pytest.mark.parametrize(
    ("rules", "quiet", "remote", "lines"),
    [
        (["learn_x", "report"], (), False, 2),
        (["learn_x", "report"], ("all",), False, 0),
        (["learn_x", "report"], (), True, 0),
        (["learn_x"], (), False, 0),
    ],
)
def test_two_lines_before_a_run_that_makes_the_report(
    rules, quiet, remote, lines, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=rule), wildcards=None) for rule in rules]
    dag = SimpleNamespace(needrun_jobs=lambda: jobs)
    output = SimpleNamespace(quiet=set(quiet))
    workflow = SimpleNamespace(local_exec=not remote, output_settings=output, dag=dag)
    tell_beginning(workflow)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    if said:
        assert "launchwise: to read meanwhile: first answers soon, in results/report/" in said[0]
        assert "Ctrl-C keeps all that is done" in said[1]
