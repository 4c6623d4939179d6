"""Structures, enumerations and aliases of a CUDA text."""

from __future__ import annotations

from tree_sitter import Node

from launchwise.cuda_text.syntax import child, declarator, declarators, has_word, text_of, walk
from launchwise.cuda_text.types import BYTES, Structure, TypeNames, bare

_STRUCTURES = ("struct_specifier", "class_specifier", "union_specifier")
_LAYOUT = ("alignas_qualifier", "attribute_specifier", "ms_declspec_modifier")


def type_names(root: Node) -> TypeNames:
    """Names of types that a text gives, those inside of functions included."""
    found = TypeNames()
    for node in walk(root, *_STRUCTURES, "enum_specifier", "type_definition", "alias_declaration"):
        if node.type == "type_definition":
            _read_typedef(node, found)
        elif node.type == "alias_declaration":
            kind = child(node, "type")
            found.aliases[text_of(child(node, "name"))] = bare(text_of(kind))
        elif child(node, "body") is not None:
            name = child(node, "name")
            typedef = node.parent if node.parent and node.parent.type == "type_definition" else None
            names = [text_of(name)] if name is not None and name.type == "type_identifier" else []
            names += [each.name for each in declarators(typedef)] if typedef else []
            for each in names:
                if node.type == "enum_specifier":
                    found.enums[each] = _enumerators(node, each)
                else:
                    found.structures[each] = _structure(node, found)
    return found


def _read_typedef(node: Node, found: TypeNames) -> None:
    kind = child(node, "type")
    if kind is None or child(kind, "body") is not None:
        return
    for each in declarators(node):
        if not (each.sizes or each.arguments):
            found.aliases[each.name] = bare(text_of(kind)) + "*" * each.pointers


def _enumerators(node: Node, name: str) -> list[str]:
    prefix = f"{name}::" if has_word(node, "class", "struct") else ""
    return [f"{prefix}{text_of(child(each, 'name'))}" for each in walk(node, "enumerator")]


def _structure(node: Node, names: TypeNames) -> Structure:
    """Fields of a structure, by the rules of C for their places; none where one is no number."""
    body = child(node, "body")
    is_function = any("operator()" in text_of(each) for each in walk(node, "operator_name"))
    opaque = Structure(is_function=is_function)
    derived = any(each.type == "base_class_clause" for each in node.children)
    if body is None or derived or node.type == "union_specifier":
        return opaque
    fields: dict[str, str] = {}
    size, widest = 0, 1
    for member in body.named_children:
        found = _fields(member, names)
        if found is None:
            return opaque
        for name, kind in found.items():
            item = BYTES[kind]
            fields[name] = kind
            size, widest = -(-size // item) * item + item, max(widest, item)
    size = -(-size // widest) * widest
    return Structure(fields, size, is_function) if fields and _is_usual(node, size) else opaque


def _is_usual(node: Node, size: int) -> bool:
    """Whether fields lie as usual in memory: ``alignas(16)`` of 16 bytes changes nothing."""
    layout = [each for each in node.children if each.type in _LAYOUT]
    following = node.next_sibling
    asked = [text_of(each.named_children[0]) for each in layout if each.named_children]
    plain = all(each.isdigit() and int(each) and size % int(each) == 0 for each in asked)
    return plain and len(asked) == len(layout) and getattr(following, "type", "") not in _LAYOUT


def _fields(member: Node, names: TypeNames) -> dict[str, str] | None:
    """Fields of one member to their types; None where one is no plain number."""
    if any(each.type == "virtual" or text_of(each) == "virtual" for each in member.children):
        return None
    if member.type != "field_declaration":
        return None if member.type == "ERROR" else {}
    if has_word(member, "static", "constexpr", "friend"):
        return {}
    kind = child(member, "type")
    declared = declarators(member)
    if kind is not None and kind.type in (*_STRUCTURES, "enum_specifier") and not declared:
        # A type that is only declared; one without a name has fields of its own.
        own = child(kind, "name") is not None or kind.type == "enum_specifier"
        return {} if own else None
    if any(each.type in ("bitfield_clause", *_LAYOUT) for each in member.children):
        return None
    found: dict[str, str] = {}
    for node, each in zip(member.children_by_field_name("declarator"), declared, strict=True):
        if each.arguments is not None:
            if each.pointers or "parenthesized" in str(node):
                return None  # A pointer to a function.
            continue
        element, width = names.spec_type(text_of(kind))
        if not element or width > 1 or each.pointers or each.sizes or each.is_reference:
            return None
        found[declarator(node).name] = element
    return found
