"""What the decorators of a kernel said when they ran: configurations, key, heuristics."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from launchwise.cli.new.python.facts import TYPES
from launchwise.cli.new.python.stand_ins import CONFIG_OPTIONS, Config, Kernel
from launchwise.cli.new.python.values import NotKnown, Value
from launchwise.workloads.sources import NO_LIMIT

_PLACES = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook")
"""Parameters of ``triton.autotune`` in their order."""

_MOST_CONFIGS = 5_000
_MOST_LETTERS = 60  # Of a name that is told

_HOOK = (
    "is code of the host, which no launch runs: write what it sets as fill, value or inputs of "
    "the arguments"
)
_CODE = {
    "prune_configs_by": "is not read: write what it refuses as constraints of the variant",
    **{"pre_hook": _HOOK, "post_hook": _HOOK},
}


class Tuning:
    """Configurations of a kernel, by what its decorators say."""

    def __init__(self, kernel: Kernel) -> None:
        self.configs: list[dict[str, int | str]] = []  # All have the same names.
        self.key: list[str] = []  # Arguments whose change asks to tune anew,
        self.zeroed: list[str] = []  # that are set to zero before each run,
        self.restored: list[str] = []  # or put back.
        self.notes: list[str] = []  # What a person must do, each with a line.
        for name, given, named, line in kernel.tuners:
            places = {**dict(zip(_PLACES, given, strict=False)), **named}
            if name == "heuristics":
                self._check(next(iter(places.values()), {}), line)
            elif listed := next(filter(_configs, places.values()), None):
                _autotuned(kernel, {**places, "configs": listed}, line, self)
            elif name == "autotune" or "configs" in named:
                _autotuned(kernel, places, line, self)

    def _check(self, rules: Any, line: int) -> None:
        try:
            dict(_checked(rules))
        except NotKnown as error:
            said = f"@triton.heuristics: {error}: write macros by hand"
            self.notes.append(f"line {error.line}: {said}")

    @property
    def axes(self) -> dict[str, list[int | str]]:
        """Tunables to their values, ascending where they are numbers."""
        found: dict[str, list[int | str]] = {}
        for name in self.configs[0] if self.configs else ():
            values = list(dict.fromkeys(each[name] for each in self.configs))
            whole = all(isinstance(each, int) for each in values)
            found[name] = sorted(values, key=lambda one: one) if whole else values
        return found


def _configs(found: Any) -> list[Config]:
    several = found if isinstance(found, list | tuple | set) else [found]
    return [one for one in several if isinstance(one, Config)]


def _autotuned(kernel: Kernel, given: Mapping[str, Any], line: int, tuning: Tuning) -> None:
    lists = {"key": tuning.key, "reset_to_zero": tuning.zeroed, "restore_value": tuning.restored}
    for name in ("configs", *lists):
        try:
            found = _checked(given.get(name)) or []
            if name == "configs":
                tuning.configs = _taken(found, line, tuning.notes, kernel.parameters)
            else:
                lists[name] += map(str, found)
        except NotKnown as error:
            left = "it is ignored" if name in lists else "write the values by hand under tunables"
            tuning.notes.append(f"line {error.line}: {name} of @triton.autotune: {error}: {left}")
    for name, said in _CODE.items():
        if given.get(name) is not None:
            tuning.notes.append(f"line {line}: {name} {said}")


def _checked(value: Any) -> Any:
    if isinstance(value, NotKnown):
        raise value
    if isinstance(value, Value):
        raise value._unknown()
    return value


def _taken(
    given: Any, line: int, notes: list[str], names: Sequence[str]
) -> list[dict[str, int | str]]:
    """Configurations that give constexprs of the function, all the same ones. Raises NotKnown where
    one does not."""
    configs = list(given) if isinstance(given, list | tuple | set | map | filter) else [given]
    if wrong := [one for one in configs if not isinstance(one, Config)]:
        raise NotKnown(line, f"{wrong[0]!r:.40} is no triton.Config")
    if not 0 < len(configs) <= _MOST_CONFIGS:
        raise NotKnown(line, f"{len(configs):,} configurations")
    own = dict.fromkeys(itertools.chain(*(each.kwargs for each in configs)))
    stated = {name for each in configs for name in each.stated}
    options = [name for name in CONFIG_OPTIONS if name in stated and name not in own]
    found: list[dict[str, int | str]] = []
    for each in configs:
        if strange := [str(name)[:_MOST_LETTERS] for name in each.kwargs if name not in names]:
            raise NotKnown(each.line, f"the kernel has no constexpr {strange[0]}")
        if lacks := [name for name in own if name not in each.kwargs]:
            raise NotKnown(each.line, f"a configuration does not give {lacks[0]}")
        values = {name: each.kwargs[name] for name in own}
        values |= {name: each.stated.get(name, CONFIG_OPTIONS[name]) for name in options}
        config = {name: _value(one, each.line) for name, one in values.items()}
        if config not in found:
            found.append(config)
    # What Triton takes where nothing is stated tunes nothing.
    for name in ("num_ctas", "maxnreg"):
        if {each.get(name) for each in found} == {CONFIG_OPTIONS[name] or NO_LIMIT}:
            for usual in found:
                usual.pop(name, None)
    for name in own:
        if len({type(each[name]) for each in found}) > 1:
            raise NotKnown(configs[0].line, f"the values of {name} mix numbers and texts")
    if hooks := [each for each in configs if each.pre_hook is not None]:
        notes.append(f"line {hooks[0].line}: pre_hook {_HOOK}")
    return found


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
