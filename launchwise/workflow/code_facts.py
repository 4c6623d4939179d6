"""Facts about one Python file: its definitions, what they say, what they use, what it imports.

A *unit* is a statement of a module: a definition, an assignment, or a statement that runs on import
and has effects. Facts are JSON-able and depend on the content of the file alone.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypedDict

from launchwise.workflow.code_handlers import kept_messages
from launchwise.workflow.code_names import (
    PLAIN_DECORATORS,
    PURE_AT_IMPORT,
    PURE_BASES,
    PURE_CALLS,
    PURE_METHODS,
)
from launchwise.workflow.code_text import (
    BARE,
    FULL,
    FUNCTIONS,
    IMPORTS,
    LEVELS,
    Text,
    assigned,
    decorators,
    is_log,
    is_text,
    last_name,
    text_of,
)

LOG_MODULE = "launchwise.base.scripting"

Target = list[Any]
"""``[level, module, name]``: `name` of a module; with an empty name the module itself, and with
``*`` a module whose attributes cannot be told apart."""


class Unit(TypedDict):
    """A statement of a module.

    ``texts`` and ``uses`` hold a value per level of detail (:mod:`launchwise.workflow.code_text`):
    digest of what it says; names that it uses.
    """

    defines: list[str]
    effect: bool
    main: bool
    texts: list[str]
    uses: list[list[str]]
    imports: dict[str, list[Target]]
    needs: int
    dynamic: bool
    whole: bool
    hooks: bool


class Facts(TypedDict):
    """A module: its units in order, what its names are imported as, and what it loads at once."""

    units: list[Unit]
    imports: dict[str, list[Target]]
    loads: list[Target]
    unused: list[str]
    stars: list[Target]


_PURE_FUNCTIONS = PURE_CALLS | PURE_AT_IMPORT
_PURE_ATTRIBUTES = PURE_METHODS | {"resolve", "absolute", "with_name", "casefold"}
_PURE_KEYWORDS = {"title", "frozen", "total", "extra"}
_METHOD_DECORATORS = PLAIN_DECORATORS | {
    "model_validator",
    "field_validator",
    "field_serializer",
    "model_serializer",
    "computed_field",
}
_DYNAMIC = {
    "__import__",
    "exec_module",
    "import_module",
    "run_module",
    "run_path",
    "spec_from_file_location",
}
_OWN_MODULE = {"eval", "exec", "globals"}
_EVERYTHING = {"__subclasses__", "__init_subclass__", "__class_getitem__"}
_READ_TEXTS = {"__doc__", "__annotations__", "getdoc", "use_attribute_docstrings", "getcomments"}


def facts_of(source: str) -> Facts:
    """Facts about a Python file.

    Raises
    ------
    SyntaxError
        When it is no Python.
    """
    tree = ast.parse(source)
    facts = Facts(units=[], imports={}, loads=[], unused=[], stars=[])
    kept = [node for node in tree.body if not is_text(node)]
    typing_only = [node for node in kept if _for_type_checkers(node)]
    running = [node for node in kept if node not in typing_only]
    for node in (each for block in (running, typing_only) for each in _imports_of(block)):
        for name, target in bindings(node):
            facts["imports"].setdefault(name, []).append(target)
    for node in _imports_of(running):
        facts["loads"] += [target for _, target in bindings(node)]
        facts["stars"] += [target for name, target in bindings(node) if name == "*"]
    logs = {name for name, targets in facts["imports"].items() if _is_the_log(targets)}
    if "launchwise" in source and _defines_log(tree):
        logs.add("log")
    own = {name for node in running for name in _defined(node)}
    ours = own | _ours(facts["imports"])
    values = {assigned(node): node.value for node in running if isinstance(node, ast.Assign)}
    for statement in running:
        if not isinstance(statement, IMPORTS):
            facts["units"].append(_unit(statement, logs, ours, values))
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    facts["unused"] = sorted(
        f"{name}={target}"
        for name, targets in facts["imports"].items()
        for target in targets
        if name not in used and name != "annotations"
    )
    return facts


def _unit(node: ast.stmt, logs: set[str], ours: set[str], values: Mapping[str, ast.expr]) -> Unit:
    parts = list(ast.walk(node))
    texts = _texts(node, parts, logs)
    words = set(_words(parts))
    inner = [each for each in parts if isinstance(each, IMPORTS)]
    imports: dict[str, list[Target]] = {}
    for statement in inner:
        for name, target in bindings(statement):
            imports.setdefault(name, []).append(target)
    needs = kept_messages(parts, logs, values)
    if words & _READ_TEXTS or _reads_annotations(parts):
        needs = FULL
    return Unit(
        defines=sorted(_defined(node)),
        effect=_has_effect(node, ours),
        main=_is_main(node),
        texts=[_digest("".join(text.parts)) for text in texts],
        uses=[sorted(text.uses) for text in texts],
        imports=imports,
        needs=needs,
        dynamic=bool(words & _DYNAMIC),
        whole=bool(words & _OWN_MODULE),
        hooks=bool(words & _EVERYTHING) or _has_metaclass(parts),
    )


def _texts(node: ast.stmt, parts: list[ast.AST], logs: set[str]) -> list[Text]:
    """What a statement says at each level of detail; most have no messages."""
    if any(isinstance(each, ast.Raise | ast.Assert) or is_log(each, logs) for each in parts):
        return [text_of(node, level, logs) for level in LEVELS]
    bare = text_of(node, BARE, logs, has_messages=False)
    return [bare] * (len(LEVELS) - 1) + [text_of(node, FULL, logs, has_messages=False)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every identifier in a statement."""
    for each in nodes:
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.alias):
            yield each.name.rpartition(".")[2]
        elif isinstance(each, ast.keyword) and each.arg:
            yield each.arg
        elif isinstance(each, FUNCTIONS):
            yield each.name


