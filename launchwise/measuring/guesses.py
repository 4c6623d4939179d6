"""Reads and writes the guesses of a sweep: configurations that it measures first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import read_json, write_json
from launchwise.workloads.space import Configuration, Problem


def write_guesses(
    path: str | Path, model: str, guesses: list[tuple[Problem, list[Configuration]]]
) -> None:
    """Write what ``model`` (its folder) recommends for each problem, best first."""
    listed = [
        {"problem": problem, "configurations": configurations}
        for problem, configurations in guesses
    ]
    write_json(path, {"model": model, "guesses": listed})


def read_guesses(path: Path) -> Callable[[Problem], list[Configuration]]:
    """Guesses for one problem.

    The function that is returned raises UserError for a problem that the file does not hold.

    Raises
    ------
    UserError
        When the file is missing or holds no guesses.
    """
    content: Any = read_json(path)
    try:
        known = {
            tuple(sorted(each["problem"].items())): list(each["configurations"])
            for each in content["guesses"]
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(path, "guesses", "is missing or is not a list of guesses") from error

    def of(problem: Problem) -> list[Configuration]:
        key = tuple(sorted(problem.items()))
        if key not in known:
            raise UserError(path, "guesses", f"has none for {assigned(problem)}")
        return known[key]

    return of
