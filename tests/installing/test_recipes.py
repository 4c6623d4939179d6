"""Recipes for conda and Apptainer hold the command and what `pyproject.toml` asks for."""

import re
import tomllib

import pytest
import yaml
from samples import ROOT

from launchwise import __version__

CONDA_NAMES = {
    "snakemake[reports]": "snakemake",
    "ml-dtypes": "ml_dtypes",
    "xgboost-cpu": "py-xgboost-cpu",
}
"""Names on PyPI to those of conda-forge, where they differ."""


@pytest.fixture(scope="module")
def project():
    """Table ``project`` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_conda_recipe_lists_the_dependencies(project):
    text = (ROOT / "conda" / "meta.yaml").read_text()
    plain = re.sub(r"^{%.*%}$|{{.*?}}", "x", text, flags=re.MULTILINE).replace("\nx\n", "\n", 1)
    listed = yaml.safe_load(plain)["requirements"]["run"]
    wanted = []
    for each in project["dependencies"]:
        name, limits = re.fullmatch(r"([^<>=]+)(.*)", each).groups()
        wanted.append(f"{CONDA_NAMES.get(name, name)} {limits}".strip())
    assert listed == ["python >=3.11", *wanted]


def test_the_version_stands_in_one_place(project):
    assert "version" in project["dynamic"]
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    (pattern,) = re.findall(r"regex_pattern='(.+?)'", recipe)
    assert re.search(pattern, (ROOT / "launchwise" / "__init__.py").read_text())[1] == __version__
    # The newest section of the changes is that of the next release, or of this one.
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == __version__.partition(".dev")[0]
