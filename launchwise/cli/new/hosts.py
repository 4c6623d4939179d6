"""How the host code of a CUDA file launches a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from launchwise.cli.new.polynomials import read
from launchwise.cli.new.templates import angle
from launchwise.cli.new.tokens import Code, Macro, at_commas, closing, is_name


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
    sides
        Names of template parameters or macros that are the threads per dimension; '' for others.
    shared
        Tokens of the bytes of dynamic shared memory.
    block_name
        Variable that holds the block; '' where none does.
    """

    block: list[int | None] = field(default_factory=list)
    grid: list[list[str]] = field(default_factory=list)
    given: list[list[str]] = field(default_factory=list)
    sides: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    block_name: str = ""


def host_launch(
    code: Code,
    kernel: str,
    fixed: Mapping[str, int],
    template: Sequence[str] = (),
    alone: bool = False,
) -> HostLaunch:
    """How a file launches a kernel; an empty launch where it does not, or in other words.

    A launch through a pointer counts where the file launches the kernel in no other way.

    Parameters
    ----------
    fixed
        What the file sets to integers.
    template
        Names of the kernel's template parameters.
    alone
        Whether the file has no other kernel.
    """
    tokens = code.tokens
    launches = [place for place in range(1, len(tokens) - 3) if _is_launch(tokens, place)]
    named = [place for place in launches if _launched(tokens, place)[0] == kernel]
    taken = [place for place, token in enumerate(tokens) if token == kernel and place]
    taken = [place for place in taken if tokens[place - 1] in ("=", "&", "?", ":", "return")]
    pointers = [place for place in launches if alone or (taken and place > taken[0])]
    for place in named or pointers[:1]:
        _, arguments, start = _launched(tokens, place)
        end = _closing_launch(tokens, place + 3)
        parts = at_commas(tokens[place + 3 : end])
        if len(parts) < 2 or tuple(tokens[end + 3 : end + 4]) != ("(",):
            continue
        given = at_commas(tokens[end + 4 : closing(tokens, end + 3)])
        earlier = tokens[:start]
        sides = _sides(parts[1], earlier)
        block = [_number(part, earlier, fixed, code.macros) for part in sides]
        names = [_named(part, arguments, template) for part in sides]
        shared = _value_of(parts[2], earlier) if len(parts) > 2 else []
        name = parts[1][0] if len(parts[1]) == 1 and is_name(parts[1][0]) else ""
        return HostLaunch(block, _sides(parts[0], earlier), given, names, shared, name)
    return HostLaunch()


def _is_launch(tokens: Sequence[str], place: int) -> bool:
    return tuple(tokens[place : place + 3]) == ("<", "<", "<") and tokens[place - 1] != "<"


def _launched(tokens: Sequence[str], place: int) -> tuple[str, list[list[str]], int]:
    """Name before the ``<<<`` at a place, its template arguments, and where the name stands."""
    if tokens[place - 1] != ">":
        return tokens[place - 1], [], place - 1
    for start in range(place - 2, max(place - MOST_ARGUMENTS, 0), -1):
        if tokens[start] == "<" and angle(tokens, start) == place - 1:
            return tokens[start - 1], at_commas(tokens[start + 1 : place - 1]), start - 1
    return "", [], place


MOST_ARGUMENTS = 200
"""Tokens of template arguments that are read."""


def _named(part: Sequence[str], arguments: list[list[str]], template: Sequence[str]) -> str:
    """The template parameter, or the macro, that a size is; '' for an expression or a number."""
    if len(part) != 1 or not is_name(part[0]):
        return ""
    passed = [own for own, one in zip(template, arguments, strict=False) if one == list(part)]
    return passed[0] if passed else part[0]


def _value_of(part: list[str], earlier: Sequence[str]) -> list[str]:
    """An expression, or that of the variable that it names, with all that is added to it."""
    if len(part) != 1 or not is_name(part[0]):
        return part
    found: list[str] = []
    for place in range(len(earlier) - 1):
        if earlier[place] != part[0] or earlier[place + 1] not in ("=", "+="):
            continue
        end = next((at for at in range(place, len(earlier)) if earlier[at] == ";"), len(earlier))
        value = at_commas(earlier[place + 2 : end])[0] if end > place + 2 else []
        begins = earlier[place + 1] == "=" or found in ([], ["0"])
        found = value if begins else [*found, "+", *value]
    return found or part


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
            if earlier[start] in (";", ",") and (found := _members(part[0], earlier[start:])):
                return found
            if earlier[start] == "=":
                start += 2 if earlier[start + 1] == "dim3" else 1
            if start < len(earlier) and earlier[start] in ("(", "{"):
                return at_commas(earlier[start + 1 : closing(earlier, start)])
    if part[:1] == ["dim3"] and part[1:2] in (["("], ["{"]):
        return at_commas(part[2 : closing(part, 1)])
    if part[:1] == ["{"]:
        return at_commas(part[1 : closing(part, 0)])
    return [part]


def _members(name: str, tokens: Sequence[str]) -> list[list[str]]:
    """Sizes in x, y and z of a ``dim3`` that is set member by member: ``block.x = 32;``."""
    found: dict[str, list[str]] = {}
    for place, token in enumerate(tokens[:-4]):
        if token == name and tuple(tokens[place + 1 : place + 4 : 2]) == (".", "="):
            end = next((at for at in range(place, len(tokens)) if tokens[at] == ";"), len(tokens))
            found[tokens[place + 2]] = list(tokens[place + 4 : end])
    last = max(("xyz".index(axis) + 1 for axis in found if axis in "xyz"), default=0)
    return [found.get(axis, ["1"]) for axis in "xyz"[:last]]


def _number(
    part: list[str], earlier: Sequence[str], fixed: Mapping[str, int], macros: Mapping[str, Macro]
) -> int | None:
    def expand(name: str) -> dict[tuple[str, ...], int] | None:
        if name in fixed:
            return {(): fixed[name]}
        macro = macros.get(name)
        if macro is not None and macro.parameters is None and not macro.replaceable:
            return read(macro.text, lambda one: None if one == name else expand(one))
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
