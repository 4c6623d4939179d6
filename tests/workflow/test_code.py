"""Digests of code: what can change a result changes them, what cannot does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from launchwise.base.storage import user_cache
from launchwise.workflow.code import FILE, SHARED, Code
from launchwise.workflow.code_facts import PACKAGE, Facts, facts_of
from launchwise.workflow.code_graph import Graph

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = '''"""A script."""

from launchwise.stage import main, retry

if __name__ == "__main__":
    main(3 + retry(3))
'''
STAGE = '''"""A stage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from launchwise.base.errors import UserError
from launchwise.base.scripting import log
from launchwise.tools import helper
from launchwise import shapes

if TYPE_CHECKING:
    from launchwise.shapes import Circle

LIMIT = 10


@dataclass
class Case:
    """A case."""

    size: int = 2

    def __add__(self, other: Case) -> int:
        """Their sum."""
        return self.size + other.size

    @property
    def half(self) -> float:
        return self.size / 2


def main(count: int, factor: float = 1.5) -> float:
    """Do it."""
    log.info("%d cases of %s", count, "all")  # told
    if count > LIMIT:
        raise UserError("config.yaml", "count", f"{count} are too many, at most {LIMIT}")
    case = Case() + Case(count)
    assert case, "no case"
    return np.log(helper(case)) * factor + shapes.area(count) + math.pi


def retry(count: int) -> int:
    from launchwise.lazy import again

    return again(count)