def _reads_annotations(nodes: Iterable[ast.AST]) -> bool:
    """Whether annotations of a function may be read: those of a class alone always count."""
    for each in nodes:
        if isinstance(each, ast.Call) and last_name(each.func) in (
            "get_type_hints",
            "getfullargspec",
        ):
            first = each.args[0] if each.args else None
            if not (isinstance(first, ast.Name) and first.id == "cls"):
                return True
        if isinstance(each, ast.Attribute) and each.attr in ("annotation", "return_annotation"):
            owner = last_name(each.value)
            # `annotation` of a field of a typed model belongs to the class.
            if each.attr == "return_annotation" or owner in ("parameter", "signature"):
                return True
    return False


def _for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING" and not node.orelse


def _is_main(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.If) and not node.orelse):
        return False
    return ast.unparse(node.test) == "__name__ == '__main__'"


def _imports_of(body: Iterable[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    """Imports that run with a module: not those inside functions."""
    found: list[ast.Import | ast.ImportFrom] = []
    queue: list[ast.AST] = list(body)
    while queue:
        node = queue.pop(0)
        if isinstance(node, IMPORTS):
            found.append(node)
        elif not isinstance(node, (*FUNCTIONS, ast.Lambda)):
            queue += [each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.expr)]
    return found


def bindings(node: ast.AST) -> Iterator[tuple[str, Target]]:
    """Names that an import binds, and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                yield alias.asname, [0, alias.name, ""]
            else:
                yield (
                    alias.name.partition(".")[0],
                    [0, alias.name, "*" if "." in alias.name else ""],
                )
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = alias.asname or alias.name
            yield name, [node.level, node.module or "", alias.name]


def _is_the_log(targets: list[Target]) -> bool:
    return targets == [[0, LOG_MODULE, "log"]]


def _defines_log(tree: ast.Module) -> bool:
    """Whether a module makes the pipeline's log itself."""
    return any(
        ast.unparse(node) == "log = logging.getLogger('launchwise')"
        for node in tree.body
        if isinstance(node, ast.Assign)
    )


def _ours(imports: dict[str, list[Target]]) -> set[str]:
    """Imported names that belong to the library or to a workload."""
    return {
        name
        for name, targets in imports.items()
        for level, module, _ in targets
        if level or str(module).partition(".")[0] in ("launchwise", "kernels")
    }


def _defined(node: ast.stmt) -> set[str]:
    """Names that a statement of a module binds."""
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return {node.name}
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler)) and each.name:
            found.add(each.name)
    return found


def _has_effect(node: ast.stmt, ours: set[str]) -> bool:
    """Whether a statement does more than define names when its module is imported."""
    if isinstance(node, FUNCTIONS):
        given = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        decorated = not set(decorators(node)) <= PLAIN_DECORATORS
        return decorated or not all(_is_pure(each, ours) for each in given)
    if isinstance(node, ast.ClassDef):
        return _class_has_effect(node, ours)
    if isinstance(node, ast.Assign):
        plain = all(isinstance(target, ast.Name) for target in node.targets)
        return not (plain and _is_pure(node.value, ours))
    if isinstance(node, ast.AnnAssign):
        plain = isinstance(node.target, ast.Name)
        return not plain or not (node.value is None or _is_pure(node.value, ours))
    return not isinstance(node, ast.Pass)


def _class_has_effect(node: ast.ClassDef, ours: set[str]) -> bool:
    if any(each.arg not in _PURE_KEYWORDS for each in node.keywords):
        return True
    if not set(decorators(node)) <= PLAIN_DECORATORS:
        return True
    for base in node.bases:
        root = base.value if isinstance(base, ast.Subscript) else base
        name = last_name(root)
        if name not in PURE_BASES and name not in ours and not name.endswith("Error"):
            return True
    for each in node.body:
        if isinstance(each, FUNCTIONS):
            given = [*each.args.defaults, *(one for one in each.args.kw_defaults if one)]
            plain = set(decorators(each)) <= _METHOD_DECORATORS
            if not plain or not all(_is_pure(one, ours) for one in given):
                return True
        elif not is_text(each) and _has_effect(each, ours):
            return True
    return False


def _is_pure(node: ast.AST, ours: set[str]) -> bool:
    """Whether the value of an expression can be computed at any time, or never."""
    for each in ast.walk(node):
        if isinstance(each, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
        if isinstance(each, ast.Call):
            if last_name(each.func) in _PURE_ATTRIBUTES and isinstance(each.func, ast.Attribute):
                continue
            name = ast.unparse(each.func)
            if name not in _PURE_FUNCTIONS or name.partition(".")[0] in ours:
                return False
    return True


def _has_metaclass(nodes: Iterable[ast.AST]) -> bool:
    return any(
        isinstance(each, ast.ClassDef) and any(word.arg == "metaclass" for word in each.keywords)
        for each in nodes
    )
