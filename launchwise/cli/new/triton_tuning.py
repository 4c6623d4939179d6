"""What ``@triton.autotune`` and ``@triton.heuristics`` of a function say, read without Triton."""

from __future__ import annotations

import ast
import difflib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from launchwise.cli.new.constant_names import CONFIG_OPTIONS, Config, Dotted, Function, NotConstant
from launchwise.cli.new.constants import Constants
from launchwise.cli.new.said import said
from launchwise.workloads.parts import Value
from launchwise.workloads.triton_functions import NO_LIMIT

_PLACES = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook")
"""Parameters of ``triton.autotune`` in their order."""

MOST_CONFIGS = 5_000
MOST_LETTERS = 60
"""Of a name that is told."""


@dataclass
class Tuning:
    """Configurations and derived constexprs of a function.

    Parameters
    ----------
    configs
        Tunables to their values, in the order of the file; every one has all of ``axes``.
    key
        Arguments whose change asks Triton to tune anew.
    macros
        Constexprs to expressions of ``spec.yaml``.
    given
        Constexprs whose expression asks whether an array is given.
    zeroed, restored
        Arguments that Triton sets to zero, or puts back, before each run.
    notes
        What a person must do, each with a line of the file.
    """

    configs: list[dict[str, Value]] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    macros: dict[str, str] = field(default_factory=dict)
    given: list[str] = field(default_factory=list)
    zeroed: list[str] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def axes(self) -> dict[str, list[Value]]:
        """Tunables to their values, ascending where they are numbers."""
        found: dict[str, list[Value]] = {}
        for name in self.configs[0] if self.configs else ():
            values = list(dict.fromkeys(each[name] for each in self.configs))
            whole = all(isinstance(each, int) for each in values)
            found[name] = sorted(values, key=lambda one: one) if whole else values
        return found

    @property
    def combinations(self) -> int:
        """Configurations that the axes make together."""
        return math.prod(map(len, self.axes.values()))

    @property
    def is_product(self) -> bool:
        """Whether the configurations are all combinations of their values."""
        return len({tuple(each.values()) for each in self.configs}) == self.combinations


def read_tuning(
    function: ast.FunctionDef,
    constants: Constants,
    names: Sequence[str],
    is_none: Callable[[str], bool] = lambda name: False,
) -> Tuning:
    """What the decorators of a function say.

    Parameters
    ----------
    names
        Its parameters.
    is_none
        Whether the launch gives None for one.
    """
    tuning = Tuning()
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        kind = _last(decorator.func)
        if kind == "autotune":
            _autotuned(decorator, constants, tuning, names)
        elif kind == "heuristics":
            _derived(decorator, constants, tuning, is_none)
    return tuning


