"""Names that CUDA code reads and declares, and the declarations that a kernel reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tree_sitter import Node

from launchwise.cuda_text.declarations import Item
from launchwise.cuda_text.syntax import child, declarator, declarators, has_word, text_of, walk

IDENTIFIERS = ("identifier", "type_identifier", "field_identifier", "namespace_identifier")
_SKIPPED = (
    *("using_declaration", "namespace_alias_definition", "alias_declaration", "attribute"),
    *("goto_statement", "static_assert_declaration", "attribute_specifier"),
    *("attribute_declaration", "ms_declspec_modifier"),
)
_FUNCTIONS = ("function_definition", "template_declaration", "declaration", "field_declaration")


def identifiers(nodes: Iterable[Node]) -> set[str]:
    """Every identifier in some nodes."""
    return {text_of(each) for node in nodes for each in walk(node, *IDENTIFIERS)}


def read_names(nodes: Iterable[Node], templates: Mapping[str, Sequence[bool]]) -> dict[str, bool]:
    """Names that are read as values or stand for types, in their order, to whether as types.
    Functions that are called, members and what belongs to a namespace are left out. ``templates``
    are names of templates to whether each of their parameters is a type."""
    found: dict[str, bool] = {}
    for node in nodes:
        for name, is_type in _read(node, templates):
            found[name] = found.get(name, False) or is_type
    return found


def _read(node: Node, templates: Mapping[str, Sequence[bool]]) -> Iterator[tuple[str, bool]]:
    waiting = [node]
    while waiting:
        here = waiting.pop()
        children = list(here.named_children)
        if here.type in _SKIPPED:
            continue
        if here.type in ("identifier", "type_identifier"):
            yield text_of(here), here.type == "type_identifier"
        elif here.type == "ERROR":
            # Of what could not be read, names that look like macros.
            yield from ((each, False) for each in identifiers([here]) if each.isupper())
            continue
        elif here.type == "type_definition":
            children = [each for each in children if child(each, "body") is not None]
        elif here.type == "qualified_identifier":
            children = [each for each in children if each.child_count]
        elif here.type in ("template_function", "template_type"):
            # A name that stands alone is a value, unless the template takes a type there.
            types = templates.get(text_of(child(here, "name")), ())
            listed, children = child(here, "arguments"), []
            for place, each in enumerate(listed.named_children if listed is not None else ()):
                if name := _lone_name(each):
                    yield name, place < len(types) and types[place]
                else:
                    children.append(each)
        elif here.type == "call_expression":
            function = child(here, "function")
            if function is not None and function.type == "identifier":
                children.remove(function)
        waiting += reversed(children)


def _lone_name(node: Node) -> str:
    inner = child(node, "type") if node.type == "type_descriptor" else node
    alone = node.type != "type_descriptor" or node.named_child_count == 1
    is_name = inner is not None and inner.type in ("identifier", "type_identifier")
    return text_of(inner) if alone and is_name else ""


def declared_names(nodes: Iterable[Node]) -> set[str]:
    """Names that nodes declare: variables, parameters, functions, types, enumerators."""
    found: set[str] = set()
    for node in nodes:
        for each in walk(node):
            found |= {one.name.rpartition("::")[2] for one in declarators(each)}
            if each.type == "binary_expression":
                found |= _like_a_comparison(each)
            elif each.type == "structured_binding_declarator":
                found |= identifiers([each])
            elif each.type.endswith("type_parameter_declaration"):
                found |= {text_of(one) for one in walk(each, "type_identifier")}
            elif each.type in ("lambda_capture_initializer", "namespace_alias_definition"):
                found.add(text_of(each.named_children[0]))
            elif each.type in _NAMED:
                found.add(text_of(child(each, "name")))
    return found - {""}


def _like_a_comparison(node: Node) -> set[str]:
    """What ``a::tile<8> part = f();`` declares, whose tree may be that of two comparisons."""
    left, right = child(node, "left"), child(node, "right")
    inner = child(left, "left")
    if text_of(child(node, "operator")) != ">" or text_of(child(left, "operator")) != "<":
        return set()
    if inner is None or inner.type not in ("identifier", "qualified_identifier"):
        return set()
    named = child(right, "left") or child(right, "function") or right
    return {text_of(named)} if named is not None and named.type == "identifier" else set()


_NAMED = (
    *("struct_specifier", "class_specifier", "union_specifier", "enum_specifier", "enumerator"),
    *("alias_declaration", "namespace_definition", "concept_definition"),
)


def on_device(item: Item) -> list[Node]:
    """Parts of a declaration that device code may use: nothing of the host."""
    if item.is_function:
        device = item.of_device or (item.body is not None and has_word(item.inner, "constexpr"))
        return [item.node] if device else []
    structure = item.structure
    body = child(structure, "body")
    if structure is None or body is None or structure.type == "enum_specifier":
        return [item.node]
    kept = [each for each in body.named_children if not _is_of_host(each)]
    others = [each for each in item.node.named_children if each not in (structure, item.inner)]
    beside = [each for each in item.inner.named_children if each != structure]
    name = child(structure, "name")
    layout = [each for each in structure.named_children if each not in (body, name)]
    return [*kept, *others, *(beside if item.inner != structure else []), *layout]


def _is_of_host(member: Node) -> bool:
    inner = member.named_children[-1] if member.type == "template_declaration" else member
    if inner.type not in _FUNCTIONS or child(inner, "body") is None:
        return declarator(child(inner, "declarator")).arguments is not None
    return not has_word(inner, "__device__", "constexpr")


def reached(starts: Collection[Node], items: Sequence[Item]) -> list[Item]:
    """Declarations that some nodes name, those that these name, and so on; kernels are left out."""
    index: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        for name in item.names if not item.is_kernel else ():
            index.setdefault(name, []).append(number)
    wanted: set[int] = set()
    seen: set[str] = set()
    waiting = identifiers(starts)
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for number in {*index.get(name, ())} - wanted:
            wanted.add(number)
            waiting |= identifiers(on_device(items[number])) - seen
    return [items[number] for number in sorted(wanted)]
