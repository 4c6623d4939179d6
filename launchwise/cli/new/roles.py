"""Whether a kernel reads an array, writes it, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launchwise.cli.new.signature import Function, Parameter
from launchwise.cli.new.tokens import closing, is_name

_COMPARE = ("==", "!=", "<=", ">=")
_ATOMIC = ("atomic", "red_", "__nv_atomic")


@dataclass(frozen=True)
class Atomics:
    """Atomic operations on an array.

    Parameters
    ----------
    functions
        Their names; none where there are none.
    index
        Tokens of the first index; ``0`` for the array's beginning.
    """

    functions: tuple[str, ...] = ()
    index: tuple[str, ...] = ()


def role_in(
    body: Sequence[str], parameter: Parameter, functions: Mapping[str, Function] | None = None
) -> tuple[str, str]:
    """Role of an array, and a question where the kernel's body leaves it open.

    ``functions`` are those of the device, by name.
    """
    if parameter.const:
        return "input", ""
    reads = writes = unclear = False
    names, definitions = aliases_of(body, parameter.name)
    for place, token in enumerate(body):
        if token not in names or place in definitions or _is_member(body, place):
            continue
        use = "rw" if _is_changed(body, place, functions or {}) else _use(body, place)
        reads |= "r" in use
        writes |= "w" in use
        unclear |= "?" in use
    if atomics_on(body, parameter).functions:
        return "inout", "an atomic operation adds to what is there: begins as zeros?"
    if writes:
        return ("inout", "also read: in and out?") if reads else ("output", "")
    if reads and not unclear:
        return "input", "not const but only read"
    return "output", "output or input"


def written_at(body: Sequence[str], array: str) -> list[int]:
    """Places where an array is written, or may be."""
    names, definitions = aliases_of(body, array)
    return [
        place
        for place, token in enumerate(body)
        if token in names
        and place not in definitions
        and not _is_member(body, place)
        and "w" in _use(body, place)
    ]


def _is_changed(body: Sequence[str], place: int, functions: Mapping[str, Function]) -> bool:
    """Whether an element is given to a function that takes a reference: ``swap(x[i], x[j])``."""
    end = closing(body, place + 1) if body[place + 1 : place + 2] in (["["], ("[",)) else place
    if end == place or tuple(body[end + 1 : end + 2]) not in ((",",), (")",)):
        return False
    number, depth = 0, 0
    for at in range(place - 1, 0, -1):
        depth += (body[at] in (")", "]")) - (body[at] in ("(", "["))
        if depth < 0 or body[at] in (";", "{", "}"):
            function = functions.get(body[at - 1])
            known = function is not None and number in function.changes
            whole = at + 1 == place or body[place - 1] == ","
            return whole and (known or (body[at - 1] == "swap" and body[at] == "("))
        number += body[at] == "," and depth == 0
    return False


def _is_member(body: Sequence[str], place: int) -> bool:
    return bool(place) and body[place - 1] in (".", "->")


def aliases_of(body: Sequence[str], array: str) -> tuple[set[str], set[int]]:
    """Names of pointers into an array, with its own, and the places where they are set."""
    names, definitions = {array}, set[int]()
    for place in range(2, len(body)):
        if body[place] not in names or _is_member(body, place):
            continue
        element = tuple(body[place + 1 : place + 2]) == ("[",)
        if element and body[place - 1] != "&":
            continue  # No pointer, as in `float *row = &x[i]`.
        start = place
        while start > 0 and (body[start - 1] in ("(", ")", "*", "&") or _is_type(body, start - 1)):
            start -= 1
        if start < 2 or body[start - 1] != "=" or not is_name(body[start - 2]):
            continue
        if body[start] == "*":
            continue  # A value that is read.
        name, declared = body[start - 2], body[max(0, start - 6) : start - 2]
        if (
            name in names
            or "*" in declared
            or "auto" in declared
            or declared[-1:] in ([";"], (";",))
        ):
            names.add(name)
            definitions.add(place)
    return names, definitions


def _is_type(body: Sequence[str], place: int) -> bool:
    """Whether a token belongs to a cast: ``(float4 *)``."""
    after = body[place + 1] if place + 1 < len(body) else ""
    return is_name(body[place]) and after in ("*", "const") and body[place - 1] in ("(", "const")


def _use(body: Sequence[str], place: int) -> str:
    """How an array is used at a place: r for read, w for written, ? for neither."""
    end = place
    while end + 1 < len(body):
        if body[end + 1] == "[":
            end = closing(body, end + 1)
        elif body[end + 1] == ")" and end + 2 < len(body) and body[end + 2] in ("[", ")", "="):
            if body[end + 2] == ")" and tuple(body[end + 3 : end + 4]) not in (("[",), ("=",)):
                break
            end += 1
        else:
            break
    while end + 2 < len(body) and body[end + 1] == "." and is_name(body[end + 2]):
        end += 2
    if end + 2 < len(body) and body[end + 1] == "->" and is_name(body[end + 2]):
        end += 2
    after = body[end + 1] if end + 1 < len(body) else ";"
    before = body[place - 1] if place else ";"
    if end == place and before not in ("*", "&") and after in ("=", "+=", "-=", "++", "--"):
        return ""  # The pointer moves.
    assigned = after in ("++", "--") or (
        len(after) > 1 and after[-1] == "=" and after not in _COMPARE
    )
    if before == "&":
        # `&x[i]` is given to a function that may write it.
        return "rw" if after != "=" else "w"
    if after == "=" and (end != place or before == "*"):
        return "w"
    if assigned or (before in ("++", "--") and end != place):
        return "rw"
    if before == "*" and end == place and _dereferenced(body, place):
        return "r"
    return "?" if end == place else "r"


def _dereferenced(body: Sequence[str], place: int) -> bool:
    """Whether ``*x`` is no product."""
    earlier = body[place - 2] if place > 1 else ";"
    return earlier in ("=", "(", ",", ";", "+", "-", "return", "+=", "{", "}")


def atomics_on(body: Sequence[str], parameter: Parameter) -> Atomics:
    """Atomic operations on an array."""
    names, _ = aliases_of(body, parameter.name)
    functions: list[str] = []
    index: tuple[str, ...] = ()
    for place, token in enumerate(body[:-1]):
        if not token.startswith(_ATOMIC):
            continue
        start = place + 1
        if body[start] == "_ref" or body[start] == "<":
            start = next(
                (at for at in range(start, min(start + 24, len(body))) if body[at] in ("(", "{")),
                len(body) - 1,
            )
            # cuda::atomic_ref<int> name(x[i])
        if body[start] != "(" and is_name(body[start]):
            start += 1
        if start >= len(body) or body[start] not in ("(", "{"):
            continue
        given = _first_argument(body, start)
        at = next((at for at, each in enumerate(given) if each in names), None)
        if at is None or (at and given[at - 1] in (".", "->", "[")):
            continue
        functions.append(token)
        index = index or _index(given[at + 1 :])
    return Atomics(tuple(functions), index)


def _first_argument(body: Sequence[str], start: int) -> list[str]:
    end, depth = start + 1, 0
    while end < len(body):
        depth += (body[end] in ("(", "[", "{")) - (body[end] in (")", "]", "}"))
        if depth < 0 or (depth == 0 and body[end] == ","):
            break
        end += 1
    return list(body[start + 1 : end])


def _index(rest: Sequence[str]) -> tuple[str, ...]:
    """Index of what follows the array's name: ``[i]`` or ``+ i``."""
    if rest[:1] == ["["]:
        return tuple(rest[1 : closing(rest, 0)])
    if rest[:1] == ["+"]:
        return tuple(rest[1:])
    return ("0",)
