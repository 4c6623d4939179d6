"""What code leads to: from the parts of modules to what they read, across modules.

A *node* is a name as one reads it in a file (``helper``, ``shapes.area``), a module that is loaded
(an empty name: its rest counts), or a module of which all counts (:data:`WHOLE`): one that is
imported with ``*``, handed on, or asked for a name that cannot be found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from launchwise.base.places import PACKAGE, SHIPPED
from launchwise.base.storage import digest
from launchwise.workflow.code_facts import DYNAMIC, REST, Facts, Target

WHOLE = "*"
Node = tuple[str, str]
"""File and name; paths as texts, which are told apart faster."""


class Graph:
    """Nodes and where they lead to.

    Parameters
    ----------
    root
        Folder of the package ``launchwise``.
    facts
        Facts about a file.
    users
        Code of workloads. A script that imports dynamically may run it: then what it imports
        counts, of modules that the script loads. The files themselves are inputs of rules.
    """

    def __init__(
        self, root: Path, facts: Callable[[str], Facts], users: Iterable[Path] = ()
    ) -> None:
        self._root, self._facts, self._users = str(root), facts, [*map(str, users)]
        self._next: dict[Node, set[Node]] = {}
        self._files: dict[tuple[str, str], str] = {}

    def digest(self, start: Iterable[Path]) -> str:
        """Digest of what some files do: of all parts that they reach."""
        counted = {}
        for path, name in self._reached((str(path), WHOLE) for path in start):
            root = name.partition(".")[0]
            if part := self._facts(path)["parts"].get(root):
                counted[f"{self.place(path)}:{root}"] = part["text"]
        return digest(counted)

    def place(self, path: str) -> str:
        """Path of a file of launchwise from the root of its repository, with a leading slash."""
        return path.removeprefix(str(SHIPPED)).removeprefix(self._root)

    def _reached(self, start: Iterable[Node]) -> set[Node]:
        nodes: set[Node] = set()
        new = set(start)
        while new:
            nodes |= new
            queue = [*new]
            while queue:
                more = self.next(queue.pop()) - nodes
                nodes |= more
                queue.extend(more)
            names = {name.rpartition(".")[2] for _, name in nodes}
            loaded = {path for path, _ in nodes}
            users = self._users if names & DYNAMIC else ()
            new = {node for path in users for node in self._imported(path)}
            new = {node for node in new if node[0] in loaded} - nodes
        return nodes

    def next(self, node: Node) -> set[Node]:
        """Nodes that a node leads to."""
        known = self._next.get(node)
        if known is None:
            path, name = node
            if name == REST:
                found = [*self._loading(path), *self._reading(path, REST)]
            elif name == WHOLE:
                found = [(path, REST), *((path, each) for each in self._facts(path)["parts"])]
                # Nobody knows which of the names that a package hands on are asked for.
                found += self._imported(path) if _is_package(path) else ()
            else:
                found = [(path, REST), *self._reading(path, name)]
            known = self._next[node] = set(found)
        return known

    def _loading(self, path: str) -> Iterator[Node]:
        inside = self.place(path)
        if inside.startswith(f"/{PACKAGE}/"):
            for folder in Path(inside[1:]).parents[:-1]:
                yield (f"{self._root}/{folder.as_posix()}/__init__.py", REST)
        for level, module, name in self._facts(path)["loads"]:
            if file := self._file(path, level, module):
                yield (file, WHOLE if name == WHOLE else REST)
                if inner := self._inside(file, name):
                    yield (inner, REST)

    def _reading(self, path: str, read: str) -> Iterator[Node]:
        """What a name that is read in a file leads to."""
        facts = self._facts(path)
        name, _, attribute = read.partition(".")
        if part := facts["parts"].get(name):
            yield from ((path, each) for each in part["reads"])
        elif name in ("eval", "exec", "globals"):
            yield (path, WHOLE)
        for target in facts["imports"].get(name, ()):
            yield from self._stands_for(path, target, attribute)

    def _imported(self, path: str) -> Iterator[Node]:
        for targets in self._facts(path)["imports"].values():
            for target in targets:
                yield from self._stands_for(path, target, "")

    def _stands_for(self, path: str, target: Target, attribute: str) -> Iterator[Node]:
        """What an import stands for, or an attribute of it if it is a module."""
        level, module, name = target
        if file := self._file(path, level, module):
            yield (file, REST)
            yield from self._of(file, name or attribute or WHOLE, attribute if name else "")

    def _of(self, file: str, name: str, attribute: str) -> Iterator[Node]:
        """What a name of a module stands for: of a module inside, an attribute."""
        facts = self._facts(file)
        inner = self._inside(file, name)
        if name in facts["parts"] or name in facts["imports"] or name in facts["binds"]:
            yield (file, f"{name}.{attribute}" if attribute else name)
        elif inner:
            yield (inner, REST)
            yield from self._of(inner, attribute or WHOLE, "")
        else:
            yield (file, WHOLE)

    def _inside(self, file: str, name: str) -> str:
        """A module of a package."""
        package = _is_package(file) and name.isidentifier()
        return self._found(str(Path(file).parent), name) if package else ""

    def _file(self, path: str, level: int, module: str) -> str:
        """File of a module of the library, or relative to the file that imports it."""
        if level:
            return self._found(str(Path(path).parents[level - 1]), module)
        inside = module.partition(".")[0] == PACKAGE
        return self._found(self._root, module) if inside else ""

    def _found(self, base: str, module: str) -> str:
        """File of a module below a folder; a package's ``__init__.py`` may be missing."""
        if (base, module) not in self._files:
            place = Path(base, *module.split("."))
            single = place.with_suffix(".py")
            package = str(place / "__init__.py") if place.is_dir() else ""
            self._files[base, module] = str(single) if module and single.is_file() else package
        return self._files[base, module]


def _is_package(path: str) -> bool:
    return path.endswith("/__init__.py")
