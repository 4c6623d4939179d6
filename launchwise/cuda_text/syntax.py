"""CUDA C++ as a text: directives of the preprocessor; as a syntax tree: walking, declarators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_LITERAL = re.compile(
    r"""R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"       # raw text
      | (?<!\w)\d(?:'?[\w.])*                            # number: 1'000'000
      | //(?:\\\n|[^\n])* | /\*.*?\*/
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
    """,
    re.DOTALL | re.VERBOSE,
)
_LINES = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)[ \t]*(.*)")
_MACRO = re.compile(r"\w+(\([^)]*\))?")
INTEGER = re.compile(r"\(*\s*(\d+)[uUlL]*\s*\)*")
_GUARD_OF_HEADER = re.compile(r"_(H|CUH|HPP|INCLUDED)_*$")


def without_comments(text: str) -> str:
    """A C++ text whose comments are blank; every line keeps its number. Raw texts are empty."""
    text = re.sub(r"\r\n?", "\n", text)

    def plain(match: re.Match[str]) -> str:
        said = match[0]
        if said[0] not in "/R":
            return said
        return ('""' if said[0] == "R" else " ") + "\n" * said.count("\n")

    return _LITERAL.sub(plain, text)


def blank(text: str) -> str:
    """A text of the same lines and length that says nothing."""
    return re.sub(r"[^\n]", " ", text)


def in_place(text: str, literals: bool = True) -> str:
    """A C++ text with blanks for its comments and, unless ``literals`` stay, for what texts in
    quotation marks hold. All else keeps its place."""

    def plain(match: re.Match[str]) -> str:
        said = match[0]
        if said[0] == "/":
            return blank(said)
        if literals or said[0] not in "R\"'":
            return said
        mark = said[-1]
        return f"{mark}{blank(said[1:-1])}{mark}"

    return _LITERAL.sub(plain, text)


def without_directives(text: str) -> str:
    """A text with blanks for the lines of the preprocessor."""
    return _LINES.sub(lambda match: blank(match[0]), text)


def joined(text: str) -> list[str]:
    """Lines of a text, with those that end with a backslash in one and blank lines behind."""
    lines: list[str] = []
    blank = 0
    for line in text.split("\n"):
        if blank:
            lines[-blank] = lines[-blank].rstrip()[:-1] + " " + line
            lines.append("")
        else:
            lines.append(line)
        blank = blank + 1 if lines[-1 - blank].rstrip().endswith("\\") else 0
    return lines


def condition_of(line: str) -> tuple[str, str]:
    match = _DIRECTIVE.match(line)
    return (match[1], match[2].strip()) if match else ("", "")


def missing_in(word: str, condition: str) -> str:
    """The name that a branch finds undefined."""
    patterns = {"ifndef": r"(\S+)", "if": r"!\s*defined\s*\(?\s*(\w+)"}
    match = re.match(patterns.get(word, "$."), condition)
    return match[1] if match else ""


def spans_of(lines: list[str]) -> dict[int, list[int]]:
    """Lines with ``#if`` to those of the branches of it, that with ``#endif`` included."""
    found: dict[int, list[int]] = {}
    opened: list[list[int]] = []
    for number, line in enumerate(lines):
        word = condition_of(line)[0]
        if word in ("if", "ifdef", "ifndef"):
            opened.append([number])
        elif word in ("elif", "else") and opened:
            opened[-1].append(number)
        elif word == "endif" and opened:
            branches = opened.pop()
            found[branches[0]] = [*branches, number]
    return found


def is_whole(lines: list[str]) -> bool:
    """Whether every condition that begins or ends in some lines lies in them, and each of its
    branches closes the brackets that it opens."""
    words = [condition_of(line)[0] for line in lines]
    spans = spans_of(lines).values()
    known = sum(word in ("if", "ifdef", "ifndef", "elif", "else", "endif") for word in words)
    return sum(map(len, spans)) == known and all(is_balanced(lines, each) for each in spans)


def is_balanced(lines: list[str], branches: list[int]) -> bool:
    """Whether each branch closes the brackets that it opens."""
    texts = ["\n".join(lines[start + 1 : end]) for start, end in pairwise(branches)]
    pairs = (("{", "}"), ("(", ")"), ("[", "]"))
    return all(text.count(one) == text.count(other) for text in texts for one, other in pairs)


@dataclass
class Guarded:
    """An ``#ifndef`` with nothing but definitions of its name and of others, to their texts."""

    guard: str
    members: dict[str, str] = field(default_factory=dict)

    @property
    def is_group(self) -> bool:
        """Whether whoever sets one name must set the others: what guards a header is alone."""
        names = list(self.members)
        header = _GUARD_OF_HEADER.search(self.guard.upper())
        return not any("(" in name for name in names) and (
            names[:1] == [self.guard] and len(names) > 1 and not header
        )


def guarded(lines: list[str]) -> tuple[dict[str, int], dict[int, Guarded], set[int]]:
    """Macros that are defined only where nothing else did, to their integers. Also groups by the
    line of their ``#ifndef``, and the lines of their definitions."""
    free: dict[str, int] = {}
    groups: dict[int, Guarded] = {}
    within: set[int] = set()
    for start, branches in sorted(spans_of(lines).items()):
        group = Guarded(missing_in(*condition_of(lines[start])))
        inner = [number for number in range(start + 1, branches[1]) if lines[number].strip()]
        places: dict[int, str] = {}
        for number in inner if group.guard else ():
            word, rest = condition_of(lines[number])
            if word == "define" and (name := _MACRO.match(rest)):
                places[number] = name[0]
                group.members[name[0]] = rest[name.end() :].strip()
        is_group = len(branches) == 2 and len(places) == len(inner) and group.is_group
        if is_group:
            groups[start] = group
            within |= {*places}
        for number, each in places.items():
            value = INTEGER.fullmatch(group.members[each])
            if value and (is_group or each == group.guard):
                free.setdefault(each, int(value[1]))
                within.add(number)
    return free, groups, within


def excluded_by(text: str, kernel: str) -> str:
    """The condition around a kernel that the preprocessor leaves out; '' where none is found."""
    lines = joined(text)
    head = re.compile(rf"\b{re.escape(kernel)}\s*\(")
    place = next((number for number, line in enumerate(lines) if head.search(line)), -1)
    inner = [one for one in spans_of(lines).values() if one[0] < place < one[-1]]
    if not inner:
        return ""
    word, condition = condition_of(lines[max(line for line in max(inner) if line < place)])
    name = missing_in(word, condition)
    defines = re.compile(rf"\s*#\s*define\s+{re.escape(name) or '#'}\b").match
    named = next((number for number, line in enumerate(lines, 1) if defines(line)), 0)
    which = f", which line {named} defines" if named else ""
    return f"#{word} {condition}".rstrip() + which


_QUALIFIED = ("qualified_identifier", "template_function", "operator_name", "destructor_name")
_NAMES = ("identifier", "field_identifier", "type_identifier", *_QUALIFIED)
_UNKNOWN = re.compile(
    r"(\b__(?:global|device)__[^;{}()]*?)\b(?!__)(\w+\s*\([^()]*\))(?=\s*\w+\s*\()"
)
"""A head with a macro that nothing defines, such as ``__global__ void BOUNDS(128) name(``."""


@cache
def _language() -> Language:
    return Language(tree_sitter_cuda.language())


def parse(text: str) -> Node:
    """Root of the tree of a text without directives."""
    # The grammar does not know packs of pointers, `T *...x`.
    text = re.sub(r"[*&](?=\s*[*&]?\s*\.\.\.)", " ", text)
    text = _UNKNOWN.sub(lambda match: match[1] + re.sub(r"[^\n]", " ", match[2]), text)
    # Places in bytes are those of characters.
    return Parser(_language()).parse(text.encode("ascii", "replace")).root_node


def text_of(node: Node | None) -> str:
    """Text of a node; empty for none."""
    return node.text.decode() if node is not None and node.text is not None else ""


def plain(node: Node | None) -> str:
    return re.sub(r"\s+", " ", text_of(node)).strip()


_TOKEN = re.compile(
    r"""[A-Za-z_]\w*                                  # name
      | (?:\d|\.\d)(?:[eEpP][+-]|['\w.])*             # number
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'     # text
      | <<= | >>= | -> | :: | \+\+ | -- | && | \|\|   # operators of several characters
      | [-+*/%&|^!=<>]=
      | \S
    """,
    re.VERBOSE,
)


def tokens_of(text: Node | str | None) -> list[str]:
    return _TOKEN.findall(text if isinstance(text, str) else text_of(text))


def walk(node: Node, *kinds: str) -> Iterator[Node]:
    """A node and all below it, in the order of the text; those of some kinds only."""
    cursor = node.walk()
    while True:
        here = cursor.node
        if here is not None and (not kinds or here.type in kinds):
            yield here
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return


def above(node: Node) -> Iterator[Node]:
    """Nodes that hold a node, the innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node


def child(node: Node | None, name: str) -> Node | None:
    """Child of a node by its field; None for no node."""
    return node.child_by_field_name(name) if node is not None else None


@dataclass(frozen=True)
class Declarator:
    """What a declaration says of one name."""

    name: str
    node: Node | None
    pointers: int = 0
    is_reference: bool = False
    sizes: tuple[str, ...] = ()  # texts in its brackets
    arguments: Node | None = None  # parameters of a function
    given: str = ""  # template arguments behind its name, with ``<>``


_DECLARES = re.compile(rf".*declarator|(?:{'|'.join(_NAMES)})$").match


def declarator(node: Node | None) -> Declarator:
    """The name, the pointers and the brackets of a declarator; no name for an abstract one."""
    pointers, is_reference, arguments = 0, False, None
    sizes: list[str] = []
    while node is not None and node.type not in _NAMES:
        pointers += node.type in ("pointer_declarator", "abstract_pointer_declarator")
        is_reference |= "reference_declarator" in node.type
        if "array_declarator" in node.type:
            sizes.insert(0, text_of(child(node, "size")))
        if "function_declarator" in node.type:
            arguments = child(node, "parameters")
        named = (one for one in node.named_children if _DECLARES(one.type))
        node = child(node, "declarator") or next(named, None)
    name, given = text_of(node), ""
    if node is not None and node.type == "template_function":
        name, given = text_of(child(node, "name")), text_of(child(node, "arguments"))
    return Declarator(name, node, pointers, is_reference, tuple(sizes), arguments, given)


def declarators(node: Node) -> list[Declarator]:
    """Those of a declaration, a parameter or a field, in order."""
    return [declarator(each) for each in node.children_by_field_name("declarator")]


def has_word(node: Node, *words: str) -> bool:
    """Whether a declaration has one of some words, such as ``__global__`` or ``const``."""
    return any(child.type in words or text_of(child) in words for child in node.children)
