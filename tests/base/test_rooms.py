"""Rooms of the library: which subpackage may import which, and what lies at the top."""

import ast
import graphlib
import re
import shutil
import subprocess
from functools import cache

import pytest
from samples import ROOT

from launchwise.base.typed import read_yaml

BELOW = {room: {*below} for room, below in read_yaml(ROOT / "tests/base/data/rooms.yaml").items()}
"""Room to the rooms that it may import, beside itself."""

LIBRARY = ROOT / "launchwise"
FILES_OF_IT = sorted(LIBRARY.rglob("*.py"))


def test_the_guide_lists_every_room_behind_those_that_it_imports():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    part = text.partition("The packages of the library")[2].partition(".\n")[0]
    listed = re.findall(r"`(\w+)`", part)
    assert {*listed} == {*BELOW} == {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert len(listed) == len(BELOW)
    for room, below in BELOW.items():
        assert below <= {*listed[: listed.index(room)]}, room


def imported(source, package):
    """Dotted names of everything that a module of ``package`` imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            head = ".".join([*above, *([node.module] if node.module else [])])
            found.update(f"{head}.{alias.name}" for alias in node.names)
    return found


@cache
def imported_by(path):
    """Dotted names of everything that a file of the library imports."""
    return imported(path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts[:-1])


def rooms(names):
    """Rooms of the library among dotted names."""
    parts = [name.split(".") for name in names]
    return {each[1] for each in parts if each[0] == "launchwise" and len(each) > 1}


@pytest.mark.parametrize("room", BELOW)
def test_a_room_imports_the_rooms_below_it_and_no_others(room):
    allowed = {room, *BELOW[room]}
    wrong = {
        path.relative_to(ROOT).as_posix(): sorted(above)
        for path in sorted((LIBRARY / room).rglob("*.py"))
        if (above := rooms(imported_by(path)) - allowed)
    }
    assert wrong == {}


def test_the_library_never_imports_snakemake():
    heads = {path: {name.split(".")[0] for name in imported_by(path)} for path in FILES_OF_IT}
    assert [path for path in FILES_OF_IT if "snakemake" in heads[path]] == []


def test_no_modules_import_each_other():
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in FILES_OF_IT}
    above = {name: imported_by(path) for name, path in named.items()}
    # Of `from package import name`, the package where the name is no module.
    known = {
        name: {one if one in named else one.rpartition(".")[0] for one in found} & {*named} - {name}
        for name, found in above.items()
    }
    assert sum(map(len, known.values())) > 1000
    graphlib.TopologicalSorter(known).prepare()


def test_imports_inside_functions_and_relative_ones_count():
    source = "def f():\n    from launchwise.report import page\n\nfrom ..cuda import device\n"
    source += "from .. import learning\nfrom . import errors\nimport launchwise.cli.recommending\n"
    found = rooms(imported(source, ("launchwise", "base")))
    assert found == {"report", "cuda", "learning", "base", "cli"}


def test_what_docstrings_refer_to_is_there():
    texts = {path.relative_to(ROOT).with_suffix(""): path.read_text() for path in FILES_OF_IT}
    modules = {".".join(path.parts).removesuffix(".__init__"): texts[path] for path in texts}
    missing = []
    for text in modules.values():
        for name in re.findall(r":`~?(launchwise(?:\.\w+)+)`", text):
            holder = next(
                each for each in (name.rsplit(".", n)[0] for n in range(3)) if each in modules
            )
            words = name.removeprefix(holder).split(".")[1:]
            missing += [name for word in words if not re.search(rf"\b{word}\b", modules[holder])]
    assert missing == []


FOLDERS = (
    ".ci .github benchmarks conda config data docs kernels launchwise profiles report rules "
    "schemas scripts tests workflow"
)
FILES = (
    ".editorconfig .gitignore .pre-commit-config.yaml .snakemake-workflow-catalog.yml "
    "CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE Makefile README.md Snakefile config.yaml "
    "conftest.py container.def environment.yaml mkdocs.yml pyproject.toml requirements-dev.lock "
    "requirements-docs.lock requirements-gpu.lock requirements-triton.lock requirements.lock"
)


def test_no_other_file_or_folder_is_tracked_at_the_top():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no clone")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    top = {path.split("/")[0] for path in tracked.stdout.split("\0") if path}
    assert top == {*FOLDERS.split(), *FILES.split()}, "list it here, or remove it"
