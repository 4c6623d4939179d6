"""Digest of what a script does: of the code that it reaches, without comments and messages.

Starting from a script, every name is followed to the definition that it stands for, in the script
or in a module of the library, and from there on. Of each module count the definitions that are
reached and the statements that run when it is imported and do more than define names. Where it
cannot be told what a name stands for (a star import, a module that is handed on, ``globals()``),
the whole module counts.

Workloads bring code of their own, which is imported by the name that their files give. What the
project's rules say about these files stays as it is: they are inputs, or starting points. But a
script that imports code dynamically may run them, so the names that they use of modules that the
script stands on count, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from launchwise.base.imports import import_statements
from launchwise.base.storage import digest
from launchwise.workflow.code_facts import Facts, bindings
from launchwise.workflow.code_graph import LOADED, WHOLE, Graph, Node
from launchwise.workflow.code_text import LEVELS


class Behaviour:
    """Digests of what files of code do.

    Parameters
    ----------
    root
        Folder of the package ``launchwise``.
    facts
        Facts about a file.
    users
        Code of workloads, which a script may import dynamically.
    """

    def __init__(
        self, root: Path, facts: Callable[[Path], Facts], users: Iterable[Path] = ()
    ) -> None:
        self._facts = facts
        self._users = sorted(set(users))
        self._graphs = [Graph(root, facts, level) for level in LEVELS]

    def digest(self, start: Iterable[Path], allowed: Callable[[], set[Path]] = set) -> str:
        """Digest of what some files do.

        Parameters
        ----------
        start
            Scripts, and modules that run as programs: all of them counts.
        allowed
            Files whose names the code of workloads may make count.
        """
        level, begin = 0, [(path, WHOLE) for path in start]
        while True:
            graph = self._graphs[level]
            nodes = self._reached(graph, begin, allowed)
            units = (self._facts(path)["units"][number] for path, number in nodes if number >= 0)
            needs = max((unit["needs"] for unit in units), default=level)
            if needs <= level:
                return self._digest(graph, nodes)
            level = needs

    def _reached(
        self, graph: Graph, begin: Iterable[Node], allowed: Callable[[], set[Path]]
    ) -> set[Node]:
        nodes: set[Node] = set()
        _search(graph, begin, nodes)
        if self._any(nodes, "dynamic"):
            inside = allowed()
            for path in self._users:
                _search(graph, self._used_by(graph, path, inside), nodes)
        if self._any(nodes, "hooks"):
            # A class may be found by what it inherits from.
            while loaded := {(path, WHOLE) for path, _ in nodes} - nodes:
                _search(graph, loaded, nodes)
        return nodes

    def _any(self, nodes: Iterable[Node], fact: str) -> bool:
        return any(
            self._facts(path)["units"][number][fact]  # type: ignore[literal-required]
            for path, number in nodes
            if number >= 0
        )

    def _used_by(self, graph: Graph, path: Path, allowed: set[Path]) -> set[Node]:
        """What a file names of ``allowed`` files; the file itself does not count."""
        statements = import_statements(path.read_text(encoding="utf-8"))
        targets = [target for each in statements for _, target in bindings(each)]
        return {node for each in targets for node in graph.taken(path, each, allowed)}

    def _digest(self, graph: Graph, nodes: set[Node]) -> str:
        said: dict[Path, list[object]] = {}
        for path, number in sorted(nodes):
            facts = self._facts(path)
            if number >= 0:
                text = facts["units"][number]["texts"][self._graphs.index(graph)]
                said.setdefault(path, []).append([text, graph.bound((path, number))])
            elif number == LOADED and facts["unused"]:
                said.setdefault(path, []).append(facts["unused"])
        return digest([[graph.name(path), found] for path, found in said.items()])


def _search(graph: Graph, begin: Iterable[Node], nodes: set[Node]) -> None:
    """Add to ``nodes`` what can be reached."""
    queue = [node for node in begin if node not in nodes]
    nodes.update(queue)
    while queue:
        new = graph.next(queue.pop()) - nodes
        nodes |= new
        queue.extend(new)
