"""The syntax tree of CUDA C++: parsing, walking, declarators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

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
