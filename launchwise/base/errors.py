"""The error type for mistakes of the user, and that of a stage that was asked to stop."""

from __future__ import annotations

import difflib
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from launchwise.base.literals import visible

LONGEST_MESSAGE = 4_000
LONGEST_NAME = 200
"""Most characters of a message, and of a key or a name in it: files of others hold any number."""

MOST_NAMES = 200  # Most allowed names that a message lists


class UserError(Exception):
    """A mistake that the user can fix, in one line. ``where``: the file at fault (or the command),
    as the user knows it. ``key``: the key, column or flag inside it; empty when the whole file is
    meant. ``message``: what is wrong and what is allowed."""

    def __init__(self, where: str | Path, key: str, message: str) -> None:
        self.where = str(where)
        self.key = one_line(key, LONGEST_NAME)
        self.message = one_line(message)
        where = one_line(self.where)
        super().__init__(": ".join(part for part in (where, self.key, self.message) if part))

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str]]:
        """Pickle form, for transfer between processes."""
        return type(self), (self.where, self.key, self.message)


class Interrupted(Exception):
    """SIGTERM or SIGINT arrived; what was done is kept, and the same command goes on later.
    ``signal``: its number."""

    def __init__(self, message: str, signal: int = signal.SIGTERM) -> None:
        super().__init__(message)
        self.signal = int(signal)


class Misfit(ValueError):
    """A value that does not fit; ``key`` is dotted, below what is checked, and may be empty."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(key, message)
        self.key, self.message = key, message

    def __str__(self) -> str:
        return f"{self.key}: {self.message}" if self.key else self.message


@contextmanager
def raising(error: Callable[[str, str], UserError]) -> Iterator[None]:
    """Raise a :class:`Misfit` as ``error(key, message)``."""
    try:
        yield
    except Misfit as misfit:
        raise error(misfit.key, misfit.message) from misfit


def check_known(key: str, what: str, names: Iterable[object], allowed: Collection[object]) -> None:
    """Raise a Misfit for the first of ``names`` that is not allowed, with the closest that is."""
    for name in names:
        if name not in allowed:
            raise Misfit(key, unknown(what, name, allowed))


def out_of(error: MemoryError | RecursionError) -> str:
    """What is said where the memory, or the depth of Python's calls, did not suffice."""
    if isinstance(error, RecursionError):
        return "something is nested too deep to be read"
    return "there is too little memory for this"


def unknown(what: str, name: object, allowed: Iterable[object]) -> str:
    """Message for an unknown name: the closest allowed name, then all allowed names."""
    names = sorted(str(candidate) for candidate in allowed)
    text, few = str(name), names[:MOST_NAMES]
    # Comparing is quadratic in the length of names.
    short = [each for each in few if len(each) <= LONGEST_NAME]
    close = difflib.get_close_matches(text, short, n=1) if len(text) <= LONGEST_NAME else []
    hint = f", did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(_shortened(each, LONGEST_NAME) for each in few) if names else "none"
    more = f" and {len(names) - len(few):,} more" if len(names) > len(few) else ""
    return f"unknown {what} {_shortened(text, LONGEST_NAME)!r}{hint} (allowed: {listed}{more})"


def one_line(value: object, longest: int = LONGEST_MESSAGE) -> str:
    """A text of somebody else in one line, of which the middle is left out where it is longer."""
    # Names and texts of files may hold what steers a terminal.
    return visible(" ".join(_shortened(str(value), longest).split()))


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {text[-half:]}"
