"""The wheel: what it holds, and the way from an empty folder to answers without a clone."""

import contextlib
import json
import shlex
import subprocess
import zipfile
from pathlib import Path

import foreign
import pytest
import yaml
from samples import ROOT

from launchwise import __version__
from launchwise.measuring.source_states import digest_of_sources
from launchwise.workflow.plan import Code

MOST_BYTES = 15_000_000
SMOOTH = ROOT / "docs" / "tutorial" / "example" / "smooth"


@contextlib.contextmanager
def next_version(installed):
    """The environment with a newer launchwise, whose number alone has changed."""
    path = installed.packages / "launchwise" / "__init__.py"
    before = path.read_text()
    path.write_text(before.replace(__version__, "0.9.0"))
    yield "0.9.0"
    path.write_text(before)


def names(wheel):
    """Files of a wheel."""
    return zipfile.ZipFile(wheel).namelist()


def test_it_is_small_and_holds_everything_but_sweeps_and_tests(wheel):
    assert wheel.stat().st_size < MOST_BYTES
    assert wheel.name == f"launchwise-{__version__}-py3-none-any.whl"
    held = {name.removeprefix("launchwise/shipped/") for name in names(wheel)}
    listed = subprocess.run(
        ["git", "ls-files", "launchwise", "rules", "scripts", "schemas", "kernels", "profiles"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    wanted = {name for name in listed if "/tests/" not in name and (ROOT / name).is_file()}
    assert (
        wanted | {"Snakefile", "workflow/Snakefile", "data/cards.csv", "data/device_names.csv"}
        <= held
    )
    unwanted = [name for name in held if name.endswith(".parquet") or "/tests/" in name]
    assert not unwanted
    assert all(name.startswith("launchwise") for name in names(wheel))


def test_it_says_its_version_and_never_the_commit_of_a_repository_around_it(installed, tmp_path):
    subprocess.run(["git", "init", "-q", str(installed.folder)], check=True)
    done = installed.run("launchwise", "--version", "--json", folder=tmp_path)
    found = json.loads(done.stdout)
    assert (found["version"], found["commit"]) == (__version__, f"v{__version__}")
    assert not found["in_clone"]
    assert Path(found["files"]) == installed.packages / "launchwise" / "shipped"


@pytest.mark.slow
def test_an_import_leads_to_recommendations_exports_and_the_report(installed, tmp_path):
    files = []
    for name, scale in (("A4000", 1.0), ("A6000", 0.6)):
        path = foreign.write(tmp_path / f"{name}.json", foreign.cache(f"NVIDIA RTX {name}", scale))
        files.append(path.name)
    words = (*files, "--as", "blur", "--bytes", "8 * w * h")
    done = installed.run("launchwise", "import", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (study,) = tmp_path.glob("kernels/blur/studies/*/study.yaml")
    asked = yaml.safe_load(study.read_text())
    study.write_text(yaml.safe_dump({**asked, "models": ["knn"]}))
    line = shlex.split(done.stdout.splitlines()[-1].removeprefix("run: "))
    name = study.parent.name
    settings = ("--configfile", "kernels/blur/settings.yaml")
    export = ("export", name, "--format", "json", *settings)
    exported = installed.run("launchwise", *export, folder=tmp_path)
    assert exported.returncode == 0, exported.stderr[-2000:]
    gpu = ("--gpu", "a4000", "w=4096", "h=4096")
    answer = installed.run("launchwise", "recommend", name, *gpu, *settings, folder=tmp_path)
    assert "block_size_x" in answer.stdout, answer.stderr
    made = installed.run(*line, "--quiet", "all", folder=tmp_path)
    assert made.returncode == 0, made.stderr[-3000:]
    report = tmp_path / "results" / "report"
    pages = [page.read_text() for page in report.rglob("*.html")]
    assert any("each GPU left out of training" in page for page in pages)
    # The lookup's command for sizes without an answer names the settings: there is no config.yaml.
    front = (report / "index.html").read_text()
    assert 'data-options="--configfile\nkernels/blur/settings.yaml"' in front
    # The next version goes on with these results: its number alone makes nothing again.
    with next_version(installed) as number:
        planned = installed.run(*line, "-n", "--", f"export_{name}", folder=tmp_path)
    assert "Nothing to be done" in planned.stdout + planned.stderr, planned.stdout[-3000:]
    assert json.loads((tmp_path / "results" / "launchwise.json").read_text())["version"] < number


def test_a_new_project_is_begun_by_snakemake_alone(installed, tmp_path):
    done = installed.run("launchwise", "init", "my project", folder=tmp_path)
    assert [line.strip() for line in done.stdout.splitlines()][-2:] == [
        "cd 'my project'",
        "snakemake",
    ]
    folder = tmp_path / "my project"
    # The profile that Snakemake takes by itself names the cores.
    begun = installed.run("snakemake", "check_gpus", folder=folder, gpu=True)
    assert begun.returncode == 0, begun.stderr[-3000:]
    assert json.loads((folder / "results/checks/local.json").read_text())["device_name"]


DIGESTS = """
from launchwise.base.places import shipped
from launchwise.measuring.source_states import digest_of_sources
from launchwise.workflow.plan import Code
print(Code()("scripts/data.py"))
print(digest_of_sources(shipped("kernels/tridiagonal")))
"""


@pytest.mark.workloads
def test_results_of_a_clone_are_those_of_its_wheel(installed, tmp_path):
    """Neither stages nor journals begin anew: their digests do not depend on where files lie."""
    (tmp_path / "digests.py").write_text(DIGESTS)
    done = installed.run("python", "digests.py", folder=tmp_path)
    stage = Code()("scripts/data.py")
    rows = digest_of_sources(ROOT / "kernels" / "tridiagonal")
    assert done.stdout.split() == [stage, rows]


@pytest.mark.workloads
def test_data_that_the_wheel_leaves_out_are_asked_for_in_one_line(installed, tmp_path):
    installed.run("launchwise", "init", "studies", "--studies", folder=tmp_path)
    done = installed.run("snakemake", "-n", folder=tmp_path / "studies")
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("launchwise: ")]
    assert (
        "no folder 'data/recorded/h200.sm72': take recorded sweeps in with launchwise data" in said
    )
