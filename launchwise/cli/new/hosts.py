"""How the host code of a CUDA file launches a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from launchwise.cli.new.polynomials import read
from launchwise.cli.new.templates import angle
from launchwise.cli.new.tokens import at_commas, closing, is_name


@dataclass(frozen=True)
class HostLaunch:
    """The first launch of a kernel in its file.

    Parameters
    ----------
    block
        Threads per dimension; None for what is no number.
    grid
        Tokens of the blocks per dimension.
    given
        Tokens of the arguments, in the order of the kernel's parameters.
    """

    block: list[int | None] = field(default_factory=list)
    grid: list[list[str]] = field(default_factory=list)
    given: list[list[str]] = field(default_factory=list)


def host_launch(tokens: Sequence[str], kernel: str, fixed: Mapping[str, int]) -> HostLaunch:
    """How a file launches a kernel; an empty launch where it does not, or in other words."""
    for place, token in enumerate(tokens):
        if token != kernel:
            continue
        start = place + 1
        if tuple(tokens[start : start + 1]) == ("<",) and tokens[start + 1 : start + 2] != ("<",):
            start = angle(tokens, start) + 1
        if tuple(tokens[start : start + 3]) != ("<", "<", "<"):
            continue
        end = _closing_launch(tokens, start + 3)
        parts = at_commas(tokens[start + 3 : end])
        if len(parts) < 2 or tuple(tokens[end + 3 : end + 4]) != ("(",):
            continue
        given = at_commas(tokens[end + 4 : closing(tokens, end + 3)])
        earlier = tokens[:place]
        block = [_number(part, earlier, fixed) for part in _sides(parts[1], earlier)]
        return HostLaunch(block, _sides(parts[0], earlier), given)
    return HostLaunch()


def _closing_launch(tokens: Sequence[str], start: int) -> int:
    for place in range(start, len(tokens) - 2):
        if tokens[place] == tokens[place + 1] == tokens[place + 2] == ">":
            return place
    return len(tokens)


def _sides(part: list[str], earlier: Sequence[str]) -> list[list[str]]:
    """Sizes in x, y and z of an expression: a number, a ``dim3``, or the name of one."""
    if len(part) == 1 and is_name(part[0]):
        for place in range(len(earlier) - 2, 0, -1):
            if earlier[place] != part[0] or earlier[place - 1] not in ("dim3", "auto", ","):
                continue
            start = place + 1
            if earlier[start] == "=":
                start += 2 if earlier[start + 1] == "dim3" else 1
            if start < len(earlier) and earlier[start] in ("(", "{"):
                return at_commas(earlier[start + 1 : closing(earlier, start)])
    if part[:1] == ["dim3"] and part[1:2] in (["("], ["{"]):
        return at_commas(part[2 : closing(part, 1)])
    if part[:1] == ["{"]:
        return at_commas(part[1 : closing(part, 0)])
    return [part]


def _number(part: list[str], earlier: Sequence[str], fixed: Mapping[str, int]) -> int | None:
    def expand(name: str) -> dict[tuple[str, ...], int] | None:
        if name in fixed:
            return {(): fixed[name]}
        for place in range(len(earlier) - 3, 0, -1):
            if earlier[place] == name and earlier[place + 1] == "=" and is_name(earlier[place - 1]):
                value = earlier[place + 2]
                return (
                    {(): int(value)}
                    if value.isdigit() and earlier[place + 3 : place + 4] in ((";",), (",",))
                    else None
                )
        return None

    found = read(part, expand)
    return found.get((), 0) if set(found) <= {()} else None