def _last(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _autotuned(call: ast.Call, constants: Constants, tuning: Tuning, names: Sequence[str]) -> None:
    given = {**dict(zip(_PLACES, call.args, strict=False))}
    given |= {each.arg: each.value for each in call.keywords if each.arg}
    try:
        found = constants.value(given["configs"]) if "configs" in given else []
        configs = list(found) if isinstance(found, list | tuple | set) else [found]
        if wrong := [one for one in configs if not isinstance(one, Config)]:
            raise NotConstant(call.lineno, f"{wrong[0]!r:.40} is no triton.Config")
        if not 0 < len(configs) <= MOST_CONFIGS:
            raise NotConstant(call.lineno, f"{len(configs):,} configurations")
        _take(configs, tuning, names, constants)
    except NotConstant as error:
        tuning.configs = []
        tuning.notes.append(
            f"line {error.line}: configs of @triton.autotune: {error}: write the values by hand "
            "under tunables"
        )
    for key, kept in (
        ("key", tuning.key),
        ("reset_to_zero", tuning.zeroed),
        ("restore_value", tuning.restored),
    ):
        if key in given:
            kept += _names(given[key], key, constants, tuning)
    if "prune_configs_by" in given:
        tuning.notes.append(
            f"line {given['prune_configs_by'].lineno}: prune_configs_by is not read: write what it "
            "refuses as constraints of the variant"
        )
    for key in ("pre_hook", "post_hook"):
        if key in given and not _is_none(given[key]):
            tuning.notes.append(_hook_note(given[key].lineno, key))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _hook_note(line: int, key: str) -> str:
    return (
        f"line {line}: {key} is code of the host, which no launch runs: write what it sets as "
        "fill, value or inputs of the arguments"
    )


def _names(node: ast.expr, key: str, constants: Constants, tuning: Tuning) -> list[str]:
    try:
        found = constants.value(node)
        return [str(each) for each in found or ()]
    except NotConstant as error:
        tuning.notes.append(f"line {error.line}: {key} of @triton.autotune: {error}: it is ignored")
        return []


def _take(
    configs: Sequence[Config], tuning: Tuning, names: Sequence[str], constants: Constants
) -> None:
    """Configurations that all state the same tunables."""
    configs = _without_mistakes(configs, tuning, names)
    own = dict.fromkeys(itertools.chain(*(each.kwargs for each in configs)))
    stated = {name for each in configs for name in each.options}
    options = [name for name in CONFIG_OPTIONS if name in stated]
    for each in configs:
        if missing := [name for name in own if name not in each.kwargs]:
            raise NotConstant(each.line, f"a configuration does not give {missing[0]}")
        values = {name: each.kwargs[name] for name in own}
        values |= {name: each.options.get(name, CONFIG_OPTIONS[name]) for name in options}
        tuning.configs.append({name: _value(one, each.line) for name, one in values.items()})
        if each.hook is not None:
            _read_hook(each, tuning, constants)
    tuning.configs = [dict(one) for one in dict.fromkeys(tuple(c.items()) for c in tuning.configs)]
    # What Triton takes where nothing is stated tunes nothing.
    for name in ("num_ctas", "maxnreg"):
        if {each.get(name) for each in tuning.configs} == {CONFIG_OPTIONS[name] or NO_LIMIT}:
            for usual in tuning.configs:
                usual.pop(name, None)
    for name in own:
        if len({type(each[name]) for each in tuning.configs}) > 1:
            raise NotConstant(configs[0].line, f"the values of {name} mix numbers and texts")


def _without_mistakes(
    configs: Sequence[Config], tuning: Tuning, names: Sequence[str]
) -> list[Config]:
    """Configurations that give constexprs of the function, all of them, where most do.

    Raises
    ------
    NotConstant
        Where none gives constexprs of the function alone.
    """
    kept, said = [], []
    for each in configs:
        strange = next((name for name in each.kwargs if name not in names), None)
        if strange is None:
            kept.append(each)
            continue
        strange = str(strange)[:MOST_LETTERS]
        free = [name for name in names if name not in each.kwargs]
        close = difflib.get_close_matches(strange, free, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        said.append((each.line, f"the kernel has no constexpr {strange}{hint}"))
    if not kept:
        raise NotConstant(*said[0])
    own = dict.fromkeys(itertools.chain(*(each.kwargs for each in kept)))
    whole = [each for each in kept if len(each.kwargs) == len(own)]
    if 2 * len(whole) > len(kept):
        for each in kept:
            missing = next((name for name in own if name not in each.kwargs), None)
            said += [(each.line, f"it does not give {missing}")] if missing else []
        kept = whole
    tuning.notes += [
        f"line {line}: a configuration of @triton.autotune is left out: {why}" for line, why in said
    ]
    return kept


def _value(value: Any, line: int) -> Value:
    if value is None:
        return NO_LIMIT
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Dotted) and value.name.startswith("triton.language."):
        return f"tl.{value.last}"
    raise NotConstant(line, f"{value!r:.40} is no whole number, text or type of Triton")


def _read_hook(config: Config, tuning: Tuning, constants: Constants) -> None:
    """The ``pre_hook`` of a configuration, which often sets outputs to zero."""
    zeroed = _zeroed(config.hook, constants) if isinstance(config.hook, Function) else None
    if zeroed is not None:
        tuning.zeroed += [name for name in zeroed if name not in tuning.zeroed]
    elif not any("pre_hook" in each for each in tuning.notes):
        tuning.notes.append(_hook_note(config.line, "pre_hook"))


def _zeroed(hook: Function, constants: Constants) -> list[str] | None:
    """Arguments that a hook sets to zero; None where it does something else."""
    node = hook.node
    body = node.body if isinstance(node.body, list) else [ast.Expr(node.body)]
    found: list[str] = []
    names: ast.comprehension | None
    for statement in body:
        match statement:
            case ast.Expr(value=ast.ListComp(elt=call, generators=[each])):
                names = each
            case ast.For(target=target, iter=iterated, body=[ast.Expr(value=call)]):
                names = ast.comprehension(target, iterated, [], 0)
            case ast.Expr(value=call):
                names = None
            case _:
                return None
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Subscript(slice=key), attr="zero_")):
                try:
                    found += _keys(key, names, hook, constants)
                except NotConstant:
                    return None
            case _:
                return None
    return found


