"""The error type for mistakes of the user."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from launchwise.base.literals import visible


class UserError(Exception):
    """A mistake that the user can fix, in one line.

    Parameters
    ----------
    where
        The file at fault (or the command), as the user knows it.
    key
        The key, column or flag inside it; empty when the whole file is meant.
    message
        What is wrong and what is allowed.
    """

    def __init__(self, where: str | Path, key: str, message: str) -> None:
        self.where = str(where)
        self.key = key
        self.message = " ".join(str(message).split())
        # Names and texts of files may hold what steers a terminal.
        super().__init__(visible(": ".join(filter(None, (self.where, key, self.message)))))

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        """Pickle form, for transfer between processes."""
        return type(self), (self.where, self.key, self.message)


def unknown(what: str, name: object, allowed: Iterable[object]) -> str:
    """Message for an unknown name: the closest allowed name, then all allowed names."""
    names = sorted(str(candidate) for candidate in allowed)
    close = difflib.get_close_matches(str(name), names, n=1)
    guess = f", did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names) if names else "none"
    return f"unknown {what} {str(name)!r}{guess} (allowed: {listed})"
