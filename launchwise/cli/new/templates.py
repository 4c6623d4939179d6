"""Parameters of a kernel that is a template."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from launchwise.cli.new.tokens import at_commas, is_name
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
    found = []
    for place, token in enumerate(tokens[:-1]):
        if token != kernel or tokens[place + 1] != "<" or tokens[place + 2 : place + 3] == ["<"]:
            continue
        end = angle(tokens, place + 1)
        after = tuple(tokens[end + 1 : end + 4])
        if after == ("<", "<", "<") or "template" in tokens[max(0, place - 8) : place]:
            found.append([" ".join(part) for part in at_commas(tokens[place + 2 : end])])
    return found


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
