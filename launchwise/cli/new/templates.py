"""Parameters of a kernel that is a template."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from launchwise.cli.new.tokens import at_commas, closing, is_name
from launchwise.cli.new.types import QUALIFIERS, TYPES, WORDS, Names, type_of


@dataclass(frozen=True)
class TemplateParameter:
    """A parameter between ``template <`` and ``>``.

    Parameters
    ----------
    name
        As the file has it.
    kind
        ``type``, ``integer``, ``flag`` or ``enum``.
    default
        Its text; empty where there is none.
    values
        Enumerators.
    """

    name: str
    kind: str
    default: str = ""
    values: tuple[str, ...] = ()


def template_parameters(head: Sequence[str], names: Names) -> tuple[TemplateParameter, ...]:
    """Parameters of the template that a declaration begins with; none where it is no template.

    Raises
    ------
    ValueError
        When one of them is no type, integer, flag or enumeration.
    """
    if "template" not in head:
        return ()
    start = list(head).index("template") + 1
    end = angle(head, start)
    found = []
    for place, part in enumerate(at_commas(head[start + 1 : end])):
        one = _parameter(part, place, names)
        if one is not None:
            found.append(one)
    return tuple(found)


def angle(tokens: Sequence[str], start: int) -> int:
    """Place of the ``>`` that closes the ``<`` at ``start``; the end where none does."""
    depth = round_depth = 0
    for place in range(start, len(tokens)):
        token = tokens[place]
        round_depth += (token in ("(", "{", "[")) - (token in (")", "}", "]"))
        if round_depth == 0:
            depth += (token == "<") - (token == ">")
            if depth == 0:
                return place
    return len(tokens)


def _parameter(part: list[str], place: int, names: Names) -> TemplateParameter | None:
    """One parameter; None for one without a name whose default only restricts the others."""
    written = " ".join(part)
    default = ""
    if "=" in part:
        default = "".join(part[part.index("=") + 1 :])
        part = part[: part.index("=")]
    if ". . ." in written or "template" in part:
        raise ValueError(f"its template parameter {written!r} stands for no single type or number")
    if part[:1] in (["typename"], ["class"]) and "::" not in part:
        if len(part) == 1:
            return None if default else TemplateParameter(f"type_{place + 1}", "type")
        return TemplateParameter(part[1], "type", default)
    named = [each for each in part if is_name(each) and each not in QUALIFIERS]
    if not named or "(" in part or "*" in part or "&" in part:
        raise ValueError(f"its template parameter {written!r} is neither a type nor a number")
    unnamed = len(named) == 1 or named[-1] in WORDS
    if unnamed and (default or "enable_if" in written):
        return None
    name = f"argument_{place + 1}" if unnamed else named[-1]
    kind = named if unnamed else named[:-1]
    if kind[-1] in names.enums:
        return TemplateParameter(name, "enum", default, tuple(names.enums[kind[-1]]))
    known = type_of(kind, names.aliases)[0]
    if known == "bool":
        return TemplateParameter(name, "flag", default)
    if "int" in known or kind == ["auto"] or kind[-1] in TYPES:
        return TemplateParameter(name, "integer", default)
    raise ValueError(f"its template parameter {written!r} is neither a type nor a number")


def launched_with(tokens: Sequence[str], kernel: str) -> list[list[str]]:
    """Template arguments with which the file itself launches or instantiates a kernel."""
    return [given for _, given in _launches(tokens, kernel)]


def launched_numbers(tokens: Sequence[str], kernel: str, place: int) -> list[int]:
    """Numbers that a file gives a parameter of a kernel's template, in their order.

    Also through a function of its own that is a template: ``launch<64>(...)``.
    """
    found: list[str] = []
    for at, given in _launches(tokens, kernel):
        text = given[place] if place < len(given) else ""
        found += _through(tokens, at, text) if text and is_name(text) else [text]
    numbers = [_FLAGS.get(text, text.rstrip("uUlL")) for text in found]
    return list(dict.fromkeys(int(each) for each in numbers if each.isdigit()))


_FLAGS = {"true": "1", "false": "0"}


def _through(tokens: Sequence[str], launch: int, name: str) -> list[str]:
    """What is given to the template parameter ``name`` of the function that holds a launch."""
    starts = [at for at in range(launch) if tokens[at] == "template" and tokens[at + 1] == "<"]
    if name in _FLAGS:
        return [name]
    if not starts:
        return _set_before(tokens, launch, name)
    end = angle(tokens, starts[-1] + 1)
    parts = [
        part[: part.index("=")] if "=" in part else part
        for part in at_commas(tokens[starts[-1] + 2 : end])
    ]
    names = [part[-1] if part else "" for part in parts]
    opening = next((at for at in range(end, launch) if tokens[at] == "("), launch)
    if name not in names or not _encloses(tokens, opening, launch):
        return _set_before(tokens, launch, name)
    calls = [
        at_commas(tokens[at + 2 : angle(tokens, at + 1)])
        for at, token in enumerate(tokens[:-1])
        if token == tokens[opening - 1] and tokens[at + 1] == "<"
    ]
    number = names.index(name)
    return [" ".join(given[number]) for given in calls if number < len(given)]


def _encloses(tokens: Sequence[str], opening: int, place: int) -> bool:
    """Whether a place lies in the body of the function whose parameters open at ``opening``."""
    if opening >= place:
        return False
    end = closing(tokens, opening)
    body = next((at for at in range(end, place) if tokens[at] in ("{", ";")), place)
    return body < place and tokens[body] == "{" and closing(tokens, body) > place


def _set_before(tokens: Sequence[str], launch: int, name: str) -> list[str]:
    """Number that a variable was set to last before a launch: ``constexpr int WARPS = 4``."""
    for place in range(launch - 1, 0, -1):
        if tokens[place] == name and tokens[place + 1] == "=":
            return [tokens[place + 2]] if tokens[place + 3] in (",", ";") else []
    return []


def _launches(tokens: Sequence[str], kernel: str) -> Iterator[tuple[int, list[str]]]:
    """Places where a file launches or instantiates a kernel, and the template arguments there."""
    for place, token in enumerate(tokens[:-1]):
        if token != kernel or tokens[place + 1] != "<" or tokens[place + 2 : place + 3] == ["<"]:
            continue
        end = angle(tokens, place + 1)
        after = tuple(tokens[end + 1 : end + 4])
        if after == ("<", "<", "<") or "template" in tokens[max(0, place - 8) : place]:
            yield place, [" ".join(part) for part in at_commas(tokens[place + 2 : end])]


def names_of_types(
    parameters: Sequence[TemplateParameter], used: Collection[str]
) -> Mapping[str, str]:
    """Type parameters to the problem parameter that chooses among their types.

    ``used`` are the types of the kernel's parameters: another stands for no number.
    """
    found: dict[str, str] = {}
    for one in parameters:
        if one.kind == "type" and one.name in used:
            found[one.name] = "dtype" if not found else f"dtype_{one.name.lower().strip('_')}"
    return found