'''
FILES = {
    "scripts/s.py": SCRIPT,
    "launchwise/__init__.py": "",
    "launchwise/base/__init__.py": "",
    "launchwise/base/errors.py": '"""Errors."""\n\n\nclass UserError(Exception):\n    """One."""\n',
    "launchwise/base/scripting.py": 'import logging\n\nlog = logging.getLogger("launchwise")\n',
    "launchwise/stage.py": STAGE,
    "launchwise/tools/__init__.py": "from launchwise.tools.deep import helper, other\n",
    "launchwise/tools/deep.py": """
from launchwise.tools.registry import known, register

SCALE = 2


@register
def helper(value):
    return _scaled(value)


def _scaled(value):
    return value * SCALE * len(known)


def other(value):
    return value + 1
""",
    "launchwise/tools/registry.py": """
known = {}


def register(function):
    known[function.__name__] = function
    return function


def unused():
    return 1


known["first"] = unused
""",
    "launchwise/shapes.py": "def area(n):\n    return n * n\n\n\nclass Circle:\n    radius = 1\n",
    "launchwise/lazy.py": "def again(n):\n    return n - 1\n\n\ndef never(n):\n    return n\n",
    "launchwise/far.py": "def far():\n    return 1\n",
}


class Small:
    """A project of a script and a few modules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert text.count(old) == 1, (name, old)
        self.write(name, text.replace(old, new))

    def digest(self, start: str = "scripts/s.py", workloads: tuple[Path, ...] = ()) -> str:
        code = Code(workloads, self.folder, self.folder / FILE)
        found = code(start)
        code.save()
        return found


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this file's own: facts that were found before would hide how they are found."""
    with pytest.MonkeyPatch.context() as context:
        context.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


STAGE_FILE, DEEP, REGISTRY = (
    "launchwise/stage.py",
    "launchwise/tools/deep.py",
    "launchwise/tools/registry.py",
)
CHANGES = {
    "a constant": (STAGE_FILE, "LIMIT = 10", "LIMIT = 11"),
    "the type of a constant": (STAGE_FILE, "LIMIT = 10", "LIMIT = 10.0"),
    "an operator": (STAGE_FILE, "count > LIMIT", "count >= LIMIT"),
    "a default": (STAGE_FILE, "factor: float = 1.5", "factor: float = 1.25"),
    "the name of a parameter": (STAGE_FILE, "def retry(count", "def retry(counts"),
    "a helper two modules away": (DEEP, "value * SCALE", "value + SCALE"),
    "a constant two modules away": (DEEP, "SCALE = 2", "SCALE = 3"),
    "a decorator": (STAGE_FILE, "@dataclass\n", "@dataclass(frozen=True)\n"),
    "a decorator that is gone": (DEEP, "@register\n", ""),
    "what a decorator does": (REGISTRY, "    return function", "    return None"),
    "an attribute of a class": (STAGE_FILE, "size: int = 2", "size: int = 3"),
    "the type of a field": (STAGE_FILE, "size: int = 2", "size: float = 2"),
    "a method": (STAGE_FILE, "self.size / 2", "self.size // 2"),
    "an operator of a class": (STAGE_FILE, "self.size + other.size", "self.size - other.size"),
    "a registration": (REGISTRY, 'known["first"] = unused', 'known["second"] = unused'),
    "what is registered": (REGISTRY, "return 1", "return 2"),
    "a name that is handed on": (
        "launchwise/tools/__init__.py",
        "import helper, other",
        "import other as helper",
    ),
    "what a library's name stands for": (STAGE_FILE, "import numpy as np", "import cupy as np"),
    "an attribute of a library": (STAGE_FILE, "math.pi", "math.e"),
    "what an attribute of a module does": ("launchwise/shapes.py", "n * n", "n + n"),
    "what is imported inside a function": ("launchwise/lazy.py", "n - 1", "n - 2"),
    "the type of an error": (STAGE_FILE, "raise UserError(", "raise ValueError("),
    "when an error is raised": (STAGE_FILE, "assert case,", "assert not case,"),
    "an annotation of a function": (STAGE_FILE, "retry(count: int) -> int", "retry(count)"),
    "the main part": ("scripts/s.py", "main(3 ", "main(4 "),
    "an import for its effect": (STAGE_FILE, "import math\n", "import math\nimport antigravity\n"),
    "what an error is told by name": (
        STAGE_FILE,
        'at most {LIMIT}")',
        'at most {LIMIT}", fatal=True)',
    ),
}
KEPT = {
    "a comment": (STAGE_FILE, "  # told", "  # reported"),
    "a docstring of a module": (STAGE_FILE, '"""A stage."""', '"""Another stage."""'),
    "a docstring of a function": (STAGE_FILE, '    """Do it."""\n', ""),
    "a docstring of a class": (STAGE_FILE, '"""A case."""', '"""One case."""'),
    "a docstring of a method": (STAGE_FILE, '"""Their sum."""', '"""Sum of them."""'),
    "a message": (STAGE_FILE, "are too many, at most", "are more than"),
    "the key of a message": (STAGE_FILE, '"config.yaml", "count"', '"config.yaml", "counts"'),
    "the message of an assertion": (STAGE_FILE, ', "no case"', ', "there is none"'),
    "a log": (STAGE_FILE, '"%d cases of %s", count, "all"', '"%d of %s, %d", 1, LIMIT, count'),
    "the level of a log": (STAGE_FILE, "log.info(", "log.warning("),
    "blank lines": (STAGE_FILE, "LIMIT = 10\n", "LIMIT = 10\n\n\n\n"),
    "line breaks": (STAGE_FILE, "main(count: int, ", "main(\n    count: int, "),
    "the order of imports": (
        STAGE_FILE,
        "from launchwise.tools import helper\nfrom launchwise import shapes\n",
        "from launchwise import shapes\nfrom launchwise.tools import helper\n",
    ),
    "an unused function": (
        STAGE_FILE,
        "LIMIT = 10",
        "def more():\n    return helper\n\n\nLIMIT = 10",
    ),
    "an unused function elsewhere": (DEEP, "value + 1", "value + 2"),
    "an unused module": ("launchwise/far.py", "return 1", "return 2"),
    "an unused function of a module that is imported late": (
        "launchwise/lazy.py",
        "return n\n",
        "return -n\n",
    ),
    "a class that only annotations name": ("launchwise/shapes.py", "radius = 1", "radius = 2"),
    "an import that only unused code uses": (
        "launchwise/lazy.py",
        "    return n\n",
        "    from launchwise import far\n\n    return far\n",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_can_change_a_result_changes_the_digest(small: Small, what: str) -> None:
    before = small.digest()
    small.edit(*CHANGES[what])
    assert small.digest() != before


@pytest.mark.parametrize("what", KEPT)
def test_what_cannot_change_a_result_keeps_the_digest(small: Small, what: str) -> None:
    before = small.digest()
    small.edit(*KEPT[what])
    assert small.digest() == before


UNDECIDED = {
    "a star": ("from launchwise.far import *\n", "far()"),
    "a dotted import": ("import launchwise.far\n", "launchwise.shapes"),
    "a module that is handed on": ("from launchwise import far\n", "getattr(far, 'fa' + 'r')"),
    "another name of a module": ("import launchwise.far as away\n", "vars(away)"),
}


@pytest.mark.parametrize("how", UNDECIDED)
def test_a_module_counts_as_a_whole_where_nobody_can_tell(small: Small, how: str) -> None:
    line, use = UNDECIDED[how]
    small.edit(STAGE_FILE, "import math\n", f"import math\n{line}")
    small.edit(STAGE_FILE, "math.pi", use)
    before = small.digest()
    small.edit("launchwise/far.py", "return 1", "return 2")
    assert small.digest() != before


def test_code_of_a_workload_may_run_what_the_script_does_not_name(small: Small) -> None:
    """The names that it uses count, of modules that the script stands on, and no other."""
    workload = small.folder / "kernels" / "w"
    small.write("kernels/w/host.py", "from launchwise.tools.deep import other\n")
    small.edit(STAGE_FILE, "math.pi", "import_module(factor)")
    before = small.digest(workloads=(workload,))
    assert before != small.digest()
    small.edit("launchwise/far.py", "return 1", "return 2")
    assert small.digest(workloads=(workload,)) == before
    small.edit(*KEPT["an unused function elsewhere"])
    assert small.digest(workloads=(workload,)) != before


def test_a_file_that_is_no_python_counts_with_every_byte(small: Small) -> None:
    small.write("launchwise/lazy.py", "def again(n)\n")
    before = small.digest()
    small.write("launchwise/lazy.py", "def again(n)\n# edited\n")
    assert small.digest() != before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', "null", "\x00\xff"])
def test_a_damaged_cache_is_ignored(small: Small, content: str) -> None:
    before = small.digest()
    (small.folder / FILE).write_text(content, encoding="latin-1")
    assert small.digest() == before


def test_a_folder_that_cannot_be_written_keeps_nothing(small: Small) -> None:
    (small.folder / ".snakemake").write_text("a file")
    assert small.digest() == small.digest()


def test_facts_of_one_project_are_taken_by_another_and_its_edits_count(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = user_cache() / SHARED
    shared.unlink(missing_ok=True)
    before = small.digest()
    other = Small(tmp_path / "other")
    other.edit(*CHANGES["a constant"])
    asked: list[str] = []

    def facts(text: str) -> Facts:
        asked.append(text)
        return facts_of(text)

    monkeypatch.setattr("launchwise.workflow.code.facts_of", facts)
    changed = other.digest()
    assert changed != before
    assert asked == [(other.folder / STAGE_FILE).read_text()]
    # A damaged file, or one of another version, is found anew.
    for content in ("{", "[]", json.dumps({**json.loads(shared.read_text()), "version": []})):
        shared.write_text(content)
        asked.clear()
        (other.folder / FILE).unlink()
        assert other.digest() == changed
        assert len(asked) == len(json.loads((other.folder / FILE).read_text())["facts"])


def test_a_copy_of_a_project_takes_its_digests(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = small.digest()
    asked: list[Path] = []

    def digest(self: Graph, start: Iterable[Path]) -> str:
        asked.extend(start)
        return "computed"

    monkeypatch.setattr(Graph, "digest", digest)
    copy = Small(tmp_path / "copy")
    assert copy.digest() == before
    assert not asked
    # What it has taken holds for its files as they were.
    copy.edit(*KEPT["an unused function elsewhere"])
    assert copy.digest() == "computed"


def test_a_cache_that_cannot_be_written_shares_nothing(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert small.digest() == small.digest()


def test_kept_digests_are_those_of_the_files_that_are_there(small: Small) -> None:
    before = small.digest()
    assert small.digest() == before
    small.edit(*CHANGES["a constant"])
    changed = small.digest()
    assert changed != before
    small.edit(STAGE_FILE, "LIMIT = 11", "LIMIT = 10")
    assert small.digest() == before


def test_texts_do_not_depend_on_the_order_of_imports_or_the_run(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from launchwise.workflow.code import Code;"
        f"print(Code([], Path({str(ROOT)!r}), Path('/dev/null/x'))('scripts/split.py'))"
    )
    said = set()
    for seed in ("1", "2"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        # Each finds its own facts.
        environment["XDG_CACHE_HOME"] = str(tmp_path / seed)
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        said.add(done.stdout)
    assert len(said) == 1
    assert len(said.pop()) == 17


# The project itself.


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name in (PACKAGE, "scripts"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    return folder


@pytest.fixture(scope="module")
def digests(project: Path) -> Callable[[], dict[str, str]]:
    """Digests of every script of a copy of the project, as it is now."""
    users = sorted(path.parent for path in ROOT.glob("kernels/*/spec.yaml"))

    def now() -> dict[str, str]:
        code = Code(users, project, project / FILE)
        names = sorted(path.name for path in project.glob("scripts/*.py"))
        found = {name: code(f"scripts/{name}") for name in names}
        code.save()
        return found

    return now


@pytest.fixture(scope="module")
def before(digests: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Digests without an edit."""
    return digests()


REAL = {
    # What is edited: file, old text, new text; a script that reruns, one that does not.
    "an unused constant": (
        "launchwise/learning/clean.py",
        "def clean(",
        "_MORE = 1\n\n\ndef clean(",
        "",
        "clean.py",
    ),
    "an operator": ("launchwise/base/tukey.py", " * ", " + ", "clean.py", "split.py"),
    "a helper": ("launchwise/base/storage.py", "indent=2", "indent=3", "split.py", "clean.py"),
    "a message": (
        "launchwise/learning/splits.py",
        "raise UserError(",
        'raise UserError("x" + ',
        "",
        "clean.py",
    ),
    "a comment": (
        "launchwise/base/errors.py",
        "import difflib",
        "# x\nimport difflib",
        "",
        "train.py",
    ),
}


@pytest.mark.parametrize("what", REAL)
def test_an_edit_of_the_project_reruns_what_it_concerns(
    project: Path, digests: Callable[[], dict[str, str]], before: dict[str, str], what: str
) -> None:
    name, old, new, reruns, stays = REAL[what]
    path = project / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    after = digests()
    path.write_text(text)
    assert after[stays] == before[stays]
    if reruns:
        assert after[reruns] != before[reruns]
    else:
        assert after == before


def test_no_class_is_found_by_its_base_alone() -> None:
    """Digests follow names: a class that nobody names would not count."""
    for path in ROOT.glob("launchwise/**/*.py"):
        assert "__subclasses__" not in path.read_text(), path
        # That of recommenders wraps methods and registers nothing.
        own = path.name == "recommender.py"
        assert own or "__init_subclass__" not in path.read_text(), path
