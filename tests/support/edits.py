"""Edits of files, chosen or drawn: a slip of the hand, a full disk or ill will makes them."""

from __future__ import annotations

import copy
import json
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import yaml

STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 10**18, 2**63, -(2**70), 0.5, -1e308, 1e-320),
    *(float("nan"), float("inf"), "", " ", "x", "n", "-1", "1e999", "é\u2028\U0001f600", "\x1b[2J"),
    *("a" * 10_000, "9**9**9", "n / 0", "n +", "'%99999999d' % 1", "../..", "/dev/null", "\x00"),
    *(
        [],
        {},
        [[]],
        [None],
        {"": None},
        {"x": {"y": [1, {"z": -1}]}},
        [1, "a", 2.5, [3]],
        [[1]] * 9,
    ),
    *({"variant": "x"}, {1: 2}, ["x"] * 300, "2024-01-01", "1:30", "0x1F", "~", "=", "<<"),
)
"""Values in the place of others; all but a few are of the wrong type or out of range."""

Place = tuple[Any, Any]  # A mapping or list, and a key or number in it


def with_value(content: Any, way: Sequence[Any], value: Any) -> Any:
    """A copy of ``content`` with a value at the end of a way of keys and numbers; without what is
    there where the value is ``...``."""
    *above, last = way
    copied = copy.deepcopy(content)
    inside = reduce(operator.getitem, above, copied)
    if value is ...:
        del inside[last]
    else:
        inside[last] = value
    return copied


def edited(text: str, dice: random.Random) -> bytes:
    """A YAML or JSON file, or a table, after one random edit."""
    way: Callable[[str, random.Random], bytes] = dice.choice(
        [_changed_value, _changed_value, _changed_value, _cut, _flipped]
    )
    return way(text, dice)


def _changed_value(text: str, dice: random.Random) -> bytes:
    """A value or a key in place of another, a missing one, or one too many."""
    is_json = text.startswith(("{", "["))
    try:
        content = json.loads(text) if is_json else yaml.safe_load(text)
    except yaml.YAMLError:
        return _flipped(text, dice)
    content = copy.deepcopy(content)
    places = list(_places(content))
    if not places:
        return _cut(text, dice)
    inside, at = dice.choice(places)
    strange = copy.deepcopy(dice.choice(STRANGE))
    match dice.randrange(5):
        case 0:
            del inside[at]
        case 1 if isinstance(inside, dict):
            inside[strange if isinstance(strange, str | int | float) else "strange"] = inside[at]
        case 2:
            inside[at] = [inside[at]]
        case 3:
            other, there = dice.choice(places)
            inside[at] = copy.deepcopy(other[there])
        case _:
            inside[at] = strange
    if is_json:
        return json.dumps(content).encode()
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).encode()


def _places(content: Any) -> Iterator[Place]:
    if isinstance(content, dict | list):
        for at in list(content) if isinstance(content, dict) else range(len(content)):
            yield content, at
            yield from _places(content[at])


def _cut(text: str, dice: random.Random) -> bytes:
    content = text.encode()
    return content[: dice.randrange(len(content))]


def _flipped(text: str, dice: random.Random) -> bytes:
    content = bytearray(text.encode())
    for _ in range(dice.choice([1, 1, 3, 20])):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    return bytes(content)
