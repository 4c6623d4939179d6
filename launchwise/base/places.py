"""Launchwise itself: where its files lie, in a clone and in a wheel alike; commit and versions.

Files that are no modules of the package (the Snakefile, ``rules/``, ``scripts/``, ``kernels/``,
``schemas/``, tables of cards) are named by their path in the repository. A wheel holds them in
``launchwise/shipped/``, by the same paths; what it leaves out (recorded sweeps, tests, documents)
is missing there. What users have lies in the folder that a command runs in.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

import launchwise

PACKAGE = "launchwise"
ROOT = Path(__file__).resolve().parents[2]
"""Folder that holds the package: the clone, or ``site-packages``."""

_IN_WHEEL = ROOT / PACKAGE / "shipped"
SHIPPED = _IN_WHEEL if _IN_WHEEL.is_dir() else ROOT
"""Folder that holds everything else; in a clone the same."""

IN_CLONE = SHIPPED == ROOT

GPU_EXTRA = "`make gpu`" if IN_CLONE else '`pip install "launchwise[gpu]"`'
"""What installs the packages that measuring on a GPU needs."""

RECORDED_ELSEWHERE = "" if IN_CLONE else "take recorded sweeps in with launchwise data, "
"""What helps, too, where recorded data are missing: a wheel leaves them out."""


def shipped(path: str | Path = "") -> Path:
    """A file or folder of launchwise, by its path in the repository; it need not exist. ``path``:
    such as ``rules/common.smk`` or ``launchwise/cuda/child.py``."""
    return (ROOT if Path(path).parts[:1] == (PACKAGE,) else SHIPPED) / path


def in_repository(path: Path) -> Path:
    """The place that a file of launchwise has in a clone; other paths stay. For orders and names
    that must be the same for a clone and a wheel of it."""
    return ROOT / path.relative_to(SHIPPED) if path.is_relative_to(SHIPPED) else path


def here_or_shipped(path: str | Path, here: Path = Path()) -> Path:
    """A path of the settings: below ``here``, else launchwise's own of that name. A path that is in
    neither is below ``here``."""
    own = here / path
    apart = Path(path).is_absolute() or ".." in Path(path).parts
    return own if apart or own.exists() or not shipped(path).exists() else shipped(path)


_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Where statements hold other statements; most nodes are expressions, which hold no import."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WORD = re.compile(r"\bimport\b")
_IMPORT = re.compile(r"(?m)^ *((?:import|from +[.\w]+ +import)\b(?:[^\n(]*\([^)]*\))?.*)")


def library_files(start: Iterable[Path], lazy: bool = True) -> list[Path]:
    """Files of the library that ``start`` imports, directly or indirectly; sorted. Files of
    ``start`` that belong to the library are among them, and so are files that are imported
    relatively: those of a workload's own package. ``lazy``: whether imports inside functions and
    for type checkers count."""
    queue = list(start)
    shipped_there = None if IN_CLONE else SHIPPED  # No modules of the package, though inside it.
    own = [path for path in queue if path.is_relative_to(ROOT / PACKAGE)]
    found = {path for path in own if shipped_there not in path.parents}
    while queue:
        for file in _imported(queue.pop(), lazy):
            if file not in found:
                found.add(file)
                queue.append(file)
    return sorted(found)


@cache
def _imported(path: Path, lazy: bool) -> frozenset[Path]:
    found: set[Path] = set()
    text = path.read_text(encoding="utf-8")
    for node in _nodes((lazy and _statements(text)) or ast.parse(text), lazy):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(_files_of(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1]
            for name in _modules(node):
                found.update(_files_below(base, name))
        elif isinstance(node, ast.ImportFrom):
            for name in _modules(node):
                found.update(_files_of(name))
    return frozenset(found)


def _statements(text: str) -> ast.Module | None:
    """The import statements alone: to parse all others takes a second at each start of Snakemake.
    None where the word stands elsewhere, too, or a line goes on after a backslash."""
    found = _IMPORT.findall(text)
    if "\\\n" in text or len(_WORD.findall(text)) > len(found):
        return None
    try:
        return ast.parse("\n".join(found))
    except SyntaxError:
        return None


def _modules(node: ast.ImportFrom) -> list[str]:
    """Dotted names that may be modules: `from package import name` may import a module `name`."""
    head = [node.module] if node.module else []
    return [*head, *(".".join([*head, alias.name]) for alias in node.names)]


def _nodes(tree: ast.AST, lazy: bool) -> Iterator[ast.AST]:
    """Every statement; those inside functions and for type checkers only if ``lazy``."""
    for name in _BLOCKS:
        for node in getattr(tree, name, ()):
            yield node
            typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            if lazy or not (isinstance(node, _FUNCTIONS) or typing_only):
                yield from _nodes(node, lazy)


def _files_of(module: str) -> list[Path]:
    package, _, inside = module.partition(".")
    return _files_below(ROOT / PACKAGE, inside) if package == PACKAGE else []


@cache
def _files_below(base: Path, module: str) -> list[Path]:
    """The file of a module below ``base`` and the ``__init__`` of every package on the way."""
    parts = module.split(".")
    packages = [base.joinpath(*parts[:depth], "__init__.py") for depth in range(len(parts) + 1)]
    files = [*packages, base.joinpath(*parts).with_suffix(".py")]
    return [path for path in files if path.is_file()]


COMMIT_VARIABLE = "LAUNCHWISE_COMMIT"
"""Environment variable with the commit, for code without a repository (such as a container)."""

PACKAGES = (
    "snakemake",
    "numpy",
    "pandas",
    "scikit-learn",
    "xgboost-cpu",
    "lightgbm",
    "optuna",
    "pycuda",
    "cuda-bindings",
)


def commit(root: str | Path = ROOT) -> str:
    """Commit of the project, with ``+changes`` when tracked files differ from it. Of an installed
    wheel the tag of its version, such as ``v0.2.0``: a repository that it happens to lie in is
    another project's. ``unknown`` where there is neither a repository nor
    :data:`COMMIT_VARIABLE`."""
    named = os.environ.get(COMMIT_VARIABLE)
    if named:
        return named
    if root == ROOT and not IN_CLONE:
        return f"v{launchwise.__version__}"
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return "unknown"
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+changes" if changed else head


def changes_since(
    commits: Collection[str], paths: Sequence[Path], root: str | Path = ROOT
) -> dict[str, int]:
    """Commit to the number of commits that changed any of ``paths`` after it, without those that
    are not in the history. ``paths``: files and folders; ``*`` stands for any text of one name."""
    named = [f":(glob){path}" for path in paths]
    history = _git(root, "rev-list", "--parents", "HEAD")
    changing = _git(root, "rev-list", "HEAD", "--", *named)
    if history is None or changing is None:
        return {}
    parents = {child: before for child, *before in map(str.split, history.splitlines())}
    found = {}
    for one in parents.keys() & {*commits}:
        left, inside = [one], set()
        while left:
            if (each := left.pop()) not in inside:
                inside.add(each)
                left += parents[each]
        found[one] = len({*changing.split()} - inside)
    return found


def _git(root: str | Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def now() -> str:
    """Current time, UTC, ISO 8601, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


def versions() -> dict[str, str]:
    """Versions of launchwise, of Python and of the packages that results depend on."""
    found = {"launchwise": launchwise.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
