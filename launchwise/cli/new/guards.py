"""Whether a comparison decides what a kernel writes, or only what it reads of a neighbour."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from launchwise.cli.new.roles import written_at
from launchwise.cli.new.scopes import end_of_statement
from launchwise.cli.new.tokens import closing

_LEAVES = ("return", "continue", "break")


def guards_writes(tokens: Sequence[str], place: int, arrays: Iterable[str]) -> bool:
    """Whether all writes to arrays happen only if a comparison holds: ``if (i < n - 1) x[i] = 1;``.

    Or only if it does not, where it leaves the kernel: ``if (i >= n - 1) return;``.

    Parameters
    ----------
    place
        Of the comparison's operator.
    """
    start, end = _guarded(tokens, place)
    written = [at for array in arrays for at in written_at(tokens, array)]
    return bool(written) and all(start <= at < end for at in written)


def _guarded(tokens: Sequence[str], place: int) -> tuple[int, int]:
    """Places that a comparison guards; none where it stands in no condition, or in one of many."""
    head = _head(tokens, place)
    if head < 0:
        return 0, 0
    end = closing(tokens, head + 1)
    condition, body = tokens[head + 1 : end], (end + 1, end_of_statement(tokens, end + 1) + 1)
    leaves = any(word in tokens[slice(*body)] for word in _LEAVES)
    if ("&&" if leaves else "||") in condition or "!" in condition:
        return 0, 0
    if not leaves:
        return body
    depth = 0
    for at in range(body[1], len(tokens)):
        depth += (tokens[at] == "{") - (tokens[at] == "}")
        if depth < 0:
            return body[1], at
    return body[1], len(tokens)


def _head(tokens: Sequence[str], place: int) -> int:
    """Place of the ``if``, ``for`` or ``while`` in whose brackets a place lies; -1 for none."""
    depth = 0
    for at in range(place - 1, 0, -1):
        depth += (tokens[at] == ")") - (tokens[at] == "(")
        if depth < 0:
            if tokens[at - 1] in ("if", "for", "while"):
                return at - 1
            depth = 0
        elif tokens[at] in ("{", "}"):
            break
    return -1
