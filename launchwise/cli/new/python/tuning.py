"""What the decorators of a kernel said when they ran: configurations, key, heuristics."""

from __future__ import annotations

import ast
import difflib
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from launchwise.cli.new.python.facts import TYPES, Tuning
from launchwise.cli.new.python.stand_ins import CALLED, CONFIG_OPTIONS, Config, Given, Kernel
from launchwise.cli.new.python.tensors import NOW, Names, Symbol
from launchwise.cli.new.python.texts import Texts, merged
from launchwise.cli.new.python.values import NotKnown, Value, explore, node_of
from launchwise.workloads.triton_functions import NO_LIMIT

_PLACES = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook")
"""Parameters of ``triton.autotune`` in their order."""

_MOST_CONFIGS = 5_000
_MOST_LETTERS = 60  # Of a name that is told

_HOOK = (
    "is code of the host, which no launch runs: write what it sets as fill, value or inputs of "
    "the arguments"
)


def read_tuning(kernel: Kernel, none: Collection[str]) -> Tuning:
    """What the decorators of a kernel say, which a launch gives None for parameters ``none``."""
    tuning = Tuning()
    for name, given, named, line in kernel.tuners:
        places = {**dict(zip(_PLACES, given, strict=False)), **named}
        if name == "heuristics":
            _derive(kernel, next(iter(places.values()), {}), line, tuning, none)
        elif listed := next(filter(_configs, places.values()), None):
            _autotuned(kernel, {**places, "configs": listed}, line, tuning)
        elif name == "autotune" or "configs" in named:
            _autotuned(kernel, places, line, tuning)
    return tuning


def _configs(found: Any) -> list[Config]:
    several = found if isinstance(found, list | tuple | set) else [found]
    return [one for one in several if isinstance(one, Config)]


def _autotuned(kernel: Kernel, given: Mapping[str, Any], line: int, tuning: Tuning) -> None:
    notes = tuning.notes
    try:
        found = _checked(given.get("configs", []))
        several = list(found) if isinstance(found, list | tuple | set | map | filter) else [found]
        if wrong := [one for one in several if not isinstance(one, Config)]:
            raise NotKnown(line, f"{wrong[0]!r:.40} is no triton.Config")
        if not 0 < len(several) <= _MOST_CONFIGS:
            raise NotKnown(line, f"{len(several):,} configurations")
        _take(several, tuning, kernel.parameters)
    except NotKnown as error:
        tuning.configs = []
        why = f"configs of @triton.autotune: {error}: write the values by hand under tunables"
        notes.append(f"line {error.line}: {why}")
    for key, kept in (
        ("key", tuning.key),
        ("reset_to_zero", tuning.zeroed),
        ("restore_value", tuning.restored),
    ):
        try:
            kept += [str(one) for one in _checked(given.get(key)) or ()]
        except NotKnown as error:
            notes.append(f"line {error.line}: {key} of @triton.autotune: {error}: it is ignored")
    if given.get("prune_configs_by") is not None:
        why = "prune_configs_by is not read: write what it refuses as constraints of the variant"
        notes.append(f"line {line}: {why}")
    hooks = [key for key in ("pre_hook", "post_hook") if given.get(key) is not None]
    notes += [f"line {line}: {key} {_HOOK}" for key in hooks]


def _checked(value: Any) -> Any:
    if isinstance(value, NotKnown):
        raise value
    if isinstance(value, Value):
        raise value._unknown()
    return value


