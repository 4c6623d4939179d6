"""The workflow in folders of others: as a module, deployed, by options, of two versions."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml
from installed import snakemake
from samples import ROOT

from launchwise import __version__

SNAKEFILE = ROOT / "Snakefile"
SETTINGS = {
    # Found in launchwise itself: this folder has no such folder.
    "workloads": ["docs/tutorial/example"],
    "gpus": {"local": {"source": "live", "arch": "sm_90"}, "a100": {"source": "described"}},
}
MADE = "results/gpus/a100.json"
"""What a job makes of launchwise's own tables, in a moment."""

MODULE = """
configfile: "config/config.yaml"

module other:
    snakefile: {snakefile}
    config: {config}

use rule * from other{name}
"""


@pytest.fixture
def here(tmp_path):
    """The folder of somebody else's workflow."""
    folder = tmp_path / "my own"
    (folder / "config").mkdir(parents=True)
    for name in ("config.yaml", "config/config.yaml"):
        (folder / name).write_text(yaml.safe_dump(SETTINGS))
    return folder


def makes(folder, *words, **variables):
    """Check that a job runs, and that everything can be planned."""
    done = snakemake(folder, "--cores", "1", *words, "--", MADE, **variables)
    assert done.returncode == 0, done.stderr[-3000:]


def test_an_other_folder_by_an_option_and_results_elsewhere_by_a_link(here, tmp_path):
    (tmp_path / "scratch").mkdir()
    (here / "results").symlink_to(tmp_path / "scratch")
    makes(tmp_path, "--snakefile", str(SNAKEFILE), "--directory", str(here))
    assert json.loads((tmp_path / "scratch" / "gpus" / "a100.json").read_text())["name"] == "a100"
    assert (here / "results").is_symlink()


def test_a_node_without_network(here):
    """Not even the node itself can be reached by an address."""
    apart = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("unshare is not allowed here")
    words = ["--snakefile", str(SNAKEFILE), "--cores", "1", "--", MADE]
    done = subprocess.run(
        [*apart, sys.executable, "-m", "snakemake", *words],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (here / MADE).is_file()


@pytest.mark.parametrize(("config", "name"), [("config", " as other_*"), (repr(SETTINGS), "")])
def test_a_module_of_another_workflow(config, name, here):
    (here / "config.yaml").unlink()
    text = MODULE.format(snakefile=f'"{SNAKEFILE}"', config=config, name=name)
    (here / "Snakefile").write_text(text)
    planned = snakemake(here, "-n")
    assert "results/report/index.html" in planned.stdout, planned.stderr[-3000:]


def test_a_mistake_in_settings_of_a_module_names_their_file(here):
    (here / "config.yaml").unlink()
    (here / "config" / "config.yaml").write_text(yaml.safe_dump({**SETTINGS, "gpu": {}}))
    text = MODULE.format(snakefile=f'"{SNAKEFILE}"', config="config", name="")
    (here / "Snakefile").write_text(text)
    planned = snakemake(here, "-n")
    assert planned.returncode == 1
    assert "launchwise: config/config.yaml: gpu: unknown key" in planned.stderr


@pytest.fixture
def hosted(tmp_path):
    """Variables by which git finds a tagged repository of this workflow in place of GitHub's."""
    repository = tmp_path / "hosted" / "o" / "launchwise"
    for name in ("workflow", "rules", "scripts", "report", "config", "profiles"):
        shutil.copytree(ROOT / name, repository / name)
    shutil.copy(ROOT / "Snakefile", repository)
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (["init"], ["add", "-A"], [*who, "commit", "-m", "x"], ["tag", "v1"]):
        subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{tmp_path / 'hosted'}/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


@pytest.mark.slow
def test_a_module_at_a_tag_of_a_repository(here, hosted):
    source = 'github("o/launchwise", path="workflow/Snakefile", tag="v1")'
    text = MODULE.format(snakefile=source, config="config", name="")
    (here / "Snakefile").write_text(text)
    makes(here, **hosted)


def test_a_deployed_workflow(tmp_path, hosted):
    if shutil.which("snakedeploy") is None:
        pytest.skip("snakedeploy is not installed")
    words = ["deploy-workflow", "https://github.com/o/launchwise", "deployed", "--tag", "v1"]
    subprocess.run(
        ["snakedeploy", *words],
        cwd=tmp_path,
        env={**os.environ, **hosted},
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "deployed" / "profiles" / "slurm" / "config.yaml").is_file()
    makes(tmp_path / "deployed", **hosted)


def test_results_say_their_version_and_refuse_an_older_one(here):
    makes(here, "--snakefile", str(SNAKEFILE))
    record = here / "results" / "launchwise.json"
    assert json.loads(record.read_text()) == {"version": __version__}
    record.write_text('{"version": "99.1.0"}')
    done = snakemake(here, "--snakefile", str(SNAKEFILE), "-n")
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("launchwise: ")]
    assert said == [
        "launchwise: results/launchwise.json: version: 99.1.0 made these results, this is "
        f"{__version__}: install launchwise 99.1.0 or newer, or name another folder with "
        "--directory"
    ]
    # Those of an earlier version are brought up to date; nothing that is as it was runs again.
    record.write_text('{"version": "0.1.0"}')
    done = snakemake(here, "--snakefile", str(SNAKEFILE), "--cores", "1", "--", MADE)
    assert done.returncode == 0
    assert "Nothing to be done" in done.stderr + done.stdout