def _keys(
    key: ast.expr, names: ast.comprehension | None, hook: Function, constants: Constants
) -> list[str]:
    if names is None:
        return [str(constants.value(key, hook.scope))]
    if not isinstance(key, ast.Name) or ast.dump(key) != ast.dump(_loaded(names.target)):
        raise NotConstant(key.lineno, "is no name of the loop")
    return [str(one) for one in constants.value(names.iter, hook.scope)]


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def _derived(
    call: ast.Call, constants: Constants, tuning: Tuning, is_none: Callable[[str], bool]
) -> None:
    node = call.args[0] if call.args else next((one.value for one in call.keywords), None)
    try:
        rules = constants.value(node) if node is not None else {}
    except NotConstant as error:
        tuning.notes.append(f"line {error.line}: @triton.heuristics: {error}: write macros by hand")
        return
    for name, rule in dict(rules).items():
        line = getattr(getattr(rule, "node", None), "lineno", call.lineno)
        try:
            tuning.macros[name], asks = _rule(rule, line, is_none)
            tuning.given += [name] if asks else []
        except NotConstant as error:
            tuning.notes.append(
                f"line {error.line}: the heuristic of {name}: {error}: write it under macros"
            )


def _rule(rule: Any, line: int, is_none: Callable[[str], bool]) -> tuple[str, bool]:
    """Expression of a heuristic, over the names of arguments and constexprs.

    Returns
    -------
    Also whether it asks for an array that is given.
    """
    if not isinstance(rule, Function):
        raise NotConstant(line, "is no function of the file")
    node = rule.node
    if isinstance(node, ast.Lambda):
        body: ast.expr | None = node.body
    else:
        body = _returned(node.body)
    if body is None or len(rule.parameters) != 1:
        raise NotConstant(line, "is more than one expression")
    owner = rule.parameters[0]
    asks = []

    def known(part: ast.expr) -> str | None:
        match part:
            case ast.Compare(
                left=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))),
                ops=[ast.Is() | ast.IsNot() as op],
                comparators=[ast.Constant(None)],
            ) if name == owner:
                asks.append(key)
                return str(int(is_none(key) == isinstance(op, ast.Is)))
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                return key if name == owner else None
        return _constant(part, rule)

    return said(body, known), bool(asks)


def _constant(part: ast.expr, rule: Function) -> str | None:
    if isinstance(part, ast.Name):
        value = rule.scope.find(part.id, part.lineno)
        if isinstance(value, int | float | str):
            return repr(value)
    return None


def _returned(body: Sequence[ast.stmt]) -> ast.expr | None:
    """What a function returns, with ``if`` as ``a if b else c``; None where it does more."""
    statements = [
        one
        for one in body
        if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
    ]
    match statements:
        case [ast.Return(value=value), *_]:
            return value
        case [ast.If(test=test, body=then, orelse=otherwise), *rest]:
            first, second = _returned(then), _returned([*otherwise, *rest])
            if first is not None and second is not None:
                node = ast.IfExp(test, first, second)
                return ast.fix_missing_locations(ast.copy_location(node, statements[0]))
    return None
