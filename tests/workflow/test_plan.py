"""What the Snakefile asks: files that a script stands on, their digest, shards, wildcards."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from forks import forked
from python_forks import forget
from samples import ROOT
from slow_cases import first_of

from launchwise.base import places
from launchwise.workflow import plan as workflow
from launchwise.workflow.plan import Code

IMPORTS = yaml.safe_load((ROOT / "tests/workflow/data/imports.yaml").read_text())
SCRIPTS = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("scripts/*.py"))
CHILDREN = ["launchwise/cuda/child.py"]


def print_imported(words):
    """Run a file as a module, and print the files of the library that it loads."""
    forget(ROOT)
    runpy.run_path(words[0], run_name="imported")
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "launchwise" and getattr(module, "__file__", None):
            print(module.__file__)


def code_files(start):
    """Files of the library that a file imports, directly or indirectly."""
    return {str(path.relative_to(ROOT)) for path in places.library_files([ROOT / start])}


def really_imported(script):
    """Files of the library that importing ``script`` loads, where none was loaded before."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = forked(print_imported, [str(ROOT / script)], ROOT, environment, seconds=60)
    assert done.returncode == 0, done.stderr
    return {str(Path(line).relative_to(ROOT)) for line in done.stdout.splitlines()}


# All are read by one function.
@pytest.mark.parametrize("script", [*first_of(SCRIPTS, every=8), *CHILDREN])
def test_a_script_stands_on_what_it_imports_and_on_what_its_functions_import(script):
    imported = really_imported(script)
    assert imported
    assert imported <= code_files(script)


def test_imports_inside_functions_count(tmp_path, monkeypatch):
    package = tmp_path / "launchwise"
    (package / "deep").mkdir(parents=True)
    typing = "if TYPE_CHECKING:\n    from launchwise import c\n"
    for name, content in {
        "__init__.py": "",
        "a.py": typing + "def f():\n    from launchwise.deep import b\n",
        "deep/__init__.py": "",
        "deep/b.py": "import numpy\nimport launchwise.c as other\n",
        "c.py": "from launchwise.a import f\n",
        "unused.py": "",
    }.items():
        (package / name).write_text(content)
    (tmp_path / "__init__.py").write_text("")  # Of somebody else, where packages lie
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "s.py").write_text("from launchwise import a\n")
    monkeypatch.setattr(places, "ROOT", tmp_path)

    def found(start):
        paths = places.library_files([tmp_path / start])
        return [str(path.relative_to(tmp_path)) for path in paths]

    everything = ["launchwise/__init__.py", "launchwise/a.py", "launchwise/c.py"]
    everything += ["launchwise/deep/__init__.py", "launchwise/deep/b.py"]
    assert found("scripts/s.py") == everything
    assert found("launchwise/c.py") == everything
    eager = places.library_files([tmp_path / "scripts" / "s.py"], lazy=False)
    assert [str(path.relative_to(tmp_path)) for path in eager] == everything[:2]


@pytest.mark.parametrize("text", IMPORTS)
def test_imports_are_found_however_they_are_written(text, tmp_path, monkeypatch):
    (tmp_path / "launchwise").mkdir()
    for name in ("__init__", "b", "c"):
        (tmp_path / "launchwise" / f"{name}.py").write_text("")
    (tmp_path / "s.py").write_text(text)
    monkeypatch.setattr(places, "ROOT", tmp_path)
    found = places.library_files([tmp_path / "s.py"])
    assert {path.stem for path in found} == {"__init__", "b", "c"}


ONCE = {"freeze", "blind_sweep", "blind_contests", "blind_pairs"}
"""Rules of blind tests, which nothing must run again: answers come before measurements."""


PROCESSES = {
    "confirm.py": "launchwise/cuda/child.py",
    "counters.py": "launchwise/cuda/counted.py",
    "describe.py": "launchwise/cuda/ceilings.py",
    "sweep.py": "launchwise/cuda/child.py",
}
"""Script to the process of its own that it starts, which is code of its rule, too."""