def _take(configs: Sequence[Config], tuning: Tuning, names: Sequence[str]) -> None:
    """Configurations that give constexprs of the function, all that most of them give. Raises
    NotKnown where there is none, or they do not give the same."""
    said = {id(one): why for one in configs if (why := _mistake(one, names))}
    kept = [one for one in configs if id(one) not in said]
    if not kept:
        raise NotKnown(configs[0].line, said[id(configs[0])])
    own = dict.fromkeys(itertools.chain(*(each.kwargs for each in kept)))
    lacks = [(each, name) for each in kept for name in own if name not in each.kwargs][:1]
    whole = [each for each in kept if len(each.kwargs) == len(own)]
    if lacks and 2 * len(whole) <= len(kept):
        raise NotKnown(lacks[0][0].line, f"a configuration does not give {lacks[0][1]}")
    for each in (one for one in configs if one not in whole):
        missing = next((name for name in own if name not in each.kwargs), "")
        why = said.get(id(each), f"it does not give {missing}")
        note = f"line {each.line}: a configuration of @triton.autotune is left out: {why}"
        tuning.notes.append(note)
    stated = {name for each in whole for name in each.stated}
    options = [name for name in CONFIG_OPTIONS if name in stated and name not in own]
    for each in whole:
        values = {name: each.kwargs[name] for name in own}
        values |= {name: each.stated.get(name, CONFIG_OPTIONS[name]) for name in options}
        config = {name: _value(one, each.line) for name, one in values.items()}
        if config not in tuning.configs:
            tuning.configs.append(config)
        if each.pre_hook is not None:
            _read_hook(each, tuning)
    # What Triton takes where nothing is stated tunes nothing.
    for name in ("num_ctas", "maxnreg"):
        if {each.get(name) for each in tuning.configs} == {CONFIG_OPTIONS[name] or NO_LIMIT}:
            for usual in tuning.configs:
                usual.pop(name, None)
    for name in own:
        if len({type(each[name]) for each in tuning.configs}) > 1:
            raise NotKnown(configs[0].line, f"the values of {name} mix numbers and texts")


def _mistake(config: Config, names: Sequence[str]) -> str:
    """Why a configuration cannot be one of the function; '' where it can."""
    for strange in (str(name)[:_MOST_LETTERS] for name in config.kwargs if name not in names):
        free = [name for name in names if name not in config.kwargs]
        close = difflib.get_close_matches(strange, free, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return f"the kernel has no constexpr {strange}{hint}"
    return ""


def _value(value: Any, line: int) -> int | str:
    if value is None:
        return NO_LIMIT
    if isinstance(value, Value) and value._name in TYPES:
        return f"tl.{value._name}"
    known = value._known if isinstance(value, Value) else value
    if isinstance(known, bool | int):
        return int(known)
    if isinstance(known, str) and known:
        return known
    raise NotKnown(line, f"{value!r:.40} is no whole number, text or type of Triton")


class _Arguments(dict[str, Value]):
    """Arguments by name, each a value."""

    def __missing__(self, name: str) -> Value:
        return Value(ast.Name(str(name)))


def _read_hook(config: Config, tuning: Tuning) -> None:
    """The ``pre_hook`` of a configuration, which often sets outputs to zero."""
    CALLED.clear()
    try:
        config.pre_hook(_Arguments())
    except Exception:
        CALLED.clear()
    owners = [one._owner for one in CALLED if one._name == "zero_"]
    if owners and len(owners) == len(CALLED):
        names = (one._name for one in owners if one is not None)
        tuning.zeroed += [name for name in names if name not in tuning.zeroed]
    elif not any("pre_hook" in each for each in tuning.notes):
        tuning.notes.append(f"line {config.line}: pre_hook {_HOOK}")


def _derive(kernel: Kernel, rules: Any, line: int, tuning: Tuning, none: Collection[str]) -> None:
    try:
        rules = dict(_checked(rules))
    except NotKnown as error:
        tuning.notes.append(f"line {error.line}: @triton.heuristics: {error}: write macros by hand")
        return
    for name, rule in rules.items():
        place = getattr(getattr(rule, "__code__", None), "co_firstlineno", line)
        try:
            tuning.macros[name], asks = _rule(kernel, rule, place, none)
            tuning.given += [name] if asks else []
        except NotKnown as error:
            why = f"the heuristic of {name}: {error}: write it under macros"
            tuning.notes.append(f"line {error.line}: {why}")


def _rule(kernel: Kernel, rule: Any, line: int, none: Collection[str]) -> tuple[str, bool]:
    """Expression of a heuristic over arguments and constexprs, and whether it asks for an array."""
    names = Names({**NOW[0].symbols})
    given = {
        name: None if name in none else names.symbol(name, Symbol("param"))
        for name in (*kernel.parameters, *CONFIG_OPTIONS)
    }
    NOW.append(names)
    try:
        runs = [*explore(lambda: rule(given), is_covering=False)]
    finally:
        NOW.pop()
    for _, result in runs:
        if isinstance(result, NotKnown):
            raise result
        if isinstance(result, BaseException):
            raise NotKnown(line, str(result) or type(result).__name__)
    node = merged([(run.taken, node_of(result)) for run, result in runs])
    return Texts(names, ()).text(node, line), any(isinstance(one, Given) for _, one in runs)
