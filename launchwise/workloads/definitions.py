"""Where a CUDA text defines its kernels: namespaces, line, template or not.

A scanner of braces, not a parser: what macros make is not found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_PIECE = re.compile(
    r"""(?P<space>\bnamespace\b\s*(?P<name>[\w:\s]*)\{)
      | (?P<global>\b__global__\b)
      | (?P<open>\{) | (?P<close>\})
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    """,
    re.VERBOSE,
)
_BOUNDS = re.compile(r"__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|__\w+__\s*\([^()]*\)")


@dataclass(frozen=True)
class Definition:
    """A kernel in a CUDA text.

    Parameters
    ----------
    name
        With its namespaces: ``mine::axpy``; anonymous ones are left out.
    line
        Number of the line that names it, from 1.
    is_template
        Whether a ``template <...>`` head precedes it.
    is_local
        Whether it is ``static`` or in an anonymous namespace: nvcc drops it unless it is used.
    """

    name: str
    line: int
    is_template: bool
    is_local: bool


def definitions(text: str, kernel: str | None = None) -> list[Definition]:
    """Kernels that a text without comments defines or declares; those of one name only.

    Parameters
    ----------
    kernel
        Name, with or without namespaces; all kernels when left out.
    """
    found = list(_scanned(text))
    if kernel is None:
        return found
    return [each for each in found if each.name == kernel or each.name.endswith(f"::{kernel}")]


def _scanned(text: str) -> Iterator[Definition]:
    spaces: list[list[str] | None] = []
    for match in _PIECE.finditer(text):
        if match["space"]:
            spaces.append(match["name"].replace("inline", "").replace("::", " ").split() or [""])
        elif match["open"]:
            spaces.append(None)
        elif match["close"]:
            if spaces:
                spaces.pop()
        elif match["global"]:
            rest = without_bounds(text[match.end() :][:2000])
            named = re.match(r"[^;{}()=]*?\b(\w+)\s*(?:<[^;{}()]*>)?\s*\(", rest)
            head = (
                re.split(r"[;{}]", text[: match.start()])[-1] + rest[: named.end() if named else 0]
            )
            # `template __global__ void k<32>(...)` instantiates: it defines no kernel.
            instantiates = re.search(r"\btemplate\b(?!\s*<)", head)
            if named is None or instantiates:
                continue
            path = [name for space in spaces if space is not None for name in space]
            yield Definition(
                name="::".join([*filter(None, path), named[1]]),
                line=text.count("\n", 0, match.end() + named.start(1)) + 1,
                is_template=re.search(r"\btemplate\s*<", head) is not None,
                is_local="" in path or re.search(r"\bstatic\b", head) is not None,
            )


def without_bounds(text: str) -> str:
    """A text with blanks for ``__launch_bounds__(...)`` and attributes of that kind."""
    return _BOUNDS.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def template_parameters(text: str) -> set[str]:
    """Names of parameters in the ``template <...>`` heads of a text."""
    found: set[str] = set()
    for match in re.finditer(r"\btemplate\s*<", text):
        depth, place = 1, match.end()
        while place < len(text) and depth:
            depth += (text[place] in "<(") - (text[place] in ">)")
            place += 1
        head = text[match.end() : place - 1]
        found |= set(re.findall(r"(\w+)\s*(?=,|=|$)", head))
    return found


def is_macro(name: str, text: str) -> bool:
    """Whether a C++ text uses a name without declaring it as a variable or parameter."""
    declared = re.search(rf"(?:\w|[*&>])\s+[*&]?{name}\s*[=;,)\[({{]", text)
    return declared is None and re.search(rf"\b{name}\b", text) is not None


def overriding_line(name: str, text: str, macros: Collection[str] = ()) -> int:
    """Line that defines or undefines a macro under no condition; 0 where none does.

    A guard of the file (``#ifndef FILE_H``, then ``#define FILE_H``) is no condition, unless it is
    one of the ``macros`` that the build defines: then what it guards is left out.
    """
    for number, word, rest in _unconditional(text, macros):
        named = "".join(rest.split()[:1]).partition("(")[0] == name
        if word in ("define", "undef") and named:
            return number
    return 0


def declaring_line(name: str, text: str, macros: Collection[str] = ()) -> int:
    """Line that declares a name as a constant or an enumerator under no condition; 0 for none.

    A macro of that name would stand in its declaration: ``const int 64 = 128;``. Conditions are
    those of :func:`overriding_line`.
    """
    if name not in text:
        return 0
    kept = {number: line for number, word, line in _unconditional(text, macros) if not word}
    plain = "\n".join(kept.get(number, "") for number in range(1, text.count("\n") + 2))
    own = re.escape(name)
    constant = rf"\bconst(?:expr|init)?\b[^;(){{}}=]*?\b(?P<name>{own})\s*[={{\[;]"
    further = rf"\bconst(?:expr)?\s[^;(){{}}]*,\s*(?P<other>{own})\s*[={{]"
    one_of = rf"\benum\b[^;{{}}()]*\{{(?:[^{{}};]*,)?\s*(?P<one>{own})\s*[=,}}]"
    for pattern in (constant, further, one_of):
        if match := re.search(pattern, plain):
            return plain.count("\n", 0, match.start(match.lastindex or 0)) + 1
    return 0


def _unconditional(text: str, macros: Collection[str]) -> Iterator[tuple[int, str, str]]:
    """Lines under no condition: number, word of a directive and its rest, or nothing and all."""
    conditions: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        match = re.match(r"[ \t]*#[ \t]*(\w+)(.*)", line)
        word, rest = (match[1], match[2].split()) if match else ("", [])
        if word in ("if", "ifdef", "ifndef"):
            following = lines[number].split() if number < len(lines) else []
            guards = word == "ifndef" and rest and following[:2] == ["#define", rest[0]]
            guards = guards and rest[0] not in macros
            # The name of a guard has no value.
            conditions.append("guard" if guards and len(following) == 2 else word)
        elif word == "endif" and conditions:
            conditions.pop()
        elif not set(conditions) - {"guard"}:
            yield number, word, match[2] if match else line
