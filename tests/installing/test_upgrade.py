"""The wheel of the last tag, then that of this tree: it goes on with what the first measured."""

import json
import shutil
import subprocess

import pandas as pd
import pytest
import yaml
from installed import Installed, build_wheel
from samples import ROOT

from launchwise import __version__

SMOOTH = ROOT / "docs" / "tutorial" / "example" / "smooth"
OLD = "0.1.9"
"""Number of the older version where this clone has no tag: the last commit gets it."""


def git(folder, *words):
    """What git prints; empty where it fails."""
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


@pytest.fixture
def older(tmp_path):
    """A clone at the last tag, and the tag's version."""
    clone = tmp_path / "clone"
    git(ROOT, "clone", "--quiet", "--shared", str(ROOT), str(clone))
    if not clone.is_dir():
        pytest.skip("no clone, or no git")
    tag = git(clone, "describe", "--tags", "--abbrev=0", "--match", "v*")
    if not tag:
        path, tag = clone / "launchwise" / "__init__.py", f"v{OLD}"
        path.write_text(path.read_text().replace(__version__, OLD))
        git(clone, "commit", "-a", "-m", "version")
        git(clone, "tag", tag)
    git(clone, "checkout", "--quiet", tag)
    return clone, tag.removeprefix("v")


@pytest.mark.slow
def test_a_newer_version_goes_on_with_rows_of_the_last_tag(wheel, older, kernel_cache, tmp_path):
    clone, number = older
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "kernels").symlink_to(kernel_cache)
    installed = Installed.make(tmp_path / "machine", build_wheel(tmp_path, clone))
    here = tmp_path / "here"
    shutil.copytree(SMOOTH, here / "smooth")
    spec = yaml.safe_load((SMOOTH / "spec.yaml").read_text())
    spec["tunables"]["block_size_x"]["values"] = [16, 32]
    spec["tunables"]["block_size_y"]["values"] = [4, 8]
    (here / "smooth" / "spec.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    results = here / "tuned" / "smooth" / "results"

    def tuned(*words):
        done = installed.run("launchwise", "tune", "smooth", *words, folder=here, gpu=True)
        assert "fastest" in done.stdout, done.stdout + done.stderr[-3000:]
        return pd.read_parquet(results / "sweeps" / "local" / "smooth.parquet")

    first = tuned("width=24", "height=20")
    assert {*first["commit"]} == {f"v{number}"}
    assert json.loads((results / "launchwise.json").read_text()) == {"version": number}
    installed.install(wheel)
    # A size more: rows of the others stay as they were.
    columns = ["width", *spec["tunables"], "measured_at", "commit"]
    before = first[columns].sort_values(columns, ignore_index=True)
    more = tuned("width=24,32", "height=20")
    kept = more[more["width"] == 24][columns].sort_values(columns, ignore_index=True)
    pd.testing.assert_frame_equal(kept, before)
    assert {*more[more["width"] == 32]["commit"]} == {f"v{__version__}"}
    assert json.loads((results / "launchwise.json").read_text()) == {"version": __version__}
