"""Questions drawn for answers in every form: devices by their names, problems of several kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from launchwise.exporting.table import AnswerTable
from launchwise.workloads.parts import Value

STRANGER = "no such card"
KINDS = ("listed", "between", "beyond", "tiny", "odd", "impossible")

Problem = dict[str, Value]


@dataclass(frozen=True)
class Question:
    """A device by its name, and a problem of some kind of :data:`KINDS`."""

    device: str
    problem: Problem
    kind: str


def drawn(table: AnswerTable, count: int, random: np.random.Generator) -> list[Question]:
    """Questions: known devices by any of their names, and strangers; listed problems and others."""
    names = [[*one.names] for one in table.devices]
    names += [[STRANGER]] * (1 + len(names) // 6)
    listed: list[list[Problem]] = [[] for _ in table.devices]
    for entry in table.entries:
        listed[entry.device].append(dict(zip(table.parameters, entry.problem, strict=True)))
    every = [problem for problems in listed for problem in problems]
    found = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        place = int(random.integers(len(names)))
        device = names[place][random.integers(len(names[place]))]
        # Strangers have no entries: they are asked about those of others.
        own = listed[place] if place < len(listed) and listed[place] else every
        one, other = (own[random.integers(len(own))] for _ in range(2))
        found.append(Question(device, _problem(kind, one, other, random), kind))
    return found


def _problem(kind: str, one: Problem, other: Problem, random: np.random.Generator) -> Problem:
    made = dict(one)
    numbers = [name for name, value in one.items() if not isinstance(value, str)]
    if kind == "impossible":
        name = list(made)[random.integers(len(made))]
        made[name] = "no such value" if isinstance(made[name], str) else -int(made[name])
        return made
    for name in numbers if kind != "listed" else []:
        low, high = sorted((int(one[name]), int(other[name])))
        made[name] = {
            "between": int(random.integers(low, high + 1)),
            "beyond": high * int(random.integers(2, 50)),
            "tiny": int(random.integers(1, 9)),
            "odd": int(one[name]) | 1,
        }[kind]
    return made