def print_rules(words):
    """Print each rule with a script as Snakemake reads it: its code as the files that it names, and
    the kind of file that a rule that runs once waits to miss."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

    from launchwise.workflow.answer_checks import Contests
    from launchwise.workflow.plan import Code
    from launchwise.workflow.studies import Studies

    # The project's settings have no live GPU.
    Studies.judged_live = lambda studies: [("granger", ("granger_time",), ["h200"])]
    Code.__call__ = lambda code, *files: " ".join(map(str, files))
    Contests.untested = lambda contests, kind: {"kind": kind}
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        cores = ResourceSettings(cores=1)
        read = api.workflow(resource_settings=cores, snakefile=ROOT / "Snakefile")._workflow
        for rule in (each for each in read.rules if each.script):
            code = getattr(rule.params, "code", None)
            code = code(SimpleNamespace(study="granger_time")) if callable(code) else code
            script = Path(rule.script).name
            kind = rule.wildcard_constraints.get("kind", "") if rule.name in ONCE else ""
            is_local = rule.name in read._localrules
            files = [str(rule.output[0]), *map(str, rule.input)]
            print(json.dumps([rule.name, script, code, kind, is_local, files]))


@pytest.mark.workloads
def test_every_rule_has_the_code_of_its_script_unless_it_runs_once():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = forked(print_rules, [], ROOT, environment, seconds=60)
    assert done.returncode == 0, done.stderr
    local, scripts = {}, set()
    for line in done.stdout.splitlines():
        name, script, code, kind, is_local, (output, *inputs) = json.loads(line)
        local.setdefault(script, set()).add(is_local)
        scripts.add(f"scripts/{script}")
        # Each of those that run once matches its own missing file alone.
        assert (code is None) == bool(kind) == (name in ONCE), name
        assert not kind or output.endswith(f".{kind}"), name
        if code is not None:
            first, *others = code.split()
            assert Path(first).name == script, name
            assert script not in PROCESSES or PROCESSES[script] in others, name
        if name == "describe":
            kernels = {path.name for path in ROOT.glob("launchwise/cuda/*.cu")}
            assert {Path(path).name for path in inputs} >= kernels
    assert scripts >= {*SCRIPTS}
    # A rule that inherits becomes a job of the cluster, unless it says as its base that it is none:
    # pairs alone are measured by jobs of both kinds.
    assert {script for script, both in local.items() if len(both) > 1} == {"confirm.py"}


def test_a_pattern_matches_its_names_and_nothing_else():
    names = ["h200", "h200.sm72"]
    assert all(re.fullmatch(workflow.pattern(names), name) for name in names)
    for other in ("h200xsm72", "h20", "h2000", "h200.sm7", ""):
        assert not re.fullmatch(workflow.pattern(names), other)
    assert not any(re.fullmatch(workflow.pattern([]), text) for text in ("", "h200"))


def test_sources_are_what_kernels_are_made_from():
    folder = "tests/support/kernels/stencil"
    found = workflow.sources(folder)
    assert {f"{folder}/linear.cu", f"{folder}/stencil.cuh", f"{folder}/spec.yaml"} <= set(found)
    assert "kernels/common/largest.cuh" in found
    assert "kernels/common/bulk_copy.cuh" not in found
    assert found == sorted(found)


DATA = "scripts/data.py"


def test_commands_name_each_file_of_the_settings_once(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert workflow.settings_to_name("config.yaml", ["config.yaml"]) == []
    named = workflow.settings_to_name("config.yaml", ["mine.yaml", "config.yaml"])
    assert named == ["mine.yaml", "config.yaml"]


def test_a_digest_is_the_same_in_every_process():
    program = f"from launchwise.workflow.plan import Code; print(Code()({DATA!r}))"
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == Code()(DATA)


def test_further_files_count_in_any_order():
    code = Code()
    names = ("knn", "_trees")
    knn, tree = (f"launchwise/learning/recommenders/{name}.py" for name in names)
    assert code(DATA, knn, tree) == code(DATA, tree, knn)
    assert len({code(DATA), code(DATA, knn), code(DATA, tree), code(DATA, knn, tree)}) == 4
