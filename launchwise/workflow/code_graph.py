"""What code leads to: from definitions to the definitions that they name, across modules.

A *node* is a statement of a module (a unit's number), a module that is loaded (:data:`LOADED`: its
imports run, and its statements with effects), or a module of which all counts (:data:`WHOLE`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from launchwise.workflow.code_facts import Facts, Target

PACKAGE = "launchwise"
LOADED, WHOLE = -1, -2
Node = tuple[Path, int]


class Graph:
    """Nodes and where they lead to, for one level of detail.

    Parameters
    ----------
    root
        Folder of the package ``launchwise``.
    facts
        Facts about a file.
    level
        Detail, see :mod:`launchwise.workflow.code_text`.
    """

    def __init__(self, root: Path, facts: Callable[[Path], Facts], level: int) -> None:
        self.facts = facts
        self._root, self._level = root, level
        self._next: dict[Node, frozenset[Node]] = {}
        self._bound: dict[Node, list[str]] = {}
        self._files: dict[tuple[int, str, Path], Path | None] = {}
        self._defined: dict[Path, dict[str, list[int]]] = {}

    def next(self, node: Node) -> frozenset[Node]:
        """Nodes that a node leads to."""
        known = self._next.get(node)
        if known is None:
            path, number = node
            if number == LOADED:
                found = self._loading(path)
            elif number == WHOLE:
                found = self._all_of(path)
            else:
                found = self._using(path, number)
            known = self._next[node] = frozenset(found)
        return known

    def bound(self, node: Node) -> list[str]:
        """Names that a unit uses and imports, each with what it stands for."""
        self.next(node)
        return self._bound[node]

    def taken(self, path: Path, target: Target, allowed: set[Path]) -> Iterator[Node]:
        """What an import in ``path`` names of ``allowed`` files."""
        level, module, name = target
        file = self._file(level, module, path)
        if file is None:
            return
        if file in allowed:
            yield from self._named(file, name, "", runs=True)
        if (inner := self._inside(file, name)) in allowed and inner is not None:
            yield (inner, WHOLE)

    def name(self, path: Path) -> str:
        """A file's name in digests."""
        inside = path.is_relative_to(self._root)
        return path.relative_to(self._root).as_posix() if inside else path.as_posix()

    def _loading(self, path: Path) -> Iterator[Node]:
        folder = path.parent
        while folder.is_relative_to(self._root / PACKAGE):
            yield (folder / "__init__.py", LOADED)
            folder = folder.parent
        facts = self.facts(path)
        for target in facts["loads"]:
            yield from self._loaded(path, target)
        for star in facts["stars"]:
            yield from self._everything(path, star)
        for number, unit in enumerate(facts["units"]):
            # A program's own part does not run when it is imported.
            if unit["effect"] and not unit["main"]:
                yield (path, number)

    def _all_of(self, path: Path) -> Iterator[Node]:
        facts = self.facts(path)
        yield (path, LOADED)
        for number in range(len(facts["units"])):
            yield (path, number)
        if path.name == "__init__.py":
            # Nobody knows which of the names that it hands on are asked for.
            for targets in facts["imports"].values():
                for target in targets:
                    yield from self._stands_for(path, target, "", runs=True)

    def _using(self, path: Path, number: int) -> Iterator[Node]:
        facts = self.facts(path)
        unit = facts["units"][number]
        if unit["whole"]:
            yield (path, WHOLE)
        for target in (each for targets in unit["imports"].values() for each in targets):
            yield from self._loaded(path, target)
            if target[2] == "*":
                yield from self._everything(path, target)
        uses = unit["uses"][self._level]
        # An import whose name nobody uses is there for what it does.
        asked = {use.partition(".")[0] for use in uses}
        bound = {f"{name}={each}" for name, each in unit["imports"].items() if name not in asked}
        for use in uses:
            name, _, attribute = use.partition(".")
            for other in self._defining(path, name):
                yield (path, other)
            inner = unit["imports"].get(name, [])
            for target in (*inner, *facts["imports"].get(name, [])):
                bound.add(f"{name}={target}")
                runs = target in inner or target in facts["loads"]
                yield from self._stands_for(path, target, attribute, runs)
        self._bound[path, number] = sorted(bound)

    def _loaded(self, path: Path, target: Target) -> Iterator[Node]:
        """Modules that an import loads."""
        level, module, name = target
        file = self._file(level, module, path)
        for each in (file, self._inside(file, name)):
            if each is not None:
                yield (each, LOADED)

    def _everything(self, path: Path, target: Target) -> Iterator[Node]:
        if file := self._file(target[0], target[1], path):
            yield (file, WHOLE)

    def _stands_for(
        self, path: Path, target: Target, attribute: str, runs: bool, depth: int = 0
    ) -> Iterator[Node]:
        """What an imported name stands for; of a module, one attribute."""
        level, module, name = target
        file = self._file(level, module, path)
        if file is None:
            return
        if runs:
            yield from self._loaded(path, target)
        if name == "*" or depth > 20 or (name == "" and not attribute):
            yield (file, WHOLE)
        elif name == "":
            yield from self._named(file, attribute, "", runs, depth)
        else:
            yield from self._named(file, name, attribute, runs, depth)

    def _named(
        self, file: Path, name: str, attribute: str, runs: bool, depth: int = 0
    ) -> Iterator[Node]:
        """What a name of a module stands for: a definition, a name handed on, a module inside."""
        facts = self.facts(file)
        numbers = self._defining(file, name)
        yield from ((file, number) for number in numbers)
        handed_on = facts["imports"].get(name, [])
        for target in handed_on:
            yield from self._stands_for(file, target, attribute, runs, depth + 1)
        inner = self._inside(file, name)
        if inner is not None and attribute:
            yield from self._named(inner, attribute, "", runs, depth + 1)
        elif inner is not None:
            yield (inner, WHOLE)
        if not (numbers or handed_on or inner):
            yield (file, WHOLE)

    def _defining(self, path: Path, name: str) -> list[int]:
        """Numbers of the units of a file that define a name."""
        if path not in self._defined:
            known = self._defined[path] = {}
            for number, unit in enumerate(self.facts(path)["units"]):
                for each in unit["defines"]:
                    known.setdefault(each, []).append(number)
        return self._defined[path].get(name, [])

    def _inside(self, file: Path | None, name: str) -> Path | None:
        """A module of a package."""
        if file is None or file.name != "__init__.py" or not name.isidentifier():
            return None
        return self._found(0, name, file.parent, file.parent)

    def _file(self, level: int, module: str, path: Path) -> Path | None:
        """File of a module of the library, or relative to the file that imports it."""
        if level:
            return self._found(level, module, path.parents[level - 1], path)
        if module.partition(".")[0] != PACKAGE:
            return None
        return self._found(0, module, self._root, self._root)

    def _found(self, level: int, module: str, base: Path, key: Path) -> Path | None:
        known = (level, module, key)
        if known not in self._files:
            self._files[known] = _module(base, module.split(".") if module else [])
        return self._files[known]


def _module(base: Path, parts: Iterable[str]) -> Path | None:
    """File of a module below a folder, or ``__init__.py`` of a package, which may be missing."""
    place = base.joinpath(*parts)
    if parts and (file := place.with_suffix(".py")).is_file():
        return file
    return place / "__init__.py" if place.is_dir() else None
